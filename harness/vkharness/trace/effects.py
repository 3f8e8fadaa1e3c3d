"""Effects of commands as data: accesses of memory, and dependencies between accesses.

`commands` makes effects, and every judge consumes them. An address space (`space`) is the id of the object that owns
it: a `VkDeviceMemory` for bound buffers, a `VkImage` for its idealized texel-block space.

No code changes an effect after it was made. Types of many objects are not `frozen`, which costs five times as much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, NamedTuple

from vkharness.findings import Certainty, Place
from vkharness.native import core
from vkharness.spans import Span
from vkharness.spec.enums import VK_QUEUE_FAMILY_EXTERNAL, VK_QUEUE_FAMILY_FOREIGN_EXT, VK_QUEUE_FAMILY_IGNORED
from vkharness.trace.attachment_operations import AttachmentOperation, RasterizationOrder
from vkharness.trace.group_effects import DependencyEnd, DeviceMask
from vkharness.trace.host_effects import HostEvent
from vkharness.trace.inherited import InheritedTargets
from vkharness.trace.operation_effects import NextOperation
from vkharness.trace.ownership_effects import SharedResource
from vkharness.trace.query_effects import HostQueries, UseQueries
from vkharness.trace.sparse_effects import BindingUse, SparseBind
from vkharness.trace.undecided import Undecided
from vkharness.trace.usage_effects import InvalidUsage
from vkharness.trace.view_pairs import ViewPairs


@dataclass(frozen=True, slots=True)
class Alias:
    """Addresses of another resource on the same memory."""

    space: int
    spans: tuple[Span, ...]
    resource: int
    _: KW_ONLY
    alike: bool = False
    """Whether the two are images that interpret the memory alike, so that they overlap address by address."""


@dataclass(slots=True)
class Access:
    """A read or write of some spans of one resource by one stage."""

    access_kind: int
    """An index into `vkharness.spec.scopes.ACCESS_KINDS`."""
    space: int
    spans: tuple[Span, ...]
    resource: int
    _: KW_ONLY
    atomic: bool = False
    """Whether the access is a read-modify-write. `access_kind` is its read then.

    Unordered atomics of one range do not conflict with one another.
    """
    order: RasterizationOrder = RasterizationOrder.NONE
    operation: AttachmentOperation = AttachmentOperation.ORDINARY
    marker: bool = False
    """Whether this is a marker of VK_AMD_buffer_marker. Unordered markers do not conflict with one another."""
    aliases: tuple[Alias, ...] = ()
    """Addresses of other resources on the same memory. Nearly every access has none."""
    rewrite: bool = False
    """Whether an attachment operation may do this to the aspect with which it has nothing to do."""
    certainty: Certainty = Certainty.EXACT
    """How sure it is that the access touches all of `spans`."""

    def __hash__(self) -> int:
        return hash((self.access_kind, self.space, self.spans))


class Dependency(NamedTuple):
    """The scopes of one memory dependency, as given in the API: 64-bit stage and access masks.

    The access masks are 0 for an execution dependency.
    """

    src_stages: int
    src_accesses: int
    dst_stages: int
    dst_accesses: int


FAMILIES_OUTSIDE = (VK_QUEUE_FAMILY_EXTERNAL, VK_QUEUE_FAMILY_FOREIGN_EXT)
"""Queue families that stand for other instances, devices or APIs."""


@dataclass(slots=True, unsafe_hash=True)
class RangeBarrier:
    """A dependency that is limited to spans of one resource. For an image it may also transition the layout.

    With two different families it is one half of a queue family ownership transfer: the release on a queue of
    `src_family`, the acquire on a queue of `dst_family`. It covers those `aliases` of which it contains all that
    overlaps.
    """

    dependency: Dependency
    space: int
    spans: tuple[Span, ...]
    resource: int
    _: KW_ONLY
    transition: bool = False
    old_layout: int = 0
    new_layout: int = 0
    src_family: int = VK_QUEUE_FAMILY_IGNORED
    dst_family: int = VK_QUEUE_FAMILY_IGNORED
    aliases: tuple[Alias, ...] = ()
    all_stages: bool = False
    """VK_DEPENDENCY_QUEUE_FAMILY_OWNERSHIP_TRANSFER_USE_ALL_STAGES_BIT_KHR: the stages of a transfer count."""
    is_traced: bool = False
    """For a transfer from or to what is outside: whether all who have the memory are in the stream, so both halves."""


@dataclass(slots=True, unsafe_hash=True)
class Barrier:
    """The dependencies of one synchronization command. They are independent of one another and do not chain."""

    globals: tuple[Dependency, ...]
    _: KW_ONLY
    ranges: tuple[RangeBarrier, ...] = ()
    by_region: bool = False
    """VK_DEPENDENCY_BY_REGION_BIT: the dependencies are framebuffer-local inside a render pass instance."""
    by_view: bool = False
    """VK_DEPENDENCY_VIEW_LOCAL_BIT in a subpass of several views: the dependencies hold inside each view."""
    asymmetric: bool = False
    """VK_DEPENDENCY_ASYMMETRIC_EVENT_BIT_KHR: a set gives source stages alone, and a wait everything else."""
    device_group: bool = False
    """VK_DEPENDENCY_DEVICE_GROUP_BIT: of a pipeline barrier, the scopes hold operations of all physical devices that
    execute it. The parts of it that judges meet have both scopes on one (`vkharness.commands.device_groups`)."""


def moved_to(effect: Access | Barrier, space: int, spans: tuple[Span, ...], resource: int) -> Access | Barrier:
    """Returns an access, or a barrier of one range, of other memory."""
    if isinstance(effect, Access):
        return replace(effect, space=space, spans=spans, resource=resource)
    (part,) = effect.ranges
    return replace(effect, ranges=(replace(part, space=space, spans=spans, resource=resource),))


def joined_ranges(effects: Sequence[Access | Barrier]) -> tuple[Access | Barrier, ...]:
    """Returns accesses as they are, or one barrier in place of several that differ in their ranges alone."""
    barriers = [each for each in effects if isinstance(each, Barrier)]
    if not barriers:
        return tuple(effects)
    return (replace(barriers[0], ranges=tuple([part for each in barriers for part in each.ranges])),)


@dataclass(frozen=True, slots=True)
class Unmodelled:
    """Says that a command is not modelled. It may touch anything, so that no verdict can be clean."""

    what: str
    _: KW_ONLY
    open: bool = False
    """Whether the contents of memory decide that when the command is executed."""


@dataclass(frozen=True, slots=True)
class RenderingBegin:
    """The begin of an instance of dynamic rendering. Rendering that resumes goes on with an instance."""


EXTERNAL = -1
"""VK_SUBPASS_EXTERNAL: the commands before or after a render pass instance."""


@dataclass(frozen=True, slots=True)
class SubpassDependency:
    """An explicit or implicit dependency between two subpasses of one render pass, or with EXTERNAL.

    A self-dependency (src == dst) orders nothing by itself. It only allows barriers inside the subpass.
    """

    src: int
    dst: int
    dependency: Dependency
    _: KW_ONLY
    by_region: bool = False
    """VK_DEPENDENCY_BY_REGION_BIT: the dependency is framebuffer-local."""
    views: ViewPairs | None = None
    """VK_DEPENDENCY_VIEW_LOCAL_BIT: the dependency is between single views. None where it is between all."""
    device_group: bool = False
    """VK_DEPENDENCY_DEVICE_GROUP_BIT: see `Barrier.device_group`."""


@dataclass(frozen=True, slots=True)
class AutomaticTransition:
    """An automatic layout transition of a whole attachment view, ordered by the subpass dependencies."""

    resource: int
    space: int
    spans: tuple[Span, ...]
    old_layout: int
    new_layout: int
    _: KW_ONLY
    leaves: tuple[int, ...] = ()
    """The subpasses that used the attachment in the layout that it leaves; none if it leaves initialLayout. Those
    behind them which used an aliased attachment are among them, and then EXTERNAL stands for initialLayout."""
    users: tuple[int, ...] = ()
    """All subpasses that use the attachment, or an aliased one."""
    later: tuple[int, ...] = ()
    """The later subpasses that use the attachment in the layout that it enters, up to the next transition."""
    aliases: tuple[Alias, ...] = ()
    """Addresses of other resources on the same memory."""


@dataclass(frozen=True, slots=True)
class PassBegin:
    """The begin of a render pass instance with `subpasses` subpasses. Its dependencies include the implicit ones."""

    subpasses: int
    dependencies: tuple[SubpassDependency, ...]


@dataclass(frozen=True, slots=True)
class SubpassBegin:
    """The begin of a subpass. Its automatic transitions come first. Its load operations follow as accesses."""

    index: int
    _: KW_ONLY
    transitions: tuple[AutomaticTransition, ...] = ()


@dataclass(frozen=True, slots=True)
class AttachmentUsers:
    """The accesses behind it in a command are load, store or resolve operations, in these stages, of attachments that
    these subpasses use: they are in the scopes of the dependencies of each. Without subpasses it ends that."""

    _: KW_ONLY
    subpasses: tuple[int, ...] = ()
    stages: int = 0


@dataclass(frozen=True, slots=True)
class PassEnd:
    """The end of a render pass instance, with the final layout transitions."""

    _: KW_ONLY
    transitions: tuple[AutomaticTransition, ...] = ()


@dataclass(frozen=True, slots=True)
class Execute:
    """Secondary command buffers that run in place, in order, as (id, its commands when this was recorded)."""

    buffers: tuple[tuple[int, Sequence[Command]], ...]


@dataclass(frozen=True, slots=True)
class SetEvent:
    """The set of an event after the first scopes of `barrier`."""

    event: int
    barrier: Barrier
    _: KW_ONLY
    sync2: bool
    """vkCmdSetEvent2, with the whole dependency. vkCmdSetEvent has only source stages; accesses come with the wait."""


@dataclass(frozen=True, slots=True)
class ResetEvent:
    """The reset of an event after these stages."""

    event: int
    stages: int


@dataclass(frozen=True, slots=True)
class WaitEvents:
    """A wait for events. vkCmdWaitEvents has one barrier for all of them, vkCmdWaitEvents2 one for each."""

    events: tuple[int, ...]
    barriers: tuple[Barrier, ...]
    _: KW_ONLY
    sync2: bool


Effect = (
    Access
    | BindingUse
    | Barrier
    | Unmodelled
    | InvalidUsage
    | RenderingBegin
    | PassBegin
    | SubpassBegin
    | AttachmentUsers
    | PassEnd
    | Execute
    | SetEvent
    | ResetEvent
    | WaitEvents
    | UseQueries
    | NextOperation
    | InheritedTargets
    | DeviceMask
)


class EffectPlan:
    """The effects of a command, in order. Commands that are known to have equal ones have one plan
    (`vkharness.commands.plan_table`), so that what a judge finds out about it is found out once. Nobody changes
    `effects` and `writes`. What judges keep here follows from them alone."""

    __slots__ = ("__weakref__", "acts", "apart", "effects", "engine", "is_plain", "is_simple", "owners", "writes")

    def __init__(self, effects: tuple[Effect, ...], writes: Any = None) -> None:
        self.effects = effects
        self.writes = writes
        """The known bytes that the command writes (`content_steps.Write`); None where `effects` say all."""
        self.acts: tuple[Effect, ...] | None = None
        """The effects that do more than to access memory; None before syncval has looked."""
        self.apart: tuple[Access, ...] | Literal[False] | None = None
        """The effects, where all of them are accesses and no two of these can touch one address; False where that is
        not so; None before a judge has looked."""
        self.is_plain: bool | None = None
        """Whether the effects follow from memory alone, and act on nothing else; None before syncval has looked."""
        self.is_simple: bool | None = None
        """Whether they are accesses outside of render passes, and barriers that change neither layout nor owner."""
        self.engine: Any = None
        """Their form for syncval's native engine; None or True before it has kept one, False where it needs none."""
        self.owners: object = None
        """The state of ownership in syncval that these effects change nothing of, and cause no finding with."""

    def __iter__(self) -> Iterator[Effect]:
        return iter(self.effects)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PLANS) and self.effects == other.effects

    def __hash__(self) -> int:
        return hash(self.effects)

    def __repr__(self) -> str:
        return f"EffectPlan({self.effects!r})"


PLANS: tuple[type[EffectPlan], ...] = (EffectPlan,) if core is None else (EffectPlan, core.FlatPlan)
"""The types of plans: the native core has flat ones (`vkharness.commands.buffer_transfers`)."""


class OpenEffects(NamedTuple):
    """Effects of a command that are not known while it is recorded."""

    sure: int | None = None
    """How many of its effects, from the first, are judged while it is recorded; None for all. It is a number for
    a command that would run nothing with the parameters that its buffer is about to hold."""
    late: Callable[[], tuple[Effect, ...]] | None = None
    """Gives what the command accesses beside that, through descriptors that may still be written until the submit."""
    undecided: Undecided | None = None
    """Effects that contents of memory decide, while the command is recorded; None where they decide nothing."""


NOTHING_OPEN = OpenEffects()


class Command:
    """One recorded vkCmd* with its effects. `call` is the block index of the recording call."""

    __slots__ = ("call", "name", "open", "plan", "site")

    def __init__(
        self,
        call: int,
        name: str,
        site: str | None,
        effects: tuple[Effect, ...] | EffectPlan,
        open: OpenEffects = NOTHING_OPEN,
    ) -> None:
        self.call = call
        self.name = name
        self.site = site
        self.plan = effects if isinstance(effects, PLANS) else EffectPlan(effects)  # type: ignore[arg-type]
        self.open = open

    @property
    def effects(self) -> tuple[Effect, ...]:
        """Its effects in order."""
        return self.plan.effects

    @property
    def sure(self) -> int | None:
        """See `OpenEffects.sure`."""
        return self.open.sure

    @property
    def late(self) -> Callable[[], tuple[Effect, ...]] | None:
        """See `OpenEffects.late`."""
        return self.open.late

    @property
    def undecided(self) -> Undecided | None:
        """See `OpenEffects.undecided`."""
        return self.open.undecided

    @property
    def certain(self) -> Command:
        """The command with only what is judged while it is recorded."""
        return Command(self.call, self.name, self.site, self.effects[: self.sure])

    def with_effects(self, effects: tuple[Effect, ...]) -> Command:
        """The command with other effects."""
        return Command(self.call, self.name, self.site, effects, self.open)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Command):
            return NotImplemented
        mine = (self.call, self.name, self.site, self.effects, self.sure)
        return mine == (other.call, other.name, other.site, other.effects, other.sure)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Command({self.call}, {self.name!r}, {self.site!r}, {self.effects!r}, sure={self.sure})"


@dataclass(frozen=True, slots=True)
class CommandBufferReset:
    """The loss of a command buffer's commands, because it was begun anew, reset or freed."""

    command_buffer: int
    _: KW_ONLY
    freed: bool = False


@dataclass(slots=True, unsafe_hash=True)
class Recorded:
    """The recording of a command into a command buffer. `queue_flags` are those of its pool's family."""

    command_buffer: int
    command: Command
    queue_flags: int


@dataclass(frozen=True, slots=True)
class SemaphoreOperation:
    """A wait or signal of a batch. `value` is 0 for binary semaphores. `stages` is the stage mask of the operation."""

    semaphore: int
    stages: int
    _: KW_ONLY
    value: int = 0
    device: int = 0
    """The device index of the physical device that performs it."""
    end: DependencyEnd | None = None
    """The end of a dependency between physical devices that it stands for; None for an operation of the program."""


@dataclass(frozen=True, slots=True)
class Submission:
    """The command buffers that one batch executes, in order, each with its commands at submission."""

    batch: int
    buffers: tuple[tuple[int, Sequence[Command]], ...]
    _: KW_ONLY
    waits: tuple[SemaphoreOperation, ...] = ()
    signals: tuple[SemaphoreOperation, ...] = ()
    binds: tuple[SparseBind, ...] | None = None
    """The operations of a batch of vkQueueBindSparse, which are in no order with one another; None for a submit."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """One vkQueueSubmit* or vkQueueBindSparse. `call` is its block index; `fence` 0 when there is none."""

    call: int
    name: str
    site: str | None
    queue: int
    queue_flags: int
    batches: tuple[Submission, ...]
    fence: int
    _: KW_ONLY
    family: int = VK_QUEUE_FAMILY_IGNORED
    """The index of the queue family."""


@dataclass(frozen=True, slots=True)
class HostWaited:
    """The host learns that the submissions of these fences, or of a queue, or all if both are empty, are complete."""

    _: KW_ONLY
    fences: tuple[int, ...] = ()
    queue: int = 0


@dataclass(frozen=True, slots=True)
class FenceReset:
    """The reset of fences, which no longer stand for earlier submissions, `by` a call of the program if any."""

    fences: tuple[int, ...]
    _: KW_ONLY
    by: Place | None = None


@dataclass(frozen=True, slots=True)
class Destroyed:
    """The end of a resource. Complete accesses of its addresses no longer matter; without `span` none of its space."""

    space: int
    _: KW_ONLY
    span: Span | None = None
    resource: int = 0
    by: Place | None = None
    """Of a semaphore, the call that destroys it."""


@dataclass(frozen=True, slots=True)
class UnmodelledCall:
    """Names a call outside command buffers that is not modelled and may matter, so that no verdict is clean."""

    what: str


@dataclass(frozen=True, slots=True)
class SemaphoreCreated:
    """The creation of a semaphore, `by` a call if any. `initial`: the value of a timeline, None if it is binary."""

    semaphore: int
    initial: int | None
    _: KW_ONLY
    by: Place | None = None


@dataclass(frozen=True, slots=True)
class PayloadShared:
    """Says whether a payload is shared with somebody outside of the stream from now on. They may signal that of a
    semaphore or a fence and wait for it, too. That of memory has an owner."""

    payload: int
    _: KW_ONLY
    outside: bool


@dataclass(frozen=True, slots=True)
class QueueObtained:
    """The program got a queue of the family with this index."""

    queue: int
    family: int


@dataclass(frozen=True, slots=True)
class Acquired:
    """The acquire of an image. The presentation engine reads it until `semaphore` or `fence` is signaled (0: none)."""

    call: int
    name: str
    site: str | None
    swapchain: int
    image: int
    semaphore: int
    fence: int


@dataclass(frozen=True, slots=True)
class Presented:
    """The presentation of images after semaphore waits, or their release unpresented; `queue` is 0 then."""

    call: int
    name: str
    site: str | None
    queue: int
    waits: tuple[int, ...]
    images: tuple[tuple[int, int], ...]
    """Pairs of a swapchain and an image."""
    _: KW_ONLY
    fences: tuple[tuple[int, int], ...] = ()
    """Pairs of a swapchain and a fence, which is signaled when the waits are over."""


StreamEvent = (
    CommandBufferReset
    | Recorded
    | Submitted
    | HostWaited
    | FenceReset
    | Destroyed
    | HostEvent
    | UnmodelledCall
    | SemaphoreCreated
    | PayloadShared
    | HostQueries
    | QueueObtained
    | SharedResource
    | Acquired
    | Presented
)
