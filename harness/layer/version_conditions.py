"""Conditions of `differences.toml` about what single versions of the layer take for accesses and for stages."""

from __future__ import annotations

from collections.abc import Iterator

from harness.layer.conditions import condition, scopes_between
from harness.layer.manifest import Version
from harness.layer.stream import Stream, Subject, scopes
from harness.trace.calls import Call
from harness.trace.chain import chained

DRAW_INDIRECT = 0x2
TIMELINE_SUBMIT = 1000207003
"""VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO."""


@condition
def draw_indirect_waits(subject: Subject, stream: Stream, _: Version) -> bool:
    """A barrier between the two, or the first itself, has DRAW_INDIRECT in its second scope."""
    first = stream.at(subject.finding.prior.call) if subject.finding is not None else None
    own = scopes(first) if first is not None else ()
    return any(scope.dst_stages & DRAW_INDIRECT for scope in (*own, *scopes_between(subject, stream)))


@condition
def host_waited_for_older_value(subject: Subject, stream: Stream, _: Version) -> bool:
    """Between the two accesses the host waited for a value of a timeline below one that the first access' submit, or a
    later one, signals."""
    first = subject.finding.prior.submit if subject.finding is not None else None
    if first is None or subject.call is None:
        return False
    between = [call for call in stream.calls if first <= call.index < subject.call]
    return any(
        value < signaled
        for position, call in enumerate(between)
        if call.name.startswith("vkWaitSemaphores")
        for semaphore, value in _waited(call)
        for signaled in _signaled(between[:position], semaphore)
    )


def _waited(call: Call) -> list[tuple[int, int]]:
    info = call.args["pWaitInfo"]
    return list(zip(info["pSemaphores"] or (), info["pValues"] or (), strict=True))


def _signaled(calls: list[Call], semaphore: int) -> Iterator[int]:
    for call in calls:
        for batch in call.args.get("pSubmits") or () if call.name.startswith("vkQueueSubmit") else ():
            for each in batch.get("pSignalSemaphoreInfos") or ():
                if each["semaphore"] == semaphore:
                    yield each["value"]
            values = (chained(batch, TIMELINE_SUBMIT) or {}).get("pSignalSemaphoreValues") or ()
            yield from (v for s, v in zip(batch.get("pSignalSemaphores") or (), values, strict=False) if s == semaphore)
