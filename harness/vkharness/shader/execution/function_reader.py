"""Makes the code of a function: each instruction is looked at once.

An instruction that is not known here raises NotInterpreted while the function is made, whether it would be executed or
not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vkharness.shader.execution.access_chains import Registers, chain_step
from vkharness.shader.execution.function_code import BlockCode, Running, RunningState, run_function
from vkharness.shader.execution.image_reader import ImageReader
from vkharness.shader.execution.outside import NotInterpreted
from vkharness.shader.execution.scalar_operations import ATOMICS, OPERATIONS
from vkharness.shader.execution.value_reader import Operands
from vkharness.shader.opcodes import Op, StorageClass, op_name
from vkharness.shader.spirv import Function

WORKGROUP_SCOPE = 2
ALIGNED = 2
SCALARS_PER_INSTRUCTION = 16
NOTHING = frozenset({Op.Nop, Op.Line, Op.NoLine, Op.SelectionMerge, Op.LoopMerge, Op.MemoryBarrier})
"""Instructions without an effect where invocations run one at a time."""
NO_RESULT = NOTHING | {
    Op.Store, Op.CopyMemory, Op.AtomicStore, Op.ControlBarrier, Op.Label, Op.Branch, Op.BranchConditional, Op.Switch,
    Op.Return, Op.ReturnValue, Op.Unreachable, Op.ImageWrite,
}  # fmt: skip


class FunctionReader(ImageReader):
    """Makes the code of the functions of one module for one dispatch."""

    def read(self, function: Function) -> None:
        """Add the code of one function to `codes`. Raises NotInterpreted."""
        self._begin(function)
        for op, operands in function.body:
            if op not in KNOWN:
                raise NotInterpreted(f"{op_name(op)} is not interpreted")
            if op not in NO_RESULT:
                self._type_of[operands[1]] = operands[0]
                self._own.add(operands[1])
        for op, operands in function.body:
            self._instruction(op, operands)
        self.codes[function.id] = self._code

    def _instruction(self, op: int, operands: Operands) -> None:
        if op == Op.Label:
            self._block = self._code.blocks[operands[0]] = BlockCode(parts=[([], None)])
            self._code.entry, self._label = self._code.entry or operands[0], operands[0]
            return
        self._block.weight += 1
        if op not in NO_RESULT and operands[0] in self._types:
            self._block.weight += self._scalars(operands[0]) // SCALARS_PER_INSTRUCTION
        if op in OPERATIONS:
            self._scalar(OPERATIONS[op], operands[0], operands[1], operands[2:])
        elif op in ATOMICS:
            self._atomic(op, operands)
        elif op in HANDLERS:
            HANDLERS[op](self, op, operands)

    def _scalars(self, type: int) -> int:
        return 1 if self._types[type].op == Op.TypeVoid else self._stored.cells(type)

    # Memory

    def _local_variable(self, _: int, operands: Operands) -> None:
        type = self._types[operands[0]].element
        count, target = self._stored.cells(type), self._register(operands[1])
        self._block.weight += count
        write = self._stored.writer(type, False) if len(operands) > 3 else None
        initial = self._register(operands[3]) if len(operands) > 3 else 0

        def allocate(r: Registers) -> None:
            cells: list[Any] = [None] * count
            if write is not None:
                write(cells, 0, 0, r[initial])
            r[target] = (cells, 0, 0)

        self._add(allocate)

    def _chain(self, op: int, operands: Operands) -> None:
        element = op in (Op.PtrAccessChain, Op.InBoundsPtrAccessChain)
        indices = []
        for id in operands[3:]:
            constant = self._constants.get(id)
            indices.append((self._register(id), constant if isinstance(constant, int) else None))
        bits = self._of(operands[3]).width if element else 0
        walk = self._chains.walk(self._type_of[operands[2]], indices, element)
        if len(operands) == 3:
            self._copy(op, operands)
        else:
            self._add(chain_step(self._register(operands[1]), self._register(operands[2]), walk, bits))

    def _located(self, id: int, access: Operands = ()) -> Callable[[Registers], tuple[Any, int, int]]:
        """Where the value lies that a pointer leads to. Raises NotInterpreted for an address that is not aligned."""
        pointer, register = self._of(id), self._register(id)
        if self._chains.is_table(pointer):
            return lambda r: (r[register][0].memory(r[register][1]), 0, 0)
        if pointer.storage_class != StorageClass.PhysicalStorageBuffer or not access or not access[0] & ALIGNED:
            return lambda r: r[register]
        alignment = access[1]

        def aligned(r: Registers) -> tuple[Any, int, int]:
            memory, place, matrix = r[register]
            if place % alignment:
                raise NotInterpreted(f"the address 0x{place:x} is not aligned to {alignment}")
            return memory, place, matrix

        return aligned

    def _load(self, op: int, operands: Operands) -> None:
        pointer, explicit = self._pointee(operands[2])
        if self._types[pointer.element].op == Op.TypeSampler:
            self._pure(operands[1], operands[2:3], lambda _: None)
            return
        if pointer.storage_class == StorageClass.UniformConstant:
            self._pure(operands[1], operands[2:3], lambda place: place[0].image(place[1]))
            return
        locate = self._located(operands[2], operands[3:] if op == Op.Load else ())
        read = self._stored.reader(pointer.element, explicit)
        target = self._register(operands[1])
        self._add(lambda r: r.__setitem__(target, read(*locate(r))))

    def _store(self, op: int, operands: Operands) -> None:
        pointer, explicit = self._pointee(operands[0])
        self._block.weight += self._scalars(pointer.element) // SCALARS_PER_INSTRUCTION
        locate = self._located(operands[0], operands[2:] if op == Op.Store else ())
        write = self._stored.writer(pointer.element, explicit)
        source = self._register(operands[3 if op == Op.AtomicStore else 1])
        self._add(lambda r: write(*locate(r), r[source]))

    def _copy_memory(self, _: int, operands: Operands) -> None:
        into, to_bytes = self._pointee(operands[0])
        of, from_bytes = self._pointee(operands[1])
        self._block.weight += self._scalars(of.element) // SCALARS_PER_INSTRUCTION
        write, read = self._stored.writer(into.element, to_bytes), self._stored.reader(of.element, from_bytes)
        target, source = self._located(operands[0], operands[2:]), self._located(operands[1], operands[2:])
        self._add(lambda r: write(*target(r), read(*source(r))))

    def _atomic(self, op: int, operands: Operands) -> None:
        pointer, explicit = self._pointee(operands[2])
        read, write = self._stored.reader(pointer.element, explicit), self._stored.writer(pointer.element, explicit)
        width = self._stored.width(pointer.element)
        function, locate = ATOMICS[op](width, width), self._located(operands[2])
        sources = self._many(operands[6 if op == Op.AtomicCompareExchange else 5 :])
        target = self._register(operands[1])

        def atomic(r: Registers) -> None:
            memory, place, matrix = locate(r)
            old = read(memory, place, matrix)
            write(memory, place, matrix, function(old, *(r[source] for source in sources)))
            r[target] = old

        self._add(atomic)

    def _array_length(self, _: int, operands: Operands) -> None:
        pointer, locate = self._of(operands[2]), self._located(operands[2])
        member = self._types[pointer.element].members[operands[3]]
        stride = self._stored.step(self._types[member.type], True)
        offset, target = member.offset or 0, self._register(operands[1])
        if not self._chains.is_table(pointer) or not stride:
            raise NotInterpreted("the length of an array that is in no buffer block is not known")
        self._add(lambda r: r.__setitem__(target, max(0, locate(r)[0].size - offset) // stride))

    # Control

    def _parameter(self, _: int, operands: Operands) -> None:
        self._code.parameters.append(self._register(operands[1]))

    def _call(self, _: int, operands: Operands) -> None:
        target, arguments, codes = self._register(operands[1]), self._many(operands[3:]), self.codes
        registers = len(self._code.registers)  # those of the call are among the caller's: what it read has an effect
        self._code.registers.append(None)

        def call(r: Registers, state: RunningState) -> Running:
            r[registers] = yield from run_function(codes[operands[2]], [r[each] for each in arguments], state)
            r[target] = r[registers][0]

        self._end_part(call)

    def _barrier(self, _: int, operands: Operands) -> None:
        if self._constants.get(operands[0]) != WORKGROUP_SCOPE:
            raise NotInterpreted("a control barrier of another scope than the work group is not interpreted")
        place = self._id << 32 | self._label

        def barrier(_: Registers, __: RunningState) -> Running:
            yield place

        self._end_part(barrier)

    def _phi(self, _: int, operands: Operands) -> None:
        target = self._register(operands[1])
        for source, label in zip(operands[2::2], operands[3::2], strict=True):
            targets, sources = self._block.phis.setdefault(label, ([], []))
            targets.append(target)
            sources.append(self._register(source))

    def _branch(self, op: int, operands: Operands) -> None:
        if op == Op.Branch:
            self._block.leave = lambda _: operands[0]
        elif op == Op.BranchConditional:
            condition = self._register(operands[0])
            self._block.leave = lambda r: operands[1] if r[condition] else operands[2]
        else:
            words = max(1, self._stored.width(self._type_of[operands[0]]) // 32)
            selector, mask = self._register(operands[0]), (1 << self._stored.width(self._type_of[operands[0]])) - 1
            labels = {}
            for at in range(2, len(operands), words + 1):
                literal = sum(word << (32 * index) for index, word in enumerate(operands[at : at + words]))
                labels[literal & mask] = operands[at + words]
            self._block.leave = lambda r: labels.get(r[selector], operands[1])

    def _return(self, op: int, operands: Operands) -> None:
        if op == Op.Unreachable:
            self._block.leave = _unreachable
        elif op == Op.ReturnValue:
            self._block.value = self._register(operands[0])


def _unreachable(_: Registers) -> int:
    raise NotInterpreted("the shader reaches OpUnreachable")


Handler = Callable[[FunctionReader, int, Operands], None]
HANDLERS: dict[int, Handler] = {
    Op.ExtInst: FunctionReader._extended,
    Op.CopyObject: FunctionReader._copy,
    Op.CopyLogical: FunctionReader._copy,
    Op.Select: FunctionReader._select,
    Op.CompositeConstruct: FunctionReader._construct,
    Op.CompositeExtract: FunctionReader._composite_extract,
    Op.CompositeInsert: FunctionReader._composite_insert,
    Op.VectorShuffle: FunctionReader._shuffle,
    Op.VectorExtractDynamic: FunctionReader._vector_dynamic,
    Op.VectorInsertDynamic: FunctionReader._vector_dynamic,
    Op.Image: FunctionReader._copy,
    Op.ImageFetch: FunctionReader._image_read,
    Op.ImageRead: FunctionReader._image_read,
    Op.ImageWrite: FunctionReader._image_write,
    Op.SampledImage: FunctionReader._copy,
    Op.ImageSampleExplicitLod: FunctionReader._image_sample,
    Op.ImageSampleImplicitLod: FunctionReader._image_sample,
    Op.ImageTexelPointer: FunctionReader._texel_pointer,
    Op.ImageQuerySize: FunctionReader._image_size,
    Op.ImageQuerySizeLod: FunctionReader._image_size,
    Op.Any: FunctionReader._any_all,
    Op.All: FunctionReader._any_all,
    Op.Bitcast: FunctionReader._bitcast,
    Op.ConvertUToPtr: FunctionReader._bitcast,
    Op.ConvertPtrToU: FunctionReader._bitcast,
    Op.Variable: FunctionReader._local_variable,
    Op.AccessChain: FunctionReader._chain,
    Op.InBoundsAccessChain: FunctionReader._chain,
    Op.PtrAccessChain: FunctionReader._chain,
    Op.InBoundsPtrAccessChain: FunctionReader._chain,
    Op.Load: FunctionReader._load,
    Op.AtomicLoad: FunctionReader._load,
    Op.Store: FunctionReader._store,
    Op.AtomicStore: FunctionReader._store,
    Op.CopyMemory: FunctionReader._copy_memory,
    Op.ArrayLength: FunctionReader._array_length,
    Op.FunctionParameter: FunctionReader._parameter,
    Op.FunctionCall: FunctionReader._call,
    Op.ControlBarrier: FunctionReader._barrier,
    Op.Phi: FunctionReader._phi,
    Op.Branch: FunctionReader._branch,
    Op.BranchConditional: FunctionReader._branch,
    Op.Switch: FunctionReader._branch,
    Op.Return: FunctionReader._return,
    Op.ReturnValue: FunctionReader._return,
    Op.Unreachable: FunctionReader._return,
}
KNOWN = NOTHING | OPERATIONS.keys() | ATOMICS.keys() | HANDLERS.keys() | {Op.Label}
