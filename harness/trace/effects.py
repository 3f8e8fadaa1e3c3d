"""What commands do, as data: accesses of memory and barriers over earlier accesses.

`commands` makes effects, `syncval` and every later judge consume them. An address space (`space`) is the id of the
object that owns it: a `VkDeviceMemory` for bound buffers, a `VkImage` for its idealized texel-block space.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.spans import Span


@dataclass(frozen=True, slots=True)
class Access:
    """One stage reads or writes some spans of one resource."""

    sync: int
    """Index into `harness.spec.scopes.SYNC`."""
    space: int
    spans: tuple[Span, ...]
    resource: int
    atomic: bool = False
    """Read-modify-write: `sync` is its read access; unordered atomics of one range do not conflict with one another."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """The scopes of one memory dependency, as given in the API: 64-bit stage and access masks.

    The access masks are 0 for an execution dependency.
    """

    src_stages: int
    src_accesses: int
    dst_stages: int
    dst_accesses: int

    def describe(self) -> tuple[int, int, int, int]:
        """The four masks, in API order."""
        return (self.src_stages, self.src_accesses, self.dst_stages, self.dst_accesses)


@dataclass(frozen=True, slots=True)
class RangeBarrier:
    """A dependency limited to spans of one resource; an image one may also transition the layout."""

    dependency: Dependency
    space: int
    spans: tuple[Span, ...]
    resource: int
    transition: bool = False
    old_layout: int = 0
    new_layout: int = 0


@dataclass(frozen=True, slots=True)
class Barrier:
    """One synchronization command. Its dependencies are independent of one another: they do not chain."""

    globals: tuple[Dependency, ...]
    ranges: tuple[RangeBarrier, ...] = ()


@dataclass(frozen=True, slots=True)
class Unmodelled:
    """The command is not modelled: it may touch anything, so that no verdict can be clean."""

    what: str


Effect = Access | Barrier | Unmodelled


@dataclass(slots=True)
class Command:
    """One recorded vkCmd* with its effects. `call` is the block index of the recording call."""

    call: int
    name: str
    site: str | None
    effects: tuple[Effect, ...]


@dataclass(frozen=True, slots=True)
class Begun:
    """A command buffer lost what it held: begun anew, reset or freed."""

    command_buffer: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """A command was appended to a command buffer. `queue_flags` are those of its pool's family."""

    command_buffer: int
    command: Command
    queue_flags: int


@dataclass(frozen=True, slots=True)
class Submission:
    """Command buffers executed by one batch, in order; each with the commands that it held at submission."""

    batch: int
    buffers: tuple[tuple[int, tuple[Command, ...]], ...]


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


@dataclass(frozen=True, slots=True)
class Destroyed:
    """A resource is gone; accesses of its addresses no longer matter."""

    space: int
    span: Span | None = None
    """None: the whole space."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """Something outside a command buffer is not modelled and may matter: it is named, and no verdict is clean."""

    what: str


Occurrence = Begun | Recorded | Submitted | HostWaited | FenceReset | HostWrote | Destroyed | Ignored
