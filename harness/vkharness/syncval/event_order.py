"""Which operations on events and queries are ordered before what (rules.md#operations-on-events-have-no-stage)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from vkharness.findings import Place
from vkharness.spec.scopes import TOP, execution_scope_src
from vkharness.syncval.barrier import expand
from vkharness.syncval.context import Context
from vkharness.syncval.event_state import ExecutedOperation, union_of
from vkharness.syncval.event_usage import ALL
from vkharness.syncval.host_knowledge import NOTHING_MORE, HostKnowledge
from vkharness.syncval.race import NEVER, BatchIndex, batch_index_of
from vkharness.trace.effects import Barrier
from vkharness.trace.work_budget import spend

Groups = dict[int, set[int]]
"""Operations by number, by what they have in common."""


class OperationOrder:
    """The order among operations on the events of a device, or of one recording."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.live: dict[int, ExecutedOperation] = {}
        """By number, the operations that can still matter. Most questions are asked of groups of them."""
        self._after: defaultdict[int, Groups] = defaultdict(dict)
        """By queue, and by the stages that are ordered after them there, the operations that the queue executes (0 for
        those that nothing is after) or knows of. An operation itself happens in no stage."""
        self._on: defaultdict[int, set[int]] = defaultdict(set)
        """By queue, those that it executes."""
        self._batches: defaultdict[tuple[int, BatchIndex], set[int]] = defaultdict(set)
        """Those of each batch."""
        self._by_host: set[int] = set()
        self._complete: set[int] = set()
        """Of which the host knows that they are complete, other than by their batch."""

    def add(self, operation: ExecutedOperation) -> None:
        """From now on it matters."""
        number, queue = operation.number, operation.place.queue or 0
        self.live[number] = operation
        if operation.on_host:
            self._by_host.add(number)
            return
        self._on[queue].add(number)
        self._after[queue].setdefault(0, set()).add(number)
        self._batches[queue, batch_index_of(operation.place)].add(number)

    def drop(self, operation: ExecutedOperation) -> None:
        """It matters no more."""
        number, queue = operation.number, operation.place.queue or 0
        if self.live.pop(number, None) is None:
            return
        for held in (self._by_host, self._complete, self._on[queue]):
            held.discard(number)
        for held in (held for groups in self._after.values() for held in groups.values()):
            held.discard(number)
        batch = queue, batch_index_of(operation.place)
        self._batches[batch].discard(number)
        if not self._batches[batch]:
            del self._batches[batch]

    def after_barrier(self, barrier: Barrier, queue_flags: int) -> None:
        """A barrier orders what follows it after event operations in its first scope."""
        queue = self._context.queue
        if not self._after[queue]:
            return
        scopes = [(each.src_stages & ALL, expand(each, queue_flags)) for each in barrier.globals]
        before, self._after[queue] = self._after[queue], {}
        for stages, held in before.items():
            if not held:
                continue
            gained = union_of(scope.dst_stages for all, scope in scopes if all or scope.src_stages & stages)
            self._after[queue].setdefault(stages | gained, set()).update(held)

    def signaled(self, stages: int, queue_flags: int, submit: int) -> frozenset[int]:
        """The operations that a semaphore signal with these stages comes after, on the current queue, and those that
        the host made before the call of its submit."""
        if not self.live:
            return frozenset()
        by_host = (number for number in self._by_host if self.live[number].place.call < submit)
        return self._held(stages, execution_scope_src(stages, queue_flags)).union(by_host)

    def known_to_host(self) -> frozenset[int]:
        """The operations that the host made, or knows to be complete."""
        return self.known_in(self._context.learnt).union(self._by_host, self._known_complete())

    def known_in(self, known: HostKnowledge) -> frozenset[int]:
        """The operations of the device that are complete by what the host learned while a batch waits."""
        if known is NOTHING_MORE:
            return frozenset()
        by_clock = (number for number, each in self.live.items() if not each.on_host and known.includes(each.place))
        return known.operations.union(by_clock)

    def received(self, operations: Iterable[int], stages: int, queue: int) -> None:
        """On a queue, these stages come after operations, by number."""
        left = self.live.keys() & operations if stages else set()
        groups = self._after[queue]
        for after, held in [*groups.items()]:
            moved = held & left
            left -= moved
            if moved and stages & ~after:
                held -= moved
                groups.setdefault(after | stages, set()).update(moved)
        if left:
            groups.setdefault(stages, set()).update(left)

    def _held(self, stages: int, src: int) -> frozenset[int]:
        """The operations that a first scope of these stages, `src` when expanded, holds on the current queue."""
        queue = self._context.queue
        return self.before(queue, src).union(self._on[queue] if stages & ALL else ())

    def before(self, queue: int, stages: int) -> frozenset[int]:
        """The operations after which any of these stages is on a queue."""
        return frozenset().union(*(held for after, held in self._after[queue].items() if after & stages))

    def reached(self, stages: int, place: Place, queue_flags: int) -> frozenset[int]:
        """The operations that are ordered before one with these stages in its own first scope."""
        return self._held(stages, execution_scope_src(stages, queue_flags) | TOP) | self._over(place)

    def _over(self, place: Place) -> frozenset[int]:
        """The operations of which `is_before` is true."""
        submit = place.submit or 0
        made = (number for number in self._by_host if self.live[number].place.call < submit)
        return self._known_complete().difference(self._by_host).union(made)

    def _known_complete(self) -> frozenset[int]:
        """The operations that are known to be complete to all that is judged from now on."""
        retired = self._context.retired
        over = (held for (queue, index), held in self._batches.items() if index <= retired.get(queue, NEVER))
        return frozenset(self._complete).union(*over)

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
            self._complete.add(number)

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
        # An expanded second scope holds TOP_OF_PIPE only when it is all later commands.
        return self.before(queue, TOP) | self._over(place)
