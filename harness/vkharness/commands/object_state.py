"""The objects of one recorded program by id, and the contents and bindings of each command buffer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeVar

from vkharness.commands.contents.at_submit import MemoryContents
from vkharness.commands.contents.content_steps import Deferred, DeferredSeries, OpenSeries, OpenStep, Steps
from vkharness.commands.contents.settled_again import LastSettled
from vkharness.commands.debug_info import DebugInfo
from vkharness.commands.device_groups import DeviceGroups
from vkharness.commands.known_shaders import KnownShaders
from vkharness.commands.plan_table import PlanTable
from vkharness.commands.resources.addresses import Addresses
from vkharness.commands.resources.aliasing import Aliasing
from vkharness.commands.resources.sparse_memory import SparseMemory
from vkharness.commands.said_state import Parts, SaidState
from vkharness.spans import Span
from vkharness.trace.effects import Command, Effect, EffectPlan, Execute
from vkharness.trace.graphics_state import DrawState
from vkharness.trace.recorded_commands import RecordedCommands
from vkharness.trace.rendering_state import RenderingState
from vkharness.trace.resources import (
    AspectRewrites,
    Buffer,
    BufferView,
    DescriptorSet,
    DescriptorsInMemory,
    Image,
    ImageView,
    Pipeline,
)
from vkharness.trace.shared_payloads import SharedPayloads

R = TypeVar("R")
MOST_PUSHED = 1 << 16
"""No device has as many bytes of push constants. Bytes behind that are not kept."""
MOST_PENDING = 64
ALL_QUEUE_FLAGS = 0x7FFFFFFF
MEMORY_OF_SHADERS = (Buffer, BufferView, Image, ImageView)
"""The types of the objects to which descriptors and vertex buffers refer."""


class BoundSet(NamedTuple):
    """A descriptor set that is bound at one set index, with its dynamic offsets in the order of `SetLayout.dynamic`."""

    set: DescriptorSet
    dynamic: tuple[int, ...] = ()

    def is_used(self, binding: int, late: bool) -> bool:
        """Whether a binding may be written after it was bound (`late`), or, if not, may not. Descriptors in memory are
        read when the command is executed in any case."""
        held = self.set.layout.bindings.get(binding)
        return held is not None and (held.late and not isinstance(self.set, DescriptorsInMemory)) == late

    def offset(self, place: tuple[int, int]) -> int:
        """The dynamic offset of a (binding, array element); 0 where it has none."""
        if not self.dynamic:
            return 0
        number = self.set.layout.dynamic.get(place, len(self.dynamic))
        return self.dynamic[number] if number < len(self.dynamic) else 0


class PushConstants:
    """The push constants of a command buffer, as far as they were pushed."""

    __slots__ = ("_bytes", "_known", "_pushed")

    def __init__(self) -> None:
        self._bytes = b""
        self._known = b""
        self._pushed: dict[tuple[int, int], bytes] = {}
        """(offset, size) -> bytes pushed since anything was read, the last at the end. Most accesses do not depend on
        them."""

    def __copy__(self) -> PushConstants:
        made = PushConstants()
        self._settle()
        made._bytes, made._known = self._bytes, self._known
        return made

    def write(self, offset: int, data: bytes) -> None:
        """Replaces the bytes from `offset` on."""
        pushed, place = self._pushed, (offset, len(data))
        if place in pushed:
            del pushed[place]
        elif len(pushed) >= MOST_PENDING:
            self._settle()
        pushed[place] = data

    def forget(self, offset: int, size: int) -> None:
        """The bytes from `offset` on may be any from now on."""
        self._settle()
        self._known = (
            self._known[:offset] + b"\0" * len(self._known[offset : offset + size]) + self._known[offset + size :]
        )

    def read(self, offset: int, size: int) -> int | None:
        """An unsigned value; None when a byte of it was not pushed."""
        if self._pushed:
            self._settle()
        end = offset + size
        if self._known.count(1, offset, end) != size:
            return None
        return int.from_bytes(self._bytes[offset:end], "little")

    def _settle(self) -> None:
        for (offset, size), data in self._pushed.items():
            end = offset + size
            if end <= MOST_PUSHED:
                self._bytes = self._bytes[:offset].ljust(offset, b"\0") + data + self._bytes[end:]
                self._known = self._known[:offset].ljust(offset, b"\0") + b"\1" * size + self._known[end:]
        self._pushed.clear()


@dataclass(frozen=True, slots=True)
class LateEffects:
    """The accesses of a command through descriptors that may be written until the submit."""

    make: Callable[[], tuple[Effect, ...]]
    writes: bool
    """Whether it may write. Which bytes that are is open while the command is recorded."""

    def __call__(self) -> tuple[Effect, ...]:
        """The accesses, with what the descriptors hold now."""
        return self.make()


def executed(commands: Iterable[Command]) -> tuple[Command, ...]:
    """Commands with their accesses through descriptors that were written after they were bound."""
    return tuple(map(_executed, commands))


def _executed(command: Command) -> Command:
    effects = command.effects
    if any(isinstance(effect, Execute) for effect in effects):
        effects = tuple(_inside(effect) if isinstance(effect, Execute) else effect for effect in effects)
    late = command.late
    if late is None and effects is command.effects:
        return command
    found = effects if late is None else (*effects, *late())
    return Command(command.call, command.name, command.site, found, command.open._replace(late=None))


def _inside(effect: Execute) -> Execute:
    return replace(effect, buffers=tuple((id, executed(inner)) for id, inner in effect.buffers))


class WrittenRanges(NamedTuple):
    """Ranges that the commands of a command buffer may write, with the plans that decide them (`device_writes`)."""

    plans: list[EffectPlan]
    length: int
    """How many plans there were."""
    ranges: dict[int, list[Span]]
    """By memory object. Nobody changes it."""


class BoundHeap(NamedTuple):
    """A bound descriptor heap."""

    address: int
    """0 for none."""
    size: int
    reserved: tuple[int, int]
    """The offset and the bytes of the range that the implementation has for itself."""


NO_HEAP = BoundHeap(0, 0, (0, 0))


@dataclass(slots=True)
class CommandBuffer:
    """A VkCommandBuffer: its recorded commands and its bindings by VkPipelineBindPoint."""

    id: int
    pool: int
    secondary: bool = False
    commands: RecordedCommands = field(default_factory=RecordedCommands)
    steps: Steps = field(init=False)
    """The steps by which the commands change contents of memory, or depend on those."""
    begun_after: int = 0
    """The call of the last submit before its recording was begun."""
    depends: bool = False
    """Whether any command depends on contents."""
    deferred: Deferred | None = None
    """The one of `steps` that the command being recorded has made."""
    pipelines: dict[int, Pipeline] = field(default_factory=dict)
    sets: dict[int, dict[int, BoundSet]] = field(default_factory=dict)
    descriptor_buffers: tuple[int, ...] = ()
    """The device addresses of the bound descriptor buffers."""
    resource_heap: BoundHeap = NO_HEAP
    sampler_heap: BoundHeap = NO_HEAP
    rendering: RenderingState | None = None
    """The render pass instance in progress; None outside."""
    instance_from: int | None = 0
    """The position in `commands` from which the instance was recorded; None if it began in another command buffer."""
    suspended: bool = False
    """Whether the last instance was suspended here."""
    inheritance: dict[str, Any] | None = None
    """The VkCommandBufferInheritanceInfo of a secondary that continues a render pass, otherwise None."""
    drawing: DrawState = field(default_factory=DrawState)
    condition: tuple[Effect, ...] = ()
    """The read of the condition while conditional rendering is active."""
    device_mask: int = -1
    """The physical devices that its recording was begun with."""
    queue_flags: int = ALL_QUEUE_FLAGS
    """The VkQueueFlags of its pool's family. All flags are set when that is not known: masks then stand for every
    stage."""
    constants: PushConstants = field(default_factory=PushConstants)
    left_open: dict[object, bytes] = field(default_factory=dict)
    """The last numbers that its state leaves open, by what stands for them (`OpenNumbers`)."""
    pushes_count: bool = False
    """Whether accesses depended on words that were pushed before their pipeline was bound."""
    late: LateEffects | None = None
    """The accesses of the command being recorded through descriptors that may still be written."""
    leaves_targets: bool = False
    """Whether a secondary that it executes accesses attachments of the instance that it inherits itself."""
    has_late: bool = False
    """Whether a command of it, or of a secondary that it executes, has such accesses."""
    inside: int = 0
    """How many commands the secondaries that it executes have, each as often as it is executed."""
    said: SaidState | None = None
    """Its state, as told by the arguments of the commands that have set it; None where these do not tell it, or nothing
    is known in it."""
    settled: SaidState | None = None
    """The state that the other members have. They are behind where it is not `said` (`SaidStates.settle`)."""
    parts: Parts | None = field(default_factory=dict)
    """Which commands have set its state, where `said` is None; None where these do not tell it."""
    recordings: int = 0
    """How often anything was recorded in it anew."""
    written: WrittenRanges | None = None
    """The ranges that its last submit may write, where its plans alone decide them; else None."""
    last_settled: LastSettled = field(default_factory=LastSettled)

    def __post_init__(self) -> None:
        self.steps = Steps(self.commands)

    @property
    def weight(self) -> int:
        """How many commands are executed with it."""
        return len(self.commands) + self.inside

    def executed(self) -> Sequence[Command]:
        """The commands as a submit executes them now, with what descriptors hold now."""
        return executed(self.commands) if self.has_late else self.commands.snapshot()

    def reset(self) -> None:
        """Forgets what was recorded and bound."""
        self.recordings += 1
        self.commands, self.depends = RecordedCommands(), False
        self.steps = Steps(self.commands)
        self.has_late = self.leaves_targets = False
        self.inside = 0
        self.inheritance = None
        self.rendering = None
        self.condition = ()
        self.suspended = False
        self.said = self.settled = None
        self.parts = {}
        self.unbind()

    def defer(self, step: Deferred, contents: MemoryContents) -> None:
        """Notes that contents of memory decide accesses of the command being recorded, as the step says."""
        contents.needed()
        self.steps.append(step)
        self.deferred, self.depends = step, True

    def defer_again(
        self, several: Sequence[tuple[int, OpenStep | OpenSeries, bytes]], contents: MemoryContents
    ) -> None:
        """The same of commands at some places, in order, which do what earlier ones did: of one, or of a series with
        numbers. What is foreseen of them may be another thing."""
        contents.needed()
        for place, decided, numbers in several:
            if isinstance(decided, OpenStep):
                self._defer_one(place, decided, contents)
                continue
            foreseen = None if decided.step.sure is None else self.steps.foresight(contents.memory, place)
            if foreseen is None or decided.all_run(numbers, foreseen):
                series = DeferredSeries(place, decided, numbers)
                self.steps.defer_series(series)
                self.commands.open_ones.update(dict.fromkeys(range(place, place + series.count), decided.open))
                continue
            for at in range(decided.count(numbers)):
                self._defer_one(place + at, decided.at(numbers, at), contents)
        self.depends = True

    def _defer_one(self, place: int, decided: OpenStep, contents: MemoryContents) -> None:
        step, open, idle = decided
        foreseen = None if idle is None else self.steps.foresight(contents.memory, place)
        if idle is not None and foreseen is not None and step.is_idle(foreseen):
            step, open, _ = idle
            assert open.sure is not None
            self.commands.sure[place] = open.sure
        self.steps.defer(place, step)
        self.commands.open_ones[place] = open

    def unbind(self) -> None:
        """Forgets what was bound. A render pass instance that was begun stays."""
        self.sets, self.descriptor_buffers = {}, ()
        self.resource_heap = self.sampler_heap = NO_HEAP
        self.forget_said()

    def forget_said(self) -> None:
        """Forgets what was bound but for descriptor sets, what was pushed, and dynamic state."""
        self.pipelines = {}
        self.drawing = DrawState()
        self.constants = PushConstants()


class Watcher(Protocol):
    """Is told before an object changes."""

    def changed(self, id: int) -> None:
        """An object of this id is about to come, to go, or to be bound to memory."""

    def gone(self, thing: Any) -> None:
        """An object, which is no command buffer, is about to go."""

    def forget(self) -> None:
        """Is told that anything known of commands may be wrong, whichever objects they name."""


class ObjectState:
    """Live Vulkan objects by id. Ids are never reused, so one dictionary serves all types: `by_id`, which `add` and
    `remove` alone change."""

    watcher: Watcher | None = None
    """Who must know when an object changes."""
    groups: DeviceGroups | None = None
    """Devices of several physical devices; None where there is none."""

    def __init__(self) -> None:
        self.by_id: dict[int, Any] = {}
        self.missed: set[int] = set()
        """Ids that were looked up since the last call began, and of which there is no object of the type."""
        self.changes = 0
        """How often what is known of calls by what they say ended (`Interpreter.repeat`)."""
        self.said: set[int] = set()
        """The buffers and images on which it depends."""
        self.moved = 0
        """How often something that descriptors or vertex buffers refer to went, or was bound to memory."""
        self.shaders = KnownShaders()
        """The accesses of shaders, by the values on which they depend."""
        self.reflected: dict[int, Any] = {}
        """The uses of resources by the stages of a pipeline, by its id (`shaders.StageUses`)."""
        self.children: dict[int, set[int]] = {}
        """Ids of command buffers and descriptor sets by pool."""
        self.plans = PlanTable()
        """The plans of commands that were recorded."""
        self.payloads = SharedPayloads()
        """Which payload each semaphore, fence and memory object has."""
        self.debug = DebugInfo()
        """Names of objects, labels of work, and frames."""
        self.devices: dict[int, int] = {}
        """Physical device by device."""
        self.assumed_rewrites: bool | None = None
        """Whether a write of one aspect counts as one of the other where the trace does not say; None: in doubt."""
        self.separate_aspects: dict[int, bool] = {}
        """separateDepthStencilAttachmentAccess, by physical device of which the program asked for it."""
        self.aspect_rewrites: dict[int, AspectRewrites] = {}
        """By device."""
        self.barriers_by_slice: dict[int, bool | None] = {}
        """Whether the maintenance9 feature is enabled, by device; None when the trace does not say."""
        self.families: dict[int, list[int]] = {}
        self.image_acquirers: dict[int, tuple[int, ...]] = {}
        """VkQueueFlags, and where told optimalImageTransferToQueueFamilies, of each family, by physical device."""
        self.queue_family: dict[int, tuple[int, int]] = {}
        self.pool_family: dict[int, tuple[int, int]] = {}
        """(device, family index) by queue, and by command pool."""
        self.addresses = Addresses(self.buffer)
        self.aliasing = Aliasing()
        self.sparse = SparseMemory()
        self.contents = MemoryContents(self.aliasing)
        self.memory_types: dict[int, list[tuple[int, int | None]]] = {}
        """VkMemoryPropertyFlags of each memory type, and VkMemoryHeapFlags of its heap if told, by physical device."""
        self.atom_sizes: dict[int, int] = {}
        """nonCoherentAtomSize in bytes, by physical device."""
        self.granularities: dict[int, int] = {}
        """bufferImageGranularity in bytes, by physical device."""
        self.build_sizes: dict[tuple[Any, ...], dict[tuple[int, ...], tuple[int, int]]] = {}
        """Scratch bytes of (a build, an update) of acceleration structures, by shape and numbers of primitives."""

    def add(self, thing: Any) -> None:
        """Adds an object under its id (NULL handles are ignored)."""
        if thing.id:
            self.changed(thing.id)
            if thing.id in self.by_id:  # a trace of somebody else: what an id means is among what is remembered
                self._goes(thing.id)
                self.reflected.pop(thing.id, None)
                self.shaders.clear()
                self.move()
            self.by_id[thing.id] = thing

    def get(self, kind: type[R], id: int) -> R | None:
        """The live object. None when it is unknown or of another type (created before attach, or in
        a hostile trace)."""
        thing = self.by_id.get(id)
        if isinstance(thing, kind):
            return thing
        if id:
            self.missed.add(id)
        return None

    def note_missing(self, kind: type[Any], ids: Iterable[int]) -> None:
        """Looks up what a call binds or writes for the commands behind it, so that `missed` has what is not there while
        that call is asked."""
        for id in ids:
            self.get(kind, id)

    def begun_after(self, command_buffer: int | None) -> int:
        """The call of the last submit before a recording was begun, or so far for what no command buffer does; 0 where
        nothing is known of the command buffer."""
        if command_buffer is None:
            return self.debug.frames.last_submit
        held = self.get(CommandBuffer, command_buffer)
        return 0 if held is None else held.begun_after

    def remove(self, id: int) -> Any:
        """Removes and returns an object; None when it is unknown."""
        self.reflected.pop(id, None)
        self.changed(id)
        self._goes(id)
        gone = self.by_id.pop(id, None)
        if isinstance(gone, MEMORY_OF_SHADERS):
            self.move()
        elif isinstance(gone, CommandBuffer):
            gone.reset()
        return gone

    def changed(self, id: int) -> None:
        """Forgets what depends on an object, which comes or goes or is bound, or whose id another one has now."""
        if id in self.said:
            self.said.clear()
            self.changes += 1
        self.plans.forget(id)
        if self.watcher is not None:
            self.watcher.changed(id)

    def _goes(self, id: int) -> None:
        thing = self.by_id.get(id)
        if self.watcher is not None and thing is not None and not isinstance(thing, CommandBuffer):
            self.watcher.gone(thing)

    def move(self) -> None:
        """Something is no longer there, or elsewhere: an id that means it means something else."""
        self.moved += 1

    def readdress(self) -> None:
        """Device addresses stand for another buffer than before."""
        if self.watcher is not None:
            self.watcher.forget()

    def every(self, kind: type[R]) -> list[R]:
        """All live objects of a type."""
        return [thing for thing in self.by_id.values() if isinstance(thing, kind)]

    def buffer(self, id: int) -> Buffer | None:
        """The live buffer of this id."""
        return self.get(Buffer, id)

    def image(self, id: int) -> Image | None:
        """The live image of this id."""
        return self.get(Image, id)

    def queue_flags(self, queue: int) -> int:
        """The VkQueueFlags of a queue. All flags are set when the program never asked: masks then stand for every
        stage."""
        return self._family_flags(self.queue_family.get(queue))

    def pool_flags(self, pool: int) -> int:
        """VkQueueFlags of the family that a command pool is for."""
        return self._family_flags(self.pool_family.get(pool))

    def _family_flags(self, place: tuple[int, int] | None) -> int:
        if place is None:
            return ALL_QUEUE_FLAGS
        flags = self.families.get(self.devices.get(place[0], 0), [])
        return flags[place[1]] if place[1] < len(flags) else ALL_QUEUE_FLAGS

    def all(self, kind: type[R]) -> Iterable[R]:
        """Every live object of a type."""
        return [thing for thing in self.by_id.values() if isinstance(thing, kind)]


NOTHING: tuple[Effect, ...] = ()
