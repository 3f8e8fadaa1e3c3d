"""Predicates of `differences.toml` about events (see `conditions`)."""

from __future__ import annotations

from harness.layer.conditions import condition
from harness.layer.manifest import Version
from harness.layer.stream import Stream, Subject
from harness.trace.calls import Call


def _events(call: Call) -> set[int]:
    """The events that a command sets or waits for."""
    if call.name.startswith("vkCmdSetEvent"):
        return {call.args["event"]}
    return set(call.args["pEvents"] or ()) if call.name.startswith("vkCmdWaitEvents") else set()


@condition
def barrier_between_set_and_wait(subject: Subject, stream: Stream, _: Version) -> bool:
    """Before the second access an event was waited for, and between its set and that wait stands a barrier."""
    calls = [step.call for step in stream.steps(subject)]
    for position, wait in enumerate(calls):
        if wait.name.startswith("vkCmdWaitEvents"):
            between = []
            for call in reversed(calls[:position]):
                if call.name.startswith("vkCmdSetEvent") and _events(call) & _events(wait):
                    break
                between.append(call)
            if any(call.name.startswith("vkCmdPipelineBarrier") for call in between):
                return True
    return False


@condition
def wait_was_hazardous(subject: Subject, _: Stream, __: Version) -> bool:
    """At the same submit we found a hazard of a wait's transition: the old layer then leaves the wait out."""
    return any(each.place.command.startswith("vkCmdWaitEvents") for each in subject.findings)


@condition
def moved_untouched_at_wait(subject: Subject, stream: Stream, _: Version) -> bool:
    """The first access is a transition at a wait, and nothing before that touched the image."""
    wait = stream.at(subject.finding.prior.call) if subject.finding is not None else None
    if wait is None or subject.finding is None or not wait.name.startswith("vkCmdWaitEvents"):
        return False
    earlier = (call for call in stream.calls if call.index < wait.index)
    return not any(touch.resource == subject.finding.resource for call in earlier for touch in stream.touches(call))


@condition
def event_reset_by_host(subject: Subject, stream: Stream, _: Version) -> bool:
    """The host reset an event before."""
    limit = subject.call if subject.call is not None else float("inf")
    return any(call.name == "vkResetEvent" and call.index < limit for call in stream.calls)


@condition
def set_unordered(subject: Subject, stream: Stream, _: Version) -> bool:
    """Before the second access an event was set twice with no reset between, and waited for."""
    sets: dict[int, int] = {}
    for step in stream.steps(subject):
        call = step.call
        if call.name.startswith(("vkCmdSetEvent", "vkCmdResetEvent")):
            event = call.args["event"]
            sets[event] = sets.get(event, 0) + 1 if call.name.startswith("vkCmdSetEvent") else 0
        elif call.name.startswith("vkCmdWaitEvents") and any(sets.get(each, 0) > 1 for each in _events(call)):
            return True
    return False
