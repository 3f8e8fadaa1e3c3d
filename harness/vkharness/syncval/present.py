"""Acquire and present as accesses of a queue of their own, the presentation engine's (rules.md#presentation).

Presenting an image counts as a write of all of it, acquiring it as a read: until that read is known to be over, by the
acquire's semaphore or fence, the image belongs to the engine. Ordinary fences and idle waits say nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vkharness.findings import Hazard, Place
from vkharness.spans import ENDLESS, Span
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.syncval.barrier import read_in_scope, write_in_scope
from vkharness.syncval.context import Context
from vkharness.syncval.entries import DetectedHazard, RangeEntry
from vkharness.syncval.places import PlacedBatch
from vkharness.syncval.queue import Queues, engine_of, first_scope
from vkharness.syncval.race import NEVER, NO_RACING_WORK, BatchIndex, batch_index_of
from vkharness.syncval.signals import Signal
from vkharness.syncval.state import Read, State, Write
from vkharness.trace.effects import Access, Acquired, Presented

ACQUIRE = ACCESS_KIND["SYNC_PRESENT_ENGINE_SYNCVAL_PRESENT_ACQUIRE_READ_SYNCVAL"]
PRESENT = ACCESS_KIND["SYNC_PRESENT_ENGINE_SYNCVAL_PRESENT_PRESENTED_SYNCVAL"]
EVERYTHING: Span = (0, ENDLESS)


class Presentation:
    """The presentation engine over a device's context."""

    def __init__(self, context: Context, queues: Queues) -> None:
        self._context, self._queues = context, queues
        self._fences: dict[int, tuple[int | None, dict[int, BatchIndex]]] = {}
        """By fence of an acquire: the image, and what was complete before the engine showed it last. By fence of a
        present: no image, and what it waited for."""
        self._in_turn: dict[tuple[int, int], dict[int, BatchIndex]] = {}
        """By queue and swapchain: what the fences of its presents say so far, which are signaled in order."""
        self._shown_after: dict[int, dict[int, BatchIndex]] = {}
        """By image: up to where each queue's work came before its last present."""

    def acquire(self, acquired: Acquired) -> None:
        """The engine may still read the image; the semaphore and the fence are signaled when it no longer does.

        Rule: rules.md#an-acquired-image-waits-for-its-semaphore.
        """
        queue = engine_of(acquired.image)
        place = Place(acquired.call, acquired.name, acquired.site, submit=acquired.call, queue=queue)
        self._engine_access(ACQUIRE.index, acquired.image, place)
        if acquired.semaphore:
            done = Signal(queue, batch_index_of(place), ACQUIRE.stage, 0, {})
            self._queues.semaphores.add(acquired.semaphore, 0, done)
        if acquired.fence:
            self._fences[acquired.fence] = acquired.image, self._shown_after.get(acquired.image, {})

    def wait_fence(self, fence: int) -> None:
        """The host knows that the image of this acquire is its own; and so, that all is complete which the present
        waited for that showed it before. The fence of a present says the latter alone.
        Rule: rules.md#fences-and-idle-waits-say-nothing-of-the-engine.
        """
        image, before = self._fences.pop(fence, (None, {}))
        if image is not None:
            self._context.finish(image, engine_of(image))
        self._queues.retire(before)

    def forget(self, image: int) -> None:
        """An image, or something else, is gone."""
        self._shown_after.pop(image, None)

    def forget_fence(self, fence: int) -> None:
        """The fence was reset or destroyed."""
        self._fences.pop(fence, None)

    def present(self, presented: Presented) -> Iterator[tuple[list[DetectedHazard], Place]]:
        """The engine takes images after its semaphore waits; what those do not cover conflicts. What they cover is
        available, and available writes are visible to the engine by themselves (vkQueuePresentKHR).

        Rules: rules.md#a-present-waits-for-the-frame, rules.md#a-presented-image-belongs-to-the-engine.
        """
        waited = [self._queues.semaphores.before_wait(wait, 0) for wait in presented.waits]
        signals = [signal for each in waited for signal in each.signals]
        before: dict[int, BatchIndex] = {}
        for signal in signals:
            _later(before, signal.whole_reach)
        for swapchain, fence in presented.fences:
            turn = self._in_turn.setdefault((presented.queue, swapchain), {})
            _later(turn, before)
            self._fences[fence] = None, dict(turn)
        for _, image in presented.images:
            queue = engine_of(image)
            place = Place(presented.call, presented.name, presented.site, submit=presented.call, queue=queue)
            hazards = []
            for span, entry in self._context.unfinished(image, *EVERYTHING):
                state = entry.state
                for hazard, position, access, prior in _accesses(state, entry):
                    batch = self._context.places.batch(prior)
                    if access.queue != queue and not any(_covers(signal, state, position, batch) for signal in signals):
                        earlier = self._context.places.place(prior), prior, access.access_kind
                        found = DetectedHazard(hazard, span, PRESENT.index, *earlier, state, image, queue)
                        hazards.append(found._replace(certainty=access.certainty))
                        break
            self._engine_access(PRESENT.index, image, place)
            self._shown_after[image] = before
            yield hazards, replace(place, queue=presented.queue)
        for each in waited:
            self._queues.dismiss(each.used)

    def _engine_access(self, access_kind: int, image: int, place: Place) -> None:
        """The engine's accesses are tested against nothing but what is above."""
        self._queues.follow_engine()
        context = self._context
        context.queue = context.viewer = engine_of(image)
        context.racing = NO_RACING_WORK
        context.apply(Access(access_kind, image, (EVERYTHING,), image), context.places.single(place))


def _later(known: dict[int, BatchIndex], more: dict[int, BatchIndex]) -> None:
    for queue, tag in more.items():
        known[queue] = max(known.get(queue, NEVER), tag)


def _accesses(state: State, entry: RangeEntry) -> Iterator[tuple[Hazard, int, Write | Read, int]]:
    """(hazard with a present, position or -1 for the write, access, its place number) of what is known of a range."""
    if state.write is not None and entry.write is not None:
        yield Hazard.PRESENT_AFTER_WRITE, -1, state.write, entry.write
    for position, (read, place) in enumerate(zip(state.reads, entry.reads, strict=True)):
        yield Hazard.PRESENT_AFTER_READ, position, read, place


def _covers(signal: Signal, state: State, position: int, batch: PlacedBatch) -> bool:
    """Whether an access of a batch came before a signal, and is in its first scope or in that of an earlier signal.

    Rule: rules.md#signals-of-a-queue-are-in-order.
    """
    if batch.tag <= signal.whole_reach.get(batch.queue, NEVER):
        return True
    if not signal.token or batch.tag > signal.reach.get(batch.queue, NEVER):
        return False
    view, scope = state.view(signal.queue), first_scope(signal)
    if position < 0:
        return state.write is not None and write_in_scope(state.write, view.write, scope, signal.queue)
    return read_in_scope(state.reads[position], view.reads[position], scope, signal.queue)
