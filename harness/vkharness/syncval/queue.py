"""Queues, batches and semaphores: in which order the device's work is judged, and what each queue knows of the others.

A batch that waits for a timeline value that nothing signals yet, and every later batch of its queue, is held back until
the signal is seen. Each queue has a clock: for each other queue, up to which batch that one's work is ordered before
its own (rules.md#semaphore, rules.md#timeline-semaphore).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

from vkharness.findings import ENGINE_QUEUE
from vkharness.spans import Span
from vkharness.spec.enums import VkPipelineStage2
from vkharness.spec.scopes import TOP, WHOLE_FIRST, execution_scope_dst, execution_scope_src, stage_accesses
from vkharness.syncval.barrier import Scope, after_barrier, expand, forgetting, setting
from vkharness.syncval.completion import carrying, marking_everything
from vkharness.syncval.context import Context
from vkharness.syncval.cross_dependency import CrossDependency, importing
from vkharness.syncval.event_order import OperationOrder
from vkharness.syncval.host_knowledge import NOTHING_MORE, HostKnowledge
from vkharness.syncval.host_learning import HostLearning
from vkharness.syncval.late_host_writes import after_host_signal
from vkharness.syncval.race import NO_RACING_WORK, BatchIndex, RacingWork
from vkharness.syncval.range_store import Cover
from vkharness.syncval.signals import HOST, QueueMark, Semaphores, Signal, SignalOrder
from vkharness.syncval.state import LAYOUT_TRANSITION, OWNERSHIP_TRANSFER, Change
from vkharness.syncval.tokens import Tokens
from vkharness.trace.effects import Dependency, SemaphoreOperation, Submission, Submitted
from vkharness.trace.pending_batches import PendingBatch, PendingBatches, Values
from vkharness.trace.sparse_effects import BIND_SPARSE
from vkharness.trace.work_budget import A_KNOWN_QUEUE, spend

PSEUDO_ACCESSES = 1 << LAYOUT_TRANSITION | 1 << OWNERSHIP_TRANSFER
IN_NO_STAGE = 1 << 61
"""In the second scope of each wait, and in no first scope: fences of the queue cover what is known by this bit alone,
and none of its commands comes after that."""
BIND_BATCHES = 1 << 56
"""Batches of vkQueueBindSparse are queues from here on."""
FIRST_TOKEN = 1 << 40
"""Tokens of signals are from here on, those of events below."""


@dataclass(slots=True)
class Batch:
    """One batch of a submit on its way to being judged."""

    submit: Submitted
    submission: Submission
    tag: BatchIndex
    fence: int
    """Signaled when the batch is complete; 0 for all but the last batch of a submit."""
    known: HostKnowledge = NOTHING_MORE
    """The host's knowledge at the submit, as far as it was gained while other batches waited."""


class BindBatches:
    """The batches of vkQueueBindSparse, each of which is a queue of its own."""

    def __init__(self) -> None:
        self._numbers = count(BIND_BATCHES)
        self.queues: dict[int, int] = {}
        """For each that the host does not know to be complete, the queue that it was given to."""

    def split(self, submitted: Submitted, known: HostKnowledge) -> Iterator[list[Batch]]:
        """The batches of one call: semaphores and fences alone join them to others, and to one another.

        Rule: rules.md#a-sparse-bind-is-ordered-by-semaphores-and-fences.
        """
        for submission in submitted.batches:
            queue = next(self._numbers)
            self.queues[queue] = submitted.queue
            tag = (submitted.call, submission.batch)
            yield [Batch(replace(submitted, queue=queue), submission, tag, submitted.fence, known)]

    def given_to(self, queue: int) -> int:
        """The queue of the program that a batch was given to."""
        return self.queues.get(queue, queue)

    def forget(self, reach: Mapping[int, BatchIndex], tables: Iterable[dict[int, Any]]) -> None:
        """Takes those that are complete out of tables by queue."""
        done = self.queues.keys() & reach.keys()
        for each in (self.queues, *tables) if done else ():
            for queue in done:
                each.pop(queue, None)


def _batches_of(submitted: Submitted, known: HostKnowledge) -> list[Batch]:
    """The batches of one submit, the last of which signals its fence."""
    batches = submitted.batches or (Submission(0, ()),)
    fences = [0] * (len(batches) - 1) + [submitted.fence]
    return [
        Batch(submitted, each, (submitted.call, each.batch), fence, known)
        for each, fence in zip(batches, fences, strict=True)
    ]


def engine_of(image: int) -> int:
    """The queue for the presentation engine's work on one image. Its work on different images has no order."""
    return ENGINE_QUEUE + image


class Queues:
    """The queues of a device over one context."""

    def __init__(self, context: Context, order: OperationOrder) -> None:
        self._context, self._order = context, order
        self._clocks: dict[int, dict[int, BatchIndex]] = {}
        self._latest: dict[int, BatchIndex] = {}
        self.semaphores = Semaphores(self._fence_signals)
        self._releases: PendingBatches[Batch] = PendingBatches()
        self._fences: dict[int, list[QueueMark]] = {}
        self.bind_batches = BindBatches()
        self._tokens = Tokens(FIRST_TOKEN)
        self._signals: defaultdict[int, SignalOrder] = defaultdict(SignalOrder)
        self.paused: dict[int, Batch] = {}
        """By queue, the batch that waits for an event."""
        self.host = HostLearning(context, order, self._tokens, self.hear_of)
        context.holds_back = lambda: self.holds_back

    # -- semaphores ---------------------------------------------------------------------------------------------------

    def create(self, semaphore: int, initial: int | None) -> None:
        """A new semaphore: timeline with a value, or binary."""
        self.semaphores.create(semaphore, initial)
        self._releases.create(semaphore, initial)
        self._start_journal()

    def _start_journal(self) -> None:
        if not self._context.journal.on:
            self._context.journal.start(whole=self._context.ranges == 0)

    def destroy(self, semaphore: int) -> None:
        """A semaphore is gone; anything else is ignored."""
        self._releases.destroy(semaphore)
        for signal in self.semaphores.destroy(semaphore):
            self.dismiss(signal)

    def share(self, payload: int, outside: bool) -> Iterator[Batch]:
        """Whether somebody outside may signal the payload of a semaphore or a fence from now on. Yields as `submit`."""
        for signal in self.semaphores.share(payload, outside):
            self.dismiss(signal)
        for batch in self._releases.share(payload, outside):
            yield from self._judge(batch)

    def move(self, source: int, target: int) -> None:
        """The pending signal of a binary semaphore, or of a fence, goes over to another one.

        Rule: rules.md#objects-with-one-payload-are-one.
        """
        signal = self.semaphores.state(source).take()
        if signal is not None:
            self.dismiss(self.semaphores.add(target, 0, signal))
        if source in self._fences:
            self._fences[target] = self._fences.pop(source)

    def host_signal(self, semaphore: int, value: int) -> Iterator[Batch]:
        """The host signals a timeline: waits resolve, but no device memory dependency follows. Yields as `submit`."""
        signal = Signal(HOST, (0, 0), 0, 0, {}, operations=self._order.known_to_host())
        self.semaphores.add(semaphore, value, replace(signal, known=self._context.at_host_signal()))
        for batch in self._releases.signal(semaphore, value):
            yield from self._judge(batch)

    @property
    def holds_back(self) -> bool:
        """Whether a submit waits for a signal that is still to come."""
        return bool(self._releases.held or self.paused)

    def follow_engine(self) -> None:
        """From now on the presentation engine is one that queues may race with."""
        self._clocks.setdefault(ENGINE_QUEUE, {})
        self._start_journal()

    def dismiss(self, signal: Signal | None) -> None:
        """A signal is used up: nothing asks any more what came before it."""
        if signal is not None and signal.token:
            self._take_off(signal.token)

    def _take_off(self, token: int) -> None:
        self._context.map_slots(forgetting(token))
        self._tokens.give(token)

    def _signal(self, batch: Batch, operation: SemaphoreOperation) -> Signal:
        """One signal operation at the end of a batch. A narrow first scope is marked now, since barriers that come
        later must not widen it; tokens are used again, so that there are few.
        Rules: rules.md#a-signal-covers-its-stages, rules.md#signals-of-a-queue-are-in-order."""
        queue, flags, token = batch.submit.queue, batch.submit.queue_flags, 0
        order = self._signals[queue] if operation.end is None else SignalOrder(is_partial=True)
        stages, first = operation.stages, _first_side(operation, flags)
        if not stages & WHOLE_FIRST or order.is_partial:
            token = self._tokens.take()
            self._context.map_slots(setting(token, first.src_stages, first.src_accesses, queue, order.token))
        operations = self._order.signaled(stages, flags, batch.submit.call) | order.operations
        last = order.last if token else None
        clock, accesses = _kept(self._clocks[queue]), None if operation.end is None else first.src_accesses
        made = Signal(queue, batch.tag, stages, flags, clock, token, operations, _kept(order.sure), last, accesses)
        self.dismiss(self.semaphores.add(operation.semaphore, operation.value, made))
        return made

    def _in_order(self, queue: int, made: list[Signal]) -> None:
        """Signals of later batches come after these."""
        order = self._signals[queue]
        for signal in made:
            order.operations = self._order.alive(order.operations | signal.operations)
            if not signal.token:
                order.last = signal
                continue
            order.token = order.token or self._tokens.take()
            self._context.map_slots(carrying(signal.token, order.token, queue))

    # -- submission ---------------------------------------------------------------------------------------------------

    def submit(self, submitted: Submitted) -> Iterator[Batch]:
        """Takes a submit; yields the batches that can be judged now, of any queue, in order. The caller judges each
        between this generator's steps: its waits are done before, its signals after."""
        known = self._context.learnt
        binds = submitted.name == BIND_SPARSE
        for batches in self.bind_batches.split(submitted, known) if binds else [_batches_of(submitted, known)]:
            queue = batches[0].submit.queue
            self._clocks.setdefault(queue, {})
            held = (PendingBatch(_values(it.submission.waits), _values(it.submission.signals), it) for it in batches)
            for batch in self._releases.submit(queue, held):
                yield from self._judge(batch)

    def _judge(self, batch: Batch) -> Iterator[Batch]:
        queue = batch.submit.queue
        self._context.queue = self._context.viewer = queue
        self.host.begin(queue, batch.known)
        for wait in batch.submission.waits:
            self._wait(batch.submit.queue, batch.submit.queue_flags, wait)
        yield from self._go_on(batch)

    def pause(self, batch: Batch) -> None:
        """The batch that was yielded last waits for an event. It will be yielded again."""
        self.paused[batch.submit.queue] = batch
        self._releases.stop(batch.submit.queue)

    def resume(self, queue: int) -> Iterator[Batch]:
        """The batch of a queue that was paused, and then what can be judged after it. Yields as `submit`."""
        yield from self._go_on(self.paused.pop(queue))
        if queue not in self.paused:
            for each in self._releases.go_on(queue):
                yield from self._judge(each)

    def behind(self, fences: Collection[int]) -> list[int]:
        """The queues that have a batch paused, and that signal one of these fences."""
        waiting = [*self.paused.values(), *(each.item for each in self._releases.held)]
        return [
            queue
            for queue in self.paused
            if any(each.submit.queue == queue and each.fence in fences for each in waiting)
        ]

    def _go_on(self, batch: Batch) -> Iterator[Batch]:
        """Yields a batch and, if that was not paused meanwhile, makes its signals."""
        queue, context = batch.submit.queue, self._context
        context.queue = context.viewer = queue
        several = len(self._clocks) > 1
        context.racing = RacingWork(queue, self._clocks[queue], frozenset()) if several else NO_RACING_WORK
        yield batch
        if queue in self.paused:
            return
        self._latest[queue] = batch.tag
        made = [self._signal(batch, signal) for signal in batch.submission.signals]
        self._in_order(queue, [each for each in made if each.accesses is None])
        if batch.fence:
            if any(mark.tag[0] != batch.tag[0] for mark in self._fences.get(batch.fence, ())):
                self.forget_fence(batch.fence)
            self._fences.setdefault(batch.fence, []).append(self._mark(queue))

    def _wait(self, queue: int, queue_flags: int, wait: SemaphoreOperation) -> None:
        """Applies a wait for what a queue signaled.
        Rules: rules.md#a-semaphore-is-a-memory-dependency, rules.md#the-first-value-waits-for-nothing,
        rules.md#a-host-signal-orders-no-device-work."""
        before = self.semaphores.before_wait(wait.semaphore, wait.value)
        for signal in before.signals:
            if signal.queue == HOST:
                self._receive_from_host(queue, wait.stages, execution_scope_dst(wait.stages, queue_flags), signal)
            else:
                self._receive(queue, queue_flags, wait, signal)
        self.dismiss(before.used)

    def _receive_from_host(self, queue: int, stages: int, extended: int, signal: Signal) -> None:
        after = extended | VkPipelineStage2.HOST  # rules.md#a-late-host-write-needs-a-dependency-from-the-host
        self._order.received(signal.operations, after, queue)
        self._context.map_slots(Change(("host signal", queue), lambda state: after_host_signal(state, queue)))
        self.host.come_after(queue, signal.known, partial(Scope, 0, 0, after, _accesses(stages, extended)))

    def _receive(self, queue: int, queue_flags: int, wait: SemaphoreOperation, signal: Signal) -> None:
        """A signal and the wait for it are a memory dependency.
        Rules: rules.md#queues-without-a-semaphore-race, rules.md#a-semaphore-orders-the-halves-of-a-transfer,
        rules.md#semaphores-chain-through-queues."""
        scope = _scope(signal, wait, queue_flags)
        giver = signal.queue
        self._order.received(signal.operations, execution_scope_dst(wait.stages, queue_flags), queue)
        if signal.earlier is not None:
            self._receive(queue, queue_flags, wait, signal.earlier)
        if giver == queue:
            self._apply(signal, Change(((scope,), queue), lambda state: after_barrier(state, (scope,), queue)))
            return
        if wait.end is None or wait.end.ranges is None:
            self._apply(signal, _imported(giver, scope, queue))
        else:
            _synchronize_ranges(self._context, giver, scope, queue, wait.end.ranges)
        clock, order = self._clocks[queue], self._signals[queue]
        _advance(clock, signal.reach, queue)
        if signal.token:
            order.is_partial = True
            return
        _advance(order.waited, {**signal.sure, giver: signal.tag}, queue)
        if scope.dst_stages & ~IN_NO_STAGE:
            _advance(order.sure, {**signal.sure, giver: signal.tag}, queue)

    def _apply(self, signal: Signal, change: Change) -> None:
        """Applies a dependency that begins with a signal: its first scope ends there, so that what the queue did or
        learnt since is left out.
        Rule: rules.md#a-signal-covers-what-was-submitted-before.
        """
        giver = signal.queue
        now = self._latest.get(giver, signal.tag), self._clocks.get(giver, signal.clock)
        if signal.token or now == (signal.tag, signal.clock):
            self._context.map_slots(change)
            return
        learnt = [queue for queue, tag in self._clocks.get(giver, {}).items() if signal.clock.get(queue) != tag]
        self._context.map_before(change, signal.reach, [giver, *learnt])

    # -- what the host waits for --------------------------------------------------------------------------------------

    def _mark(self, queue: int) -> QueueMark:
        """The work that a fence covers here. Rule: rules.md#a-fence-covers-what-its-queue-had-waited-for."""
        order = self._signals[queue]
        mark = QueueMark(queue, self._latest.get(queue, (-1, 0)), {**order.sure})
        _advance(mark.sure, order.waited, queue)
        if order.is_partial:
            mark.reach = dict(self._clocks[queue])
            token = mark.token = self._tokens.take()
            self._context.map_slots(marking_everything(token, queue))
        return mark

    def forget_fence(self, fence: int) -> None:
        """The fence was reset or destroyed. Rule: rules.md#an-unsignaled-fence-says-nothing."""
        for mark in self._fences.pop(fence, ()):
            if mark.token:
                self._take_off(mark.token)

    def wait_fence(self, fence: int) -> None:
        """The host waited for a fence: its queue's work before it, and what that waited for, is complete.
        Rules: rules.md#a-fence-covers-everything-before-it, rules.md#an-unsignaled-fence-says-nothing."""
        for mark in self._fences.get(fence, ()):
            self._retire(mark)
        if fence not in self._fences and self.semaphores.is_shared(fence):
            self._host_receives(self.semaphores.from_outside())

    def _fence_signals(self, fences: Iterable[int]) -> list[Signal]:
        """Returns the signals that the queues' marks for some fences stand for; none for a fence without a mark."""
        return [mark.signal() for fence in fences for mark in self._fences.get(fence, ())]

    def wait_semaphore(self, semaphore: int, value: int) -> None:
        """The host knows that a timeline reached a value.
        Rules: rules.md#a-host-wait-for-a-value-is-a-fence, rules.md#a-value-covers-what-its-signal-covers."""
        self._host_receives(self.semaphores.before_wait(semaphore, value).signals)

    def _host_receives(self, signals: Iterable[Signal]) -> None:
        """The host comes after signals of the device."""
        for signal in signals:
            whole: Signal | None = signal
            if signal.token:
                self.host.learn({}, signal.reach, (signal.token, signal.queue), signal.operations)
                whole = signal.earlier
            if whole is not None and whole.queue != HOST:
                self._retire(QueueMark(whole.queue, whole.tag, whole.sure))

    def wait_idle(self, queue: int = 0) -> None:
        """The host waited for one queue, or for all. Rule: rules.md#an-idle-queue-is-complete."""
        for each in list(self._clocks):
            if queue in (0, each, self.bind_batches.given_to(each)):
                mark = self._mark(each)
                self._retire(mark)
                if mark.token:
                    self._take_off(mark.token)

    def _retire(self, mark: QueueMark) -> None:
        complete = {**mark.sure, mark.queue: mark.tag}
        if mark.token:
            self.host.learn(complete, mark.reach, (mark.token, mark.queue))
        else:
            self.retire(complete)

    def retire(self, reach: dict[int, BatchIndex]) -> None:
        """The host knows that the work of these queues is complete, up to a tag each."""
        self.host.learn(reach, {})
        if not self.holds_back:
            self.bind_batches.forget(reach, (self._clocks, self._latest, self._signals, *self._clocks.values()))

    def hear_of(self, queue: int, known: HostKnowledge, stages: int) -> None:
        """These stages of a queue come after what the host knew, as far as that has a time."""
        order = self._signals[queue]
        _advance(self._clocks[queue], known.reach, queue)
        if stages:
            _advance(order.sure, known.complete, queue)
            order.is_partial = order.is_partial or bool(known.marks)
        self._order.received(self._order.known_in(known), stages, queue)


def _kept(clock: Mapping[int, BatchIndex]) -> dict[int, BatchIndex]:
    spend(A_KNOWN_QUEUE * len(clock), "queues that know of one another")
    return dict(clock)


def _first_side(operation: SemaphoreOperation, queue_flags: int) -> Scope:
    """Returns the first scopes of a signal operation that is about to be made.

    Rules: rules.md#a-signal-covers-its-stages, rules.md#a-barrier-is-local-to-its-physical-device.
    """
    if operation.end is not None:
        return expand(Dependency(operation.stages, operation.end.accesses, 0, 0), queue_flags)
    src = execution_scope_src(operation.stages, queue_flags)
    return Scope(src, _accesses(operation.stages, src), 0, 0)


def _imported(giver: int, scope: Scope, queue: int) -> Change:
    """Lets a queue receive a dependency from another one in every state."""
    return importing((CrossDependency(giver, (scope,), False),), queue)


def _synchronize_ranges(
    context: Context, giver: int, scope: Scope, queue: int, ranges: Iterable[tuple[int, Iterable[Span]]]
) -> None:
    """A dependency of which the access scopes are limited to ranges, and the stages are not.
    Rule: rules.md#a-ranged-barrier-covers-its-range."""
    outside = scope._replace(src_accesses=0, dst_accesses=0)
    inside, everywhere = _imported(giver, scope, queue), _imported(giver, outside, queue)
    covers = [Cover(space, *span, inside, None) for space, spans in ranges for span in spans]
    context.store.synchronize(everywhere, 0, covers)


def _scope(signal: Signal, wait: SemaphoreOperation, queue_flags: int) -> Scope:
    """Signal and wait as one memory dependency: extended scopes, and every access that their stages can make.
    Rule: rules.md#a-wait-orders-its-stages."""
    stages, end = wait.stages, wait.end
    if end is not None:
        behind = expand(Dependency(0, 0, stages, end.accesses), queue_flags)
        dst = behind.dst_stages | IN_NO_STAGE | TOP * end.moves
        return first_scope(signal)._replace(dst_stages=dst, dst_accesses=behind.dst_accesses)
    if signal.queue >= ENGINE_QUEUE:  # an execution dependency: the engine wrote nothing that must be made available
        return Scope(signal.stages, 0, execution_scope_dst(stages, queue_flags), 0)
    dst = execution_scope_dst(stages, queue_flags)
    return first_scope(signal)._replace(dst_stages=dst | IN_NO_STAGE, dst_accesses=_accesses(stages, dst))


def first_scope(signal: Signal) -> Scope:
    """Returns the first scopes of a signal operation that was made, with its token."""
    src = execution_scope_src(signal.stages, signal.queue_flags)
    accesses = _accesses(signal.stages, src) if signal.accesses is None else signal.accesses
    return Scope(src, accesses, 0, 0, signal.token)


def _advance(clock: dict[int, BatchIndex], reach: Mapping[int, BatchIndex], queue: int) -> None:
    for other, tag in reach.items():
        if other != queue:
            clock[other] = max(clock.get(other, (-1, 0)), tag)


def _values(operations: tuple[SemaphoreOperation, ...]) -> Values:
    return tuple([(each.semaphore, each.value) for each in operations])


def _accesses(stages: int, extended: int) -> int:
    everything = stage_accesses(extended)
    return everything | PSEUDO_ACCESSES if stages & WHOLE_FIRST else everything
