"""Conditions about what the layer takes a command for: another access, other addresses, or nothing.

Both judges hold a read against the last write of its addresses, and a write against the reads since that write or else
against the write itself. Where the layer takes a command for something else than we do, it holds that command, and
later ones, against something else. `seen_as` says whether just this leads to a disagreement. A view gives what the
layer takes the commands of one command buffer for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

from harness.layer.conditions import condition, matches
from harness.layer.silence import is_unrecorded
from harness.layer.stream import Executed, Stream, Touch, apart, common
from harness.layer.subject import ExecutedCommand, Subject
from harness.spans import Span, merge, overlap
from harness.spec.command_classes import DRAWS, ENDS_RENDERING, NEXT_SUBPASS
from harness.spec.enums import VkPipelineStage2, VkQueryResult
from harness.trace.calls import Call

EARLY_WRITE = "SYNC_EARLY_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_WRITE"
LATE: dict[str, Any] = {
    "access": "SYNC_LATE_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_WRITE",
    "stage": VkPipelineStage2.LATE_FRAGMENT_TESTS,
}
Seen = Sequence[Touch]
View = Callable[..., Iterable[Seen]]
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
    """What an access is held against, the latest first. Of the reads in one stage it is the last one."""
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
    """The second access is held against the first one as the view has the commands, and as we have them it is not; or
    the other way round, if we found it."""
    return any(_is_seen_otherwise(subject, steps, partial(VIEWS[view], **arguments)) for steps in subject.occurrences)


def _is_seen_otherwise(subject: Subject, steps: Sequence[ExecutedCommand], seen: partial[Iterable[Seen]]) -> bool:
    ours: list[Seen] = []
    theirs: list[Seen] = []
    for execution, calls in _command_buffers(steps):
        stream = subject.stream.as_executed(execution)
        ours += map(stream.touches, calls) if seen.func is recorded else recorded(stream, calls)
        theirs += seen(stream, calls)
    told, other = (ours, theirs) if subject.finding is not None else (theirs, ours)
    conflict = _conflict(subject, steps, told)
    return bool(conflict) and not overlap(merge(conflict), merge(_conflict(subject, steps, other)))


def _conflict(subject: Subject, steps: Sequence[ExecutedCommand], seen: Sequence[Seen]) -> list[Span]:
    """The addresses where the second access is held against the first one."""
    return [
        span
        for touch in map(subject.at_issue, seen[-1])
        for each in met(seen[:-1], touch)
        if subject.renamed(subject.key[2], each.prior.access) == subject.key[4]
        and subject.may_be_first(steps[each.position])
        for span in each.touch.spans
    ]


def _command_buffers(steps: Sequence[ExecutedCommand]) -> list[tuple[Executed | None, list[Call]]]:
    groups = [list(group) for _, group in groupby(steps, lambda step: step.execution)]
    return [(group[0].place, [step.call for step in group]) for group in groups]


# --- views -----------------------------------------------------------------------------------------------------------


@view
def recorded(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """Without what the layer does not record at all."""
    for call in calls:
        yield [touch for touch in stream.touches(call) if not is_unrecorded(call, touch, stream)]


@view
def without(stream: Stream, calls: Sequence[Call], commands: Sequence[str], dynamic: bool = True) -> Iterator[Seen]:
    """These commands are nothing, nor, without `dynamic`, are the attachments of dynamic rendering."""
    inside = False
    for call, touches in zip(calls, recorded(stream, calls), strict=True):
        inside = call.name.startswith("vkCmdBeginRendering") or (inside and not call.name.startswith(ENDS_RENDERING))
        seen = [touch for touch in touches if dynamic or not inside or "_ATTACHMENT_" not in touch.access]
        yield [] if matches(call.name, commands) else seen


@view
def late_tests(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """Every draw writes depth and stencil in the late tests."""
    for call, touches in zip(calls, recorded(stream, calls), strict=True):
        early = call.name.startswith(DRAWS)
        yield [replace(one, **LATE) if early and one.access == EARLY_WRITE else one for one in touches]


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
            seen = [touch for touch in seen if touch not in if_written or common([touch], written)]
        written += [touch for touch in seen if touch.write and "_ATTACHMENT_" in touch.access]
        yield seen


@view
def without_undefined(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """A draw without a fragment shader writes no colour."""
    for call, touches in zip(calls, recorded(stream, calls), strict=True):
        yield [touch for touch in touches if touch not in stream.facts(call).undefined]


@view
def nothing_culled(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """No face is culled, and no test discards every fragment."""
    for call, touches in zip(calls, recorded(stream, calls), strict=True):
        yield [*touches, *stream.facts(call).culled]


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
