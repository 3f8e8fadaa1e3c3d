"""Operations of the host on memory and synchronization objects, as data (`vkharness.trace.effects.StreamEvent`)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from vkharness.findings import Place
from vkharness.spans import Span


@dataclass(frozen=True, slots=True)
class HostWrote:
    """A write of the host to addresses of a memory object before the device call that follows."""

    call: int
    site: str | None
    memory: int
    span: Span
    _: KW_ONLY
    coherent: bool = True
    """Whether the memory is HOST_COHERENT. In other memory a write becomes available by a flush."""
    non_coherent_atom_size: int = 1
    """nonCoherentAtomSize in bytes: the host may access no atom of this size of which the device uses a part."""


@dataclass(frozen=True, slots=True)
class HostFlushed:
    """vkFlushMappedMemoryRanges: the host's writes to these bytes become available to the host domain."""

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
class MemoryMapped:
    """The program may read and write these bytes of a memory object from now on."""

    memory: int
    span: Span


@dataclass(frozen=True, slots=True)
class MemoryUnmapped:
    """The end of the mapping of a memory object."""

    memory: int


@dataclass(frozen=True, slots=True)
class HostSignaled:
    """The signal of a timeline semaphore by the host. It makes no device memory dependency."""

    semaphore: int
    value: int


@dataclass(frozen=True, slots=True)
class HostWaitedSemaphores:
    """The host learns that timeline semaphores reached values, given as (semaphore, value) pairs."""

    values: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class HostSetEvent:
    """The set or reset of an event by the host, or its end, which is a reset without a call."""

    event: int
    _: KW_ONLY
    signaled: bool
    call: int = 0
    site: str | None = None


@dataclass(frozen=True, slots=True)
class HostSawEvent:
    """The host read that an event is signaled (vkGetEventStatus)."""

    event: int


@dataclass(frozen=True, slots=True)
class HostDeclaredRead:
    """A read of mapped memory that the program declared (vkInvalidateMappedMemoryRanges, `HostRead`)."""

    call: int
    site: str | None
    memory: int
    span: Span
    _: KW_ONLY
    coherent: bool = True
    non_coherent_atom_size: int = 1
    """nonCoherentAtomSize in bytes, as in `HostWrote`."""
    name: str = "host read"
    """The name of the call or access that declared the read."""


@dataclass(frozen=True, slots=True)
class HostAccess:
    """A read or write of a resource by the host during a call, complete when the call returns: by a host image copy
    (VK_EXT_host_image_copy) or a host build of an acceleration structure."""

    call: int
    name: str
    site: str | None
    space: int
    spans: tuple[Span, ...]
    resource: int
    _: KW_ONLY
    write: bool


@dataclass(frozen=True, slots=True)
class FenceCreated:
    """The creation of a fence in the signaled state."""

    fence: int
    by: Place


@dataclass(frozen=True, slots=True)
class DeviceLost:
    """A call returned VK_ERROR_DEVICE_LOST. Nothing is in use by a lost device that the host waits for or destroys."""


@dataclass(frozen=True, slots=True)
class SignalMoved:
    """The pending signal of a binary semaphore goes over to another one, as an export by copy does."""

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class UnseenSemaphore:
    """The first use of a semaphore that was made before the trace begins. It may be a timeline, or be signaled."""

    semaphore: int


HostEvent = (
    DeviceLost
    | FenceCreated
    | HostAccess
    | HostDeclaredRead
    | HostFlushed
    | HostInvalidated
    | HostSawEvent
    | HostSetEvent
    | HostSignaled
    | HostWaitedSemaphores
    | HostWrote
    | MemoryMapped
    | MemoryUnmapped
    | SignalMoved
    | UnseenSemaphore
)
