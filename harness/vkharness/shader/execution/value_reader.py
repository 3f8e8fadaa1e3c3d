"""Instructions that work on values alone, as closures; and the registers of the function that is being made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vkharness.shader.execution.access_chains import ChainTypes, Registers, Step
from vkharness.shader.execution.float_bits import settled
from vkharness.shader.execution.function_code import BlockCode, FunctionCode, Running, RunningState
from vkharness.shader.execution.normalized_values import pack_unorm, unpack_unorm
from vkharness.shader.execution.outside import AddressMemory, NotInterpreted
from vkharness.shader.execution.scalar_operations import EXTENDED, Maker
from vkharness.shader.execution.stored_values import EXPLICIT, HANDLES, LOOSE, StoredValues
from vkharness.shader.opcodes import Decoration, Op, StorageClass
from vkharness.shader.spirv import Function
from vkharness.shader.types import Type
from vkharness.shader.variables import Declarations

Operands = tuple[int, ...]
BUILT_INS = {15: 4, 24: 3, 26: 3, 27: 3, 28: 3, 29: 1, 42: 1, 43: 1, 4440: 1}
"""FragCoord, NumWorkgroups, WorkgroupId, LocalInvocationId, GlobalInvocationId, LocalInvocationIndex, VertexIndex,
InstanceIndex, ViewIndex -> components."""


OWN = {StorageClass.Private, StorageClass.Workgroup, StorageClass.Output}
"""Storage classes whose memory belongs to an invocation or a work group, and has no layout."""
PACK_UNORM_4X8, UNPACK_UNORM_4X8 = 55, 64
"""Numbers in GLSL.std.450 of instructions between a word and a vector."""


class ValueReader:
    """Makes the code of instructions on values. Raises NotInterpreted for what is not known or may vary."""

    def __init__(
        self, declarations: Declarations, stored: StoredValues, constants: dict[int, Any], addresses: AddressMemory
    ) -> None:
        self._declarations, self._types, self._stored = declarations, declarations.types, stored
        self._constants, self._addresses = constants, addresses
        self._chains = ChainTypes(declarations, stored)
        self.codes: dict[int, FunctionCode] = {}
        self.storage: dict[int, Type] = {}
        """Pointer types of module-scope variables."""
        self._type_of: dict[int, int] = {}
        for op, operands in declarations.module.declarations:
            if op >= Op.ConstantTrue and len(operands) > 1:
                self._type_of[operands[1]] = operands[0]
                if op == Op.Variable:
                    self.storage[operands[1]] = self._types[operands[0]]
        self._begin(Function(0))

    def _begin(self, function: Function) -> None:
        self._code, self._own = FunctionCode(), set[int]()
        self._registers: dict[int, int] = {}
        self._block, self._label = BlockCode(), 0
        self._code.parameters = []
        self._id = function.id

    # Registers

    def _add(self, step: Step) -> None:
        self._block.parts[-1][0].append(step)

    def _end_part(self, special: Callable[[Registers, RunningState], Running]) -> None:
        self._block.parts[-1] = (self._block.parts[-1][0], special)
        self._block.parts.append(([], None))

    def _register(self, id: int) -> int:
        """The register of a value of this function, of a constant, or of a module-scope variable."""
        if id not in self._registers:
            held = self._declarations.decorations(id)
            if any(decoration in held for decoration in LOOSE):
                raise NotInterpreted(f"%{id} has relaxed precision")
            value = None
            if id in self.storage:
                self._check_variable(id)
                self._code.variables.append((len(self._code.registers), id))
            elif id not in self._own:
                value = self._constants.get(id)
                if value is None:
                    raise NotInterpreted(f"the value of %{id} is not known")
            self._registers[id] = len(self._code.registers)
            self._code.registers.append(value)
        return self._registers[id]

    def _check_variable(self, id: int) -> None:
        pointer, held = self.storage[id], self._declarations.decorations(id)
        known = pointer.storage_class in (
            EXPLICIT | {StorageClass.Private, StorageClass.Workgroup, StorageClass.Output}
        )
        if pointer.storage_class == StorageClass.UniformConstant:
            known = self._types[self._types.inside_arrays(pointer.element)[0]].op in HANDLES
        elif pointer.storage_class == StorageClass.Input and Decoration.Location in held:
            known = self._stored.width(pointer.element) == 32
        elif pointer.storage_class == StorageClass.Input:
            known = self._stored.cells(pointer.element) == BUILT_INS.get(held.get(Decoration.BuiltIn, -1))
            known = known and self._stored.width(pointer.element) == 32
        if pointer.storage_class == StorageClass.Workgroup:
            known = Decoration.Block not in self._declarations.decorations(pointer.element)
        if not known:
            raise NotInterpreted(f"the variable %{id} of storage class {pointer.storage_class} is not followed")

    def _many(self, ids: Sequence[int]) -> list[int]:
        return [self._register(id) for id in ids]

    def _of(self, id: int) -> Type:
        return self._types[self._type_of[id]]

    def _pointee(self, id: int) -> tuple[Type, bool]:
        """The type of a pointer, and whether it leads to bytes."""
        pointer = self._of(id)
        return pointer, pointer.storage_class in EXPLICIT

    # Operations on values

    def _scalar(self, make: Maker, result: int, id: int, sources: Sequence[int]) -> None:
        """An operation on scalars, or component by component where operands are vectors."""
        function = make(self._stored.width(result), self._stored.width(self._type_of[sources[0]]))
        target, registers = self._register(id), self._many(sources)
        if self._types[result].op == Op.TypeVector:
            count = self._types[result].count or 0
            vectors = [self._of(source).op == Op.TypeVector for source in sources]

            def vector(r: Registers) -> None:
                held = [r[at] if vec else (r[at],) * count for at, vec in zip(registers, vectors, strict=True)]
                r[target] = tuple(map(function, *held))

            self._add(vector)
        elif len(registers) == 2:
            first, second = registers

            def binary(r: Registers) -> None:
                r[target] = function(r[first], r[second])

            self._add(binary)
        else:
            self._add(lambda r: r.__setitem__(target, function(*(r[at] for at in registers))))

    def _pure(self, id: int, sources: Sequence[int], function: Callable[..., Any]) -> None:
        target, registers = self._register(id), self._many(sources)
        self._add(lambda r: r.__setitem__(target, function(*(r[at] for at in registers))))

    def _extended(self, _: int, operands: Operands) -> None:
        result, id, instructions, number, *sources = operands
        name = self._declarations.module.instruction_sets.get(instructions, "")
        if name.startswith("NonSemantic."):
            return
        if name == "GLSL.std.450" and number in (PACK_UNORM_4X8, UNPACK_UNORM_4X8):
            self._pure(id, sources, pack_unorm if number == PACK_UNORM_4X8 else unpack_unorm)
            return
        if name != "GLSL.std.450" or number not in EXTENDED:
            raise NotInterpreted(f"instruction {number} of {name or 'an unknown set'} is not interpreted")
        self._scalar(EXTENDED[number], result, id, sources)

    def _copy(self, _: int, operands: Operands) -> None:
        self._pure(operands[1], operands[2:3], lambda value: value)

    def _select(self, _: int, operands: Operands) -> None:
        if self._of(operands[2]).op == Op.TypeVector:
            self._pure(operands[1], operands[2:5], _select_each)
        else:
            self._pure(operands[1], operands[2:5], lambda condition, a, b: a if condition else b)

    def _construct(self, _: int, operands: Operands) -> None:
        if self._types[operands[0]].op != Op.TypeVector:
            self._pure(operands[1], operands[2:], lambda *parts: parts)
            return
        vectors = [self._of(id).op == Op.TypeVector for id in operands[2:]]

        def join(*parts: Any) -> Any:
            split = [part if vec else (part,) for part, vec in zip(parts, vectors, strict=True)]
            return tuple(component for part in split for component in part)

        self._pure(operands[1], operands[2:], join)

    def _composite_extract(self, _: int, operands: Operands) -> None:
        def extract(value: Any) -> Any:
            for index in operands[3:]:
                value = value[index]
            return value

        self._pure(operands[1], operands[2:3], extract)

    def _composite_insert(self, _: int, operands: Operands) -> None:
        self._pure(operands[1], operands[2:4], lambda part, whole: _replaced(whole, operands[4:], part))

    def _shuffle(self, _: int, operands: Operands) -> None:
        chosen = operands[4:]
        if 0xFFFFFFFF in chosen:
            raise NotInterpreted("OpVectorShuffle leaves a component undefined")
        self._pure(operands[1], operands[2:4], lambda a, b: tuple((a + b)[index] for index in chosen))

    def _vector_dynamic(self, op: int, operands: Operands) -> None:
        count = self._of(operands[2]).count or 0

        def checked(index: int) -> int:
            if index >= count:
                raise NotInterpreted(f"component {index} of a vector of {count} does not exist")
            return index

        if op == Op.VectorExtractDynamic:
            self._pure(operands[1], operands[2:4], lambda vector, index: vector[checked(index)])
        else:
            self._pure(operands[1], operands[2:5], lambda whole, new, at: _replaced(whole, (checked(at),), new))

    def _any_all(self, op: int, operands: Operands) -> None:
        self._pure(operands[1], operands[2:3], any if op == Op.Any else all)

    def _bitcast(self, _: int, operands: Operands) -> None:
        source, target = self._of(operands[2]), self._types[operands[0]]
        addresses = self._addresses
        width, to = source.width, target.width
        if source.op == Op.TypeVector:
            width = self._stored.width(source.id)
        if target.op == Op.TypeVector:
            to = self._stored.width(target.id)
        for pointer in (source, target):
            if pointer.op == Op.TypePointer and pointer.storage_class != StorageClass.PhysicalStorageBuffer:
                raise NotInterpreted("a pointer that is no address is converted")

        def cast(value: Any) -> Any:
            bits = value
            if source.op == Op.TypePointer:
                bits = value[1]
            elif source.op == Op.TypeVector:
                bits = sum(settled(part) << (index * width) for index, part in enumerate(value))
            else:
                bits = settled(value)
            if target.op == Op.TypePointer:
                return (addresses, bits, 0)
            if target.op == Op.TypeVector:
                return tuple(bits >> (index * to) & (1 << to) - 1 for index in range(target.count or 0))
            return bits & (1 << to) - 1

        self._pure(operands[1], operands[2:3], cast)


def _select_each(conditions: Any, a: Any, b: Any) -> Any:
    return tuple(one if condition else two for condition, one, two in zip(conditions, a, b, strict=True))


def _replaced(whole: Any, place: Sequence[int], part: Any) -> Any:
    """A composite with one part exchanged. Raises IndexError."""
    if not place:
        return part
    parts = list(whole)
    parts[place[0]] = _replaced(parts[place[0]], place[1:], part)
    return tuple(parts)
