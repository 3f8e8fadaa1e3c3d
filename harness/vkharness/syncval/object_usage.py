"""Semaphores and fences as objects: whether they are used again too early (rules.md#uses-of-semaphores-and-fences).

A binary semaphore has one payload, which a signal sets and a wait takes back. So each needs the other one before it,
and a signal needs to come after the wait before it. Batches of one queue are a sequence, and so are its presents. A
clock tells of each sequence up to where it came before something: an operation of a queue, a signal, or what the host
does.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from operator import itemgetter

from vkharness.findings import Finding, Hazard, Place
from vkharness.syncval.host_knowledge import Clock, later
from vkharness.syncval.queue import Batch
from vkharness.syncval.race import NEVER, BatchIndex
from vkharness.syncval.signals import SIGNALS_KEPT
from vkharness.trace.effects import (
    Acquired,
    Destroyed,
    FenceReset,
    HostWaited,
    Presented,
    SemaphoreCreated,
    SemaphoreOperation,
    Submitted,
)
from vkharness.trace.host_effects import FenceCreated, HostSignaled, HostWaitedSemaphores
from vkharness.trace.sparse_effects import BIND_SPARSE

NOTHING_KNOWN: Clock = {}


@dataclass(frozen=True, slots=True)
class Use:
    """A use of a semaphore or a fence: the place in its sequence, or none where only a fence of its own tells."""

    place: Place
    sequence: int | None = None
    tag: BatchIndex = NEVER

    def is_in(self, known: Clock) -> bool:
        """Whether it comes before what knows so much."""
        return self.sequence is not None and self.tag <= known.get(self.sequence, NEVER)

    @property
    def may_be_over(self) -> bool:
        """Whether it is the use of a fence by binds, of which a wait for what they signal tells, too."""
        return self.sequence is None and self.place.queue is not None


@dataclass(slots=True)
class SemaphoreUsage:
    """The last operations on a semaphore."""

    initial: int | None = None
    """Of a timeline, its initial value."""
    created: Place | None = None
    signals: list[tuple[int, Clock]] = field(default_factory=list)
    """By value, what the signals of a timeline come after. Of a binary semaphore the pending signal alone."""
    signaled: Use | None = None
    """The last signal operation of a binary semaphore."""
    waited: Use | None = None
    """The last wait for a binary semaphore."""

    def add(self, value: int, known: Clock) -> None:
        """A signal operation, which comes after so much."""
        if self.initial is None:
            self.signals = [(0, known)]
            return
        insort(self.signals, (value, known), key=itemgetter(0))
        del self.signals[: max(0, len(self.signals) - SIGNALS_KEPT)]

    def before(self, value: int) -> Clock:
        """The work that a wait comes after by its signal; of a binary semaphore, the wait takes the signal away."""
        if self.initial is None:
            return self.signals.pop()[1] if self.signals else NOTHING_KNOWN
        at = bisect_left(self.signals, value, key=itemgetter(0))
        return self.signals[at][1] if value > self.initial and at < len(self.signals) else NOTHING_KNOWN


@dataclass(slots=True)
class FenceUsage:
    """The last submission of a fence, and the work that is complete when it is signaled."""

    use: Use
    known: Clock = field(default_factory=dict)
    is_signaled: bool = False
    """Whether the host knows that it is signaled."""


class ObjectUsage:
    """The semaphores and fences of a device."""

    def __init__(self) -> None:
        self._semaphores: defaultdict[int, SemaphoreUsage] = defaultdict(SemaphoreUsage)
        self._fences: dict[int, FenceUsage] = {}
        self._foreign: set[int] = set()
        """Semaphores and fences whose payload somebody outside of the stream has, or had."""
        self._queues: defaultdict[int, Clock] = defaultdict(dict)
        """By queue, what its operations so far come after."""
        self._presents: dict[int, Clock] = {}
        """By queue, what its presents so far come after, themselves among that."""
        self._shown: defaultdict[int, dict[int, Clock]] = defaultdict(dict)
        """By image and swapchain, what comes before the end of its last presentation. A driver may give the images of
        a retired swapchain to the next one."""
        self.is_lost = False
        """Whether the device is lost: nothing more is said."""
        self._host: Clock = NOTHING_KNOWN
        self._at_submit: dict[int, Clock] = {}
        """By submit, what the host knew then."""

    # -- objects -------------------------------------------------------------------------------------------------------

    def create(self, created: SemaphoreCreated) -> None:
        """A new semaphore."""
        self._foreign.discard(created.semaphore)
        self._semaphores[created.semaphore] = SemaphoreUsage(created.initial, created.by)

    def create_fence(self, created: FenceCreated) -> None:
        """A new fence, which is signaled."""
        self._fences[created.fence] = FenceUsage(Use(created.by), is_signaled=True)

    def share(self, payload: int) -> None:
        """Somebody may signal the payload of a semaphore or a fence, and wait for it, outside of the stream or before.
        Nothing is said of it."""
        self._foreign.add(payload)
        self._fences.pop(payload, None)

    def move(self, source: int, target: int) -> None:
        """The pending signal of a binary semaphore, or of a fence, goes over to another one."""
        self._semaphores[target].signals = self._semaphores[source].signals
        self._semaphores[source].signals = []
        self._fences.pop(source, None)

    def destroyed(self, gone: Destroyed) -> Iterator[Finding]:
        """A semaphore, an image or something else is gone. The presentations of an image are over then.

        Rule: rules.md#a-semaphore-is-destroyed-after-its-uses.
        """
        for known in self._shown.pop(gone.space, {}).values():
            self._learn(known)
        held, is_foreign = self._semaphores.pop(gone.space, None), gone.space in self._foreign
        self._foreign.discard(gone.space)
        if held is not None and gone.by is not None and not is_foreign:
            for use in (held.waited, held.signaled):
                if use is not None and use.sequence is not None and not use.is_in(self._host):
                    yield _of_semaphore(Hazard.SEMAPHORE_IN_USE, gone.space, gone.by, use.place)
                    break

    def reset(self, reset: FenceReset) -> Iterator[Finding]:
        """Fences are reset or destroyed, which none may be that a queue is to signal.

        Rule: rules.md#a-fence-is-reset-between-its-uses.
        """
        for fence in reset.fences:
            held = self._fences.pop(fence, None)
            if held is None or reset.by is None or held.use.place.queue is None:
                continue
            if not held.is_signaled and not held.use.may_be_over and not held.use.is_in(self._host):
                yield _of_fence(Hazard.FENCE_IN_USE, fence, reset.by, held.use.place)

    # -- queues --------------------------------------------------------------------------------------------------------

    def submit(self, submitted: Submitted) -> Iterator[Finding]:
        """A queue gets batches. Rule: rules.md#a-fence-is-reset-between-its-uses."""
        self._at_submit[submitted.call] = self._host
        if submitted.fence:
            place = Place(submitted.call, submitted.name, submitted.site, queue=submitted.queue)
            last = submitted.batches[-1].batch if submitted.batches else 0
            binds = submitted.name == BIND_SPARSE
            use = Use(place) if binds else Use(place, submitted.queue, (submitted.call, last))
            yield from self._give(submitted.fence, use)

    def begin(self, batch: Batch) -> Iterator[Finding]:
        """A batch waits for its semaphores. Of a batch of binds nobody follows when it has waited."""
        queue, use = batch.submit.queue, _use_of(batch)
        self._hear(queue, self._at_submit.get(batch.submit.call, NOTHING_KNOWN))
        for each in batch.submission.waits:
            if each.end is None:
                yield from self._faults_of_wait(each.semaphore, use)
                self._hear(queue, self._wait(each.semaphore, each.value, use))
        if use.sequence is not None:
            self._hear(queue, {queue: batch.tag})

    def end(self, batch: Batch) -> Iterator[Finding]:
        """A batch signals its semaphores, and a fence."""
        queue = batch.submit.queue
        use, known = _use_of(batch), self._queues[queue]
        for each in batch.submission.signals:
            if each.end is None:
                yield from self._signal(each, use, known)
        if batch.fence in self._fences:
            held = self._fences[batch.fence]
            held.known = later(held.known, known)
        if use.sequence is None:
            self._queues.pop(queue, None)
        elif not batch.submit.batches or batch.submission is batch.submit.batches[-1]:
            self._at_submit.pop(batch.submit.call, None)

    def _signal(self, operation: SemaphoreOperation, use: Use, known: Clock) -> Iterator[Finding]:
        """A queue, or the presentation engine, signals a semaphore; it comes after so much.

        Rules: rules.md#a-signal-finds-its-semaphore-unsignaled, rules.md#a-semaphore-of-a-present-is-free-again.
        """
        id, held = operation.semaphore, self._semaphores[operation.semaphore]
        if held.initial is None and id not in self._foreign:
            if held.signals and held.signaled is not None:
                yield _of_semaphore(Hazard.SEMAPHORE_SIGNALED, id, use.place, held.signaled.place)
            elif held.waited is not None and not held.waited.is_in(known):
                yield _of_semaphore(Hazard.SEMAPHORE_IN_USE, id, use.place, held.waited.place)
        held.signaled = use
        held.add(operation.value, known)

    def _faults_of_wait(self, id: int, use: Use) -> Iterator[Finding]:
        """Faults of a wait for a semaphore. Rule: rules.md#a-wait-finds-its-signal-submitted."""
        held = self._semaphores[id]
        if held.initial is None and id not in self._foreign and not held.signals:
            prior = held.waited.place if held.waited is not None else held.created
            if prior is not None:
                yield _of_semaphore(Hazard.SEMAPHORE_UNSIGNALED, id, use.place, prior)

    def _wait(self, id: int, value: int, use: Use) -> Clock:
        """A wait for a semaphore; what it comes after."""
        held = self._semaphores[id]
        if id in self._foreign:
            return self._everything()
        if held.initial is None:
            held.waited = use if use.sequence is not None else None
        return held.before(value)

    # -- presentation --------------------------------------------------------------------------------------------------

    def acquire(self, acquired: Acquired) -> Iterator[Finding]:
        """The engine signals when it has done with an image. All that a semaphore was used for must be complete then.

        Rules: rules.md#a-signal-finds-its-semaphore-unsignaled, rules.md#a-fence-is-reset-between-its-uses.
        """
        use = Use(Place(acquired.call, acquired.name, acquired.site))
        done = self._shown[acquired.image].get(acquired.swapchain, NOTHING_KNOWN)
        if acquired.semaphore:
            held = self._semaphores[acquired.semaphore]
            yield from self._signal(SemaphoreOperation(acquired.semaphore, 0), use, self._host)
            held.signals = [(0, done)]
        if acquired.fence:
            yield from self._give(acquired.fence, use)
            if acquired.fence in self._fences:
                self._fences[acquired.fence].known = done

    def present(self, presented: Presented) -> Iterator[Finding]:
        """The presents of a queue are performed in order, and each waits for its semaphores before it shows an image.

        Rule: rules.md#a-semaphore-of-a-present-is-free-again.
        """
        if not presented.queue:  # images that are given back unpresented
            return
        queue, tag = presented.queue, (presented.call, 0)
        use = Use(Place(presented.call, presented.name, presented.site, queue=queue), ~queue, tag)
        known = later(self._presents.get(queue, NOTHING_KNOWN), {~queue: tag})
        for semaphore in presented.waits:
            yield from self._faults_of_wait(semaphore, use)
            # nothing is acquired again of a shared presentable image
            known = later(known, self._wait(semaphore, 0, use if presented.images else Use(use.place)))
        self._presents[queue] = known
        for swapchain, image in presented.images:
            self._shown[image][swapchain] = known
        for _, fence in presented.fences:
            yield from self._give(fence, use)
            if fence in self._fences:
                self._fences[fence].known = known

    # -- the host ------------------------------------------------------------------------------------------------------

    def waited(self, waited: HostWaited) -> None:
        """The host knows that fences are signaled, or that a queue or all are idle. An idle queue has waited for the
        semaphores of its presents, too. Rule: rules.md#a-semaphore-of-a-present-is-free-again."""
        for fence in waited.fences:
            held = self._fences.get(fence)
            if held is not None:
                held.is_signaled = True
                self._learn(held.known)
            elif fence in self._foreign:
                self._learn(self._everything())
        if waited.fences:
            return
        for several in (self._queues, self._presents):
            for known in several.values() if not waited.queue else [several.get(waited.queue, NOTHING_KNOWN)]:
                self._learn(known)
        for held in self._fences.values():
            place = held.use.place
            held.is_signaled |= place.queue is not None and waited.queue in (0, place.queue)

    def waited_semaphores(self, waited: HostWaitedSemaphores) -> None:
        """The host knows that timelines reached values."""
        for semaphore, value in waited.values:
            foreign = semaphore in self._foreign
            self._learn(self._everything() if foreign else self._semaphores[semaphore].before(value))

    def host_signal(self, signaled: HostSignaled) -> None:
        """The host signals a timeline."""
        self._semaphores[signaled.semaphore].add(signaled.value, self._host)

    def _give(self, fence: int, use: Use) -> Iterator[Finding]:
        """A fence is given to something that will signal it."""
        if fence in self._foreign:
            return
        held = self._fences.get(fence)
        if held is not None and held.use.place.call != use.place.call:
            over = held.is_signaled or held.use.is_in(self._host)
            hazard = Hazard.FENCE_SIGNALED if over else Hazard.FENCE_IN_USE
            if over or not held.use.may_be_over:
                yield _of_fence(hazard, fence, use.place, held.use.place)
        self._fences[fence] = FenceUsage(use)

    def _learn(self, known: Clock) -> None:
        self._host = later(self._host, known) if known else self._host

    def _hear(self, queue: int, known: Clock) -> None:
        if known and known is not self._queues[queue]:
            self._queues[queue] = later(self._queues[queue], known)

    def _everything(self) -> Clock:
        """All work for which somebody outside may have waited."""
        known = self._host
        for each in (*self._presents.values(), *self._queues.values()):
            known = later(known, each)
        return known


def _use_of(batch: Batch) -> Use:
    submit = batch.submit
    place = Place(submit.call, submit.name, submit.site, None, submit.call, batch.tag[1], queue=submit.queue)
    return Use(place, submit.queue, batch.tag) if batch.submission.binds is None else Use(replace(place, queue=None))


def _of_semaphore(hazard: Hazard, id: int, place: Place, prior: Place) -> Finding:
    return Finding(hazard, "", "", place, prior, resource=id, resource_type="VkSemaphore")


def _of_fence(hazard: Hazard, id: int, place: Place, prior: Place) -> Finding:
    return Finding(hazard, "", "", place, prior, resource=id, resource_type="VkFence")
