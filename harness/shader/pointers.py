"""References: which resource, which descriptor of an array, and which bytes of a block a pointer or handle means."""

from __future__ import annotations

from typing import NamedTuple

from harness.shader.opcodes import Op
from harness.shader.spirv import SpirvError
from harness.shader.types import Type, Types

EXACT = -1
"""`Ref.size` of a reference whose bytes are those of its type."""
MAXIMUM_ELEMENT = 0xFFFFFFFF
ARRAYS = (Op.TypeArray, Op.TypeRuntimeArray)


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


def widen(ref: Ref) -> Ref:
    """The same descriptor, anywhere in its block."""
    return Ref(ref.variable, ref.element, ref.type, ref.inside, 0, None, ref.matrix)


def any_element(ref: Ref, types: Types) -> Ref:
    """Where a pointer into an array of descriptors may have moved along it: any of them."""
    moved = not ref.inside and types[ref.type].op in ARRAYS
    return Ref(ref.variable, None, ref.type, ref.inside, 0, None, ref.matrix) if moved else widen(ref)


def extent(ref: Ref, types: Types) -> tuple[int, int] | None:
    """(offset, size) in bytes of what the reference covers in its block; None for anywhere."""
    size = types.size(ref.type, ref.matrix) if ref.size == EXACT else ref.size
    return None if size is None else (ref.low, size)


def step(ref: Ref, index: int | None, types: Types) -> Ref:
    """One index of an access chain; None for an index that is no constant.

    An index that is not known, or is out of bounds, covers the array, vector or matrix that it indexes: a program whose
    behaviour is defined stays inside. Raises SpirvError for a step that the type does not allow.
    """
    type = types[ref.type]
    if type.op == Op.TypeStruct:
        return _into_member(ref, index, type)
    if type.op in ARRAYS and not ref.inside:
        return Ref(ref.variable, _element(ref, index, type), type.element, False, 0, EXACT, 0)
    if type.op not in ARRAYS and type.op not in (Op.TypeVector, Op.TypeMatrix):
        raise SpirvError(f"SPIR-V indexes into the type %{ref.type}, which has no parts")
    matrix = ref.matrix if type.op in ARRAYS else 0
    if ref.size != EXACT:
        return Ref(ref.variable, ref.element, type.element, ref.inside, ref.low, ref.size, matrix)
    stride = _stride(ref, type, types)
    if index is None or index < 0 or stride is None or (type.count is not None and index >= type.count):
        size = types.size(ref.type, ref.matrix)
        return Ref(ref.variable, ref.element, type.element, ref.inside, ref.low, size, matrix)
    return Ref(ref.variable, ref.element, type.element, ref.inside, ref.low + index * stride, EXACT, matrix)


def _into_member(ref: Ref, index: int | None, type: Type) -> Ref:
    if index is None or not 0 <= index < len(type.members):
        raise SpirvError(f"SPIR-V indexes a structure of {len(type.members)} members by {index}")
    member = type.members[index]
    low, size = ref.low, ref.size
    if size == EXACT:
        low, size = (0, None) if member.offset is None else (low + member.offset, EXACT)
    return Ref(ref.variable, ref.element, member.type, True, low, size, member.matrix)


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
