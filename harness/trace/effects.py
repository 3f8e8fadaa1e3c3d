"""What commands do, as data: accesses of memory and barriers over earlier accesses.

`commands` makes effects, `syncval` and every later judge consume them. An address space (`space`) is the id of the
object that owns it: a `VkDeviceMemory` for bound buffers, a `VkImage` for its idealized texel-block space.

Nobody changes an effect. Those made for nearly every command are not declared `frozen`, since a frozen one takes five
times as long to make.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from harness.spans import Span
from harness.spec.enums import VK_QUEUE_FAMILY_EXTERNAL, VK_QUEUE_FAMILY_FOREIGN_EXT, VK_QUEUE_FAMILY_IGNORED
from harness.trace.graphics_state import Targets


class RasterizationOrder(IntEnum):
    """Rasterization order: accesses of one class by one queue are ordered among themselves without a barrier
    (specification: "Rasterization Order";
    rules.md#attachment-accesses-are-in-rasterization-order)."""

    NONE = 0
    COLOR = 1
    DEPTH_STENCIL = 2
    RASTER = 3
    """Input attachments: after colour and depth/stencil accesses of load operations."""


class AttachmentOperation(IntEnum):
    """What an attachment access is part of; some are ordered where ordinary ones are not."""

    ORDINARY = 0
    LOAD = 1
    STORE = 2
    RESOLVE_READ = 3
    RESOLVE_WRITE = 4


@dataclass(frozen=True, slots=True)
class Alias:
    """Addresses of another resource that are the same memory."""

    space: int
    spans: tuple[Span, ...]
    resource: int
    alike: bool = False
    """The two are images that interpret the memory alike, so that they overlap address by address."""


@dataclass(slots=True, unsafe_hash=True)
class Access:
    """One stage reads or writes some spans of one resource."""

    access_kind: int
    """Index into `harness.spec.scopes.ACCESS_KINDS`."""
    space: int
    spans: tuple[Span, ...]
    resource: int
    atomic: bool = False
    """Read-modify-write: `access_kind` is its read access; unordered atomics of one range do not conflict with one
    another."""
    order: RasterizationOrder = RasterizationOrder.NONE
    operation: AttachmentOperation = AttachmentOperation.ORDINARY
    marker: bool = False
    """A marker written by VK_AMD_buffer_marker: unordered markers do not conflict with one another."""
    aliases: tuple[Alias, ...] = ()
    """What else this memory is; empty for nearly every access."""


class Dependency(NamedTuple):
    """The scopes of one memory dependency, as given in the API: 64-bit stage and access masks.

    The access masks are 0 for an execution dependency.
    """

    src_stages: int
    src_accesses: int
    dst_stages: int
    dst_accesses: int

    def describe(self) -> tuple[int, int, int, int]:
        """The four masks, in API order."""
        return self


FAMILIES_OUTSIDE = (VK_QUEUE_FAMILY_EXTERNAL, VK_QUEUE_FAMILY_FOREIGN_EXT)
"""Queues of other instances, devices or APIs."""


@dataclass(slots=True, unsafe_hash=True)
class RangeBarrier:
    """A dependency limited to spans of one resource; an image one may also transition the layout.

    With two different families it is one half of a queue family ownership transfer: the release on a queue of
    `src_family`, the acquire on one of `dst_family`. It covers those `aliases` of which it contains all that overlaps.
    """

    dependency: Dependency
    space: int
    spans: tuple[Span, ...]
    resource: int
    transition: bool = False
    old_layout: int = 0
    new_layout: int = 0
    src_family: int = VK_QUEUE_FAMILY_IGNORED
    dst_family: int = VK_QUEUE_FAMILY_IGNORED
    aliases: tuple[Alias, ...] = ()


@dataclass(slots=True, unsafe_hash=True)
class Barrier:
    """One synchronization command. Its dependencies are independent of one another: they do not chain."""

    globals: tuple[Dependency, ...]
    ranges: tuple[RangeBarrier, ...] = ()
    by_region: bool = False
    """VK_DEPENDENCY_BY_REGION_BIT: inside a render pass instance, framebuffer-local."""


@dataclass(frozen=True, slots=True)
class Unmodelled:
    """The command is not modelled: it may touch anything, so that no verdict can be clean."""

    what: str


EXTERNAL = -1
"""What came before, or comes after, a render pass instance (VK_SUBPASS_EXTERNAL)."""


@dataclass(frozen=True, slots=True)
class SubpassDependency:
    """A dependency between two subpasses of one render pass, or with what is outside (EXTERNAL). Explicit or implicit.

    A self-dependency (src == dst) orders nothing by itself: it only allows barriers inside the subpass.
    """

    src: int
    dst: int
    dependency: Dependency
    by_region: bool = False
    """VK_DEPENDENCY_BY_REGION_BIT: framebuffer-local."""


@dataclass(frozen=True, slots=True)
class AutomaticTransition:
    """An automatic layout transition of an attachment: whole view, ordered by the subpass dependencies."""

    resource: int
    space: int
    spans: tuple[Span, ...]
    old_layout: int
    new_layout: int


@dataclass(frozen=True, slots=True)
class PassBegin:
    """A render pass instance begins: `subpasses` in number, with every dependency, the implicit ones included."""

    subpasses: int
    dependencies: tuple[SubpassDependency, ...]


@dataclass(frozen=True, slots=True)
class SubpassBegin:
    """A subpass begins: its automatic transitions come first, then (as accesses that follow) its load operations."""

    index: int
    transitions: tuple[AutomaticTransition, ...] = ()


@dataclass(frozen=True, slots=True)
class PassEnd:
    """A render pass instance ends; the final transitions follow the last use of each attachment. Each is ordered by the
    dependencies from the subpass that used its attachment last to EXTERNAL: `last` gives these subpasses, in order
    (EXTERNAL for an attachment that no subpass used)."""

    transitions: tuple[AutomaticTransition, ...] = ()
    last: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Execute:
    """Secondary command buffers run in place, in order: (id, the commands that it held when this was recorded)."""

    buffers: tuple[tuple[int, tuple[Command, ...]], ...]


@dataclass(frozen=True, slots=True)
class SetEvent:
    """An event is set after the first scopes of `barrier` (all of them, by stages alone in the first form)."""

    event: int
    barrier: Barrier
    sync2: bool
    """vkCmdSetEvent2, with the whole dependency. vkCmdSetEvent has only source stages; accesses come with the wait."""


@dataclass(frozen=True, slots=True)
class ResetEvent:
    """An event is reset after these stages."""

    event: int
    stages: int


@dataclass(frozen=True, slots=True)
class WaitEvents:
    """Waits for events: one barrier for all in the first form, one for each event in the second."""

    events: tuple[int, ...]
    barriers: tuple[Barrier, ...]
    sync2: bool


@dataclass(frozen=True, slots=True)
class InheritedTargets:
    """Attachments that a command of a secondary accesses. Which images they are is known where it is executed: there
    `Execute` holds accesses in its place, so that judges have nothing to do with it."""

    targets: Targets


@dataclass(frozen=True, slots=True)
class InheritedClear(InheritedTargets):
    """The same for vkCmdClearAttachments: (aspects, colour attachment) each, in (x, y, width, height, first layer,
    layers) each."""

    clears: tuple[tuple[int, int], ...] = ()
    rects: tuple[tuple[int, int, int, int, int, int], ...] = ()


Effect = (
    Access
    | Barrier
    | Unmodelled
    | PassBegin
    | SubpassBegin
    | PassEnd
    | Execute
    | SetEvent
    | ResetEvent
    | WaitEvents
    | InheritedTargets
)


@dataclass(slots=True)
class Command:
    """One recorded vkCmd* with its effects. `call` is the block index of the recording call."""

    call: int
    name: str
    site: str | None
    effects: tuple[Effect, ...]


@dataclass(frozen=True, slots=True)
class CommandBufferReset:
    """A command buffer lost what it held: begun anew, reset or freed."""

    command_buffer: int


@dataclass(slots=True, unsafe_hash=True)
class Recorded:
    """A command was appended to a command buffer. `queue_flags` are those of its pool's family."""

    command_buffer: int
    command: Command
    queue_flags: int


@dataclass(frozen=True, slots=True)
class SemaphoreOperation:
    """A wait or signal of a batch. `value` is 0 for binary semaphores; `stages` the wait's or signal's stage mask."""

    semaphore: int
    stages: int
    value: int = 0


@dataclass(frozen=True, slots=True)
class Submission:
    """Command buffers executed by one batch, in order; each with the commands that it held at submission."""

    batch: int
    buffers: tuple[tuple[int, tuple[Command, ...]], ...]
    waits: tuple[SemaphoreOperation, ...] = ()
    signals: tuple[SemaphoreOperation, ...] = ()


@dataclass(frozen=True, slots=True)
class Submitted:
    """One vkQueueSubmit*. `call` is its block index; `fence` 0 when there is none."""

    call: int
    name: str
    site: str | None
    queue: int
    queue_flags: int
    batches: tuple[Submission, ...]
    fence: int
    family: int = VK_QUEUE_FAMILY_IGNORED
    """The queue family's index."""


@dataclass(frozen=True, slots=True)
class HostWaited:
    """The host knows that work is complete: of these fences' submissions, of a queue, or of everything (both empty)."""

    fences: tuple[int, ...] = ()
    queue: int = 0


@dataclass(frozen=True, slots=True)
class FenceReset:
    """Fences went back to unsignaled: they say nothing of earlier submissions any more."""

    fences: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HostWrote:
    """The host wrote addresses of a memory object before the device call that follows."""

    call: int
    site: str | None
    memory: int
    span: Span
    coherent: bool = True
    """The memory is HOST_COHERENT; what the host writes elsewhere needs a flush to become available."""
    non_coherent_atom_size: int = 1
    """Bytes: what the host may not do beside the device is meant of whole atoms of this size (nonCoherentAtomSize)."""


@dataclass(frozen=True, slots=True)
class HostFlushed:
    """vkFlushMappedMemoryRanges: what the host wrote to these bytes becomes available to the host domain."""

    call: int
    site: str | None
    memory: int
    span: Span


@dataclass(frozen=True, slots=True)
class HostInvalidated:
    """vkInvalidateMappedMemoryRanges: what is available to the host domain becomes visible to the host."""

    call: int
    site: str | None
    memory: int
    span: Span


@dataclass(frozen=True, slots=True)
class Destroyed:
    """A resource is gone; accesses of its addresses (no `span`: the whole space) no longer matter."""

    space: int
    span: Span | None = None
    resource: int = 0


@dataclass(frozen=True, slots=True)
class UnmodelledCall:
    """Something outside a command buffer is not modelled and may matter: it is named, and no verdict is clean."""

    what: str


@dataclass(frozen=True, slots=True)
class SemaphoreCreated:
    """A semaphore exists; `initial` is its value for a timeline, None for a binary one."""

    semaphore: int
    initial: int | None


@dataclass(frozen=True, slots=True)
class HostSignaled:
    """The host signaled a timeline semaphore; it gives no device memory dependency."""

    semaphore: int
    value: int


@dataclass(frozen=True, slots=True)
class HostWaitedSemaphores:
    """The host knows that timeline semaphores reached values: (semaphore, value) each."""

    values: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class HostSetEvent:
    """The host set (or reset) an event."""

    event: int
    signaled: bool


@dataclass(frozen=True, slots=True)
class HostDeclaredRead:
    """The host declared a read of mapped memory (vkInvalidateMappedMemoryRanges, a read-back)."""

    call: int
    site: str | None
    memory: int
    span: Span
    coherent: bool = True
    non_coherent_atom_size: int = 1
    """As in `HostWrote`."""
    name: str = "host read"
    """What declared it."""


@dataclass(frozen=True, slots=True)
class HostAccess:
    """The host itself read or wrote a resource during the call (VK_EXT_host_image_copy, host builds of acceleration
    structures); the call returns when it is done."""

    call: int
    name: str
    site: str | None
    space: int
    spans: tuple[Span, ...]
    resource: int
    write: bool


@dataclass(frozen=True, slots=True)
class QueueObtained:
    """The program got a queue of this family (its index)."""

    queue: int
    family: int


@dataclass(frozen=True, slots=True)
class SharedResource:
    """A resource was created with VK_SHARING_MODE_CONCURRENT; every other belongs to one queue family at a time."""

    resource: int


@dataclass(frozen=True, slots=True)
class Acquired:
    """The presentation engine handed an image out: it reads it until `semaphore` or `fence` is signaled (0: none)."""

    call: int
    name: str
    site: str | None
    swapchain: int
    image: int
    semaphore: int
    fence: int


@dataclass(frozen=True, slots=True)
class Presented:
    """Images given to the presentation engine after semaphore waits."""

    call: int
    name: str
    site: str | None
    queue: int
    waits: tuple[int, ...]
    images: tuple[tuple[int, int], ...]
    """(swapchain, image) each."""


StreamEvent = (
    CommandBufferReset
    | Recorded
    | Submitted
    | HostWaited
    | FenceReset
    | HostWrote
    | Destroyed
    | UnmodelledCall
    | SemaphoreCreated
    | HostSignaled
    | HostWaitedSemaphores
    | HostSetEvent
    | HostDeclaredRead
    | HostFlushed
    | HostInvalidated
    | HostAccess
    | QueueObtained
    | SharedResource
    | Acquired
    | Presented
)
