"""What a semaphore that is signaled again too early fails to order, as hazards of memory.

A binary semaphore holds one signal. Where a second one comes before the wait for the first is over, a later wait may
take the first one, and then waits for nothing of the batch that signals last. In words of the specification that signal
and that wait order nothing ("Semaphore Signaling", "Semaphore Waiting"). So the stream is judged once more without the
two. The hazards that are new are what may go wrong, and they have outcomes that a replay can show. What follows from a
signal of a semaphore that is signaled, or from a fence that is, both judges find in the stream as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from vkharness.check import Analysis
from vkharness.findings import Finding, Hazard, Place
from vkharness.spec.enums import VkStructureType
from vkharness.trace.calls import Block, Call
from vkharness.trace.chain import rebuilt
from vkharness.trace.submits import batches

Struct = dict[str, Any]
_INFOS = ("pSubmits", "pBindInfo")
_WAITS, _SIGNALS = "Wait", "Signal"
_UNPAIRED = (Hazard.SEMAPHORE_SIGNALED, Hazard.SEMAPHORE_UNSIGNALED)
"""Where the rest of a stream has one of these, the wait that was dropped took another signal than the dropped one. Such
a stream says nothing of the whole one."""
Key = tuple[Hazard, Place, Place, int]
MOST_FOLLOWED = 16
"""The most findings about signals that are followed at once: each has the whole stream judged."""


class LostOrder(NamedTuple):
    """The stream without what orders nothing, and the hazards that it has more; none where nothing follows."""

    blocks: list[Block]
    findings: list[Finding]


def lost_orders(blocks: Sequence[Block], findings: Iterable[Finding]) -> Iterator[LostOrder | None]:
    """By finding, what one about a signal lets go wrong. None for a finding of another kind, for a signal whose wait is
    not found, and after `MOST_FOLLOWED`."""
    known: set[Key] | None = None
    left = MOST_FOLLOWED
    for finding in findings:
        edited = _without_order(blocks, finding) if left else None
        if edited is None:
            yield None
            continue
        left -= 1
        if known is None:
            known = {_key(each) for each in Analysis().follow(blocks).findings}
        more = [each for each in Analysis().follow(edited).findings if _key(each) not in known]
        fits = not any(each.hazard in _UNPAIRED for each in more)
        yield LostOrder(edited, [each for each in more if each.hazard.is_between_accesses]) if fits else None


def _without_order(blocks: Sequence[Block], finding: Finding) -> list[Block] | None:
    """The stream without the signal of a finding, and without the next wait, which takes it; None where there is none.
    A batch waits before it signals, so that the wait is in a later one, of the same call perhaps."""
    if finding.hazard is not Hazard.SEMAPHORE_IN_USE:
        return None
    drops, first = [_without_signal, _without_wait], finding.place.batch
    made: list[Block] = []
    for block in blocks:
        if isinstance(block, Call) and not block.unread and block.index >= finding.place.call:
            since = first if block.index == finding.place.call else 0
            while drops and (dropped := drops[0](block, finding.resource, since)) is not None:
                block, since = dropped.call, dropped.batch + 1
                del drops[0]
        made.append(block)
    return None if drops else made


def _key(finding: Finding) -> Key:
    """What one finding is about. A later execution of the same commands is something else."""
    return finding.hazard, finding.place, finding.prior, finding.resource


class _Dropped(NamedTuple):
    """A call without one of its signals or waits, and the batch that had it."""

    call: Call
    batch: int


def _without_signal(call: Call, semaphore: int, since: int) -> _Dropped | None:
    """A call that signals a semaphore in a batch from `since` on, without that; None for another one."""
    info = call.args.get("pAcquireInfo") or call.args
    if call.name.startswith("vkAcquireNextImage") and info.get("semaphore") == semaphore:
        changed = {**info, "semaphore": 0}
        return _Dropped(replace(call, args=changed if info is call.args else {**call.args, "pAcquireInfo": changed}), 0)
    return _without(call, semaphore, _SIGNALS, since)


def _without_wait(call: Call, semaphore: int, since: int) -> _Dropped | None:
    """A call that waits for a semaphore in a batch from `since` on, without that; None for another one."""
    info = call.args.get("pPresentInfo")
    if info is not None:
        if semaphore not in (info["pWaitSemaphores"] or ()):
            return None
        return _Dropped(replace(call, args={**call.args, "pPresentInfo": _dropped(info, semaphore, _WAITS)}), 0)
    return _without(call, semaphore, _WAITS, since)


def _without(call: Call, semaphore: int, what: str, since: int) -> _Dropped | None:
    """A submission without the first of its waits, or signals, for a semaphore; None for one without any."""
    name = next((each for each in _INFOS if call.args.get(each)), "")
    if not name:
        return None
    for at, batch in enumerate(batches(call.args)):
        if at >= since and semaphore in (each.semaphore for each in (batch.waits if what == _WAITS else batch.signals)):
            infos = list(call.args[name])
            infos[at] = _dropped(infos[at], semaphore, what)
            return _Dropped(replace(call, args={**call.args, name: infos}), at)
    return None


def _dropped(info: Struct, semaphore: int, what: str) -> Struct:
    """A struct with semaphores without one of them, and without what it says of that one."""
    count = f"{what.lower()}SemaphoreCount"
    second = f"p{what}SemaphoreInfos"
    if second in info:
        kept = [each for each in info[second] or () if each["semaphore"] != semaphore]
        return {**info, f"{what.lower()}SemaphoreInfoCount": len(kept), second: kept or None}
    first = f"p{what}Semaphores"
    at = info[first].index(semaphore)

    def link(chain: Struct) -> Struct:
        if chain["sType"] != VkStructureType.TIMELINE_SEMAPHORE_SUBMIT_INFO:
            return chain
        values = _but(chain[f"{first[:-1]}Values"], at)
        return {**chain, f"{first[:-1]}Values": values, f"{what.lower()}SemaphoreValueCount": len(values or ())}

    made = {**info, first: _but(info[first], at), count: len(info[first]) - 1, "pNext": rebuilt(info, link)}
    if what == _WAITS and "pWaitDstStageMask" in info:
        made["pWaitDstStageMask"] = _but(info["pWaitDstStageMask"], at)
    return made


def _but(several: list[Any] | None, at: int) -> list[Any] | None:
    return [each for number, each in enumerate(several or ()) if number != at] or None
