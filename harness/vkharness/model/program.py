"""The program as the model sees it: the order, the memory operations, and how far each queue and the host have got."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from vkharness.findings import Certainty, Place
from vkharness.model.access_history import AccessHistory
from vkharness.model.binding_history import BindingHistory
from vkharness.model.caches import Caches
from vkharness.model.command_streams import CommandStream
from vkharness.model.event_history import EventHistory
from vkharness.model.memory import MemoryOperations
from vkharness.model.node_numbers import EMPTY
from vkharness.model.object_uses import ObjectUses
from vkharness.model.opinion import Conflict, ConflictKind, ModelAccess, Opinion
from vkharness.model.order import HOST, NOTHING, ExecutionOrder, Node, NodeSet
from vkharness.model.ownership import Loss, OwnershipHistory
from vkharness.model.past_access import HOST_STREAM, PastAccess, is_write
from vkharness.model.query_history import QueryPoolHistory
from vkharness.model.stages import ACCESS_KINDS
from vkharness.spans import Span, merge, subtract
from vkharness.trace.effects import (
    Access,
    AutomaticTransition,
    Presented,
    Recorded,
    StreamEvent,
    Submitted,
    SubpassDependency,
)
from vkharness.trace.work_budget import spend

A_QUEUE = 25
"""Units of the work budget that it costs to ask a queue whether it can go on."""


@dataclass(slots=True)
class SemaphoreHistory:
    """The state of a semaphore: its kind, its initial value, and the signals that waits can take."""

    timeline: bool
    value: int = 0
    signals: list[tuple[int, NodeSet]] = field(default_factory=list)
    """Pairs of a value and the signal operation: of a timeline by value, else in the order in which they happen."""

    def add(self, value: int, signal: NodeSet) -> None:
        """A signal operation. Of several with one value, the first stays the first."""
        if self.timeline:
            insort(self.signals, (value, signal), key=_value)
        else:
            self.signals.append((value, signal))

    def taken(self, value: int) -> NodeSet:
        """The signal that a wait depends on. It is empty when a timeline was created with the value."""
        if not self.timeline:
            return self.signals[0][1] if self.signals else NOTHING
        first = self.first_to_reach(value) if value > self.value else None
        return NOTHING if first is None else first[1]

    def first_to_reach(self, value: int) -> tuple[int, NodeSet] | None:
        """Of a timeline, the signal with the lowest value from this one on; None if there is none so far."""
        at = bisect_left(self.signals, value, key=_value)
        return self.signals[at] if at < len(self.signals) else None


def _value(signal: tuple[int, NodeSet]) -> int:
    return signal[0]


@dataclass(slots=True)
class Work:
    """A submit or a presentation that waits for its turn in its queue."""

    what: Submitted | Presented
    node: int
    """The node of the host's call."""
    at: int = 0
    """The number of its batches that have ended."""
    running: Iterator[None] | None = None
    """The execution of the batch that has begun. Each step ends at a wait for an event that is not signaled."""
    waits_at: Place | None = None
    """Where the execution waits for an event."""
    blocked_by: frozenset[int] = frozenset()
    """The events that it waits for there."""


@dataclass(slots=True)
class QueueState:
    """A queue: its command stream, and the work that waits for a signal."""

    id: int
    stream: CommandStream
    work: list[Work] = field(default_factory=list)
    signaled: NodeSet = NOTHING
    """The semaphore signal operations of the queue."""
    binds_for: int = 0
    """For one batch of vkQueueBindSparse, which has an order of its own, the queue that it was given to."""
    released: bool = False
    """Whether waits for events end although nothing in the trace signals the events."""


MeetsDependencies = Callable[[list[SubpassDependency], AutomaticTransition, int, bool], list[SubpassDependency]]
"""(dependencies, transition, the subpass that it enters, whether it comes before them) -> some of the dependencies."""


@dataclass(frozen=True, slots=True)
class RuleTable:
    """The rule for each type of effect and of stream event."""

    effects: Mapping[type, Callable[[Any, Any], None]]
    """Rules for effects of commands, by type of effect. They act where a command is executed, and take the
    `CommandBufferRun`."""
    stream_events: Mapping[type, Callable[[Program, Any], None]]
    """Rules for operations outside of command buffers, by type of stream event. They take the `Program`."""
    next_work: Callable[[Program, QueueState], bool]
    """Begins the next work of a queue, and returns whether it could."""
    order: Callable[[], ExecutionOrder] = ExecutionOrder
    """Makes an empty order, to which the rules add edges."""
    met: MeetsDependencies = lambda dependencies, *_: dependencies
    """Of the dependencies that are about an automatic transition into a subpass, or to EXTERNAL, those that it meets:
    whether it comes after them or before them, all by the specification."""
    beyond_subpasses: bool = False
    """Whether dependencies inside of a render pass instance hold what is outside of it, which they do not by the
    specification."""


class Program:
    """The state of the model while it follows a stream. Rules act through it."""

    def __init__(self, rules: RuleTable) -> None:
        self.rules = rules
        self.opinion = Opinion(order=rules.order())
        self.order = self.opinion.order
        self.memory = MemoryOperations(self.order)
        self.ownership = OwnershipHistory()
        self.families: dict[int, int] = {}
        """The family of each queue."""
        self.accesses = AccessHistory(self.order, self.memory)
        self.caches = Caches(self.order, self.memory)
        self.opinion.remarks = self.caches.remarks
        self.bindings = BindingHistory(self.order)
        self.queues: dict[int, QueueState] = {}
        self.semaphores: dict[int, SemaphoreHistory] = {}
        self.uses = ObjectUses()
        self.shared: set[int] = set()
        """The semaphores and fences whose payloads somebody outside of the trace may have."""
        self.events: dict[int, EventHistory] = {}
        self.query_pools: dict[int, QueryPoolHistory] = {}
        self.fences: dict[int, NodeSet] = {}
        self.present_fences: dict[tuple[int, int], NodeSet] = {}
        """By queue and swapchain, what the last fence of a present there comes after."""
        self.presented: dict[int, NodeSet] = {}
        """The last presentation of each image."""
        self.unexecuted: dict[int, list[Recorded]] = {}
        """For each command buffer, the recorded commands that were not executed so far."""
        self.by_host: dict[int, NodeSet] = {}
        """For each signal by the host (its node), the host's operations before it, without writes that are not
        flushed."""
        self.host: NodeSet = NOTHING
        """Everything that the host knows to be complete, its own operations included."""
        self.unflushed = EMPTY
        """The host writes that submits do not make available, as a set of nodes."""
        self.dirty: dict[int, list[tuple[ModelAccess, list[Span]]]] = {}
        """For each memory that is not coherent, the host writes, with their addresses that are neither flushed nor
        lost."""
        self.invalidated: dict[int, list[tuple[int, list[Span]]]] = {}
        """For each memory, the invalidates by the host, as pairs of a node and addresses."""
        self.numbers = count(HOST_STREAM + 1)
        """A source of fresh numbers for command streams and for executions of commands."""

    def follow(self, stream_events: Iterable[StreamEvent]) -> None:
        """Applies the rule of each stream event in turn. Events without a rule are passed over."""
        for each in stream_events:
            rule = self.rules.stream_events.get(type(each))
            if rule is not None:
                rule(self, each)

    def queue(self, id: int) -> QueueState:
        """The queue of this id."""
        if id not in self.queues:
            self.queues[id] = QueueState(id, CommandStream(next(self.numbers)))
        return self.queues[id]

    def event(self, id: int) -> EventHistory:
        """The event of this id."""
        return self.events.setdefault(id, EventHistory())

    def proceed(self) -> None:
        """Executes the work of all queues as far as semaphores let them."""
        moved = True
        while moved:
            moved = False
            spend(A_QUEUE * len(self.queues), "steps of the second judge")
            for queue in list(self.queues.values()):
                while queue.work and self.rules.next_work(self, queue):
                    moved = True

    def release(self, queues: Iterable[QueueState]) -> None:
        """Lets waits for events end that the host knows to have ended, whatever signaled the events."""
        several = list(queues)
        for queue in several:
            queue.released = True
        self.proceed()
        for queue in several:
            queue.released = False

    def semaphore(self, id: int) -> SemaphoreHistory:
        """The semaphore of this id. A semaphore whose creation was not seen is taken for binary."""
        return self.semaphores.setdefault(id, SemaphoreHistory(False))

    def unmodelled(self, what: str) -> None:
        """Notes that something has no rule, so that the verdict may hide conflicts."""
        self.opinion.unmodelled[what] = self.opinion.unmodelled.get(what, 0) + 1

    def access(
        self,
        access: Access,
        node: int,
        place: Place,
        stream: int,
        command: int,
        automatic: bool = False,
        seen_at: int | None = None,
        instance: int = 0,
        within: int = 0,
    ) -> None:
        """Makes an access at a node, and judges it in each address space that it touches."""
        for past in self._past_accesses(access, node, place, stream, command):
            past.automatic, past.seen_at, past.instance, past.within = automatic, seen_at, instance, within
            for gap in self.accesses.add(past):
                self.conflict(gap.conflict(self.order))

    def require_unused(self, access: Access, node: int, place: Place, stream: int, command: int) -> None:
        """Judges an access to neighbouring addresses, which must not be in use at the same time. The access is not
        kept."""
        for past in self._past_accesses(access, node, place, stream, command):
            for gap in self.accesses.unordered(past):
                self.conflict(gap.conflict(self.order))

    def _past_accesses(
        self, access: Access, node: int, place: Place, stream: int, command: int
    ) -> Iterator[PastAccess]:
        use = ModelAccess(place, ACCESS_KINDS[access.access_kind].name, is_write(access), node)
        yield PastAccess(use, access, access.space, access.resource, merge(list(access.spans)), stream, command)
        for alias in access.aliases:
            yield PastAccess(use, access, alias.space, alias.resource, merge(list(alias.spans)), stream, command)

    def lose(
        self, losses: Iterable[Loss], use: ModelAccess, resource: int, certainty: Certainty = Certainty.EXACT
    ) -> None:
        """Reports contents that are undefined for the family that uses them."""
        for prior, spans, written in losses:
            kind = ConflictKind.OWNERSHIP if written else ConflictKind.OWNERSHIP_WITHOUT_CONTENTS
            self.conflict(Conflict(kind, prior, use, resource, spans, self.order, certainty))

    def remove_dirty(self, memory: int, span: Span) -> None:
        """Takes the addresses out of the dirty host writes of a memory."""
        left = [(use, subtract(spans, [span])) for use, spans in self.dirty.get(memory, ())]
        self.dirty[memory] = [(use, spans) for use, spans in left if spans]

    def conflict(self, found: Conflict) -> None:
        """Adds a conflict to the opinion.

        Rule: rules.md#what-may-be-read-makes-the-verdict-unknown.
        """
        opinion = self.opinion
        (opinion.possible if found.certainty is Certainty.BOUND else opinion.conflicts).append(found)

    def flushed(self) -> NodeSet:
        """The host's operations so far, without writes that are not flushed."""
        return NodeSet(self.host.direct - self.unflushed, self.host.closed, self.host.by_region)

    def host_node(self, label: str, place: Place) -> int:
        """A new node for an operation of the host, after all that the host did and knows."""
        node = self.order.add(Node(HOST, label, place), (self.host, "the host's own order"))
        self.host |= self.order.set_of(node)
        return node
