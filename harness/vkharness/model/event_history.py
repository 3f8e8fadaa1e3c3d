"""The operations on one event, and the signals that a wait may find, by the order of the program (specification:
"Events")."""

from __future__ import annotations

from dataclasses import dataclass, field

from vkharness.model.command_streams import CommandStream
from vkharness.model.node_numbers import EMPTY, NodeNumbers
from vkharness.model.opinion import ModelAccess
from vkharness.model.order import NOTHING, ExecutionOrder, NodeSet
from vkharness.trace.effects import SetEvent

SET, RESET, WAIT = "set", "reset", "wait"


@dataclass(slots=True)
class EventOperation:
    """A set, a reset or a wait of an event."""

    kind: str
    use: ModelAccess
    effect: SetEvent | None = None
    """The set as the device executes it."""
    stream: CommandStream | None = None
    """For such a set, a copy of its command stream as it was then."""
    stages: int = 0
    """For such a set, its first synchronization scope."""
    host: NodeSet = NOTHING
    """For a set by the host, the host's operations before it, without writes that are not flushed."""

    @property
    def node(self) -> int:
        """The node of the operation."""
        return self.use.node


@dataclass(slots=True)
class EventHistory:
    """The operations on an event that can still matter, in the order in which they were submitted."""

    operations: list[EventOperation] = field(default_factory=list)

    def all(self, kind: str) -> list[EventOperation]:
        """The operations of one kind."""
        return [each for each in self.operations if each.kind == kind]

    def may_signal(self, order: ExecutionOrder, before: NodeNumbers = EMPTY) -> list[EventOperation]:
        """The sets that may have signaled the event for a wait that comes after the nodes `before`.

        A set counts unless a reset ends it: one after the set, and before the wait or before another set, which is then
        the last signal operation. A set has no effect if the event is signaled: if another set is before it, and no
        reset can come between them. Specification: "vkCmdSetEvent2", "vkCmdWaitEvents2" (the last event signal
        operation).
        """
        sets, resets = self.all(SET), self.all(RESET)

        def ended(each: EventOperation) -> bool:
            ends = [reset.node for reset in resets if order.precedes(each.node, reset.node)]
            return any(end in before or any(order.precedes(end, other.node) for other in sets) for end in ends)

        def without_effect(each: EventOperation) -> bool:
            earlier = [other for other in sets if order.precedes(other.node, each.node)]
            free = (
                reset
                for reset in resets
                if not order.precedes(each.node, reset.node)
                and not any(order.precedes(reset.node, other.node) for other in earlier)
            )
            return bool(earlier) and not any(True for _ in free)

        return [each for each in sets if not ended(each) and not without_effect(each)]

    def add(self, order: ExecutionOrder, made: EventOperation) -> None:
        """Adds an operation. A set or a reset after all others leaves only those that still matter."""
        if made.kind != WAIT and all(order.precedes(each.node, made.node) for each in self.operations):
            self.operations = self._still_relevant(order, made.kind)
        self.operations.append(made)

    def _still_relevant(self, order: ExecutionOrder, kind: str) -> list[EventOperation]:
        """Returns the operations that matter after a set or a reset that comes after everything so far: the sets that a
        wait before it may still find, and for a set whose effect is not known the resets, too."""
        sets, resets = self.all(SET), self.all(RESET)
        if kind == RESET:
            return self.may_signal(order)
        unsignaled = any(all(order.precedes(each.node, reset.node) for each in sets) for reset in resets)
        if unsignaled or not sets:
            return []
        if any(all(order.precedes(reset.node, each.node) for reset in resets) for each in sets):
            return self.may_signal(order)
        return [*sets, *resets]
