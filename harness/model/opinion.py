"""The model's opinion of a trace, as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness.findings import Place
from harness.model import explain
from harness.model.order import ExecutionOrder
from harness.spans import Span
from harness.trace.effects import StreamEvent


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

    def describe(self) -> str:
        """'vkCmdCopyBuffer SYNC_COPY_TRANSFER_READ (call 12)'."""
        access = f" {self.access}" if self.access else ""
        return f"{self.command}{access} (call {self.call})"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two uses that a rule of the specification wants ordered, or available and visible, and that are not."""

    kind: str
    prior: ModelAccess
    current: ModelAccess
    resource: int
    spans: tuple[Span, ...] = ()
    """The addresses in question, in the address space of the resource."""
    facts: frozenset[str] = frozenset()
    """Circumstances (out of `pairs.FACTS`) by which the named differences tell cases apart."""
    order: ExecutionOrder = field(default_factory=ExecutionOrder, repr=False, compare=False)

    @property
    def missing(self) -> str:
        """One line that says what would mend the conflict, in the specification's terms."""
        return explain.missing(self.kind, self.prior.access, self.prior.write, self.current.access)

    @property
    def chain(self) -> list[str]:
        """The nodes that lead from the prior use towards the current one, as far as any chain gets."""
        nodes = explain.chain(self.prior.node, self.current.node, self.order)
        return [self.order.nodes[node].label for node in nodes]

    def describe(self) -> str:
        """One line with the kind of the conflict and both uses."""
        return f"{self.kind}: {self.current.describe()} after {self.prior.describe()}"


@dataclass(slots=True)
class Opinion:
    """Every conflict in the order of execution, the names of what could not be judged, and the order itself."""

    conflicts: list[Conflict] = field(default_factory=list)
    unmodelled: dict[str, int] = field(default_factory=dict)
    """The names of commands and circumstances without a rule, with how often each was met."""
    order: ExecutionOrder = field(default_factory=ExecutionOrder)
    events: Sequence[StreamEvent] = ()
    """The stream events that the opinion is about."""
    without: Callable[[str], Opinion] | None = None
    """Returns the opinion of the same stream without one rule of the order, given the rule's name."""
    remarks: Callable[[], list[Conflict]] = list
    """Returns the conflicts with rules of older specifications (`harness/model/caches.py`)."""

    @property
    def clean(self) -> bool:
        """Whether there is no conflict."""
        return not self.conflicts

    @property
    def first(self) -> ModelAccess | None:
        """The first offending command: the later use of the first conflict in the order of execution."""
        return self.conflicts[0].current if self.conflicts else None
