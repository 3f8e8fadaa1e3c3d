"""Values of each type in memory: in bytes with an explicit layout, or in cells, one for each scalar, without.

A pointer is (memory, place, matrix): a ShaderMemory and a byte, or a list and a cell; `matrix` is the MatrixStride of
the matrix that it points to, negative for a row-major one, or so of a column of it; else 0. A composite is a tuple.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vkharness.shader.constants import CONSTANTS
from vkharness.shader.execution.float_bits import settled
from vkharness.shader.execution.outside import AddressMemory, NotInterpreted, read_inside, write_inside
from vkharness.shader.opcodes import Decoration, Op, StorageClass
from vkharness.shader.types import ARRAYS, LIMIT, StructMember, Type
from vkharness.shader.variables import Declarations

Reader = Callable[[Any, int, int], Any]
"""(memory, place, matrix) -> value."""
Writer = Callable[[Any, int, int, Any], None]
EXPLICIT = frozenset(
    {StorageClass.StorageBuffer, StorageClass.Uniform, StorageClass.PushConstant, StorageClass.PhysicalStorageBuffer}
)
"""Storage classes whose memory has an explicit layout."""
LOOSE = (Decoration.RelaxedPrecision, Decoration.FPFastMathMode)
"""Decorations that let a result vary."""
HANDLES = (Op.TypeImage, Op.TypeSampledImage, Op.TypeSampler)
"""Types of opaque values, each of which is one `ShaderImage`; a sampler is nothing, since any may be used."""
LARGEST_CONSTANT = 1 << 16
"""Scalars of a null constant."""


class StoredValues:
    """Readers and writers for the types of one module."""

    def __init__(self, declarations: Declarations, addresses: AddressMemory) -> None:
        self._declarations, self._types, self._addresses = declarations, declarations.types, addresses
        self._cells: dict[int, int] = {}

    def cells(self, id: int) -> int:
        """Scalars and pointers in a value of the type. Raises NotInterpreted for one that has no such number."""
        if id not in self._cells:
            self._cells[id] = min(self._count(self._types[id]), LIMIT)
        return self._cells[id]

    def _count(self, type: Type) -> int:
        if type.op in (Op.TypeInt, Op.TypeFloat, Op.TypeBool, Op.TypePointer, *HANDLES):
            return 1
        if type.op in (Op.TypeVector, Op.TypeMatrix, Op.TypeArray) and type.count is not None:
            return self.cells(type.element) * type.count
        if type.op == Op.TypeStruct:
            return sum(self.cells(member.type) for member in type.members)
        raise NotInterpreted(f"a value of the type %{type.id} is not followed")

    def member(self, type: Type, index: int) -> tuple[StructMember, int]:
        """A member of a structure, and its first cell. Raises NotInterpreted where its precision is relaxed."""
        held = self._declarations.module.member_decorations.get((type.id, index), {})
        if any(decoration in held for decoration in LOOSE):
            raise NotInterpreted(f"member {index} of %{type.id} has relaxed precision")
        return type.members[index], sum(self.cells(member.type) for member in type.members[:index])

    def zero(self, id: int) -> Any:
        """The null value of a type."""
        type = self._types[id]
        if type.op == Op.TypeBool:
            return False
        if type.op in (Op.TypeInt, Op.TypeFloat):
            return 0
        if type.op == Op.TypePointer:
            return (self._addresses, 0, 0)
        if type.op == Op.TypeStruct:
            return tuple(self.zero(member.type) for member in type.members)
        return (self.zero(type.element),) * (type.count or 0)

    def reader(self, id: int, explicit: bool) -> Reader:
        """Reads a value of the type, from bytes or from cells. Reading what was never written raises NotInterpreted."""
        type = self._types[id]
        if type.op in (Op.TypeInt, Op.TypeFloat, Op.TypeBool, Op.TypePointer):
            return self._scalar_reader(type) if explicit else _read_cell
        parts = [(self.reader(part, explicit), at, matrix) for part, at, matrix in self._parts(type, explicit)]
        if explicit and type.op == Op.TypeVector:
            return lambda memory, place, matrix: tuple(
                read(memory, place + index * (-matrix if matrix < 0 else at), 0)
                for index, (read, at, _) in enumerate(parts)
            )
        if explicit and type.op == Op.TypeMatrix:
            width = self.width(type.element) // 8
            return lambda memory, place, matrix: tuple(
                read(memory, place + index * (matrix if matrix > 0 else width), min(matrix, 0))
                for index, (read, _, _) in enumerate(parts)
            )
        own = type.op == Op.TypeStruct
        return lambda memory, place, matrix: tuple(
            read(memory, place + at, inner if own else matrix) for read, at, inner in parts
        )

    def writer(self, id: int, explicit: bool) -> Writer:
        """Writes a value of the type, to bytes or to cells."""
        type = self._types[id]
        if type.op in (Op.TypeInt, Op.TypeFloat, Op.TypeBool, Op.TypePointer):
            return self._scalar_writer(type) if explicit else _write_cell
        parts = [(self.writer(part, explicit), at, matrix) for part, at, matrix in self._parts(type, explicit)]
        vector, whole = explicit and type.op == Op.TypeVector, explicit and type.op == Op.TypeMatrix
        own, width = type.op == Op.TypeStruct, self.width(type.element) // 8 if whole else 0

        def write(memory: Any, place: int, matrix: int, value: Any) -> None:
            for index, (write_part, at, inner) in enumerate(parts):
                if vector:
                    write_part(memory, place + index * (-matrix if matrix < 0 else at), 0, value[index])
                elif whole:
                    step = matrix if matrix > 0 else width
                    write_part(memory, place + index * step, min(matrix, 0), value[index])
                else:
                    write_part(memory, place + at, inner if own else matrix, value[index])

        return write

    def width(self, id: int) -> int:
        """Bits of a scalar, or of the component of a vector; 1 for a boolean."""
        type = self._types[id]
        return self.width(type.element) if type.op == Op.TypeVector else type.width or 1

    def _parts(self, type: Type, explicit: bool) -> list[tuple[int, int, int]]:
        """(type, place, matrix) of each part; of a vector in bytes, the size of a component instead of the place."""
        if self.cells(type.id) > LARGEST_CONSTANT:
            raise NotInterpreted(f"a value of the type %{type.id} is too large")
        if type.op == Op.TypeStruct:
            members = [self.member(type, index) for index in range(len(type.members))]
            if explicit and any(member.offset is None for member, _ in members):
                raise NotInterpreted(f"the type %{type.id} has no layout")
            return [(each.type, (each.offset or 0) if explicit else at, each.matrix) for each, at in members]
        if explicit and type.op == Op.TypeVector:
            return [(type.element, self.width(type.id) // 8, 0)] * (type.count or 0)
        step = self.step(type, explicit) if type.op in ARRAYS or not explicit else 0
        return [(type.element, index * step, 0) for index in range(type.count or 0)]

    def step(self, type: Type, explicit: bool) -> int:
        """The distance of the elements of an array or, in cells, of any composite of equal parts."""
        if explicit and type.stride is None:
            raise NotInterpreted(f"the array %{type.id} has no ArrayStride")
        return (type.stride or 0) if explicit else self.cells(type.element)

    def _scalar_reader(self, type: Type) -> Reader:
        if type.op == Op.TypePointer and type.storage_class == StorageClass.PhysicalStorageBuffer:
            addresses = self._addresses
            return lambda memory, place, _: (addresses, int.from_bytes(read_inside(memory, place, 8), "little"), 0)
        if type.op not in (Op.TypeInt, Op.TypeFloat):
            raise NotInterpreted(f"the type %{type.id} has no bytes")
        size = type.width // 8
        return lambda memory, place, _: int.from_bytes(read_inside(memory, place, size), "little")

    def _scalar_writer(self, type: Type) -> Writer:
        if type.op == Op.TypePointer and type.storage_class == StorageClass.PhysicalStorageBuffer:
            return lambda memory, place, _, value: write_inside(memory, place, value[1].to_bytes(8, "little"))
        if type.op not in (Op.TypeInt, Op.TypeFloat):
            raise NotInterpreted(f"the type %{type.id} has no bytes")
        size = type.width // 8
        return lambda memory, place, _, value: write_inside(memory, place, settled(value).to_bytes(size, "little"))


def _read_cell(memory: Any, place: int, _: int) -> Any:
    value = memory[place]
    if value is None:
        raise NotInterpreted("the shader reads a variable that nothing has written")
    return value


def _write_cell(memory: Any, place: int, _: int, value: Any) -> None:
    memory[place] = value


def constant_values(
    declarations: Declarations, stored: StoredValues, specialization: Mapping[int, bytes]
) -> dict[int, Any]:
    """The constants of a module by id, under a specialization; those whose value is not known are left out."""
    values: dict[int, Any] = {}
    for op, operands in declarations.module.declarations:
        if op in CONSTANTS:
            value = _constant(declarations, stored, specialization, (op, operands), values)
            if value is not None:
                values[operands[1]] = value
    return values


def _constant(
    declarations: Declarations,
    stored: StoredValues,
    specialization: Mapping[int, bytes],
    instruction: tuple[int, tuple[int, ...]],
    values: dict[int, Any],
) -> Any:
    op, (type_id, id, *operands) = instruction
    type = declarations.types[type_id]
    if op == Op.ConstantNull:
        try:
            return stored.zero(type_id) if stored.cells(type_id) <= LARGEST_CONSTANT else None
        except NotInterpreted:
            return None
    if op in (Op.ConstantComposite, Op.SpecConstantComposite):
        parts = tuple(values.get(part) for part in operands)
        return None if None in parts else parts
    if type.op == Op.TypeFloat and op in (Op.Constant, Op.SpecConstant):
        spec_id = declarations.decorations(id).get(Decoration.SpecId) if op == Op.SpecConstant else None
        given = None if spec_id is None else specialization.get(spec_id)
        if given is not None:
            return int.from_bytes(given, "little")
        bits = operands[0] | (operands[1] << 32 if len(operands) > 1 else 0)
        return bits & (1 << type.width) - 1
    value = declarations.constants.integer(id)
    if value is None:
        return None
    if type.op == Op.TypeBool:
        return bool(value)
    return value & (1 << type.width) - 1 if type.op == Op.TypeInt else None
