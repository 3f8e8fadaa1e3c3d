"""Conditions about render pass instances, subpasses and secondary command buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.commands.rendering.render_pass_plan import IMPLICIT_BEGIN, IMPLICIT_END
from harness.layer.conditions import condition, matches
from harness.layer.parse import plain_command
from harness.layer.stream import CLEAR_ATTACHMENTS, Stream, Touch, barrier_scopes, common, is_sync_operation
from harness.layer.subject import Subject
from harness.spans import Span
from harness.spec.command_classes import is_submit
from harness.trace.calls import Call
from harness.trace.effects import EXTERNAL, PassBegin, SubpassDependency

BEGINS, NEXT, ENDS = "vkCmdBeginRenderPass", "vkCmdNextSubpass", "vkCmdEndRender"


@condition
def in_one_instance(subject: Subject) -> bool:
    """Both accesses are in one render pass instance."""
    own, first = subject.command, subject.first
    if own is None or first is None or first.index > own.index:
        return False
    commands = subject.stream.recorded(own.args["commandBuffer"], own.index)
    return not any(call.name.startswith(ENDS) for call in commands if call.index > first.index)


@condition
def read_between(subject: Subject, calls: Sequence[str] = ("*",), up_to: str = "") -> bool:
    """One of these commands between the two reads our finding's resource; `up_to`: before the last command so called,
    or that one itself."""
    own, window = subject.command, subject.window
    if up_to and own is not None:
        last = [at for at, call in enumerate([*window, own]) if call.name.startswith(up_to)]
        window = [*window, own][: last[-1] + 1] if last else []
    reads = (subject.stream.reads(call) for call in window if matches(call.name, calls))
    return subject.finding is not None and any(subject.finding.resource in each for each in reads)


@condition
def rendered_in_part(subject: Subject) -> bool:
    """One of the two accesses is made by rendering, and some command before the second renders to a part only of an
    image that it touches, or clears one. Of ours: whoever makes them, some command between the two does so."""
    limit = subject.command.index if subject.command is not None else subject.limit
    calls = [call for call in subject.stream.calls if call.index <= limit] if subject.touches_rendering else []
    calls += subject.window if subject.finding is not None else []
    images, known = subject.resources(), subject.finding is not None or subject.command is not None
    return any(images & part or (part and not known) for part in (subject.stream.facts(c).in_part for c in calls))


@condition
def cleared_in_later_layer(subject: Subject) -> bool:
    """The second command, or one before it, clears an attachment that the second touches, through a view that begins
    at another layer than the first."""
    stream = subject.stream
    return any(
        stream.facts(call).later_layer and common(stream.touches(call), stream.touches(second))
        for second, before in subject.seconds
        for call in (*before, second)
        if call.name == CLEAR_ATTACHMENTS
    )


# --- subpasses -------------------------------------------------------------------------------------------------------


def _dependencies(call: Call, stream: Stream) -> list[SubpassDependency]:
    return [each for begin in stream.facts(call).effects if isinstance(begin, PassBegin) for each in begin.dependencies]


@condition
def chained_through_a_pass(subject: Subject) -> bool:
    """Between the two accesses lies a whole render pass instance with a dependency to what is after it, and one from
    what is before it or a barrier before it; or with one from what is before it, and a barrier after it."""
    for second, before in subject.seconds:
        window = [*subject.since_first(second, before), second]
        for position, call in enumerate(window):
            if not call.name.startswith(BEGINS) or not any(c.name.startswith(ENDS) for c in window[position:-1]):
                continue
            explicit = [
                each
                for each in _dependencies(call, subject.stream)
                if each.dependency not in (IMPLICIT_BEGIN, IMPLICIT_END)
            ]
            into = any(each.src == EXTERNAL for each in explicit)
            out = any(each.dst == EXTERNAL for each in explicit)
            earlier = into or any(any(barrier_scopes(each)) for each in window[:position])
            later = out or any(any(barrier_scopes(each)) for each in window[position:])
            if (into or out) and earlier and later:
                return True
    return False


@condition
def entered_by_several_dependencies(subject: Subject) -> bool:
    """A transition of what the second command touches came with a subpass into which dependencies lead from several
    others, the implicit ones included."""
    stream = subject.stream
    for second, before in subject.seconds:
        dependencies: list[SubpassDependency] = []
        subpass = 0
        for call in (*before, second):
            if call.name.startswith(BEGINS):
                dependencies, subpass = _dependencies(call, stream), 0
            elif call.name.startswith(NEXT):
                subpass += 1
            else:
                continue
            sources = {each.src for each in dependencies if each.dst == subpass != each.src}
            moved = [touch for touch in stream.touches(call) if touch.write and not touch.stage]
            named = plain_command(call.name) == subject.key[2]
            if named and len(sources) > 1 and common(moved, stream.touches(second)):
                return True
    return False


@condition
def first_piece_only(subject: Subject) -> bool:
    """Before the second command an access was the first in its subpass to a range that earlier commands had cut into
    pieces, and the second command touches another piece than the first: of that access in ours, of one before the
    subpass in the layer's."""
    stream = subject.stream
    for second, before in subject.seconds:
        for entered, access, lost in _lost([*before, second], stream):
            shared = common([lost], stream.touches(second))
            if subject.finding is not None:
                if access.index == subject.finding.prior.call and shared:
                    return True
                continue
            earlier = (call for call in before[:entered] if plain_command(call.name) == subject.key[2])
            if access is not second and any(common(stream.touches(call), shared) for call in earlier):
                return True
    return False


def _lost(calls: Sequence[Call], stream: Stream) -> Iterator[tuple[int, Call, Touch]]:
    """Accesses in subpasses of which only the first piece is kept, with the rest: (position at which the subpass is
    entered, command, the rest). Loads come with the command that enters."""
    entered: int | None = None
    touched: list[Touch] = []
    waiting: list[Touch] = []
    cuts: dict[int, set[int]] = {}
    for position, call in enumerate(calls):
        if call.name.startswith((BEGINS, NEXT)):
            _cut(cuts, waiting)
            entered, touched = position, []
        for touch in stream.touches(call):
            rest = tuple(_rest(touch, cuts.get(touch.space, set())))
            if entered is not None and rest and not common([touch], touched):
                yield entered, call, replace(touch, spans=rest)
            touched.append(touch)
            waiting.append(touch)
        if call.name.startswith("vkCmdEndRenderPass"):
            entered = None
        if entered is None:
            _cut(cuts, waiting)


def _cut(cuts: dict[int, set[int]], touches: list[Touch]) -> None:
    for touch in touches:
        cuts.setdefault(touch.space, set()).update(end for span in touch.spans for end in span)
    touches.clear()


def _rest(touch: Touch, cuts: set[int]) -> Iterator[Span]:
    for begin, end in touch.spans:
        inside = [cut for cut in cuts if begin < cut < end]
        if inside:
            yield min(inside), end


# --- secondary command buffers ---------------------------------------------------------------------------------------


@condition
def barrier_in_secondary(subject: Subject) -> bool:
    """At a submit: a primary of it executes a secondary that holds a synchronization command."""
    submit, stream = subject.stream.at(subject.call), subject.stream
    if submit is None or not is_submit(submit.name):
        return False
    return any(
        is_sync_operation(command) and command.args["commandBuffer"] != primary
        for batch in stream.executed(submit)
        for primary in batch
        for command in stream.recorded(primary, submit.index)
    )
