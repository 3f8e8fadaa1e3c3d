"""Reduces a random stream to steps that need no excuse: no known difference covers anything that is left of it.

Agreement on such a stream is seen, and not explained. Nothing here knows a family of steps or an entry of
`known_differences.toml`: every entry is asked what it would explain of all that either judge could say of the stream
(`layer.conceivable`), and which commands its view has otherwise. The steps that lead to an answer are left out, until
there is none. What the layer says of the stream is not asked.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import vkharness
from vkharness.fuzz.random_steps import RandomBatch, Step
from vkharness.fuzz.step_player import StepPlayer, open_rig
from vkharness.layer.conceivable import excusable
from vkharness.layer.known_differences import LayerDifference, views_of
from vkharness.layer.stream import CLEAR_ATTACHMENTS, Executed, Stream
from vkharness.layer.subject import Subject
from vkharness.layer.view_conditions import commands_seen_otherwise
from vkharness.spec.command_classes import is_submit
from vkharness.trace.calls import Block

INNER_COMMANDS = ("vkCmdDraw", CLEAR_ATTACHMENTS, "vkCmdPipelineBarrier")
"""Beginnings of the commands of which each step inside of rendering records one."""


class Played(NamedTuple):
    """A stream as it was recorded, without what destroys its objects, so that addresses can be described."""

    stream: Stream
    findings: Sequence[vkharness.Finding]
    begins: list[int]
    """The block index at which each step begins."""


class LeftOut(NamedTuple):
    """A part to leave out of a stream: a step, one step inside it, or one execution of a submit."""

    step: int
    inner: int | None = None
    execution: tuple[int, int] | None = None
    """(batch, position)"""


def unexcused(steps: Sequence[Step], differences: Sequence[LayerDifference]) -> list[Step]:
    """The steps without those that could need an excuse, by playing them on this process' driver. What is left may be
    nothing."""
    left = list(steps)
    while left:
        played = _play(left)
        parts = _to_leave_out(left, played, differences)
        if not parts:
            break
        left = _without(left, parts)
    return left


def _play(steps: Sequence[Step]) -> Played:
    with vkharness.attach(keep_trace=True, strict=True) as session, open_rig(None) as rig:
        blocks: list[Block] = session.blocks or []
        player = StepPlayer(rig)
        begins: list[int] = []
        for step in steps:
            begins.append(blocks[-1].index + 1 if blocks else 0)
            list(player.parts_of(step))
        player.play(())
    kept = [each for each in blocks if not getattr(each, "name", "").startswith(("vkDestroy", "vkFreeMemory"))]
    return Played(Stream(kept), session.findings, begins)


def _to_leave_out(steps: Sequence[Step], played: Played, differences: Sequence[LayerDifference]) -> set[LeftOut]:
    stream = played.stream
    seen = commands_seen_otherwise(stream, views_of(differences))
    if gone := {part for call in seen if (part := _part_of(call, steps, played)) is not None}:
        return gone
    # Where no view has a command otherwise, what asks for views explains nothing.
    for explained in excusable(stream, played.findings, [each for each in differences if not each.views]):
        concerned = [_part_of(each, steps, played) for each in _calls_of(explained.subject)]
        if not gone.intersection(concerned):
            part = _repeated(explained.subject, steps, played) or next((each for each in concerned if each), None)
            gone |= {part} if part is not None else set()
    return gone


def _calls_of(subject: Subject) -> list[int]:
    """The two commands of a disagreement, the second one first, or the call in which it was said."""
    finding = subject.finding
    if finding is not None:
        return [finding.place.call, finding.prior.call]
    own = subject.command
    first = [step.call.index for step in subject.steps if subject.may_be_first(step)]
    return [own.index if own is not None else subject.limit, *first[-1:]]


def _repeated(subject: Subject, steps: Sequence[Step], played: Played) -> LeftOut | None:
    """The execution of a command buffer in which a disagreement was found, where it was executed before: the other one
    is kept."""
    submit = played.stream.at(subject.call)
    if submit is None or not is_submit(submit.name):
        return None
    batch, entry = None, None
    if subject.finding is not None:
        batch, entry = subject.finding.place.batch, subject.finding.place.position
    elif subject.message is not None:
        batch, entry = subject.message.batch, subject.message.entry
    if batch is None or entry is None:
        return None
    place: Executed = (submit.index, batch, entry)
    buffers = {place: commands for _, place, commands in played.stream.executions(submit.index)}
    own = [each.index for each in buffers.get(place, ())]
    earlier = [other for other, commands in buffers.items() if other < place and [one.index for one in commands] == own]
    at = _step_at(submit.index, played.begins)
    if not earlier or at is None or steps[at][0] != "submit":
        return None
    return LeftOut(at, execution=(batch, entry))


def _part_of(call: int, steps: Sequence[Step], played: Played) -> LeftOut | None:
    """The step, or the step inside it, that recorded a command; None for a command before the first step."""
    at = _step_at(call, played.begins)
    if at is None:
        return None
    step = steps[at]
    if step[0] in ("rendering", "pass"):
        own = [
            each.index
            for each in played.stream.calls
            if _step_at(each.index, played.begins) == at and each.name.startswith(INNER_COMMANDS)
        ]
        if call in own and own.index(call) < len(step[-1]):
            return LeftOut(at, own.index(call))
    return LeftOut(at)


def _step_at(call: int, begins: Sequence[int]) -> int | None:
    return bisect_right(begins, call) - 1 if begins and call >= begins[0] else None


def _without(steps: Sequence[Step], parts: Iterable[LeftOut]) -> list[Step]:
    several = set(parts)
    left: list[Step] = []
    for at, step in enumerate(steps):
        own = [each for each in several if each.step == at]
        inner = {each.inner for each in own if each.inner is not None}
        rest = (*step[:-1], [each for place, each in enumerate(step[-1]) if place not in inner]) if inner else step
        rest = _submit_without(rest, {each.execution for each in own if each.execution is not None})
        if LeftOut(at) not in several and (rest != step or not own):
            left.append(rest)
    return left


def _submit_without(step: Step, executions: set[tuple[int, int] | None]) -> Step:
    """A submit without some executions."""
    if not executions:
        return step
    name, batches, fence = step
    rest: list[RandomBatch] = []
    for number, batch in enumerate(batches):
        buffers = [buffer for at, buffer in enumerate(batch["buffers"]) if (number, at) not in executions]
        rest.append({"buffers": buffers, "waits": batch["waits"], "signals": batch["signals"]})
    return (name, rest, fence)
