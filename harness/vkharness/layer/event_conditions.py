"""Conditions about events: which operations on one event lie where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, permutations
from typing import NamedTuple

from vkharness.layer.barrier_scopes import barrier_scopes
from vkharness.layer.conditions import QUEUE_FLAGS, condition
from vkharness.layer.stream import Stream
from vkharness.layer.subject import Subject
from vkharness.layer.view_conditions import Seen, recorded, seen_as, view
from vkharness.spec.command_classes import is_submit
from vkharness.spec.enums import VkPipelineStage2
from vkharness.spec.scopes import execution_scope_dst, execution_scope_src
from vkharness.trace.calls import Call
from vkharness.trace.submits import batches

SET, RESET, WAIT = "vkCmdSetEvent", "vkCmdResetEvent", "vkCmdWaitEvents"


def _events(call: Call) -> set[int]:
    """The events that a command sets, resets or waits for."""
    if call.name.startswith((SET, RESET)):
        return {call.args["event"]}
    return set(call.args["pEvents"] or ()) if call.name.startswith(WAIT) else set()


class EventPath(NamedTuple):
    """A wait after the first access, the sets of one of its events before it, and the commands of the stream."""

    calls: list[Call]
    first: int
    """Position of the first access."""
    sets: list[int]
    """Positions of the sets of the event before the wait."""
    wait: int
    event: int


def _paths(subject: Subject, first_too: bool = False) -> Iterator[EventPath]:
    """How a wait may order the two accesses: of each wait between them that orders the resource at issue, and of the
    second command if it is a wait; with `first_too`, of the first command as well."""
    for second, before in subject.seconds:
        calls = [*before, second]
        first = subject.position if subject.command is not None else -1
        if first < 0:
            first = len(before) - len(subject.since_first(second, before)) - 1
        resources = {touch.resource for touch in subject.stream.touches(second)} | subject.resources()
        for wait in range(max(0, first + (not first_too)), len(calls)):
            if not calls[wait].name.startswith(WAIT):
                continue
            if not any(each.resource in (0, *resources) for each in barrier_scopes(calls[wait])):
                continue
            for event in _events(calls[wait]):
                sets = [at for at in range(wait) if calls[at].name.startswith(SET) and event in _events(calls[at])]
                yield EventPath(calls, first, sets, wait, event)


@condition
def barrier_between_set_and_wait(subject: Subject) -> bool:
    """A set after the first access, a barrier from one of its stages or to one of the wait's, and a wait for the event
    before the second access stand in this order; the barrier concerns the resource."""
    resources = subject.resources()
    for path in _paths(subject):
        if path.sets and path.first < path.sets[-1]:
            between = path.calls[path.sets[-1] : path.wait]
            barriers = (each for call in between if not _events(call) for each in barrier_scopes(call))
            if any(each.resource in (0, *resources) for each in barriers):
                return True
    return False


@condition
def batch_waited_after_set(subject: Subject) -> bool:
    """A wait orders the two by a set in another command buffer, and a batch that was submitted after that set waits for
    a semaphore."""
    submits = [call for call in subject.stream.calls if is_submit(call.name) and call.index <= subject.limit]
    waiting = [call.index for call in submits if any(batch.waits for batch in batches(call.args))]
    for path in _paths(subject):
        for at in path.sets:
            one, wait = path.calls[at], path.calls[path.wait]
            if one.args["commandBuffer"] != wait.args["commandBuffer"] and any(one.index < each for each in waiting):
                return True
    return False


@condition
def batch_waited_between(subject: Subject) -> bool:
    """After the batch of our first operation on an event, and up to that of the second one, a batch of the queue waits
    for a semaphore."""
    found = subject.finding
    if found is None or found.prior.submit is None or found.place.submit is None:
        return False
    first, last = (found.prior.submit, found.prior.batch), (found.place.submit, found.place.batch)
    return any(
        first < (call.index, number) <= last and batch.waits
        for call in subject.stream.calls
        if is_submit(call.name) and call.args.get("queue") == found.place.queue
        for number, batch in enumerate(batches(call.args))
    )


@condition
def waited_in_another_way(subject: Subject) -> bool:
    """A wait between the two, or the second command, is for the last set of an event after the first access, and has
    another form, other source stages or another VkDependencyInfo than that set."""
    for path in _paths(subject):
        after = path.sets and path.first < path.sets[-1]
        if after and _differ(path.calls[path.sets[-1]], path.calls[path.wait], path.event):
            return True
    return False


def _differ(one: Call, wait: Call, event: int) -> bool:
    """Whether a wait has another form, other source stages or another VkDependencyInfo than a set of its event."""
    if one.name.removesuffix("KHR").endswith("2") != wait.name.removesuffix("KHR").endswith("2"):
        return True
    if "stageMask" in one.args and one.args["stageMask"] != wait.args["srcStageMask"]:
        return True
    infos = dict(zip(wait.args["pEvents"], wait.args.get("pDependencyInfos") or (), strict=False))
    return event in infos and infos[event] != one.args.get("pDependencyInfo")


@condition
def breaks_usage(subject: Subject) -> bool:
    """The second command waits for an event; the first one set the event in another way, or on another queue or on the
    host, or reset it."""
    one, wait, found = subject.first, subject.command, subject.finding
    if one is None or wait is None or found is None or not wait.name.startswith(WAIT):
        return False
    if not one.name.startswith((SET, RESET)):
        return one.name == "vkSetEvent" and one.args["event"] in _events(wait)
    shared = _events(one) & _events(wait)
    if one.name.startswith(RESET) or found.place.queue != found.prior.queue:
        return bool(shared)
    return any(_differ(one, wait, event) for event in shared)


@condition
def reset_beside_a_wait(subject: Subject) -> bool:
    """The second command resets an event for which the first one waits, and not after ALL_COMMANDS."""
    one, reset = subject.first, subject.command
    if one is None or reset is None or not (one.name.startswith(WAIT) and reset.name.startswith(RESET)):
        return False
    return bool(_events(one) & _events(reset)) and not reset.args["stageMask"] & VkPipelineStage2.ALL_COMMANDS


@condition
def set_after_another_operation(subject: Subject) -> bool:
    """The second command waits for an event that the first one set, after another set or a reset of it."""
    one, wait = subject.first, subject.command
    if one is None or wait is None or not wait.name.startswith(WAIT) or not one.name.startswith(SET):
        return False
    shared = _events(one) & _events(wait)
    earlier = (call for call in subject.before[: subject.position] if call.name.startswith((SET, RESET)))
    return subject.position > 0 and any(_events(call) & shared for call in earlier)


@condition
def waited_for_two_sets(subject: Subject, covered: bool = False) -> bool:
    """A wait between the two, or one of the two, is for an event that was set after another operation on it without a
    barrier between the two operations from ALL_COMMANDS to what the set waits for, or that was reset last; `covered`:
    for one that was set so after the first access."""
    for path in _paths(subject, first_too=True):
        operations = [at for at in range(path.wait) if path.event in _events(path.calls[at])]
        if operations and not covered and path.calls[operations[-1]].name.startswith(RESET):
            return True
        for one, other in pairwise(operations):
            if not path.calls[other].name.startswith(SET) or (covered and one < path.first):
                continue
            if _is_unordered(path.calls, one, other):
                return True
    return False


def _is_unordered(calls: Sequence[Call], one: int, other: int) -> bool:
    """Whether no barrier from ALL_COMMANDS, to it or to what the second one waits for, stands between two operations on
    an event."""
    between = (each for call in calls[one + 1 : other] for each in barrier_scopes(call))
    reached = (each.dst_stages for each in between if each.src_stages & VkPipelineStage2.ALL_COMMANDS)
    return not any(_reaches(stages, calls[other]) for stages in reached)


def _reaches(stages: int, operation: Call) -> bool:
    """Whether a second scope of these stages is ALL_COMMANDS, or meets what an operation on an event waits for."""
    scope = execution_scope_dst(stages, QUEUE_FLAGS)
    waits = (execution_scope_src(each, QUEUE_FLAGS) for each in _own_stages(operation))
    return bool(stages & VkPipelineStage2.ALL_COMMANDS) or any(scope & each for each in waits)


@condition
def used_after_a_wait_for_two_sets(subject: Subject) -> bool:
    """The second command resets or sets an event after a wait for it that has ALL_COMMANDS in its second scope, and
    that waits for a set which came after another operation on the event without a barrier from ALL_COMMANDS between the
    two."""
    for second, calls in subject.seconds:
        operations = [at for at, call in enumerate(calls) if _events(call) & _events(second)]
        for one, other, wait in zip(operations, operations[1:], operations[2:], strict=False):
            waits = calls[other].name.startswith(SET) and calls[wait].name.startswith(WAIT)
            whole = any(each.dst_stages & VkPipelineStage2.ALL_COMMANDS for each in barrier_scopes(calls[wait]))
            if waits and whole and _is_unordered(calls, one, other):
                return True
    return False


@condition
def first_waited_for_two_sets(subject: Subject) -> bool:
    """The first operation waits for the second command's event. The operation before it reset that event, or set it and
    came after another operation on it without a barrier from ALL_COMMANDS, or the scope of a wait, between the two."""
    wait, own, position = subject.first, subject.command, subject.position
    if wait is None or own is None or position < 0 or not wait.name.startswith(WAIT):
        return False
    calls = subject.before[:position]
    for event in _events(wait) & _events(own):
        last = [at for at, call in enumerate(calls) if event in _events(call)][-2:]
        if last and calls[last[-1]].name.startswith(RESET):
            return True
        if len(last) == 2 and calls[last[1]].name.startswith(SET):
            stages = _own_stages(calls[last[1]])
            waited = any(each.dst_stages & mask for each in barrier_scopes(calls[last[0]]) for mask in stages)
            if not waited and _is_unordered(calls, *last):
                return True
    return False


@condition
def chained_in_one_command(subject: Subject) -> bool:
    """Between the two operations on an event stands a barrier from ALL_COMMANDS, and one of the same command that would
    chain with it, to ALL_COMMANDS or to what the second operation waits for."""
    whole, own = VkPipelineStage2.ALL_COMMANDS, subject.command
    for call in subject.window:
        several = list(barrier_scopes(call)) if not _events(call) else []
        for one, other in permutations(several, 2):
            met = execution_scope_dst(one.dst_stages, QUEUE_FLAGS) & execution_scope_src(other.src_stages, QUEUE_FLAGS)
            if own is not None and one.src_stages & whole and met and _reaches(other.dst_stages, own):
                return True
    return False


@condition
def operation_between(subject: Subject) -> bool:
    """Between the two operations on an event stands another one on the same event."""
    own = _events(subject.command) if subject.command is not None else set()
    return any(_events(call) & own for call in subject.window)


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
def waited_without_set(subject: Subject) -> bool:
    """While recording, the second access is held against another one if waits for events that their command buffer has
    not set move no image; at submit, that was so where we found the same while recording. Of a rule of events: such a
    wait is the first operation, or one for the event before."""
    said, message = subject.stream.at(subject.call), subject.message
    if message is not None and said is not None and is_submit(said.name) and not subject.key[0].startswith("vkCmd"):
        return any(map(waited_without_set, subject.found_while_recorded()))
    if subject.key[0].startswith("vkCmd"):
        waits = [subject.first] if subject.finding is not None else []
        if message is not None:
            waits += [each for _, before in subject.seconds for each in before if message.resource in _events(each)]
        return any(each is not None and is_set_elsewhere(each, subject.stream) for each in waits)
    return said is not None and not is_submit(said.name) and seen_as(subject, "moved_without_set")


@view
def moved_without_set(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """While recording, a wait for an event that is set elsewhere moves no image."""
    for call, touches in zip(calls, recorded(stream, calls), strict=True):
        yield [] if stream.execution is None and is_set_elsewhere(call, stream) else touches


def is_set(call: Call) -> bool:
    """Whether a command sets an event."""
    return call.name.startswith(SET)


def is_set_elsewhere(wait: Call, stream: Stream) -> bool:
    """Whether a command waits for an event that its command buffer has not set by then."""
    if not wait.name.startswith(WAIT):
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
