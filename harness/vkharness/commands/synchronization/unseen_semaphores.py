"""Semaphores that were made before a trace begins, as a capture does that begins in the middle of a program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vkharness.trace.effects import Acquired, Destroyed, Presented, SemaphoreCreated, StreamEvent, Submitted
from vkharness.trace.host_effects import HostSignaled, HostWaitedSemaphores, UnseenSemaphore


def with_unseen(seen: set[int], events: Iterable[StreamEvent]) -> Iterator[StreamEvent]:
    """Yields events with `UnseenSemaphore` before the first use of each semaphore that is not among those seen."""
    for event in events:
        if isinstance(event, Destroyed):
            seen.discard(event.space)
        for semaphore in _used(event):
            if semaphore not in seen:
                seen.add(semaphore)
                if not isinstance(event, SemaphoreCreated):
                    yield UnseenSemaphore(semaphore)
        yield event


def _used(event: StreamEvent) -> Iterable[int]:
    """The semaphores that an event makes, or uses as the program names them."""
    match event:
        case SemaphoreCreated() | HostSignaled():
            return (event.semaphore,)
        case Submitted():
            several = (each for batch in event.batches for each in (*batch.waits, *batch.signals))
            return [each.semaphore for each in several if each.end is None]
        case Presented():
            return event.waits
        case Acquired():
            return (event.semaphore,) if event.semaphore else ()
        case HostWaitedSemaphores():
            return [semaphore for semaphore, _ in event.values]
    return ()
