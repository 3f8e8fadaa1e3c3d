"""Conditions about events: which operations on one event lie where."""

from __future__ import annotations

from collections.abc import Sequence

from harness.layer.conditions import condition
from harness.layer.parse import RECORD
from harness.layer.stream import Stream, barrier_scopes
from harness.layer.subject import Subject
from harness.spec.command_classes import is_submit
from harness.spec.enums import VkPipelineStage2
from harness.trace.calls import Call

SET, RESET, WAIT = "vkCmdSetEvent", "vkCmdResetEvent", "vkCmdWaitEvents"


def _events(call: Call) -> set[int]:
    """The events that a command sets, resets or waits for."""
    if call.name.startswith((SET, RESET)):
        return {call.args["event"]}
    return set(call.args["pEvents"] or ()) if call.name.startswith(WAIT) else set()


@condition
def barrier_between_set_and_wait(subject: Subject) -> bool:
    """Before the second access an event was waited for, and between its set and that wait stands a barrier."""
    calls = subject.before
    for position, wait in enumerate(calls):
        barriers = False
        for call in reversed(calls[:position] if wait.name.startswith(WAIT) else ()):
            if call.name.startswith(SET) and _events(call) & _events(wait):
                break
            barriers = barriers or call.name.startswith("vkCmdPipelineBarrier")
        if barriers:
            return True
    return False


@condition
def wait_was_hazardous(subject: Subject) -> bool:
    """At the same submit we found a hazard of a wait's transition: the old layer then leaves the wait out."""
    return any(each.place.command.startswith(WAIT) for each in subject.findings)


@condition
def moved_untouched_at_wait(subject: Subject) -> bool:
    """The first access is a transition at a wait, and nothing before that touched the image."""
    wait = subject.first
    if wait is None or not wait.name.startswith(WAIT):
        return False
    earlier = (call for call in subject.stream.calls if call.index < wait.index)
    return not any(subject.resources() & {each.resource for each in subject.stream.touches(call)} for call in earlier)


@condition
def waited_for_unordered_set(subject: Subject, before: bool = False) -> bool:
    """One of the two commands waits for an event that was set, and set or reset before that, with no wait between.
    `before`: some command before the second waits for an event that was set twice with no reset between."""
    own = [subject.command] if subject.command is not None else []
    waits = {call.index for call in (*own, subject.first) if call is not None and subject.finding is not None}
    calls = subject.before if before else [*(call for _, several in subject.seconds for call in several), *own]
    operations: dict[int, int] = {}
    for call in calls:
        is_wait = call.name.startswith(WAIT)
        if is_wait and (before or call.index in waits) and any(operations.get(each, 0) > 1 for each in _events(call)):
            return True
        for event in _events(call):
            ended = call.name.startswith(RESET) if before else is_wait
            operations[event] = 0 if ended else operations.get(event, 0) + (not is_wait)
    return False


@condition
def waited_without_set(subject: Subject) -> bool:
    """While recording, one of the two commands of ours waits for an event that its own command buffer has not set;
    of the layer's, some command before the second does."""
    said = subject.stream.at(subject.call)
    waits: Sequence[Call | None] = subject.before if subject.kind == RECORD else ()
    if subject.finding is not None:
        waits = (subject.command, subject.first) if said is not None and not is_submit(said.name) else ()
    return any(_is_set_elsewhere(wait, subject.stream) for wait in waits)


def _is_set_elsewhere(wait: Call | None, stream: Stream) -> bool:
    if wait is None or not wait.name.startswith(WAIT):
        return False
    commands = stream.recorded(wait.args["commandBuffer"], wait.index)
    return not _events(wait) <= {event for call in commands if call.name.startswith(SET) for event in _events(call)}


@condition
def bottom_of_pipe_first(subject: Subject) -> bool:
    """A barrier after the first operation on the second command's event, or an operation on that event after the first,
    has BOTTOM_OF_PIPE in its first scope."""
    for second, before in subject.seconds:
        mine = _events(second)
        operations = [position for position, call in enumerate(before) if _events(call) & mine]
        since = [*before[operations[0] :], second] if operations else [second]
        masks = [each.src_stages for call in since if not _events(call) for each in barrier_scopes(call)]
        masks += [stages for call in since[1:] if _events(call) & mine for stages in _own_stages(call)]
        if any(stages & VkPipelineStage2.BOTTOM_OF_PIPE for stages in masks):
            return True
    return False


def _own_stages(call: Call) -> list[int]:
    info = call.args.get("pDependencyInfo") or {}
    members = ("pMemoryBarriers", "pBufferMemoryBarriers", "pImageMemoryBarriers")
    several = [each["srcStageMask"] for member in members for each in info.get(member) or ()]
    return [call.args.get("stageMask", 0), *several]
