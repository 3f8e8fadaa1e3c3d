"""The model's opinion of a trace, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from vkharness.commands.debug_info import DebugInfo
from vkharness.findings import Certainty, Place
from vkharness.model.order import ExecutionOrder
from vkharness.spans import Span
from vkharness.trace.effects import StreamEvent


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """One access of a command that was executed, or one operation on an event, with its place and its node in the
    order."""

    place: Place
    access: str
    """Name of the kind of access, such as SYNC_COPY_TRANSFER_READ; empty for an operation on an event."""
    write: bool
    node: int

    @property
    def call(self) -> int:
        """Block index of the recorded command."""
        return self.place.call

    @property
    def command(self) -> str:
        """Name of the recorded command."""
        return self.place.command

    @property
    def site(self) -> str | None:
        """The source line at which the program recorded the command, as "file:line"."""
        return self.place.site

    @property
    def submit(self) -> int | None:
        """Block index of the submit that executed it."""
        return self.place.submit

    @property
    def queue(self) -> int | None:
        """The queue that executed it."""
        return self.place.queue

    @property
    def command_buffer(self) -> int | None:
        """The command buffer that held it."""
        return self.place.command_buffer


class ConflictKind(StrEnum):
    """Kinds of conflicts between two uses. `Hazard` names what conflicts; this says how far the order goes."""

    UNORDERED = "unordered"
    """Neither happens before the other."""
    UNAVAILABLE = "unavailable"
    """They are ordered. Nothing makes the write available."""
    INVISIBLE = "invisible"
    """The write is available, and not visible to the later use."""
    EVENT_UNORDERED = "event-unordered"
    """Neither of two operations on one event happens before the other."""
    EVENT_USAGE = "event-usage"
    """A wait for an event breaks valid usage with the operation that signaled the event."""
    QUERY_UNORDERED = "query-unordered"
    """Neither of two operations on one query happens before the other."""
    QUERY_NOT_RESET = "query-not-reset"
    """A query is begun, or gets a timestamp, and no reset is the last operation before that."""
    QUERY_NOT_AWAITED = "query-not-awaited"
    """A copy of results does not wait for the end of a query, and nothing else orders it after that."""
    QUERY_WITHOUT_RESULT = "query-without-result"
    """Results are copied, or got, of a query that nothing ended."""
    USAGE = "usage"
    """A command breaks valid usage with an object that an earlier call made. No order follows from it."""
    LOST = "lost-host-write"
    """The host invalidates what it wrote and did not flush."""
    DIRTY = "dirty-invalidate"
    """A dependency makes a range visible in which a write is not available: a remark, never a conflict."""
    OWNERSHIP = "ownership"
    """The contents are undefined for this queue family: not transferred, released and not acquired, or the reverse."""
    OWNERSHIP_WITHOUT_CONTENTS = "ownership-without-contents"
    """The same of contents that nobody ever wrote."""
    BINDING = "binding"
    """The memory of a sparse range changes, in no order with an access through it or with another change."""
    RACING = "racing-invalidate"
    """A write and a dependency that makes its range visible are in no order: a remark, never a conflict."""


REMARKS = (ConflictKind.DIRTY, ConflictKind.RACING)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two uses that a rule of the specification wants ordered, or available and visible, and that are not."""

    kind: ConflictKind
    prior: ModelAccess
    current: ModelAccess
    resource: int
    spans: tuple[Span, ...] = ()
    """The addresses in question, in the address space of the resource."""
    order: ExecutionOrder = field(default_factory=ExecutionOrder, repr=False, compare=False)
    certainty: Certainty = Certainty.EXACT
    resource_type: str = ""
    """Of an object that is no memory, such as a render pass; that of a buffer or an image follows from its id."""


@dataclass(slots=True)
class Opinion:
    """Every conflict in the order of execution, the names of what could not be judged, and the order itself."""

    conflicts: list[Conflict] = field(default_factory=list)
    unmodelled: dict[str, int] = field(default_factory=dict)
    """The names of commands and circumstances without a rule, with how often each was met."""
    order: ExecutionOrder = field(default_factory=ExecutionOrder)
    events: Sequence[StreamEvent] = ()
    """The stream events that the opinion is about."""
    possible: list[Conflict] = field(default_factory=list)
    """Conflicts of accesses that are made or not as contents of memory decide that nobody knows."""
    remarks: list[Conflict] = field(default_factory=list)
    """Pairs that are allowed, and hardly meant (`harness/vkharness/model/caches.py`). The opinion stays clean."""
    debug: DebugInfo = field(default_factory=DebugInfo)
    """Names, labels and frames of the program; empty where the opinion is of stream events."""
    submitted: bool = True
    """Whether the order is that of what was submitted; False for that of one recording that never was."""

    def around(self, conflict: Conflict | None) -> Opinion:
        """The opinion with the order that a conflict is in: that of its recording where this was never submitted."""
        if conflict is None or conflict.order is self.order:
            return self
        return replace(self, order=conflict.order, submitted=False)

    @property
    def of_any_certainty(self) -> list[Conflict]:
        """The conflicts, and behind them those of accesses that may be made."""
        return [*self.conflicts, *self.possible]

    @property
    def everything(self) -> list[Conflict]:
        """The conflicts, and behind them the remarks."""
        return [*self.conflicts, *self.remarks]

    @property
    def clean(self) -> bool:
        """Whether there is no conflict."""
        return not self.conflicts

    @property
    def first(self) -> ModelAccess | None:
        """The first offending command: the later use of the first conflict in the order of execution."""
        return self.conflicts[0].current if self.conflicts else None
