"""What a semaphore that is signaled again too early fails to order, as hazards of memory.

A binary semaphore holds one signal. Where a second one comes before the wait for the first is over, a later wait may
take the first one, and then waits for nothing of the batch that signals last. In words of the specification that signal
and that wait order nothing ("Semaphore Signaling", "Semaphore Waiting"). So the stream is judged once more without the
two. The hazards that are new are what may go wrong, and they have outcomes that a replay can show. What follows from a
signal of a semaphore that is signaled, or from a fence that is, both judges find in the stream as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from vkharness.check import Analysis
from vkharness.findings import Finding, Hazard
from vkharness.spec.enums import VkStructureType
from vkharness.trace.calls import Block, Call
from vkharness.trace.chain import rebuilt
from vkharness.trace.submits import batches

Struct = dict[str, Any]
_INFOS = ("pSubmits", "pBindInfo")
_WAITS, _SIGNALS = "Wait", "Signal"


class LostOrder(NamedTuple):
    """The stream without what orders nothing, and the hazards that it has more; none where nothing follows."""

    blocks: list[Block]
    findings: list[Finding]


def lost_order(blocks: Sequence[Block], finding: Finding) -> LostOrder | None:
    """What a finding about a signal lets go wrong; None for a finding of another kind, and for a signal for which
    nothing waits."""
    edited = _without_order(blocks, finding)
    if edited is None:
        return None
    known = set(_keys(Analysis().follow(blocks).findings))
    more = [each for each in Analysis().follow(edited).findings if not known.issuperset(_keys([each]))]
    return LostOrder(edited, [each for each in more if each.hazard.is_between_accesses])


def _without_order(blocks: Sequence[Block], finding: Finding) -> list[Block] | None:
    """The stream without the signal of a finding, and without the wait for it; None where that is none."""
    if finding.hazard is not Hazard.SEMAPHORE_IN_USE:
        return None
    drops = [_without_signal, _without_wait]
    made: list[Block] = []
    for block in blocks:
        changed = None
        if drops and isinstance(block, Call) and not block.unread and block.index >= finding.place.call:
            changed = drops[0](block, finding.resource)
        if changed is not None:
            del drops[0]
        made.append(changed or block)
    return None if drops else made


def _keys(findings: Sequence[Finding]) -> Iterator[tuple[Any, ...]]:
    return ((each.hazard, each.place.call, each.prior.call, each.resource) for each in findings)


def _without_signal(call: Call, semaphore: int) -> Call | None:
    """A call that signals a semaphore, without that; None for another one."""
    info = call.args.get("pAcquireInfo") or call.args
    if call.name.startswith("vkAcquireNextImage") and info.get("semaphore") == semaphore:
        changed = {**info, "semaphore": 0}
        return replace(call, args=changed if info is call.args else {**call.args, "pAcquireInfo": changed})
    return _without(call, semaphore, _SIGNALS)


def _without_wait(call: Call, semaphore: int) -> Call | None:
    """A call that waits for a semaphore, without that; None for another one."""
    info = call.args.get("pPresentInfo")
    if info is not None:
        if semaphore not in (info["pWaitSemaphores"] or ()):
            return None
        return replace(call, args={**call.args, "pPresentInfo": _dropped(info, semaphore, _WAITS)})
    return _without(call, semaphore, _WAITS)


def _without(call: Call, semaphore: int, what: str) -> Call | None:
    """A submission without the first of its waits, or signals, for a semaphore; None for one without any."""
    name = next((each for each in _INFOS if call.args.get(each)), "")
    if not name:
        return None
    for at, batch in enumerate(batches(call.args)):
        if semaphore in (each.semaphore for each in (batch.waits if what == _WAITS else batch.signals)):
            infos = list(call.args[name])
            infos[at] = _dropped(infos[at], semaphore, what)
            return replace(call, args={**call.args, name: infos})
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
