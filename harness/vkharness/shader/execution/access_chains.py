"""Pointers from pointers: OpAccessChain and its kin as closures, worked out once from the types that they pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from vkharness.shader.execution.outside import NotInterpreted
from vkharness.shader.execution.stored_values import EXPLICIT, StoredValues
from vkharness.shader.opcodes import Decoration, Op, StorageClass
from vkharness.shader.types import ARRAYS, Type
from vkharness.shader.variables import Declarations

Registers = list[Any]
Step = Callable[[Registers], None]


@dataclass(slots=True)
class IndexWalk:
    """The offset that a chain of indices adds to a pointer: a fixed part, and a part for each index that varies."""

    fixed: int = 0
    dynamic: list[tuple[int, int, int | None]] = field(default_factory=list)
    """(register, distance, number of elements or None)."""
    tables: list[tuple[int, int, int]] = field(default_factory=list)
    """The same for arrays of descriptors, 0 for a number that is not known."""
    matrix: int = 0
    inherits: bool = True
    """The matrix layout of the base still matters: no structure has been passed."""
    resolves: bool = False
    """It leads from a descriptor into its buffer."""


class ChainTypes:
    """Which memory the pointers of a module lead to, by their types."""

    def __init__(self, declarations: Declarations, stored: StoredValues) -> None:
        self._declarations, self._types, self._stored = declarations, declarations.types, stored

    def is_table(self, pointer: Type) -> bool:
        """True for a pointer to a buffer block, or to an array of them: its memory is a BufferTable."""
        if pointer.storage_class not in (StorageClass.StorageBuffer, StorageClass.Uniform):
            return False
        block = self._declarations.decorations(self._types.inside_arrays(pointer.element)[0])
        return Decoration.Block in block or Decoration.BufferBlock in block

    def walk(self, pointer: int, indices: list[tuple[int, int | None]], element: bool) -> IndexWalk:
        """Follow (register, constant or None) from a pointer type. `element`: the first index is that of
        OpPtrAccessChain. Raises NotInterpreted for what has no layout."""
        walk, base = IndexWalk(), self._types[pointer]
        explicit, current = base.storage_class in EXPLICIT, base.element
        if element:
            stride = self._declarations.decorations(pointer).get(Decoration.ArrayStride)
            if stride is None or not explicit or self.is_table(base):
                raise NotInterpreted("a pointer is moved that has no ArrayStride")
            _add(walk, indices.pop(0), stride, None)
        if self.is_table(base):
            while indices and self._types[current].op in ARRAYS:
                array = self._types[current]
                inner = self._types.inside_arrays(array.element)[1]
                walk.tables.append((indices.pop(0)[0], inner, array.count or 0))
                current = array.element
            walk.resolves = bool(indices)
        for index in indices:
            current = self._enter(walk, self._types[current], index, explicit)
        return walk

    def _enter(self, walk: IndexWalk, type: Type, index: tuple[int, int | None], explicit: bool) -> int:
        """The type of the part, noting where it lies."""
        if type.op == Op.TypeStruct:
            if index[1] is None:
                raise NotInterpreted("a member of a structure is chosen by a value that is not known")
            member, cell = self._stored.member(type, index[1])
            if explicit and member.offset is None:
                raise NotInterpreted(f"the type %{type.id} has no layout")
            walk.fixed += (member.offset or 0) if explicit else cell
            walk.matrix, walk.inherits = member.matrix, False
            return member.type
        if type.op not in (*ARRAYS, Op.TypeMatrix, Op.TypeVector) or (type.op == Op.TypeArray and type.count is None):
            raise NotInterpreted(f"a part of the type %{type.id} is not followed")
        if not explicit or type.op in ARRAYS:
            step = self._stored.step(type, explicit)
        elif type.op == Op.TypeMatrix:
            step = walk.matrix if walk.matrix > 0 else self._stored.width(type.element) // 8
            walk.matrix = min(walk.matrix, 0)
        else:
            step = -walk.matrix or self._stored.width(type.id) // 8
            walk.matrix = 0
        _add(walk, index, step, None if type.op == Op.TypeRuntimeArray else type.count)
        return type.element


def _add(walk: IndexWalk, index: tuple[int, int | None], step: int, count: int | None) -> None:
    register, constant = index
    if constant is not None and count is not None and 0 <= constant < count:
        walk.fixed += constant * step
    else:
        walk.dynamic.append((register, step, count))


def chain_step(target: int, base: int, walk: IndexWalk, first_bits: int) -> Step:
    """The closure of a walk. `first_bits` is the width of the index of OpPtrAccessChain, which is signed; else 0."""
    fixed, dynamic, tables, matrix, resolves = walk.fixed, walk.dynamic, walk.tables, walk.matrix, walk.resolves
    inherits = walk.inherits

    def step(registers: Registers) -> None:
        memory, place, held = registers[base]
        if held and inherits:
            raise NotInterpreted("a pointer to a matrix is taken apart in two steps")
        for register, distance, count in tables:
            index = registers[register]
            if count and index >= count:
                raise NotInterpreted(f"descriptor {index} of an array of {count} does not exist")
            place += index * distance
        if resolves:
            memory, place = memory.memory(place), 0
        place += fixed
        for register, distance, bound in dynamic:
            index = registers[register]
            if bound is not None and index >= bound:
                raise NotInterpreted(f"element {index} of an array of {bound} does not exist")
            place += index * distance
        registers[target] = (memory, place, matrix)

    if not first_bits:
        return step

    def signed_step(registers: Registers) -> None:
        step(registers)
        register, distance, _ = dynamic[0]
        memory, place, held = registers[target]
        if registers[register] >> (first_bits - 1):
            registers[target] = (memory, place - (distance << first_bits), held)

    return signed_step
