"""Which operations on events and queries are ordered before what (rules.md#operations-on-events-have-no-stage)."""

from __future__ import annotations

from collections.abc import Iterable

from vkharness.findings import Place
from vkharness.spec.scopes import TOP, execution_scope_src
from vkharness.syncval.barrier import expand
from vkharness.syncval.context import Context
from vkharness.syncval.event_state import ExecutedOperation, union_of
from vkharness.syncval.event_usage import ALL
from vkharness.syncval.host_knowledge import NOTHING_MORE, HostKnowledge
from vkharness.syncval.race import NEVER, batch_index_of
from vkharness.trace.effects import Barrier
from vkharness.trace.work_budget import spend


class OperationOrder:
    """The order among operations on the events of a device, or of one recording."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.live: dict[int, ExecutedOperation] = {}
        """By number, the operations that can still matter."""

    def after_barrier(self, barrier: Barrier, queue_flags: int) -> None:
        """A barrier orders what follows it after event operations in its first scope."""
        if not self.live:
            return
        queue = self._context.queue
        scopes = [(each.src_stages & ALL, expand(each, queue_flags)) for each in barrier.globals]
        for operation in self.live.values():
            reached = operation.after.get(queue, 0)
            known = reached or is_on(operation, queue)
            gained = union_of(
                scope.dst_stages for all, scope in scopes if scope.src_stages & reached or (all and known)
            )
            if gained:
                operation.after[queue] = reached | gained

    def signaled(self, stages: int, queue_flags: int, submit: int) -> frozenset[int]:
        """The operations that a semaphore signal with these stages comes after, on the current queue, and those that
        the host made before the call of its submit."""
        if not self.live:
            return frozenset()
        by_host = (number for number, each in self.live.items() if each.on_host and each.place.call < submit)
        return self._held(stages, execution_scope_src(stages, queue_flags)).union(by_host)

    def known_to_host(self) -> frozenset[int]:
        """The operations that the host made, or knows to be complete."""
        learnt = self.known_in(self._context.learnt)
        made = (number for number, each in self.live.items() if each.on_host or self._is_complete(each))
        return learnt.union(made)

    def known_in(self, known: HostKnowledge) -> frozenset[int]:
        """The operations of the device that are complete by what the host learned while a batch waits."""
        if known is NOTHING_MORE:
            return frozenset()
        by_clock = (number for number, each in self.live.items() if not each.on_host and known.includes(each.place))
        return known.operations.union(by_clock)

    def received(self, stages_after: dict[int, int], queue: int) -> None:
        """On a queue, these stages come after operations, by number."""
        for number, stages in stages_after.items():
            operation = self.live.get(number)
            if operation is not None:
                operation.after[queue] = operation.after.get(queue, 0) | stages

    def _held(self, stages: int, src: int) -> frozenset[int]:
        """The operations that a first scope of these stages, `src` when expanded, holds on the current queue."""
        queue = self._context.queue
        return frozenset(
            number
            for number, each in self.live.items()
            if each.after.get(queue, 0) & src or (stages & ALL and is_on(each, queue))
        )

    def reached(self, stages: int, place: Place, queue_flags: int) -> frozenset[int]:
        """The operations that are ordered before one with these stages in its own first scope."""
        others = (number for number, each in self.live.items() if self.is_before(each, place))
        return self._held(stages, execution_scope_src(stages, queue_flags) | TOP) | frozenset(others)

    def is_before(self, operation: ExecutedOperation, place: Place) -> bool:
        """Whether the host made an operation before a submit, or knows that it is complete."""
        if operation.on_host:
            return operation.place.call < (place.submit or 0)
        return self._is_complete(operation)

    def alive(self, operations: frozenset[int]) -> frozenset[int]:
        """Those that can still matter, by number."""
        return operations & self.live.keys()

    def complete(self, operations: Iterable[int]) -> None:
        """The host knows that these are complete, by number."""
        for number in self.live.keys() & operations:
            self.live[number].is_complete = True

    def is_complete(self, operation: ExecutedOperation) -> bool:
        """Whether the host knows that an operation is complete.

        Rule: rules.md#a-host-wait-ends-operations-on-events.
        """
        return self._is_complete(operation) or operation.number in self.known_in(self._context.learnt)

    def _is_complete(self, operation: ExecutedOperation) -> bool:
        """Whether that is known to all that is judged from now on."""
        place = operation.place
        if operation.is_complete:
            return True
        return batch_index_of(place) <= self._context.retired.get(place.queue or 0, NEVER)

    def over(self, place: Place, queue: int) -> frozenset[int]:
        """The operations that all later commands of a queue come after."""
        spend(len(self.live), "operations on events")
        return frozenset(
            number for number, each in self.live.items() if each.precedes_commands(queue) or self.is_before(each, place)
        )


def is_on(operation: ExecutedOperation, queue: int) -> bool:
    """Whether a queue executes the operation; 0 while recording."""
    return not operation.on_host and (operation.place.queue or 0) == queue
