"""Predicates of `differences.toml` about events (see `conditions`)."""

from __future__ import annotations

from collections.abc import Iterator

from harness.layer.conditions import condition
from harness.layer.manifest import Version
from harness.layer.stream import Stream, Subject, scopes
from harness.spec.scopes import BOTTOM_OF_PIPE
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


@condition
def waited_for_unordered_set(subject: Subject, stream: Stream, _: Version) -> bool:
    """One of the two commands waits for an event that was set, and set or reset before that, with no wait between."""
    if subject.finding is None:
        return False
    calls = [call for _, before in stream.seconds(subject) for call in before]
    own = stream.command(subject)
    waits = {subject.finding.place.call, subject.finding.prior.call}
    operations: dict[int, int] = {}
    for call in (*calls, *([own] if own is not None else ())):
        is_wait = call.name.startswith("vkCmdWaitEvents")
        if is_wait and call.index in waits and any(operations.get(each, 0) > 1 for each in _events(call)):
            return True
        for event in _touched(call):
            operations[event] = 0 if is_wait else operations.get(event, 0) + 1
    return False


@condition
def waited_without_set(subject: Subject, stream: Stream, _: Version) -> bool:
    """One of the two commands waits for an event that its own command buffer has not set before."""
    finding, call = subject.finding, stream.at(subject.call)
    if finding is None or call is None or call.name.startswith("vkQueueSubmit"):
        return False
    waits = [stream.at(place.call) for place in (finding.place, finding.prior)]
    return any(wait is not None and _is_set_elsewhere(wait, stream) for wait in waits)


@condition
def after_wait_without_set(subject: Subject, stream: Stream, _: Version) -> bool:
    """Before the second command came a wait for an event that the command buffer has not set."""
    return any(_is_set_elsewhere(step.call, stream) for step in stream.steps(subject))


def _is_set_elsewhere(wait: Call, stream: Stream) -> bool:
    return wait.name.startswith("vkCmdWaitEvents") and not _events(wait) <= _set_before(wait, stream)


def _set_before(wait: Call, stream: Stream) -> set[int]:
    commands = stream.recorded(wait.args["commandBuffer"], wait.index)
    return {event for call in commands if call.name.startswith("vkCmdSetEvent") for event in _events(call)}


@condition
def bottom_of_pipe_first(subject: Subject, stream: Stream, _: Version) -> bool:
    """A barrier after the first operation on the second command's event, or an operation on that event after the first,
    has BOTTOM_OF_PIPE in its first scope."""
    for second, before in stream.seconds(subject):
        since: list[Call] = []
        for call in (*before, second):
            if since or _touched(call) & _touched(second):
                since.append(call)
        barriers = [each.src_stages for call in since if not _touched(call) for each in scopes(call)]
        operations = [stages for call in since[1:] if _touched(call) & _touched(second) for stages in _own_stages(call)]
        if any(stages & BOTTOM_OF_PIPE for stages in (*barriers, *operations)):
            return True
    return False


def _touched(call: Call) -> set[int]:
    """The events that a command sets, resets or waits for."""
    return {call.args["event"]} if call.name.startswith("vkCmdResetEvent") else _events(call)


def _own_stages(call: Call) -> Iterator[int]:
    yield call.args.get("stageMask", 0)
    info = call.args.get("pDependencyInfo") or {}
    for member in ("pMemoryBarriers", "pBufferMemoryBarriers", "pImageMemoryBarriers"):
        yield from (each["srcStageMask"] for each in info.get(member) or ())
