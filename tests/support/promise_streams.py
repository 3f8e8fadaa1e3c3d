"""Streams with known bytes that tests/device/test_broken_promises.py runs in a driver's process: `promise_jobs`, and
those about the host and several queues."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from tests.support.promise_jobs import ALL, FILLED, ON_ONE_QUEUE, READ, SIDE, between, four, words
from vkharness.rig.core import RigBuffer
from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.rig import Rig


def look(names: list[str]) -> dict[str, Any]:
    """Returns the words that each of these streams leaves, each on a device of its own; "queues" has more queues."""
    found = {}
    for name in names:
        with Rig(queues=("COMPUTE", "TRANSFER") if name.startswith("queues") else ()) as rig:
            found[name] = (STREAMS | RACES)[name](rig)
    return found


def _transfer(sync2: bool) -> Callable[[Rig], list[int]]:
    """A copy of a buffer that another family filled and gave away."""

    def stream(rig: Rig) -> list[int]:
        a, b, s = rig.buffer(16, data=struct.pack("<4I", 1, 2, 3, 4), exclusive=True), four(rig), rig.semaphore()
        first, other = rig.queues[0], rig.queues[2]
        both: dict[str, Any] = {"buffer": a, "families": (other.family, first.family), "sync2": sync2}
        with rig.commands(queue=other) as commands:
            commands.fill(a, 7)
            commands.barrier("", FILLED, "NONE" if sync2 else "BOTTOM_OF_PIPE", **both)
        rig.submit(commands, signals=[SemaphoreUse(s)], sync2=sync2)
        with rig.commands() as commands:
            commands.barrier("", "NONE" if sync2 else "TOP_OF_PIPE", READ, **both)
            commands.copy(a, b)
        rig.submit(commands, waits=[SemaphoreUse(s)], sync2=sync2)
        rig.wait()
        return words(rig, b)

    return stream


def _image_transfer(rig: Rig) -> list[int]:
    """A copy of an image that another family cleared and gave away."""
    image = rig.image(extent=SIDE, exclusive=True)
    b, s = rig.buffer(16), rig.semaphore()
    first, other = rig.queues[0], rig.queues[1]
    both: dict[str, Any] = {"image": image, "old": "TRANSFER_DST_OPTIMAL", "new": "TRANSFER_SRC_OPTIMAL"}
    both |= {"families": (other.family, first.family)}
    with rig.commands(queue=other) as commands:
        commands.transition(image, new="TRANSFER_DST_OPTIMAL")
        commands.clear_color(image, at="TRANSFER_DST_OPTIMAL")
        commands.barrier("", "CLEAR/TRANSFER_WRITE", "NONE", **both)
    rig.submit(commands, signals=[SemaphoreUse(s)])
    with rig.commands() as commands:
        commands.barrier("", "NONE", READ, **both)
        commands.image_to_buffer(image, b, at="TRANSFER_SRC_OPTIMAL")
    rig.submit(commands, waits=[SemaphoreUse(s)])
    rig.wait()
    return words(rig, b)


def _submitted_first(rig: Rig) -> list[int]:
    """A copy that waits for a fill on another queue, which is submitted after it."""
    a, b, t = four(rig), four(rig), rig.timeline()
    with rig.commands() as commands:
        commands.copy(a, b)
    rig.submit(commands, waits=[SemaphoreUse(t, value=1)], sync2=True)
    _filled_elsewhere(rig, a, 7, 2, SemaphoreUse(t, value=1))
    rig.wait()
    return words(rig, b)


def _behind_a_wait(rig: Rig) -> list[int]:
    """A copy without a semaphore, on a queue that waits, and the fill that it should wait for. The queue of each has
    another batch before, and that of the copy waits for that of the fill."""
    a, b, c, s = four(rig), four(rig), four(rig), rig.semaphore()
    _filled_elsewhere(rig, c, 5, 2, SemaphoreUse(s))
    with rig.commands() as commands:
        commands.fill(four(rig), 5)
    rig.submit(commands, waits=[SemaphoreUse(s)])
    _filled_elsewhere(rig, a, 7, 2)
    with rig.commands() as commands:
        commands.copy(a, b)
    rig.submit(commands)
    rig.wait()
    return words(rig, b)


def _late_signal(rig: Rig) -> list[int]:
    """A copy of what the host writes after the submit, before it signals a timeline."""
    a, b, t = four(rig), four(rig), rig.timeline()
    with rig.commands() as commands:
        commands.barrier("", "HOST/HOST_WRITE", READ)
        commands.copy(a, b)
    rig.submit(commands, waits=[SemaphoreUse(t, value=1)])
    rig.host_write(a, struct.pack("<4I", 7, 7, 7, 7))
    rig.host_signal(t, 1)
    rig.wait()
    return words(rig, b)


def _host_writes(sync2: bool) -> Callable[[Rig], list[int]]:
    """A copy of what the host wrote before the second submit."""

    def stream(rig: Rig) -> list[int]:
        a, b = four(rig), four(rig)
        for value in (5, 7):
            rig.host_write(a, struct.pack("<4I", *[value] * 4))
            with rig.commands() as commands:
                commands.copy(a, b)
                between(commands)
            rig.submit(commands, sync2=sync2)
            rig.wait()
        return words(rig, b)

    return stream


def _waited(how: str) -> Callable[[Rig], list[int]]:
    """A fill, and what the host reads after a wait; then the same again."""

    def stream(rig: Rig) -> list[int]:
        a, fence, timeline = four(rig, 1), rig.fence(), rig.timeline()
        found = []
        for value in (7, 8):
            with rig.commands() as commands:
                commands.fill(a, value)
            signals = [SemaphoreUse(timeline, value=value)] if how in ("timeline", "counter") else []
            rig.submit(commands, fence=fence if how in ("all", "status") else None, signals=signals, sync2=value == 8)
            if signals:
                rig.host_wait_timeline("", (timeline, value), how="counter" if how == "counter" else "all")
            else:
                rig.host_wait("", how, *([fence] if how in ("all", "status") else []))
            found += words(rig, a)
            if how in ("all", "status"):
                rig.reset_fence(fence)
        return found

    return stream


def _filled_elsewhere(rig: Rig, target: RigBuffer, value: int, at: int, *signals: SemaphoreUse) -> None:
    """A submit of one fill on another queue."""
    with rig.commands(queue=rig.queues[at]) as commands:
        commands.fill(target, value)
    rig.submit(commands, signals=signals)


def _queues(how: str, sync2: bool) -> Callable[[Rig], list[int]]:
    """A copy that waits for the second of two fills on other queues."""

    def stream(rig: Rig) -> list[int]:
        a, b, c = four(rig), four(rig), four(rig)
        s, other, timeline = rig.semaphore(), rig.semaphore(), rig.timeline()
        if how == "timeline":
            _filled_elsewhere(rig, c, 5, 2, SemaphoreUse(timeline, value=1))
            _filled_elsewhere(rig, a, 7, 2, SemaphoreUse(timeline, value=2))
            waits = [SemaphoreUse(timeline, value=2)]
        else:
            _filled_elsewhere(rig, a, 7, 2, SemaphoreUse(s))
            _filled_elsewhere(rig, c, 5, 1, SemaphoreUse(other))
            waits = [SemaphoreUse(s)] if how == "one" else [SemaphoreUse(other), SemaphoreUse(s)]
        with rig.commands() as commands:
            commands.copy(a, b)
        rig.submit(commands, waits=waits, sync2=sync2)
        rig.wait()
        return words(rig, b)

    return stream


def _heads(rig: Rig, data: bytes) -> list[int]:
    """The first word of each of four atoms."""
    return [int.from_bytes(data[at * rig.atom :][:4], "little") for at in range(4)]


def _host_memory(writes: bool) -> Callable[[Rig], list[int]]:
    """Two buffers of four atoms each: all of them change, and all but the first atom go to the other side."""

    def stream(rig: Rig) -> list[int]:
        size = 4 * rig.atom
        a, b, c, d = rig.non_coherent(size), rig.non_coherent(size), rig.buffer(size), rig.buffer(size)
        parts = (a, rig.atom, 3 * rig.atom), (b, 0, size)
        if writes:
            for buffer in (a, b):
                for at in range(4):
                    buffer.mapped[at * rig.atom : at * rig.atom + 4] = struct.pack("<I", 5 + at)
            rig.flush("", *parts)
        with rig.submission() as commands:
            for source, target in ((a, c), (b, d)):
                if writes:
                    commands.copy(source, target)
                else:
                    commands.fill(source, 7)
            commands.barrier("", ALL[0], "HOST/HOST_READ")
        rig.wait()
        if writes:
            return _heads(rig, rig.host_read(c)) + _heads(rig, rig.host_read(d))
        rig.invalidate("", *parts)
        return _heads(rig, rig.host_read(a)) + _heads(rig, rig.host_read(b))

    return stream


STREAMS: dict[str, Callable[[Rig], list[int]]] = {
    **ON_ONE_QUEUE,
    "waited, all": _waited("all"),
    "waited, status": _waited("status"),
    "waited, queue": _waited("queue"),
    "waited, device": _waited("device"),
    "waited, timeline": _waited("timeline"),
    "waited, counter": _waited("counter"),
    "host writes": _host_writes(True),
    "host writes 1": _host_writes(False),
    "queues, transfer": _transfer(True),
    "queues, transfer 1": _transfer(False),
    "queues, transfer of an image": _image_transfer,
    "queues, late signal": _late_signal,
    "queues, submitted first": _submitted_first,
    "host memory, flushed": _host_memory(writes=True),
    "host memory, invalidated": _host_memory(writes=False),
    "queues, one": _queues("one", True),
    "queues, one 1": _queues("one", False),
    "queues, two": _queues("two", True),
    "queues, timeline": _queues("timeline", True),
    "queues, timeline 1": _queues("timeline", False),
}
"""By name: what a stream leaves, as words."""
RACES: dict[str, Callable[[Rig], list[int]]] = {"queues, behind a wait": _behind_a_wait}
"""The same for streams that may leave one thing or another."""
