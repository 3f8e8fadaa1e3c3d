"""Dispatches of so many invocations that they are executed at once: registers hold an array, of one number for each.

It is the interpreter of `vkharness.shader.execution` with other closures for memory, branches and selections. Followed
are shaders of 32-bit integers in storage buffers, without calls, barriers and atomics, in which no invocation reaches
a word that another one writes, so that their order does not matter. `NotInterpreted` is raised for others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from vkharness.shader.execution.access_chains import Registers
from vkharness.shader.execution.executed_module import ExecutedModule, refusing_malformed
from vkharness.shader.execution.function_reader import FunctionReader
from vkharness.shader.execution.outside import Allowance, NotInterpreted, ShaderResources
from vkharness.shader.execution.scalar_operations import EXTENDED, OPERATIONS, Maker
from vkharness.shader.execution.stored_values import Reader, StoredValues, Writer
from vkharness.shader.execution.value_reader import Operands
from vkharness.shader.execution.work_groups import Size
from vkharness.shader.opcodes import Decoration, Op, StorageClass
from vkharness.shader.reflect import workgroup_size
from vkharness.shader.types import Type
from vkharness.spec.enums import VkShaderStage

Numbers = npt.NDArray[np.uint64]
Chosen = npt.NDArray[np.bool_]
AT_ONCE = 1 << 16
"""Invocations that are executed together."""
LEAST = 64
"""Instructions of this many invocations are counted at least, since each costs something by itself."""
WORD = 4
NOT_AT_ONCE = "many invocations at once cannot be followed through it: "


class WordMemory(Protocol):
    """Memory of which many invocations reach words; offsets and invocations are arrays of the same shape."""

    def gather(self, offsets: Numbers, invocations: Numbers) -> Numbers | int:
        """The words, or one for all. Raises `UserError` for words that are not known, and those that others have
        written."""

    def scatter(self, offsets: Numbers, words: Numbers, invocations: Numbers) -> None:
        """Replaces words. Raises `UserError` for those that others have reached."""


def execute_many(
    code: bytes,
    entry: str,
    groups: Size,
    base: Size,
    resources: ShaderResources,
    specialization: Mapping[int, bytes],
    limit: int | Allowance,
) -> None:
    """As `execute_dispatch`, in every order; the memories of the resources are `WordMemory`. At most `limit`
    instructions are executed, of all invocations together."""
    with refusing_malformed():
        _ManyInvocations(code, entry, resources, specialization, limit).run(groups, base)


def _refused(what: str) -> NotInterpreted:
    return NotInterpreted(f"{NOT_AT_ONCE}{what}")


class _WordValues(StoredValues):
    """Readers and writers of scalars in bytes, for all invocations of a group."""

    invocations: Numbers

    def _scalar_reader(self, type: Type) -> Reader:
        self._check(type)

        def read(memory: Any, place: Any, _: int) -> Any:
            if not hasattr(memory, "gather"):
                raise _refused("memory of this sort")
            return memory.gather(self._spread(place), self.invocations)

        return read

    def _scalar_writer(self, type: Type) -> Writer:
        self._check(type)

        def write(memory: Any, place: Any, _: int, value: Any) -> None:
            if not hasattr(memory, "scatter"):
                raise _refused("memory of this sort")
            memory.scatter(self._spread(place), self._spread(value), self.invocations)

        return write

    def _check(self, type: Type) -> None:
        if type.op != Op.TypeInt or type.width != 8 * WORD:
            raise _refused("values that are no 32-bit integers")

    def _spread(self, value: Any) -> Numbers:
        if isinstance(value, int | np.ndarray):
            return np.broadcast_to(np.asarray(value, np.uint64), self.invocations.shape)
        raise _refused("values that are no 32-bit integers")


def _turned(value: Any) -> Any:
    """A signed number as an unsigned one with the same order."""
    return value ^ 0x80000000


def _signed_comparison(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: function(_turned(a), _turned(b))


_SAME = (
    Op.IAdd, Op.ISub, Op.IMul, Op.Not, Op.BitwiseOr, Op.BitwiseXor, Op.BitwiseAnd, Op.LogicalEqual, Op.LogicalNotEqual,
    Op.LogicalOr, Op.LogicalAnd, Op.IEqual, Op.INotEqual, Op.UGreaterThan, Op.UGreaterThanEqual, Op.ULessThan,
    Op.ULessThanEqual,
)  # fmt: skip
"""Operations of which the function for two numbers is right for arrays of 64-bit numbers, too."""
_BY_NUMBER = (Op.ShiftLeftLogical, Op.ShiftRightLogical, Op.UDiv, Op.UMod)
"""The same, where the second operand is one number."""
_OTHERS: dict[Maker, Callable[..., Any]] = {
    OPERATIONS[Op.LogicalNot]: np.logical_not,
    OPERATIONS[Op.SGreaterThan]: _signed_comparison(np.greater),
    OPERATIONS[Op.SGreaterThanEqual]: _signed_comparison(np.greater_equal),
    OPERATIONS[Op.SLessThan]: _signed_comparison(np.less),
    OPERATIONS[Op.SLessThanEqual]: _signed_comparison(np.less_equal),
    EXTENDED[38]: np.minimum,
    EXTENDED[41]: np.maximum,
}
"""UMin and UMax are 38 and 41."""


class _Split(NamedTuple):
    """A branch that invocations may take differently: the register of its condition, and both labels."""

    condition: int
    taken: int
    other: int


class _ManyReader(FunctionReader):
    """Makes closures whose registers may hold arrays."""

    def _begin(self, function: Any) -> None:
        super()._begin(function)
        self.splits: dict[int, _Split] = {}

    def _instruction(self, op: int, operands: Operands) -> None:
        own = _OWN.get(op)
        if own is None:
            super()._instruction(op, operands)
        else:
            self._block.weight += 1
            own(self, op, operands)

    def _scalar(self, make: Maker, result: int, id: int, sources: Sequence[int]) -> None:
        same = {OPERATIONS[op] for op in _SAME}
        by_number = {OPERATIONS[op] for op in _BY_NUMBER}

        def made(width: int, operand: int) -> Callable[..., Any]:
            function = make(width, operand)
            for_arrays = function if make in same or make in by_number else _OTHERS.get(make)

            def apply(*values: Any) -> Any:
                if not any(isinstance(each, np.ndarray) for each in values):
                    return function(*values)
                if for_arrays is None or operand > 8 * WORD or width > 8 * WORD:
                    raise _refused("an operation on what differs from invocation to invocation")
                if make in by_number and isinstance(values[1], np.ndarray):
                    raise _refused("a shift or division by what differs from invocation to invocation")
                return for_arrays(*values)

            return apply

        super()._scalar(made, result, id, sources)

    def _select(self, op: int, operands: Operands) -> None:
        if self._types[operands[0]].op not in (Op.TypeInt, Op.TypeBool):
            super()._select(op, operands)
            return

        def choose(condition: Any, a: Any, b: Any) -> Any:
            if not isinstance(condition, np.ndarray):
                return a if condition else b
            chosen = np.where(condition, a, b)
            return chosen if chosen.dtype == np.bool_ else chosen.astype(np.uint64)

        self._pure(operands[1], operands[2:5], choose)

    def _branch(self, op: int, operands: Operands) -> None:
        super()._branch(op, operands)
        if op == Op.BranchConditional:
            self.splits[self._label] = _Split(self._register(operands[0]), operands[1], operands[2])

    def _atomic(self, op: int, operands: Operands) -> None:
        self._refuse(op, operands)

    def _refuse(self, op: int, operands: Operands) -> None:
        raise _refused("an instruction of this sort")


_OWN: dict[int, Callable[[_ManyReader, int, Operands], None]] = {
    Op.Select: _ManyReader._select,
    Op.Branch: _ManyReader._branch,
    Op.BranchConditional: _ManyReader._branch,
    **dict.fromkeys((Op.Switch, Op.FunctionCall, Op.ControlBarrier), _ManyReader._refuse),
    **dict.fromkeys((Op.AtomicLoad, Op.AtomicStore, Op.CopyMemory), _ManyReader._refuse),
    **dict.fromkeys((Op.ImageRead, Op.ImageFetch, Op.ImageWrite, Op.ImageTexelPointer), _ManyReader._refuse),
    **dict.fromkeys((Op.ImageSampleExplicitLod, Op.ImageSampleImplicitLod), _ManyReader._refuse),
}


class _ManyInvocations(ExecutedModule):
    values_type = _WordValues
    reader_type = _ManyReader
    stored: _WordValues
    reader: _ManyReader

    def __init__(
        self,
        code: bytes,
        entry: str,
        resources: ShaderResources,
        specialization: Mapping[int, bytes],
        limit: int | Allowance,
    ) -> None:
        super().__init__(code, entry, VkShaderStage.COMPUTE, resources, specialization, limit)
        size = workgroup_size(self.declarations, self.modes)
        if size is None or len(self.reader.codes) != 1 or StorageClass.Workgroup in self.by_class:
            raise _refused("shared memory, or calls")
        self._size = size

    def run(self, groups: Size, base: Size) -> None:
        """All invocations, group by group."""
        count, code = prod(groups) * prod(self._size), self.reader.codes[self.entry]
        self.allowance.spend(count * code.blocks[code.entry].weight)  # of what every one executes, before any does
        for first in range(0, count, AT_ONCE):
            invocations = np.arange(first, min(first + AT_ONCE, count), dtype=np.uint64)
            self._run(invocations, self._inputs(invocations, groups, base))

    def _inputs(self, invocations: Numbers, groups: Size, base: Size) -> dict[int, Any]:
        """Memory of the built-in inputs and of private variables."""
        inside = prod(self._size)
        local, group = _places(invocations % inside, self._size), _places(invocations // inside, groups)
        group = [each + start for each, start in zip(group, base, strict=True)]
        every = [at * size + own for at, size, own in zip(group, self._size, local, strict=True)]
        values: dict[int, list[Any]] = {24: list(groups), 26: group, 27: local, 28: every, 29: [invocations % inside]}
        made = self.cells(self.private)
        for id in self.by_class.get(StorageClass.Input, []):
            built_in = self.declarations.decorations(id)[Decoration.BuiltIn]
            made[id] = ([value & 0xFFFFFFFF for value in values[built_in]], 0, 0)
        return made

    def _run(self, invocations: Numbers, own: Mapping[int, Any]) -> None:
        code = self.reader.codes[self.entry]
        registers = code.registers[:]
        for register, variable in code.variables:
            registers[register] = own[variable] if variable in own else self.bound[variable]
        waiting: list[tuple[Registers, int, int, Numbers]] = [(registers, 0, code.entry, invocations)]
        while waiting:
            registers, before, label, lanes = waiting.pop()
            while label:
                self._block(label, before, registers, lanes)
                split, before = self.reader.splits.get(label), label
                condition = None if split is None else registers[split.condition]
                if split is None or not isinstance(condition, np.ndarray):
                    label = code.blocks[label].leave(registers)
                    continue
                chosen = np.broadcast_to(condition, lanes.shape)
                label = split.taken if chosen.any() else split.other
                if chosen.any() and not chosen.all():
                    waiting.append((_part(registers, ~chosen), before, split.other, lanes[~chosen]))
                    registers, lanes = _part(registers, chosen), lanes[chosen]

    def _block(self, label: int, before: int, registers: Registers, lanes: Numbers) -> None:
        block = self.reader.codes[self.entry].blocks[label]
        self.allowance.spend(block.weight * max(LEAST, len(lanes)))
        self.stored.invocations = lanes
        if block.phis:
            targets, sources = block.phis[before]
            values = [registers[source] for source in sources]
            for target, value in zip(targets, values, strict=True):
                registers[target] = value
        for steps, _ in block.parts:
            for step in steps:
                step(registers)


def _places(index: Numbers, size: Size) -> list[Numbers]:
    return [index % size[0], index // size[0] % size[1], index // (size[0] * size[1])]


def _part(registers: Registers, chosen: Chosen) -> Registers:
    """The registers of some of the invocations, with memory of their own."""
    copies: dict[int, list[Any]] = {}

    def part(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value[chosen]
        if isinstance(value, tuple):
            return tuple(part(each) for each in value)
        if isinstance(value, list):
            if id(value) not in copies:
                copies[id(value)] = [part(each) for each in value]
            return copies[id(value)]
        return value

    return [part(value) for value in registers]
