"""SPIR-V types, and where the parts of a block lie in memory.

Sizes and offsets are bytes, from the explicit layout decorations (Offset, ArrayStride, MatrixStride). None means that
the size is not known: a runtime array, or a type without layout.
"""

from __future__ import annotations

from dataclasses import dataclass

from vkharness.shader.opcodes import Decoration, Op, StorageClass
from vkharness.shader.spirv import Decorations, Module, SpirvError

LIMIT = 1 << 64
"""Nothing is larger; sizes stop growing here, so that nested arrays cannot make huge numbers."""
WIDTHS = (8, 16, 32, 64)
COMPONENTS = (2, 3, 4, 8, 16)
"""Of a vector; columns of a matrix (SPIR-V specification, "Universal Validation Rules")."""
ARRAYS = (Op.TypeArray, Op.TypeRuntimeArray)


@dataclass(frozen=True, slots=True)
class StructMember:
    """One member of a structure. `matrix` is its MatrixStride, negative for a row-major matrix, 0 for none."""

    type: int
    offset: int | None
    matrix: int


@dataclass(frozen=True, slots=True)
class Type:
    """One type. Only the members that its instruction gives have a meaning."""

    op: int
    id: int = 0
    element: int = 0
    """Id of the component, column, element, pointee, or image type."""
    count: int | None = None
    """Components, columns or elements; None for a runtime array or a length that is not known."""
    width: int = 0
    signed: bool = False
    size: int | None = None
    stride: int | None = None
    members: tuple[StructMember, ...] = ()
    storage_class: int = -1
    dim: int = 0
    sampled: int = 0
    arrayed: bool = False
    opaque: bool = False
    """It is or contains a handle or a pointer, so a value of it can carry a resource."""


ANY = Type(-1)
"""A type that the reader does not know."""


class Types:
    """The types of one module, filled in order of declaration."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._types: dict[int, Type] = {}

    def __getitem__(self, id: int) -> Type:
        try:
            return self._types[id]
        except KeyError:
            raise SpirvError(f"SPIR-V uses the type %{id}, which is not declared before") from None

    def __contains__(self, id: int) -> bool:
        return id in self._types

    def all(self) -> dict[int, Type]:
        """Those that are declared, by id."""
        return dict(self._types)

    def add_unknown(self, id: int) -> None:
        """Note that `id` is declared by an instruction that the reader does not know."""
        self._types.setdefault(id, ANY)

    def declare(self, op: int, operands: tuple[int, ...], length: int | None) -> None:
        """Add the type that one OpType* instruction declares. `length` is the array length, None when not known."""
        id = operands[0]
        if op == Op.TypeForwardPointer:
            self._types.setdefault(id, Type(Op.TypePointer, id, storage_class=operands[1], size=8, opaque=True))
            return
        if id in self._types and not op == self._types[id].op == Op.TypePointer:  # once forward, once in full
            raise SpirvError(f"SPIR-V declares the type %{id} twice")
        self._types[id] = self._make(op, id, operands, length)

    def _make(self, op: int, id: int, operands: tuple[int, ...], length: int | None) -> Type:
        if op in (Op.TypeInt, Op.TypeFloat):
            if operands[1] not in WIDTHS:
                raise SpirvError(f"SPIR-V declares a scalar of {operands[1]} bits")
            signed = op == Op.TypeInt and operands[2] == 1
            return Type(op, id, width=operands[1], signed=signed, size=operands[1] // 8)
        if op in (Op.TypeVector, Op.TypeMatrix) and operands[2] not in COMPONENTS:
            raise SpirvError(f"SPIR-V declares a vector or matrix of {operands[2]} components")
        if op == Op.TypeVector:
            size = self[operands[1]].size
            return Type(op, id, operands[1], operands[2], size=None if size is None else size * operands[2])
        if op == Op.TypeMatrix:
            return Type(op, id, self[operands[1]].id, operands[2])
        if op == Op.TypeImage:
            return Type(op, id, dim=operands[2], sampled=operands[6], arrayed=operands[4] == 1, opaque=True)
        if op == Op.TypeSampledImage:
            image = self[operands[1]]
            return Type(op, id, operands[1], dim=image.dim, arrayed=image.arrayed, opaque=True)
        if op in (Op.TypeSampler, Op.TypeAccelerationStructureKHR):
            return Type(op, id, opaque=True)
        if op in ARRAYS:
            return self._array(op, id, operands[1], length)
        if op == Op.TypeStruct:
            return self._structure(id, operands[1:])
        if op == Op.TypePointer:
            size = 8 if operands[1] == StorageClass.PhysicalStorageBuffer else None
            return Type(op, id, operands[2], size=size, storage_class=operands[1], opaque=True)
        return Type(op, id)

    def _array(self, op: int, id: int, element: int, length: int | None) -> Type:
        stride = self._module.decorations.get(id, {}).get(Decoration.ArrayStride)
        size = None if stride is None or length is None else min(stride * length, LIMIT)
        return Type(op, id, element, length, size=size, stride=stride, opaque=self[element].opaque)

    def _structure(self, id: int, members: tuple[int, ...]) -> Type:
        made, end, opaque = [], 0, False
        known = True
        for index, type in enumerate(members):
            member = _member(type, self._module.member_decorations.get((id, index), {}))
            size = self.size(type, member.matrix)
            if member.offset is None or size is None:
                known = False
            else:
                end = max(end, member.offset + size)
            opaque = opaque or self[type].opaque
            made.append(member)
        return Type(Op.TypeStruct, id, size=end if known else None, members=tuple(made), opaque=opaque)

    def size(self, id: int, matrix: int) -> int | None:
        """Bytes that a value of the type takes, in a member whose matrix layout is `matrix`; None when not known."""
        type = self[id]
        if type.op != Op.TypeMatrix:
            return type.size
        lines = type.count if matrix > 0 else self[type.element].count
        return None if not matrix or lines is None else min(abs(matrix) * lines, LIMIT)

    def inside_arrays(self, id: int) -> tuple[int, int]:
        """(id of the first type that is no array, number of elements in all) of a possibly nested array.

        The number is 0 when one of the lengths is not known (a runtime array).
        """
        count = 1
        # Types are declared before use, so this walk ends.
        while self[id].op in ARRAYS:
            count = min(count * (self[id].count or 0), LIMIT)
            id = self[id].element
        return id, count


def _member(type: int, decorations: Decorations) -> StructMember:
    stride = decorations.get(Decoration.MatrixStride, 0)
    row_major = Decoration.RowMajor in decorations
    return StructMember(type, decorations.get(Decoration.Offset), -stride if row_major else stride)
