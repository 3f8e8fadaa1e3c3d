"""Conditions about what the layer takes a command for: another access, other addresses, or nothing.

Both judges hold a read against the last write of its addresses, and a write against the reads since that write or else
against the write itself. Where the layer takes a command for something else than we do, it holds that command, and
later ones, against something else. `seen_as` says whether just this leads to a disagreement. A view gives what the
layer takes the commands of one command buffer for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, groupby, islice
from typing import Any, NamedTuple

from vkharness.layer.conditions import condition, is_about, is_unknown, matches, regions_of
from vkharness.layer.parse import RECORD, LayerMessage, plain_command
from vkharness.layer.silence import hides_vertices, is_unrecorded, recorded_touches
from vkharness.layer.stream import Executed, Stream
from vkharness.layer.subject import EVERYWHERE, LAYER, ExecutedCommand, Subject, recordings_of
from vkharness.layer.touches import TRANSITION, Touch, apart, barriers_of, common
from vkharness.spans import ENDLESS, Span, merge, overlap, subtract
from vkharness.spec.command_classes import DRAWS, ENDS_RENDERING, NEXT_SUBPASS, RENDERING
from vkharness.spec.enums import VkPipelineStage2, VkQueryResult
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.trace.attachment_operations import AttachmentOperation
from vkharness.trace.calls import Call
from vkharness.trace.effects import Access

EARLY_WRITE = "SYNC_EARLY_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_WRITE"
LATE: dict[str, Any] = {
    "access": "SYNC_LATE_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_WRITE",
    "stage": VkPipelineStage2.LATE_FRAGMENT_TESTS,
}
Seen = Sequence[Touch]
View = Callable[..., Iterable[Seen]]
NamedView = str | Mapping[str, Mapping[str, Any]]
"""The name of a view; or that with its arguments."""
MOST_GROUPS = 300
"""At most so many groups of views are looked at together."""
VIEWS: dict[str, View] = {}


def view(function: View) -> View:
    """Registers a view, (stream, calls of one command buffer in order) -> touches of each, under its own name."""
    VIEWS[function.__name__] = function
    return function


class Met(NamedTuple):
    """An earlier access that a later one is held against."""

    position: int
    """Of the earlier command."""
    prior: Touch
    touch: Touch
    """The later access, where it meets the earlier one."""


def met(before: Sequence[Seen], touch: Touch) -> Iterator[Met]:
    """Yields the earlier accesses with which an access is compared, the latest first. Of the reads in one stage only
    the last one is."""
    unwritten = unread = touch
    unread_in: dict[int, Touch] = {}
    for position in range(len(before) - 1, -1, -1):
        if not unwritten.spans:
            return
        for prior in reversed(before[position]):
            left = unread if prior.write else unread_in.get(prior.stage, unwritten)
            if prior.write or touch.write:
                yield from (Met(position, prior, each) for each in common([left], [prior]))
            if prior.write:
                unwritten, unread = apart(unwritten, prior), apart(unread, prior)
                unread_in = {stage: apart(each, prior) for stage, each in unread_in.items()}
            elif touch.write:
                unread_in[prior.stage], unread = apart(left, prior), apart(unread, prior)


@condition
def seen_as(subject: Subject, view: str, **arguments: Any) -> bool:
    """The second access is held against the first one as the view has the commands, and as we have them it is not, or
    only where a barrier of a part orders them; or the other way round, if we found it."""
    return any(_is_seen_otherwise(subject, steps, partial(VIEWS[view], **arguments)) for steps in subject.occurrences)


@condition
def seen_as_several(subject: Subject, views: Sequence[NamedView]) -> bool:
    """As `seen_as` for two or more of the views together, and for none of them alone."""
    alone = ("recorded", *views)
    seen = partial(seen_as, subject, "several")
    if any(seen(views=[each]) for each in alone):
        return False
    changing = [each for at, each in enumerate(views) if _changes(subject, views[:at], each)]
    groups = (group for size in range(2, len(changing) + 1) for group in combinations(changing, size))
    return any(seen(views=group) for group in islice(groups, MOST_GROUPS))


def _changes(subject: Subject, before: Sequence[NamedView], view: NamedView) -> bool:
    """Whether a view, alone or behind others, has some command up to the second access otherwise."""
    for steps in subject.occurrences:
        for execution, calls, last in _command_buffers(steps):
            stream = subject.stream.as_executed(execution)
            for group in ((), before):
                one, other = (list(several(stream, [*calls, *last], each)) for each in (group, (*group, view)))
                if any(set(these) != set(those) for these, those in zip(one, other, strict=True)):
                    return True
    return False


def _is_seen_otherwise(subject: Subject, steps: Sequence[ExecutedCommand], seen: partial[Iterable[Seen]]) -> bool:
    for looked_at in _found(subject, steps[-1].call):
        ours: list[Seen] = []
        theirs: list[Seen] = []
        for execution, calls, last in _command_buffers(steps):
            stream = looked_at.as_executed(execution, tuple(theirs))
            ours += map(stream.touches, calls) if seen.func in (recorded, several) else recorded(stream, calls)
            theirs += islice(seen(stream, [*calls, *last]), len(calls))
        told, other = (ours, theirs) if subject.finding is not None else (theirs, ours)
        if conflict := merge(_conflict(subject, steps, told)):
            same = overlap(conflict, merge(_conflict(subject, steps, other)))
            return not same or (subject.finding is None and _is_ordered_there_alone(subject, steps, same, conflict))
    return False


def _is_ordered_there_alone(
    subject: Subject, steps: Sequence[ExecutedCommand], here: Sequence[Span], everywhere: Sequence[Span]
) -> bool:
    """Whether a barrier of a part of the resource covers all `here`, where we have both accesses, and not `everywhere`,
    where the layer has them."""
    spaces = {each.space for each in subject.stream.touches(steps[-1].call) if subject.at_issue(each).spans}
    parts = (
        part
        for step in steps
        for effect in subject.stream.facts(step.call).effects
        for barrier in barriers_of(effect)
        for part in barrier.ranges
        if part.space in spaces
    )
    return any(not subtract(here, part.spans) and subtract(everywhere, part.spans) for part in parts)


def _found(subject: Subject, second: Call) -> list[Stream]:
    """The stream as it is where we judge the second access. A finding was made while something was recorded, if nothing
    leads to it when that is submitted."""
    stream = subject.stream
    if subject.finding is not None:
        return [stream.found(late=True), stream.found(late=False)]
    late = any(subject.at_issue(each).spans for each in stream.settled(second))
    return [stream.found(late=True) if late else stream]


def _conflict(subject: Subject, steps: Sequence[ExecutedCommand], seen: Sequence[Seen]) -> list[Span]:
    """The addresses where the second access is held against the first one. Automatic transitions of a command come
    before the load operations that follow them in its touches, and after what stands before them."""
    moves = steps[-1].call.name.startswith(RENDERING)
    found: list[Span] = []
    for at, touch in enumerate(seen[-1]):
        own = [each for each in seen[-1][:at] if moves and TRANSITION in (each.access, touch.access)]
        found += (
            span
            for each in met([*seen[:-1], own], subject.at_issue(touch))
            if subject.renamed(subject.key[2], each.prior.access) == subject.key[4]
            and subject.may_be_first(steps[each.position])
            for span in each.touch.spans
        )
    return found


@condition
def lower_address_seen(subject: Subject, views: Sequence[NamedView]) -> bool:
    """Of our second command's same access of the same resource, the layer said another hazard, while it was recorded or
    of this execution. We have that one nowhere, or not there, or loaded values decide where. As the views together have
    the commands it is at no higher address of each region."""
    finding = subject.finding
    if finding is None:
        return False
    base = subject.stream.address_of(finding.resource).offset
    whole = _seen_conflict(subject, ["recorded"])
    mine = overlap(merge(whole), merge(_seen_conflict(subject, views))) or whole
    narrowed = merge(mine) != merge(whole)
    regions = [(base + begin, base + end) for begin, end in regions_of(subject)] or [(0, ENDLESS)]
    for message in subject.all_messages:
        if not (_is_told_with(message, subject) and message.access == subject.key[3] and is_about(message, subject)):
            continue
        told = _told(message, subject)
        lower = _seen_conflict(told, views)
        otherwise = narrowed or is_unknown(message, subject) or _is_settled(told)
        otherwise = otherwise or merge(lower) != merge(_seen_conflict(told, ["recorded"]))
        if lower and otherwise and not any(_begins_lower(mine, lower, region) for region in regions):
            return True
    return False


def _is_settled(told: Subject) -> bool:
    """Whether values that its shaders load decide what the first command accesses."""
    return any(told.may_be_first(step) and told.stream.is_settled(step.call.index) for step in told.steps)


def _is_told_with(message: LayerMessage, subject: Subject) -> bool:
    """Whether a message came while our second command was recorded, or is about this execution of it."""
    place = subject.finding.place if subject.finding is not None else None
    if place is None or message.kind == RECORD:
        return place is not None and message.call == place.call
    return message.call == subject.call and message.entry in (None, place.position)


def _begins_lower(one: Sequence[Span], other: Sequence[Span], region: Span) -> bool:
    """Whether the first spans begin in a region, and before the second ones."""
    first, second = (min(overlap(spans, [region]), default=None) for spans in (one, other))
    return first is not None and (second is None or first[0] < second[0])


def _told(message: LayerMessage, subject: Subject) -> Subject:
    hazard, command, prior_command, access, prior_access = message.key
    key = (hazard, plain_command(command), plain_command(prior_command), access, prior_access)
    return replace(subject, side=LAYER, key=key, kind=message.kind, call=message.call, finding=None, message=message)


def _seen_conflict(subject: Subject, views: Sequence[NamedView]) -> list[Span]:
    """Where the second access meets the first one as the views together have the commands."""
    found: list[Span] = []
    for steps in subject.occurrences:
        seen: list[Seen] = []
        for execution, calls, last in _command_buffers(steps):
            stream = subject.stream.as_executed(execution, tuple(seen))
            seen += islice(several(stream, [*calls, *last], views), len(calls))
        found += _conflict(subject, steps, seen)
    return found


def _command_buffers(steps: Sequence[ExecutedCommand]) -> Iterator[tuple[Executed | None, list[Call], list[Call]]]:
    """The executions of command buffers: place, commands, and the last command of all if it is not among these. A view
    has the last one as the second access."""
    groups = [list(group) for _, group in groupby(steps, lambda step: step.execution)]
    for group in groups:
        last = [steps[-1].call] if group is not groups[-1] else []
        yield group[0].place, [step.call for step in group], last


@condition
def reads_vertices_unseen(subject: Subject) -> bool:
    """One of our two accesses reads the vertices of an indexed or indirect draw, or of a binding of instance rate."""
    return subject.finding is not None and hides_vertices(subject.finding, subject.stream)


@view
def several(stream: Stream, calls: Sequence[Call], views: Sequence[NamedView]) -> Iterator[Seen]:
    """Several views at once, each of what the one before shows; without one, what the layer records."""
    seen: list[Seen] = list(recorded(stream, calls))
    for each in views:
        name, arguments = (each, {}) if isinstance(each, str) else next(iter(each.items()))
        seen = list(VIEWS[name](stream, calls, **arguments))
        stream = stream.seen_as({call.index: touches for call, touches in zip(calls, seen, strict=True)})
    yield from seen


def commands_seen_otherwise(stream: Stream, views: Sequence[NamedView]) -> set[int]:
    """Block indices of the commands that touch something else in one of these views, where they are recorded or in an
    execution. What a view shows may depend on which command is the last."""
    found: set[int] = set()
    for each in views:
        for recording in recordings_of(stream):
            for end in range(len(recording)):
                found |= _seen_apart(stream, recording[: end + 1], each)
            found |= _seen_apart(stream, [*recording, recording[0]], each)
        theirs: list[Seen] = []
        for _, place, calls in (each for each in stream.executions(EVERYWHERE) if each[2]):
            looked_at = stream.as_executed(place, tuple(theirs))
            found |= _seen_apart(looked_at, calls, each)
            theirs += several(looked_at, calls, [each])
    return found


def _seen_apart(stream: Stream, calls: Sequence[Call], seen_as: NamedView) -> set[int]:
    shown = several(stream, calls, [seen_as])
    return {call.index for call, seen in zip(calls, shown, strict=True) if set(seen) != set(stream.touches(call))}


# --- views -----------------------------------------------------------------------------------------------------------


@view
def recorded(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """Without what the layer does not record at all."""
    for call in calls:
        yield recorded_touches(call, stream)


@view
def without(stream: Stream, calls: Sequence[Call], commands: Sequence[str] = (), hidden: str = "") -> Iterator[Seen]:
    """These commands are nothing, nor are accesses of draws in dynamic rendering whose name the glob `hidden` fits."""
    inside = False
    for call, touches in zip(calls, recorded(stream, calls), strict=True):
        inside = call.name.startswith("vkCmdBeginRendering") or (inside and not call.name.startswith(ENDS_RENDERING))
        hides = bool(hidden) and inside and call.name.startswith(DRAWS)
        seen = [touch for touch in touches if not hides or not matches(touch.access, [hidden])]
        yield [] if matches(call.name, commands) else seen


@view
def late_tests(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """Every draw writes depth and stencil in the late tests."""
    for call, touches in zip(calls, recorded(stream, calls), strict=True):
        yield [_late(one) if call.name.startswith(DRAWS) else one for one in touches]


def _late(touch: Touch) -> Touch:
    return replace(touch, **LATE) if touch.access == EARLY_WRITE else touch


@view
def without_rewrites(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """No operation of an attachment rewrites another aspect than its own. Where only that wrote to an aspect, a store
    operation NONE does nothing to it."""
    if_written: tuple[Touch, ...] = ()
    written: list[Touch] = []
    for call, touches in zip(calls, recorded(stream, calls), strict=True):
        if stream.facts(call).attached:
            if_written, written = stream.facts(call).if_written, []
        seen = [touch for touch in touches if not touch.rewrite]
        if call.name.startswith((NEXT_SUBPASS, ENDS_RENDERING)):
            resolved = resolved_by(stream, call)
            seen = [
                touch
                for touch in seen
                if touch not in if_written or (touch.space, touch.access) in resolved or common([touch], written)
            ]
        written += [touch for touch in seen if touch.write and "_ATTACHMENT_" in touch.access]
        yield seen


def resolved_by(stream: Stream, call: Call) -> set[tuple[int, str]]:
    """(space, access) of what resolves at the end of a subpass write."""
    made = [each for each in stream.facts(call).effects if isinstance(each, Access)]
    resolves = (each for each in made if each.operation == AttachmentOperation.RESOLVE_WRITE)
    return {(each.space, ACCESS_KINDS[each.access_kind].name) for each in resolves}


@view
def regions_of_blits(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """Without what the filter of a blit may read beside its region."""
    for call in calls:
        touches = stream.touches(call)
        yield [each for each in touches if not (each.declared and each.access.startswith("SYNC_BLIT_"))]


@view
def without_undefined(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """A draw without a fragment shader writes no colour."""
    for call, touches in zip(calls, recorded(stream, calls), strict=True):
        yield [touch for touch in touches if touch not in stream.facts(call).undefined]


@view
def nothing_culled(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """No face is culled, no colour write mask is 0, and a test discards some fragments, neither all nor none. Such
    writes are late ones."""
    for call, touches in zip(calls, recorded(stream, calls), strict=True):
        more = (_late(each) for each in stream.facts(call).culled if not is_unrecorded(call, each, stream))
        yield [*touches, *more]


@view
def whole_vertex_buffers(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """An indexed or indirect draw reads all of the vertex buffers that are bound; in other draws bindings of instance
    rate are ones of vertex rate."""
    for call, touches in zip(calls, recorded(stream, calls), strict=True):
        yield [*touches, *stream.facts(call).vertices]


@view
def whatever_the_parameters(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """An indirect command runs, although its parameters have no workgroups, vertices or instances."""
    for call, touches in zip(calls, recorded(stream, calls), strict=True):
        facts = stream.facts(call)
        more = (*facts.left_out, *facts.declared) if facts.left_out else ()
        yield [*touches, *(each for each in more if not is_unrecorded(call, each, stream))]


@view
def whole_ranges(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """A shader accesses all of the range of each buffer descriptor that it uses, whatever the dispatch is."""
    for call, touches in zip(calls, recorded(stream, calls), strict=True):
        declared = () if stream.facts(call).left_out else stream.facts(call).declared
        shaders = {(touch.stage, touch.resource) for touch in declared}
        yield [*(touch for touch in touches if (touch.stage, touch.resource) not in shaders), *declared]


@view
def query_results_as_one_range(stream: Stream, calls: Sequence[Call], last_stride: bool = False) -> Iterator[Seen]:
    """The results of queries fill all from the first one to the last number, or the whole last stride, and have no
    availability."""
    for call, touches in zip(calls, recorded(stream, calls), strict=True):
        size = _size_of_results(call.args, last_stride) if call.name == "vkCmdCopyQueryPoolResults" else 0
        begun = [(touch.spans[0][0], touch) for touch in touches]
        yield [replace(touch, spans=((at, at + size),)) for at, touch in begun] if size else touches


def _size_of_results(args: dict[str, Any], last_stride: bool) -> int:
    number = 8 if args["flags"] & VkQueryResult.RESULT_64 else 4
    return int(args["stride"] * (args["queryCount"] - (not last_stride)) + number * (not last_stride))
