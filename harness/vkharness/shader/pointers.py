"""References: which resource, which descriptor of an array, and which bytes of a block a pointer or handle means."""

from __future__ import annotations

from typing import NamedTuple

from vkharness.shader.opcodes import Op
from vkharness.shader.reach import Term
from vkharness.shader.spirv import SpirvError
from vkharness.shader.types import ARRAYS, Type, Types

EXACT = -1
"""`Ref.size` of a reference whose bytes are those of its type."""
MAXIMUM_ELEMENT = 0xFFFFFFFF
MOST_TERMS = 4
"""The most indices of one access chain that are followed."""


class Ref(NamedTuple):
    """A pointer to (part of) a variable, or a handle loaded from it."""

    variable: int
    element: int | None
    """Flattened index in an array of descriptors; 0 for no array; None for any."""
    type: int
    """Type of what is referred to."""
    inside: bool
    """It points into a block; before, array steps choose a descriptor, after, they choose bytes."""
    low: int
    size: int | None
    """Bytes from `low` on, EXACT for those of the type, None for anywhere in the block."""
    matrix: int
    """Matrix layout of the member pointed into, as `types.Member.matrix`."""
    offset: int | None = 0
    """Bytes from the start of the block, without what `terms` add; None when that is not known."""
    terms: tuple[Term, ...] = ()
    """The bytes that indices which are no constants add to `offset`."""
    chosen: int | None = None
    """The node of the index in an array of descriptors when `element` is None; None for any element."""


def widen(ref: Ref) -> Ref:
    """The same descriptor, anywhere in its block."""
    return ref._replace(low=0, size=None, offset=None, terms=())


def any_element(ref: Ref, types: Types) -> Ref:
    """Where a pointer into an array of descriptors may have moved along it: any of them."""
    moved = not ref.inside and types[ref.type].op in ARRAYS
    return widen(ref)._replace(element=None, chosen=None) if moved else widen(ref)


def extent(ref: Ref, types: Types) -> tuple[int, int] | None:
    """(offset, size) in bytes of what the reference covers in its block; None for anywhere."""
    size = types.size(ref.type, ref.matrix) if ref.size == EXACT else ref.size
    return None if size is None else (ref.low, size)


def step(ref: Ref, index: int | None, types: Types, node: int | None = None) -> Ref:
    """One index of an access chain; None for an index that is no constant, which may then be the value of a node.

    An index that is not known, or is out of bounds, covers the array, vector or matrix that it indexes: a program whose
    behaviour is defined stays inside. Raises SpirvError for a step that the type does not allow.
    """
    type = types[ref.type]
    if type.op == Op.TypeStruct:
        return _into_member(ref, index, type)
    if type.op in ARRAYS and not ref.inside:
        element = _element(ref, index, type)
        single = element is None and ref.element == 0 and types[type.element].op not in ARRAYS
        chosen = node if single else None
        return Ref(ref.variable, element, type.element, False, 0, EXACT, 0, chosen=chosen)
    if type.op not in ARRAYS and type.op not in (Op.TypeVector, Op.TypeMatrix):
        raise SpirvError(f"SPIR-V indexes into the type %{ref.type}, which has no parts")
    stride = _stride(ref, type, types)
    outside = index is not None and (index < 0 or (type.count is not None and index >= type.count))
    low, size, offset, terms = ref.low, ref.size, ref.offset, ref.terms
    if size == EXACT:
        if index is None or outside or stride is None:
            size = types.size(ref.type, ref.matrix)
        else:
            low += index * stride
    if stride is None or (index is None and len(terms) >= MOST_TERMS):
        offset, terms = None, ()
    elif index is not None and not outside:
        offset = None if offset is None else offset + index * stride
    else:
        terms = (*terms, (None if outside else node, stride, type.count or 0))
    matrix = ref.matrix if type.op in ARRAYS else 0
    return ref._replace(type=type.element, low=low, size=size, matrix=matrix, offset=offset, terms=terms)


def _into_member(ref: Ref, index: int | None, type: Type) -> Ref:
    if index is None or not 0 <= index < len(type.members):
        raise SpirvError(f"SPIR-V indexes a structure of {len(type.members)} members by {index}")
    member = type.members[index]
    low, size, offset, terms = ref.low, ref.size, ref.offset, ref.terms
    if size == EXACT:
        low, size = (0, None) if member.offset is None else (low + member.offset, EXACT)
    if offset is None or member.offset is None:
        offset, terms = None, ()
    else:
        offset += member.offset
    return ref._replace(
        type=member.type, inside=True, low=low, size=size, matrix=member.matrix, offset=offset, terms=terms
    )


def _element(ref: Ref, index: int | None, type: Type) -> int | None:
    if ref.element is None or index is None or index < 0 or (type.count is not None and index >= type.count):
        return None
    element = ref.element * (type.count or 0) + index
    return element if element <= MAXIMUM_ELEMENT else None


def _stride(ref: Ref, type: Type, types: Types) -> int | None:
    """Bytes from one part to the next; None when they are not contiguous (columns of a row-major matrix)."""
    if type.op == Op.TypeMatrix:
        return ref.matrix if ref.matrix > 0 else None
    return type.stride if type.op in ARRAYS else types[type.element].size
