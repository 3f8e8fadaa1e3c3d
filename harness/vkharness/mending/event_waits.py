"""Waits for events: widened together with the set that they wait for, or made a barrier.

The first scope of a wait is what came before the set ("Events"). What came after the set no mask of the wait reaches: a
pipeline barrier in its place does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vkharness.findings import Finding
from vkharness.mending.scope_sites import barrier_sites
from vkharness.needed_scopes import needed
from vkharness.spec.shapes import main_name
from vkharness.trace.barrier_calls import FIRST, LISTS, SECOND
from vkharness.trace.calls import Call
from vkharness.trace.edits import EditedTrace, value_at

WAIT, WAIT2, SET, SET2 = "vkCmdWaitEvents", "vkCmdWaitEvents2", "vkCmdSetEvent", "vkCmdSetEvent2"


def with_wider_event(trace: EditedTrace, findings: Sequence[Finding]) -> EditedTrace | None:
    """Widens the waits for events that make transitions, and the sets that they wait for. None for other findings."""

    def widened(made: EditedTrace, position: int, finding: Finding) -> EditedTrace:
        call = made.call(position)
        return _with_sets(made.changed(position, _widened(call, finding)), position, call)

    return _at_each_wait(trace, findings, widened)


def with_barrier_for_wait(trace: EditedTrace, findings: Sequence[Finding]) -> EditedTrace | None:
    """Replaces the waits for events that make transitions by barriers with the same dependencies, widened."""

    def replaced(made: EditedTrace, position: int, finding: Finding) -> EditedTrace:
        barrier = _barrier(made.call(position))
        call = Call(0, barrier.name, _widened(barrier, finding), site=made.call(position).site)
        return made.replaced(position, call)

    return _at_each_wait(trace, findings, replaced)


def _at_each_wait(
    trace: EditedTrace, findings: Sequence[Finding], change: Callable[[EditedTrace, int, Finding], EditedTrace]
) -> EditedTrace | None:
    """The trace with a change of the wait of each finding; None where one has none, or nothing changes."""
    made = trace
    for finding in findings:
        position = _wait_at(made, finding)
        if position is None:
            return None
        made = change(made, position, finding)
    return made if made is not trace else None


def _wait_at(trace: EditedTrace, finding: Finding) -> int | None:
    """The position of the wait that makes the later or the earlier access of a finding."""
    for place in (finding.place, finding.prior):
        if main_name(place.command) in (WAIT, WAIT2) and main_name(trace.call(place.call - 1).name) in (WAIT, WAIT2):
            return place.call - 1
    return None


def _widened(call: Call, finding: Finding) -> dict[str, Any]:
    masks, args = needed(finding), call.args
    for site in barrier_sites(call):
        if site.part is not None and value_at(args, site.part).get("image") == finding.resource:
            args = site.with_masks(args, site.joined(args, masks))
    return args


def _with_sets(trace: EditedTrace, position: int, before: Call) -> EditedTrace:
    """With the dependencies of a wait in the sets that it waits for, as they had them before."""
    wait = trace.call(position)
    for at, event in enumerate(before.args["pEvents"] or ()):
        found = _set_before(trace, position, event)
        if found is None:
            continue
        call = trace.call(found)
        if main_name(wait.name) == WAIT2 and call.args.get("pDependencyInfo") == before.args["pDependencyInfos"][at]:
            info = wait.args["pDependencyInfos"][at]
            trace = trace.changed(found, {**call.args, "pDependencyInfo": info})
        elif main_name(wait.name) == WAIT and main_name(call.name) == SET:
            stages = call.args["stageMask"] | wait.args["srcStageMask"] & ~before.args["srcStageMask"]
            trace = trace.changed(found, {**call.args, "stageMask": stages})
    return trace


def _set_before(trace: EditedTrace, position: int, event: int) -> int | None:
    for at in range(position - 1, -1, -1):
        block = trace.blocks[at]
        if isinstance(block, Call) and main_name(block.name) in (SET, SET2) and block.args["event"] == event:
            return at
    return None


def _barrier(wait: Call) -> Call:
    """The pipeline barrier with the dependencies of a wait."""
    suffix = "KHR" if wait.name.endswith("KHR") else ""
    buffer = wait.args["commandBuffer"]
    if main_name(wait.name) == WAIT:
        kept = {name: value for name, value in wait.args.items() if name not in ("eventCount", "pEvents")}
        return Call(0, FIRST, {**kept, "dependencyFlags": 0})
    infos = wait.args["pDependencyInfos"] or [{}]
    info = dict(infos[0])
    for kind in LISTS:
        several = [each for one in infos for each in one.get(f"p{kind}Barriers") or ()]
        count = "memory" if kind == "Memory" else f"{kind[0].lower()}{kind[1:]}"
        info |= {f"p{kind}Barriers": several or None, f"{count}BarrierCount": len(several)}
    return Call(0, f"{SECOND}{suffix}", {"commandBuffer": buffer, "pDependencyInfo": info})
