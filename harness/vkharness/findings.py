"""Findings: what a judge saw, as data. `vkharness.report.sentences` makes words from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, ClassVar, NamedTuple

from vkharness.call_sites import between, frames_of, shown
from vkharness.queue_ids import queue_and_device
from vkharness.uncounted import Uncounted
from vkharness.vuids import VUIDS


class Hazard(StrEnum):
    """Every value of `Finding.hazard`. `docs/hazards.md` has a heading for each."""

    READ_AFTER_WRITE = "READ_AFTER_WRITE"
    WRITE_AFTER_READ = "WRITE_AFTER_READ"
    WRITE_AFTER_WRITE = "WRITE_AFTER_WRITE"
    READ_RACING_WRITE = "READ_RACING_WRITE"
    WRITE_RACING_WRITE = "WRITE_RACING_WRITE"
    WRITE_RACING_READ = "WRITE_RACING_READ"
    READ_AFTER_PRESENT = "READ_AFTER_PRESENT"
    WRITE_AFTER_PRESENT = "WRITE_AFTER_PRESENT"
    PRESENT_AFTER_READ = "PRESENT_AFTER_READ"
    PRESENT_AFTER_WRITE = "PRESENT_AFTER_WRITE"

    OWNERSHIP_NOT_TRANSFERRED = "ownership-not-transferred"
    """Contents are needed that belong to another queue family. That family never released them."""
    OWNERSHIP_NOT_ACQUIRED = "ownership-not-acquired"
    """Contents are needed that were released and not acquired since."""
    OWNERSHIP_NOT_RELEASED = "ownership-not-released"
    """An acquire has no release before it."""
    OWNERSHIP_MISMATCH = "ownership-mismatch"
    """An acquire has another range, other families or other layouts than the release."""
    OWNERSHIP_WITHOUT_CONTENTS = "ownership-without-contents"
    """One of the four above, and nobody ever wrote the contents."""

    SPARSE_BINDING_RACE = "sparse-binding-race"
    """The memory of a sparse range changes by vkQueueBindSparse, and nothing orders that with an access through it, or
    with another change."""
    SPARSE_NOT_BOUND = "sparse-not-bound"
    """A sparse resource without sparse residency is used before all of it is bound to memory."""

    SEMAPHORE_IN_USE = "semaphore-in-use"
    """A binary semaphore is signaled or destroyed, and a wait for it, of a present above all, may not have ended."""
    SEMAPHORE_SIGNALED = "semaphore-already-signaled"
    """A binary semaphore is signaled twice, with no wait between the two."""
    SEMAPHORE_UNSIGNALED = "semaphore-not-signaled"
    """A wait for a binary semaphore that nothing was submitted to signal."""
    FENCE_SIGNALED = "fence-not-reset"
    """A fence is given to a queue or to an acquire, and is signaled."""
    FENCE_IN_USE = "fence-in-use"
    """A fence is given to something, reset or destroyed, and what signals it may not be complete."""

    SET_EVENT_AFTER_RESET = "vkCmdSetEvent-reset-race"
    SET_EVENT2_AFTER_RESET = "vkCmdSetEvent2-reset-race"
    SET_EVENT2_KHR_AFTER_RESET = "vkCmdSetEvent2KHR-reset-race"
    SET_EVENT_AFTER_SET = "vkCmdSetEvent-set-race"
    SET_EVENT2_AFTER_SET = "vkCmdSetEvent2-set-race"
    SET_EVENT2_KHR_AFTER_SET = "vkCmdSetEvent2KHR-set-race"
    SET_EVENT_AFTER_WAIT = "vkCmdSetEvent-wait"
    SET_EVENT2_AFTER_WAIT = "vkCmdSetEvent2-wait"
    SET_EVENT2_KHR_AFTER_WAIT = "vkCmdSetEvent2KHR-wait"
    RESET_EVENT_AFTER_SET = "vkCmdResetEvent-set-race"
    RESET_EVENT_AFTER_WAIT = "vkCmdResetEvent-wait-race"
    WAIT_FOR_UNORDERED_SET = "vkCmdWaitEvents-unsynchronized-setops"
    WAIT_AFTER_RESET = "vkCmdWaitEvents-reset-race"
    """A wait and an earlier reset that nothing orders: the wait may see the event as it was before."""
    WAIT_STAGES_DIFFER = "vkCmdWaitEvents-stages-differ"
    """The source stages of a wait are not those of the sets that it waits for."""
    WAIT_FOR_SECOND_FORM = "vkCmdWaitEvents-second-form-set"
    WAIT2_FOR_FIRST_FORM = "vkCmdWaitEvents2-first-form-set"
    WAIT2_DEPENDENCY_DIFFERS = "vkCmdWaitEvents2-dependency-differs"
    """The VkDependencyInfo of a wait is not that of the set."""
    WAIT_ON_ANOTHER_QUEUE = "vkCmdWaitEvents-another-queue"
    """The event was set on another queue."""
    HOST_RESET_AFTER_WAIT = "vkResetEvent-wait-race"
    """The host resets an event, and a wait for it may not have ended."""
    LATE_HOST_SET = "vkSetEvent-pending-wait"
    """The host sets an event for which a submitted command buffer waits."""

    REWRITES_OTHER_ASPECT = "attachment-operation-rewrites-other-aspect"
    """A hazard on devices without separateDepthStencilAttachmentAccess; the trace does not say what this one has."""

    PRESERVED_AND_USED = "attachment-preserved-and-used"
    """A subpass both uses and preserves an attachment."""

    QUERY_UNORDERED = "query-unordered"
    """Nothing orders two operations on one query: they are of two queues, or one is a reset by the host."""
    QUERY_NOT_RESET = "query-not-reset"
    """A query is used again, or for the first time, without a reset before."""
    QUERY_NOT_AWAITED = "query-not-awaited"
    """A copy of results that does not wait, and that nothing orders after the end of the query."""
    QUERY_WITHOUT_RESULT = "query-without-result"
    """Results are asked for of a query that nothing ended."""

    VISIBLE_BEFORE_AVAILABLE = "barrier-before-availability"
    """A barrier makes a range visible in which a write is not available."""
    BARRIER_RACING_WRITE = "barrier-racing-write"
    """A barrier makes a range visible, and a write of the range may come before or after that."""

    UNFLUSHED_WRITE = "vkInvalidateMappedMemoryRanges-unflushed-write"
    """An invalidate discards what the host wrote and did not flush."""

    @property
    def is_advice(self) -> bool:
        """Whether it breaks a rule of valid usage, but orders no memory: it counts for no verdict and no exit code."""
        return self in ADVICE

    def __repr__(self) -> str:
        """The string's: programs that print findings saw strings before there was an enumeration."""
        return str.__repr__(self)

    @property
    def is_between_accesses(self) -> bool:
        """Whether the Khronos layer has this name too: two accesses of one range, each named in the finding."""
        return "-" not in self

    @property
    def is_race(self) -> bool:
        """Whether nothing orders the two accesses at all: they are of two queues, or of two subpasses."""
        return "_RACING_" in self

    @property
    def is_presentation(self) -> bool:
        """Whether one of the two accesses is the presentation engine's."""
        return "PRESENT" in self

    @property
    def is_ownership(self) -> bool:
        """Whether a transfer of queue family ownership is missing or wrong."""
        return self.startswith("ownership-")

    @property
    def is_object_usage(self) -> bool:
        """Whether a semaphore or a fence is used again too early, or without what it needs."""
        return self.startswith(("semaphore-", "fence-"))

    @property
    def reads(self) -> bool:
        """Whether the later access is the read of a hazard between accesses."""
        return self.startswith("READ_")

    @property
    def prior_reads(self) -> bool:
        """Whether the earlier access is the read of a hazard between accesses."""
        return self.endswith("_READ")

    @property
    def vuid(self) -> str:
        """The identifier under which the Khronos layer reports it, or would."""
        return f"SYNC-HAZARD-{self.replace('_', '-')}" if self.is_between_accesses else f"SYNC-{self}"


ADVICE = frozenset(
    {
        Hazard.SET_EVENT_AFTER_RESET,
        Hazard.SET_EVENT2_AFTER_RESET,
        Hazard.SET_EVENT2_KHR_AFTER_RESET,
        Hazard.SET_EVENT_AFTER_SET,
        Hazard.SET_EVENT2_AFTER_SET,
        Hazard.SET_EVENT2_KHR_AFTER_SET,
        Hazard.SET_EVENT_AFTER_WAIT,
        Hazard.SET_EVENT2_AFTER_WAIT,
        Hazard.SET_EVENT2_KHR_AFTER_WAIT,
        Hazard.RESET_EVENT_AFTER_SET,
        Hazard.RESET_EVENT_AFTER_WAIT,
        Hazard.WAIT_FOR_UNORDERED_SET,
        Hazard.WAIT_AFTER_RESET,
        Hazard.WAIT_STAGES_DIFFER,
        Hazard.WAIT_FOR_SECOND_FORM,
        Hazard.WAIT2_FOR_FIRST_FORM,
        Hazard.WAIT2_DEPENDENCY_DIFFERS,
        Hazard.WAIT_ON_ANOTHER_QUEUE,
        Hazard.HOST_RESET_AFTER_WAIT,
        Hazard.LATE_HOST_SET,
        Hazard.OWNERSHIP_WITHOUT_CONTENTS,
        Hazard.REWRITES_OTHER_ASPECT,
        Hazard.PRESERVED_AND_USED,
        Hazard.QUERY_UNORDERED,
        Hazard.QUERY_NOT_RESET,
        Hazard.QUERY_NOT_AWAITED,
        Hazard.QUERY_WITHOUT_RESULT,
        Hazard.VISIBLE_BEFORE_AVAILABLE,
        Hazard.BARRIER_RACING_WRITE,
        Hazard.SPARSE_NOT_BOUND,
    }
)
"""The values that are advice. A test holds the table in `docs/hazards.md` equal to this set."""


class Certainty(StrEnum):
    """How sure it is that the two accesses of a finding touch the same bytes: as sure as of the weaker access."""

    EXACT = "exact"
    """The bytes are known."""
    DECLARED = "declared"
    """A shader may touch any byte of a descriptor's range, or any element of an array of descriptors."""
    BOUND = "bound"
    """The most that an indexed or indirect draw could reach: the verdict is unknown, and no finding is reported, unless
    that is asked for."""


def weaker(one: Certainty, other: Certainty) -> Certainty:
    """Returns the certainty of a finding of two accesses: that of the less sure one."""
    return max(one, other, key=_STRONGEST_FIRST.index)


def stronger(one: Certainty, other: Certainty) -> Certainty:
    """Returns the certainty of a finding on two ranges: that of the surer one."""
    return min(one, other, key=_STRONGEST_FIRST.index)


_STRONGEST_FIRST = (Certainty.EXACT, Certainty.DECLARED, Certainty.BOUND)


class UserError(Exception):
    """Bad input. The message is one line that says what, where and what to do; it is shown without a traceback."""


class LacksError(UserError):
    """The device has not what is asked of it: an extension, a feature, a queue, a type of memory. Nobody is wrong."""


class FailedCallError(UserError):
    """The driver answered a call with an error. The message names both."""


class DeviceLostError(FailedCallError):
    """The driver answered VK_ERROR_DEVICE_LOST."""


class UnwrittenError(UserError):
    """The disk did not take a file: it is full, say. Nothing follows from that for what the file is about."""


USER_ERRORS: dict[str, type[UserError]] = {
    each.__name__: each for each in (UserError, LacksError, FailedCallError, DeviceLostError, UnwrittenError)
}
"""By name, for errors that travel between processes."""


@dataclass(frozen=True, slots=True)
class Box:
    """A part of one image subresource: texel offset and extent in one mip level, layer and aspect bit."""

    aspect: int
    mip: int
    layer: int
    offset: tuple[int, int, int]
    extent: tuple[int, int, int]

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, member names as in the class."""
        return {
            "aspect": self.aspect,
            "mip": self.mip,
            "layer": self.layer,
            "offset": list(self.offset),
            "extent": list(self.extent),
        }


ENGINE_QUEUE = 1 << 63
"""`Place.queue` of the presentation engine. Its work on each image has a queue of its own, above this."""


@dataclass(slots=True, unsafe_hash=True)
class Place:
    """Where in the stream an access happened. Indices are block indices of the trace. Nobody changes a place; it is not
    declared frozen because one is made for each executed command, and a frozen one takes five times as long to make.

    `call` is the vkCmd* (or host, present, …) call. `submit` is the vkQueueSubmit* that executed it, None while
    recording; `batch` and `position` (of the command buffer in the batch) tell executions of one submit apart.
    """

    call: int
    command: str
    site: str | None
    command_buffer: int | None = None
    submit: int | None = None
    batch: int = 0
    position: int = 0
    queue: int | None = None
    executed_by: tuple[int, int] | None = None
    """In a secondary command buffer: the vkCmdExecuteCommands that runs it, and where among those that this one runs.
    None for a primary's own commands, and while the secondary itself is recorded."""


class HostStep(Enum):
    """The step between an access of the device and one of the host that is missing."""

    WAIT_TO_WRITE = 1
    """A wait of the host that covers the access of the device."""
    WAIT_TO_READ = 2
    """The same, and the dependency before it."""
    DEPENDENCY = 3
    """The host waits, but no dependency makes the write visible to it."""
    DEPENDENCY_TO_WRITE = 5
    """The same, before a write of the host: a dependency must bring the write into the host's memory domain."""
    INVALIDATE = 4
    """The memory is not HOST_COHERENT."""
    EARLIER_SUBMIT = 6
    """An earlier submit of the access: its own waits for the host, which would wait for ever."""


class DependencySoFar(NamedTuple):
    """Order, availability and visibility that dependencies have given the earlier access so far: not enough."""

    waiting_stages: int = 0
    """Stages that are ordered after a read."""
    visible_to: int = 0
    """Access kinds, as bits, to which a write is visible."""
    available: bool = False
    """Whether a write that is visible to none is available."""


class Lack(StrEnum):
    """What a dependency that comes near to the missing one does not hold."""

    FIRST_STAGES = "first-stages"
    """Its first scope lacks the stage of the earlier access."""
    FIRST_ACCESSES = "first-accesses"
    SECOND_STAGES = "second-stages"
    SECOND_ACCESSES = "second-accesses"
    RANGE = "range"
    REGION = "region"
    """It holds by region (VK_DEPENDENCY_BY_REGION_BIT)."""


class NearestDependency(NamedTuple):
    """The dependency of the program that comes nearest to the missing one."""

    command: str
    call: int
    call_site: str | None
    """The call site with its stack; None if unknown."""
    lacks: tuple[Lack, ...]
    src_stages: int
    src_accesses: int
    dst_stages: int
    dst_accesses: int
    uncovered: tuple[tuple[int, int], ...] = ()
    """Bytes of the finding outside of it: (offset, size), as in `Finding.ranges`."""
    uncovered_boxes: tuple[Box, ...] = ()

    @property
    def site(self) -> str | None:
        """`file:line` of the call; None if unknown."""
        return self.call_site and shown(self.call_site)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form with stable keys."""
        return {
            "command": self.command,
            "call": self.call,
            "site": self.site,
            "lacks": list(self.lacks),
            "src_stages": self.src_stages,
            "src_accesses": self.src_accesses,
            "dst_stages": self.dst_stages,
            "dst_accesses": self.dst_accesses,
            "uncovered": [dict(zip(("offset", "size"), each, strict=True)) for each in self.uncovered],
            "uncovered_subresources": [box.to_dict() for box in self.uncovered_boxes],
        }


class OwnershipFamilies(NamedTuple):
    """Queue families: who owned the contents, or released them, and who needs or acquires them."""

    source: int
    destination: int


class UnseenWrite(NamedTuple):
    """Bytes that the device wrote to mapped memory, and that no dependency makes visible to the host."""

    resource: int
    resource_type: str
    size: int
    """In bytes."""
    place: Place
    resource_name: str = ""
    """The debug name of the resource; empty where it has none."""
    memory: int = 0
    """The memory object that the program had mapped."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form with stable keys."""
        return {
            "memory": self.memory,
            "resource": self.resource,
            "resource_type": self.resource_type,
            "resource_name": self.resource_name,
            "size": self.size,
            "command": self.place.command,
            "call": self.place.call,
            "site": self.place.site and shown(self.place.site),
        }


@dataclass(frozen=True, slots=True)
class Unjudged:
    """Parts of a stream that a verdict leaves out. By themselves they change neither the verdict nor the exit code."""

    left_out: Mapping[str, int] = field(default_factory=dict)
    """Reads that unknown contents of memory decide, in words, with the number of recorded draws that make them."""
    never_visible: Sequence[UnseenWrite] = ()
    """Writes of the device that the host can never see, in memory that the program had mapped."""
    nothing_submitted: bool = False
    """Whether no work of the program ever came to a queue."""
    outside_waits: int = 0
    """Waits of queues for signals that somebody outside of the stream may make."""
    storing_shaders: bool = False
    """Whether shaders of a dispatch or draw store to memory: races between the invocations of one command are not
    judged."""


class Explanation(NamedTuple):
    """A finding in words."""

    missing: str
    """The synchronization that would have prevented it, in the specification's terms."""
    message: str
    """One sentence: who does what to which resource after whom, and what is missing."""
    nearest: str = ""
    """The dependency that comes nearest, and what of it does not fit; empty where none does."""


@dataclass(slots=True)
class Finding:
    """One hazard: two accesses of one range that no sufficient dependency orders."""

    hazard: Hazard
    access: str
    prior_access: str
    place: Place
    prior: Place
    resource: int
    resource_type: str
    ranges: tuple[tuple[int, int], ...] = ()
    """Bytes from the start of the buffer or memory object: (offset, size), for those."""
    boxes: tuple[Box, ...] = ()
    """Parts of the image, for images."""
    gap: HostStep | DependencySoFar | OwnershipFamilies | None = None
    """Details of the missing synchronization that do not follow from the hazard and the two accesses."""
    nearest: NearestDependency | None = None
    """The dependency of the program that comes nearest to the missing one; None where none does."""
    through: int = 0
    """The resource by which the later access came, when it is an alias of `resource`."""
    certainty: Certainty = Certainty.EXACT
    judges: tuple[str, ...] = ()
    """Which of `syncval` and `model` find it, once both were asked; empty before."""
    refuted: str = ""
    """How it is known that the two accesses did not meet on an observed run; empty where they did or nobody looked."""
    ignored: str = ""
    """The reason why it is known and does not count (`--ignore FILE`); empty where it counts."""
    uncounted: Uncounted | None = None
    """Why it counts with `--strict` alone; None where it counts, and of all findings with `--strict`."""
    frame: int | None = None
    """The frame in which the later access is executed, from 1; None where the program has no frames (so far)."""
    prior_frame: int | None = None
    """The same of the earlier access."""
    period: int = 0
    """What stands for a frame where the program has none: the call of the submit that executes the later access, or of
    the last one before its recording was begun."""
    labels: tuple[str, ...] = ()
    """The debug label regions around the later access, the outermost first."""
    prior_labels: tuple[str, ...] = ()
    """The same of the earlier access."""
    names: Mapping[int, str] = field(default_factory=dict)
    """By id: the debug names of the objects that the finding speaks of, as the program gave them."""
    repeated: int = 0
    """How often it was found again without a finding of its own (`vkharness.groups.Repetitions`)."""
    last_frame: int | None = None
    """The frame in which it was last found; None where the program has no frames, and where `repeated` is 0."""
    explain: Callable[[Finding], Explanation] | None = field(default=None, repr=False, compare=False)
    """Makes the words. Whoever hands out findings sets it: judges have none."""
    as_html: ClassVar[Callable[..., str] | None] = None
    """Makes the form that notebooks show, from a finding with words."""

    @property
    def site(self) -> str | None:
        """`file:line` of the later call, of the frame that is shown (`vkharness.call_sites`); None if unknown."""
        return self._shown(0)

    @property
    def prior_site(self) -> str | None:
        """The same of the earlier call."""
        return self._shown(1)

    def _shown(self, which: int) -> str | None:
        frames = between(self.place.site, self.prior.site)[which]
        return frames[-1].site if frames else None

    @property
    def missing(self) -> str:
        """The synchronization that would have prevented it, in the specification's terms; empty without `explain`."""
        return self._words.missing

    @property
    def message(self) -> str:
        """The finding as one sentence; empty without `explain`."""
        return self._words.message

    @property
    def _words(self) -> Explanation:
        return self.explain(self) if self.explain else Explanation("", "")

    @property
    def advice(self) -> bool:
        """Whether the finding is advice: it counts for no verdict and no exit code."""
        return self.hazard.is_advice

    @property
    def counts(self) -> bool:
        """Whether it counts for verdict and exit code: not advice, nor what is refuted, ignored or uncounted."""
        return not (self.advice or self.refuted or self.ignored or self.uncounted)

    @property
    def resource_name(self) -> str:
        """The debug name of the resource; empty where it has none."""
        return self.names.get(self.resource, "")

    @property
    def range(self) -> tuple[int, int] | None:
        """The first of `ranges`."""
        return self.ranges[0] if self.ranges else None

    @property
    def vuid(self) -> str:
        """The rule of valid usage that is broken, or the identifier under which the Khronos layer reports this hazard,
        or would."""
        command = self.place.command
        of_command = VUIDS.get((self.hazard, command)) or VUIDS.get((self.hazard, command.removesuffix("KHR")))
        return of_command or self.hazard.vuid

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """Values by which findings of two judges are compared: hazard, command, prior command, access, prior access."""
        return (self.hazard, self.place.command, self.prior.command, self.access, self.prior_access)

    def _repr_html_(self) -> str | None:
        as_html = type(self).as_html
        return as_html(self) if as_html else None

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form with stable keys."""
        return {
            "hazard": self.hazard,
            "vuid": self.vuid,
            "command": self.place.command,
            "access": self.access,
            "prior_command": self.prior.command,
            "prior_access": self.prior_access,
            "resource": self.resource,
            "resource_type": self.resource_type,
            "range": {"offset": self.range[0], "size": self.range[1]} if self.range else None,
            "ranges": [{"offset": offset, "size": size} for offset, size in self.ranges],
            "subresource": self.boxes[0].to_dict() if self.boxes else None,
            "subresources": [box.to_dict() for box in self.boxes],
            "command_buffer": self.place.command_buffer,
            "queue": self.place.queue and queue_and_device(self.place.queue)[0],
            "submit": self.place.submit,
            "site": self.site,
            "prior_site": self.prior_site,
            "stack": [each._asdict() for each in frames_of(self.place.site)],
            "prior_stack": [each._asdict() for each in frames_of(self.prior.site)],
            "call": self.place.call,
            "batch": self.place.batch,
            "position": self.place.position,
            "executed_by": self.place.executed_by and list(self.place.executed_by),
            "prior_call": self.prior.call,
            "prior_batch": self.prior.batch,
            "prior_position": self.prior.position,
            "prior_executed_by": self.prior.executed_by and list(self.prior.executed_by),
            "prior_submit": self.prior.submit,
            "prior_command_buffer": self.prior.command_buffer,
            "resource_name": self.resource_name,
            "names": {str(id): name for id, name in self.names.items()},
            "labels": list(self.labels),
            "prior_labels": list(self.prior_labels),
            **dict.fromkeys(("frame", "first_frame"), self.frame),
            "prior_frame": self.prior_frame,
            "count": 1 + self.repeated,
            "last_frame": self.last_frame if self.repeated else self.frame,
            **{name: getattr(self, name) for name in ("certainty", "advice")},
            "judges": list(self.judges),
            "refuted": self.refuted,
            "uncounted": self.uncounted or "",
            "ignored": bool(self.ignored),
            "ignored_reason": self.ignored,
            "missing": self.missing,
            "nearest": self.nearest and {"text": self._words.nearest, **self.nearest.to_dict()},
            "message": self.message,
        }
