"""Pointers and images as values of many invocations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from vkharness.shader.opcodes import Op
from vkharness.shader.types import ARRAYS, Type

MOST_PARTS = 256
"""The most parts of a composite in a variable that are told apart."""


class PointedPlace(NamedTuple):
    """A pointer. Into a variable of the invocation it has the indices as `path`; into a resource it has bytes."""

    variable: int
    element: Any
    """Flattened index in an array of descriptors, or None."""
    inside: bool
    """Whether it points into a block."""
    offset: Any
    """Bytes from the start of the block, or None."""
    type: int
    """The id of the type that it points to."""
    matrix: int = 0
    """As `types.StructMember.matrix`."""
    path: tuple[Any, ...] | None = None


class ImageHandle(NamedTuple):
    """An image, with or without a sampler."""

    variable: int
    element: Any


class Texel(NamedTuple):
    """A pointer to a texel (OpImageTexelPointer)."""

    image: Any
    coordinates: Any


def stepped(place: PointedPlace, index: Any, types: dict[int, Type]) -> PointedPlace | None:
    """One index of an access chain. None for what is not followed."""
    type = types[place.type]
    if place.path is not None:
        into = _member_type(type, index)
        return None if into is None else place._replace(type=into, path=(*place.path, index))
    if type.op in ARRAYS and not place.inside:
        element = _sum(_product(place.element, type.count or 0), index)
        return place._replace(element=element, type=type.element)
    if type.op == Op.TypeStruct:
        if not isinstance(index, int) or index >= len(type.members):
            return None
        member = type.members[index]
        offset = None if member.offset is None else _sum(place.offset, member.offset)
        return place._replace(inside=True, offset=offset, type=member.type, matrix=member.matrix)
    stride = type.stride
    if type.op == Op.TypeMatrix:
        stride = place.matrix if place.matrix > 0 else None
    elif type.op == Op.TypeVector:
        stride = types[type.element].size
    elif type.op not in ARRAYS:
        return None
    offset = None if stride is None else _sum(place.offset, _product(index, stride))
    matrix = place.matrix if type.op in ARRAYS else 0
    return place._replace(offset=offset, type=type.element, matrix=matrix)


def _member_type(type: Type, index: Any) -> int | None:
    if type.op == Op.TypeStruct:
        return type.members[index].type if isinstance(index, int) and index < len(type.members) else None
    return type.element if type.op in (*ARRAYS, Op.TypeVector, Op.TypeMatrix) else None


def _sum(one: Any, other: Any) -> Any:
    return None if one is None or other is None else one + other


def _product(one: Any, by: int) -> Any:
    return None if one is None else one * by


def leaves(type: Type, offset: int, types: dict[int, Type]) -> Iterator[tuple[int, int]]:
    """(offset, size) in bytes of the numbers of a scalar or vector."""
    if type.op == Op.TypeVector:
        element = types[type.element]
        for at in range(type.count or 0):
            yield from leaves(element, offset + at * (element.size or 0), types)
    elif type.op in (Op.TypeInt, Op.TypeFloat):
        yield offset, type.width // 8


def loaded_part(value: Any, path: tuple[Any, ...]) -> Any:
    """A part of a composite; None where an index is not one number."""
    for index in path:
        if not isinstance(value, tuple) or not isinstance(index, int) or not 0 <= index < len(value):
            return None
        value = value[index]
    return value


def stored_part(whole: Any, type: int, path: tuple[Any, ...], part: Any, types: dict[int, Type]) -> Any:
    """A composite of a type with one part exchanged; None, or parts that are None, where that is not known."""
    if not path:
        return part
    held = types[type]
    count = len(held.members) if held.op == Op.TypeStruct else held.count or 0
    if not isinstance(whole, tuple):
        whole = (None,) * count if 0 < count <= MOST_PARTS else None
    index = path[0]
    if whole is None or not isinstance(index, int) or not 0 <= index < len(whole):
        return None
    into = held.members[index].type if held.op == Op.TypeStruct else held.element
    return (*whole[:index], stored_part(whole[index], into, path[1:], part, types), *whole[index + 1 :])
