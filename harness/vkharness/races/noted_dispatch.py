"""A dispatch that is executed on the host with each access noted: the interpreter with a note before each step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from vkharness.races.knowledge import DispatchLayout, Invocation, ScopeReach, Semantics, Storage, meet
from vkharness.races.shader_names import Line, ShaderNames
from vkharness.races.shared_words import WORD, Atomic, Instruction, RacingPair, SharedWords, Word
from vkharness.shader.execution.access_chains import Registers
from vkharness.shader.execution.executed_module import refusing_malformed
from vkharness.shader.execution.function_code import Running, RunningState
from vkharness.shader.execution.function_reader import FunctionReader
from vkharness.shader.execution.image_reader import LOD, SAMPLE, TexelCell, signed_coordinates
from vkharness.shader.execution.outside import AddressMemory, Allowance, ShaderImage, ShaderResources
from vkharness.shader.execution.stored_values import Reader, StoredValues, Writer
from vkharness.shader.execution.value_reader import Operands
from vkharness.shader.execution.work_groups import OVER, Dispatch, Order, Size
from vkharness.shader.opcodes import Op, StorageClass
from vkharness.shader.spirv import Function
from vkharness.shader.variables import Declarations

NOTED: dict[int, Storage] = {
    StorageClass.Workgroup: Storage.SHARED,
    StorageClass.StorageBuffer: Storage.BUFFER,
    StorageClass.Uniform: Storage.BUFFER,
    StorageClass.PhysicalStorageBuffer: Storage.BUFFER,
    StorageClass.Image: Storage.IMAGE,
}
SCALARS = (Op.TypeInt, Op.TypeFloat, Op.TypeBool, Op.TypePointer)
ALIGNED, POINTER_AVAILABLE, POINTER_VISIBLE, NON_PRIVATE_POINTER = 0x2, 0x8, 0x10, 0x20
TEXEL_AVAILABLE, TEXEL_VISIBLE, NON_PRIVATE_TEXEL = 0x100, 0x200, 0x400
BEFORE_SCOPES = (LOD, SAMPLE)
"""Image operands with an id that stand before the scopes, of those that are interpreted."""


class AccessOperands(NamedTuple):
    """What memory or image operands say of an access."""

    non_private: bool = True
    available: ScopeReach = ScopeReach.ALL
    visible: ScopeReach = ScopeReach.ALL


class Notes:
    """What an execution notes: who runs, what its instruction says of itself, and the races so far."""

    def __init__(self) -> None:
        self.on_read: Instruction | None = None
        self.on_write: Instruction | None = None
        self.invocation = Invocation(0, DispatchLayout(1))
        self.interval = 0
        self.everywhere = SharedWords()
        """Memory that all work groups reach."""
        self.shared = SharedWords()
        """Shared memory of the work group that runs."""
        self.barrier = Semantics(0), ScopeReach.GROUP
        """Semantics and memory scope of the last control barrier."""
        self.sampled: dict[int, None] = {}
        """Names of memory of which samples were taken."""
        self.is_undefined = False
        """Whether shared memory was read that nothing had written: it was taken for zero."""
        self.found: dict[frozenset[Instruction], tuple[RacingPair, set[Word]]] = {}
        """By both instructions: the first pair, and all places."""

    def set(self, on_read: Instruction | None, on_write: Instruction | None) -> None:
        """What accesses from now on are of."""
        self.on_read, self.on_write = on_read, on_write

    def touch(self, memory: Any, place: int, size: int, is_write: bool) -> None:
        """A scalar in memory is read or written."""
        instruction = self.on_write if is_write else self.on_read
        if instruction is None:
            return
        if isinstance(memory, list):
            self._access(self.shared, Word(id(memory), place), (0, WORD), instruction, instruction.reference)
        elif isinstance(memory, TexelCell):
            self.texel(memory.image, memory.coordinates, 0, is_write)
        else:
            space, at = memory.located(place)
            self._bytes(space, at, size, instruction, id(memory) if instruction.reference else 0)

    def texel(self, image: ShaderImage, coordinates: tuple[int, ...], at: int, is_write: bool) -> None:
        """A texel is read or written."""
        instruction = self.on_write if is_write else self.on_read
        if instruction is None:
            return
        space, place = image.located(coordinates, at)
        if isinstance(place, int):  # of a texel buffer, whose memory other descriptors reach as words
            self._bytes(space, place, image.texel_bytes, instruction, instruction.reference)
        else:
            self._access(self.everywhere, Word(space, place), (0, WORD), instruction, instruction.reference)

    def sample(self, image: ShaderImage, dimensions: int) -> None:
        """An image is sampled."""
        self.sampled[image.located((0,) * dimensions, 0)[0]] = None

    def _bytes(self, space: int, at: int, size: int, instruction: Instruction, reference: int) -> None:
        for word in range(at // WORD, (at + size + WORD - 1) // WORD):
            span = (max(0, at - word * WORD), min(WORD, at + size - word * WORD))
            self._access(self.everywhere, Word(space, word), span, instruction, reference)

    def _access(
        self, places: SharedWords, place: Word, span: tuple[int, int], instruction: Instruction, reference: int
    ) -> None:
        self.invocation.access(instruction.storage)
        for pair in places.access(place, span, instruction, self.invocation, self.interval, reference):
            key = frozenset((pair.first.instruction, pair.second.instruction))
            self.found.setdefault(key, (pair, set()))[1].add(place)


class _NotedValues(StoredValues):
    """Readers and writers that note each scalar."""

    def __init__(self, declarations: Declarations, addresses: AddressMemory) -> None:
        super().__init__(declarations, addresses)
        self.notes = Notes()

    def reader(self, id: int, explicit: bool) -> Reader:
        read, notes, size = super().reader(id, explicit), self.notes, self._bytes(id, explicit)
        if not size:
            return read

        def noted(memory: Any, place: int, matrix: int) -> Any:
            notes.touch(memory, place, size, False)
            if notes.on_read is not None and isinstance(memory, list) and memory[place] is None:
                notes.is_undefined = True
                return 0
            return read(memory, place, matrix)

        return noted

    def writer(self, id: int, explicit: bool) -> Writer:
        write, notes, size = super().writer(id, explicit), self.notes, self._bytes(id, explicit)
        if not size:
            return write

        def noted(memory: Any, place: int, matrix: int, value: Any) -> None:
            notes.touch(memory, place, size, True)
            write(memory, place, matrix, value)

        return noted

    def _bytes(self, id: int, explicit: bool) -> int:
        """Of a scalar; 0 for what is made of others, whose parts are noted."""
        type = self._types[id]
        if type.op not in SCALARS:
            return 0
        return (type.width // 8 or 8) if explicit else WORD


class BarrierSite(NamedTuple):
    """A place in the code of a shader, before an access or at the begin of a block."""

    at: int
    """The number of the instruction behind it."""
    access: int
    """The number of the access behind it; 0 at the begin of a block."""
    line: Line | None


class Inserted(NamedTuple):
    """A control barrier of a work group that a shader does not have."""

    at: int
    semantics: Semantics


class _NotedReader(FunctionReader):
    """Makes closures that say what an access is of before it is made."""

    _stored: _NotedValues

    def __init__(self, names: ShaderNames, inserted: Inserted | None, *given: Any) -> None:
        self._names, self._inserted = names, inserted
        self.sites: list[BarrierSite] = []
        self._number = 0
        self._line: Line | None = None
        self._bases: dict[int, int] = {}
        self._count = 0
        super().__init__(*given)

    def _begin(self, function: Function) -> None:
        self._line = None
        self._bases = {}
        super()._begin(function)

    def _instruction(self, op: int, operands: Operands) -> None:
        self._line = self._names.line((op, operands), self._declarations.module.instruction_sets, self._line)
        if self.sites and self.sites[-1].at == self._number and not self.sites[-1].access:
            self.sites[-1] = self.sites[-1]._replace(line=self._line)  # what stands behind the begin of a block
        self._number += 1
        own, before = _OWN.get(op), self._count
        if self._inserted is not None and self._number == self._inserted.at and op != Op.Label:
            self._insert(self._inserted.semantics)
        if own is None:
            super()._instruction(op, operands)
        else:
            self._block.weight += 1
            own(self, op, operands)
        if op == Op.Label and self._inserted is not None and self._number == self._inserted.at:
            self._insert(self._inserted.semantics)
        if op == Op.Label or self._count > before:
            self.sites.append(BarrierSite(self._number, 0 if op == Op.Label else self._count, self._line))

    def _insert(self, semantics: Semantics) -> None:
        """A control barrier that the shader does not have."""
        notes, place = self._stored.notes, -self._number

        def barrier(_: Registers, __: RunningState) -> Running:
            notes.barrier = semantics, ScopeReach.GROUP
            yield place

        self._end_part(barrier)

    def _said(
        self, pointer: int, writes: bool, operands: Operands = (), atomic: Atomic | None = None
    ) -> Instruction | None:
        """What an instruction is that accesses what a pointer leads to; None for memory of one invocation."""
        storage = NOTED.get(self._of(pointer).storage_class)
        if storage is None:
            return None
        if atomic is None:
            said = self._operands_say(operands, POINTER_AVAILABLE, POINTER_VISIBLE, NON_PRIVATE_POINTER, (ALIGNED,))
        else:
            said = AccessOperands(True, atomic.reach, atomic.reach)
        return self._made(storage, pointer, writes, said, atomic)

    def _made(
        self, storage: Storage, through: int, writes: bool, said: AccessOperands, atomic: Atomic | None = None
    ) -> Instruction:
        self._count += 1
        base, reference = self._bases.get(through, through), 0
        available, visible = (_farthest(each, storage) for each in (said.available, said.visible))
        if not self._names.vulkan_model:
            available = visible = ScopeReach.ALL
        elif storage is Storage.BUFFER or (base in self.storage and storage is Storage.IMAGE):
            reference = base
        return Instruction(
            self._count, storage, base, self._line, not writes, writes, atomic, said.non_private, available, visible,
            reference,
        )  # fmt: skip

    def _operands_say(
        self, operands: Operands, available: int, visible: int, non_private: int, before: tuple[int, ...]
    ) -> AccessOperands:
        """What operands say whose mask has these bits; `before` are bits with an operand before the scopes."""
        if not self._names.vulkan_model:
            return AccessOperands()
        mask = operands[0] if operands else 0
        rest = iter(operands[1 + sum(bool(mask & each) for each in before) :])
        reaches = [self._reach(next(rest, 0)) if mask & each else ScopeReach.SELF for each in (available, visible)]
        return AccessOperands(bool(mask & non_private), *reaches)

    def _set(self, on_read: Instruction | None, on_write: Instruction | None = None) -> None:
        notes = self._stored.notes
        self._add(lambda _: notes.set(on_read, on_write))

    def _chain(self, op: int, operands: Operands) -> None:
        self._bases[operands[1]] = self._bases.get(operands[2], operands[2])
        super()._chain(op, operands)

    def _texel_pointer(self, op: int, operands: Operands) -> None:
        self._bases[operands[1]] = self._bases.get(operands[2], operands[2])
        super()._texel_pointer(op, operands)

    def _load(self, op: int, operands: Operands) -> None:
        self._bases[operands[1]] = self._bases.get(operands[2], operands[2])
        atomic = self._atomic_of(operands[3], operands[4]) if op == Op.AtomicLoad else None
        self._set(self._said(operands[2], False, operands[3:], atomic))
        super()._load(op, operands)
        self._set(None)

    def _store(self, op: int, operands: Operands) -> None:
        atomic = self._atomic_of(operands[1], operands[2]) if op == Op.AtomicStore else None
        self._set(None, self._said(operands[0], True, operands[2:], atomic))
        super()._store(op, operands)
        self._set(None)

    def _copy_memory(self, op: int, operands: Operands) -> None:
        target = operands[2:]
        each = (ALIGNED, POINTER_AVAILABLE, POINTER_VISIBLE)
        source = target[1 + sum(bool(target[0] & bit) for bit in each) :] if target else ()
        self._set(self._said(operands[1], False, source or target), self._said(operands[0], True, target))
        super()._copy_memory(op, operands)
        self._set(None)

    def _atomic(self, op: int, operands: Operands) -> None:
        said = self._said(operands[2], True, (), self._atomic_of(operands[3], operands[4]))
        self._set(None if said is None else said._replace(reads=True))
        super()._atomic(op, operands)
        self._set(None)

    def _atomic_of(self, scope: int, semantics: int) -> Atomic:
        return Atomic(self._reach(scope), self._semantics(semantics))

    def _reach(self, scope: int) -> ScopeReach:
        """Whom a scope reaches; one that is not known may be that of the invocation."""
        value = self._constants.get(scope)
        return ScopeReach.SELF if value is None else ScopeReach.of(int(value))

    def _semantics(self, semantics: int) -> Semantics:
        return Semantics(int(self._constants.get(semantics) or 0))

    def _image_access(self, image: int, coordinates: int, operands: Operands, writes: bool) -> None:
        """Notes the access of a texel that the next step makes."""
        masks = TEXEL_AVAILABLE, TEXEL_VISIBLE, NON_PRIVATE_TEXEL
        said = self._made(Storage.IMAGE, image, writes, self._operands_say(operands, *masks, BEFORE_SCOPES))
        view, place, at = self._register(image), self._register(coordinates), self._at(operands)
        is_sample = bool(operands and operands[0] & SAMPLE)
        notes = self._stored.notes

        def note(r: Registers) -> None:
            notes.set(None if writes else said, said if writes else None)
            notes.texel(r[view], signed_coordinates(r[place]), 0 if at is None or is_sample else r[at], writes)
            notes.set(None, None)

        self._add(note)

    def _image_read(self, op: int, operands: Operands) -> None:
        self._image_access(operands[2], operands[3], operands[4:], False)
        super()._image_read(op, operands)

    def _image_write(self, op: int, operands: Operands) -> None:
        self._image_access(operands[0], operands[1], operands[3:], True)
        super()._image_write(op, operands)

    def _image_sample(self, op: int, operands: Operands) -> None:
        view, place, notes = self._register(operands[2]), self._register(operands[3]), self._stored.notes
        self._add(lambda r: notes.sample(r[view], len(r[place]) if isinstance(r[place], tuple) else 1))
        super()._image_sample(op, operands)

    def _fence(self, _: int, operands: Operands) -> None:
        reach, semantics, notes = self._reach(operands[0]), self._semantics(operands[1]), self._stored.notes
        self._add(lambda _: notes.invocation.fence(semantics, reach))

    def _barrier(self, op: int, operands: Operands) -> None:
        said, notes = (self._semantics(operands[2]), self._reach(operands[1])), self._stored.notes
        self._add(lambda _: setattr(notes, "barrier", said))
        super()._barrier(op, operands)


def _farthest(reach: ScopeReach, storage: Storage) -> ScopeReach:
    """How far a scope reaches among those who access a class: shared memory is reached by one work group alone."""
    return ScopeReach.ALL if storage is Storage.SHARED and reach >= ScopeReach.GROUP else reach


_OWN: dict[int, Callable[[_NotedReader, int, Operands], None]] = {
    **dict.fromkeys(
        (Op.AccessChain, Op.InBoundsAccessChain, Op.PtrAccessChain, Op.InBoundsPtrAccessChain), _NotedReader._chain
    ),
    **dict.fromkeys((Op.Load, Op.AtomicLoad), _NotedReader._load),
    **dict.fromkeys((Op.Store, Op.AtomicStore), _NotedReader._store),
    Op.CopyMemory: _NotedReader._copy_memory,
    Op.ImageTexelPointer: _NotedReader._texel_pointer,
    **dict.fromkeys((Op.ImageRead, Op.ImageFetch), _NotedReader._image_read),
    Op.ImageWrite: _NotedReader._image_write,
    **dict.fromkeys((Op.ImageSampleExplicitLod, Op.ImageSampleImplicitLod), _NotedReader._image_sample),
    Op.MemoryBarrier: _NotedReader._fence,
    Op.ControlBarrier: _NotedReader._barrier,
}


class NotedDispatch(Dispatch):
    """One dispatch, run in one order."""

    values_type = _NotedValues
    stored: _NotedValues
    reader: _NotedReader

    def __init__(
        self,
        code: bytes,
        entry: str,
        extent: tuple[Size, Size],
        resources: ShaderResources,
        specialization: Mapping[int, bytes],
        limit: int | Allowance,
        inserted: Inserted | None = None,
    ) -> None:
        names = ShaderNames(code)
        self.reader_type = partial(_NotedReader, names, inserted)
        super().__init__(code, entry, extent, resources, specialization, limit)
        self.names, self.notes = names, self.stored.notes
        self.group_size = self.size[0] * self.size[1] * self.size[2]
        self.layout = DispatchLayout(self.group_size)
        self._group_now: list[Invocation] = []
        self._classes = (Storage.SHARED, Storage.BUFFER, Storage.IMAGE)

    def _group(self, group: Size, order: Order) -> Iterator[None]:
        """One work group, whose notes are put back behind each pause."""
        notes, running = self.notes, super()._group(group, order)
        kept: tuple[SharedWords, int, list[Invocation]] = SharedWords(), 0, []
        while True:
            notes.shared, notes.interval, self._group_now = kept
            if next(running, OVER) is OVER:
                return
            kept = notes.shared, notes.interval, self._group_now
            yield

    def _invocations(self, group: Size, shared: dict[int, Any], order: Sequence[int]) -> Iterator[Running]:
        x, y, _ = self.groups
        at = [one - two for one, two in zip(group, self.base, strict=True)]
        number, size = at[0] + x * (at[1] + y * at[2]), self.group_size
        self._group_now = [Invocation(number * size + each, self.layout, self.allowance.spend) for each in range(size)]
        for index, running in zip(order, super()._invocations(group, shared, order), strict=True):
            yield self._noting(running, self._group_now[index])

    def _noting(self, running: Running, invocation: Invocation) -> Running:
        while True:
            self.notes.invocation = invocation
            place = next(running, None)
            if place is None:
                return
            yield place

    def _passed_barrier(self) -> None:
        meet(self._group_now, ScopeReach.GROUP, *self.notes.barrier, self._classes, not self.names.vulkan_model)
        self.notes.interval += 1


def run_noted(dispatch: NotedDispatch, order: Order) -> None:
    """Runs it. Raises NotInterpreted for what is not known; what was noted until then stays."""
    with refusing_malformed():
        dispatch.run(order)
