"""Predicates of `differences.toml` about what today's layer keeps of accesses in subpasses (see `conditions`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.commands.rendering.render_pass_plan import make_render_pass
from harness.layer.conditions import condition
from harness.layer.manifest import Version
from harness.layer.messages import plain_command
from harness.layer.stream import Stream, Subject, Touch, common
from harness.spans import Span
from harness.trace.calls import Call

ENTERS = ("vkCmdBeginRenderPass", "vkCmdNextSubpass")
LEAVES = "vkCmdEndRenderPass"


@condition
def first_piece_only(subject: Subject, stream: Stream, _: Version) -> bool:
    """Before the second command an access was the first in its subpass to a range that earlier commands had cut into
    pieces, and the second command touches another piece than the first: of that access in ours, of one before the
    subpass in the layer's."""
    for second, before in stream.seconds(subject):
        mine = stream.touches(second)
        for entered, access, lost in _lost([*before, second], stream):
            shared = common([lost], mine)
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
    cuts: dict[int, set[int]] = {}
    waiting: list[Touch] = []
    for position, call in enumerate(calls):
        if call.name.startswith(ENTERS):
            _cut(cuts, waiting)
            entered, touched, waiting = position, [], []
        for touch in stream.touches(call):
            if entered is not None and not common([touch], touched):
                rest = tuple(_rest(touch, cuts.get(touch.space, set())))
                if rest:
                    yield entered, call, replace(touch, spans=rest)
            touched.append(touch)
            waiting.append(touch)
        if call.name.startswith(LEAVES):
            entered = None
        if entered is None:
            _cut(cuts, waiting)
            waiting = []


def _cut(cuts: dict[int, set[int]], touches: Sequence[Touch]) -> None:
    for touch in touches:
        cuts.setdefault(touch.space, set()).update(end for span in touch.spans for end in span)


def _rest(touch: Touch, cuts: set[int]) -> Iterator[Span]:
    for begin, end in touch.spans:
        inside = [cut for cut in cuts if begin < cut < end]
        if inside:
            yield min(inside), end


@condition
def read_in_another_subpass(subject: Subject, stream: Stream, _: Version) -> bool:
    """Between the two a command of an earlier subpass, of this instance or one before, reads the resource."""
    own, finding = stream.command(subject), subject.finding
    if own is None or finding is None:
        return False
    window = [*stream.window(subject), own]
    left = [at for at, call in enumerate(window) if call.name.startswith("vkCmdNextSubpass")]
    return bool(left) and any(finding.resource in stream.reads(call) for call in window[: left[-1] + 1])


@condition
def entered_by_several_dependencies(subject: Subject, stream: Stream, _: Version) -> bool:
    """A transition of what the second command touches came with a subpass into which dependencies lead from several
    others, the implicit ones included."""
    for second, before in stream.seconds(subject):
        mine = stream.touches(second)
        sources: dict[int, set[int]] = {}
        subpass = 0
        for call in (*before, second):
            if call.name.startswith("vkCmdBeginRenderPass"):
                sources, subpass = _sources(stream, call.args["pRenderPassBegin"]["renderPass"]), 0
            elif call.name.startswith("vkCmdNextSubpass"):
                subpass += 1
            else:
                continue
            moved = [touch for touch in stream.touches(call) if touch.write and not touch.stage]
            named = plain_command(call.name) == subject.key[2]
            if named and len(sources.get(subpass, ())) > 1 and common(moved, mine):
                return True
    return False


def _sources(stream: Stream, render_pass: int) -> dict[int, set[int]]:
    """By subpass, those from which dependencies lead into it."""
    found: dict[int, set[int]] = {}
    for call in stream.calls:
        if call.name.startswith("vkCreateRenderPass") and call.args.get("pRenderPass") == render_pass:
            for each in make_render_pass(render_pass, call.args["pCreateInfo"]).dependencies:
                if each.src != each.dst:
                    found.setdefault(each.dst, set()).add(each.src)
    return found
