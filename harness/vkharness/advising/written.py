"""The dependencies that a trace has, each with all calls that write it alike, as a program does in every frame."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vkharness.call_sites import between
from vkharness.mending.pieces import masks_in
from vkharness.mending.recordings import Recordings
from vkharness.spec.command_classes import BEGINS_RENDERING, is_submit
from vkharness.spec.shapes import main_name
from vkharness.trace.barrier_calls import is_barrier
from vkharness.trace.calls import Block, Call, block_name

_SHAPE = ("Mask", "Layout", "Count", "Flags", "flags", "FamilyIndex", "Subpass", "offset", "size", "Level", "Layer")
"""How the members end that tell one dependency from another. Handles do not: each frame has its own."""
BARRIER, EVENTS, RENDER_PASS, SUBMIT = "barrier", "wait for events", "render pass", "submit"
HOST_WAIT = "wait of the host"


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """One dependency, or the dependencies of one call, as the program wrote it."""

    kind: str
    call: Call
    """The first of the calls."""
    origins: tuple[int, ...]
    """The indices of all calls that write it."""
    sets: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Of waits for events the vkCmdSetEvent2 that have their dependencies, or the vkCmdSetEvent that have their first
    stages, to the wait and the number of the event there. Empty where they are not all known, or other waits wait for
    them, too."""


def dependencies(blocks: Sequence[Block]) -> list[Written]:
    """Every dependency that is used: barriers and waits for events of recordings that are submitted, the dependencies
    of render passes that begin, the stages of semaphores. Calls are one dependency when their source lines and their
    masks, layouts and ranges are the same; without source lines, when the commands around them are, too."""
    recordings = Recordings(blocks)
    begun = {
        (call.args.get("pRenderPassBegin") or {}).get("renderPass")
        for call in blocks
        if isinstance(call, Call) and call.name.startswith(BEGINS_RENDERING)
    }
    found: dict[Hashable, list[Call]] = {}
    for position, call in enumerate(blocks):
        if not isinstance(call, Call):
            continue
        kind = kind_of(call)
        if kind == RENDER_PASS and call.args.get("pRenderPass") not in begun:
            continue
        around: Hashable = None
        if kind in (BARRIER, EVENTS):
            around = _around(blocks, recordings, position)
            if around is None:
                continue
        if kind:
            where = between(call.site, None)[0] or around
            found.setdefault((kind, call.name, where, shape_of(call.args)), []).append(call)
    sets = _EventSets(blocks)
    return [
        Written(kind_of(several[0]), several[0], tuple(call.index for call in several), sets.of(several))
        for several in found.values()
    ]


class _EventSets:
    """For each wait the sets before it that have its dependencies or first stages ("vkCmdWaitEvents2": each set has the
    dependency of the wait; "vkCmdWaitEvents": srcStageMask is that of all sets together)."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._matching: dict[int, list[int]] = {}
        self._waits: dict[int, list[int]] = {}
        last: dict[int, Call] = {}
        for call in blocks:
            name = main_name(call.name) if isinstance(call, Call) else ""
            if not isinstance(call, Call) or "Event" not in name:
                continue
            if name in ("vkCmdWaitEvents", "vkCmdWaitEvents2"):
                self._follow(call, last)
            elif "SetEvent" in name:
                last[call.args["event"]] = call

    def _follow(self, wait: Call, last: Mapping[int, Call]) -> None:
        sets = [last.get(event) for event in wait.args["pEvents"] or ()]
        matching = [each.index for at, each in enumerate(sets) if each is not None and _matches(wait, at, each)]
        self._matching[wait.index] = matching if len(matching) == len(sets) else []
        for index in matching:
            self._waits.setdefault(index, []).append(wait.index)

    def of(self, waits: Sequence[Call]) -> dict[int, tuple[int, int]]:
        """The sets of these waits, as `Written.sets`."""
        mine = {call.index for call in waits}
        found: dict[int, tuple[int, int]] = {}
        for wait in mine:
            matching = self._matching.get(wait, [])
            if not matching or any(user not in mine for each in matching for user in self._waits[each]):
                return {}
            found |= {each: (wait, number) for number, each in enumerate(matching)}
        return found


def _matches(wait: Call, number: int, set_event: Call) -> bool:
    """Whether a set says the same as the wait for its event, so that both can change alike."""
    infos = wait.args.get("pDependencyInfos")
    if infos is not None:
        return bool(number < len(infos) and set_event.args.get("pDependencyInfo") == infos[number])
    return set_event.args.get("stageMask") == wait.args.get("srcStageMask")


def kind_of(call: Call) -> str:
    """Which kind of dependency a call writes; empty for none."""
    name = main_name(call.name)
    if is_barrier(call):
        return BARRIER
    if name in ("vkCmdWaitEvents", "vkCmdWaitEvents2"):
        return EVENTS
    if name.startswith("vkCreateRenderPass") and call.args["pCreateInfo"].get("pDependencies"):
        return RENDER_PASS
    submits = is_submit(call.name) and name.startswith("vkQueueSubmit")
    return SUBMIT if submits and next(masks_in(call.args, ()), None) is not None else ""


def shape_of(value: Any) -> Hashable:
    """Returns the key by which a dependency is told from another: masks, layouts, counts and ranges. Handles and the
    values of timelines are left out, since each frame has its own."""
    if isinstance(value, list):
        return tuple(shape_of(each) for each in value)
    if not isinstance(value, dict):
        return None
    told = {name: each for name, each in value.items() if name.endswith(_SHAPE) or isinstance(each, dict | list)}
    return tuple((name, _shape_of_member(name, each)) for name, each in told.items())


def _shape_of_member(name: str, value: Any) -> Hashable:
    if isinstance(value, list) and name.endswith(_SHAPE):
        return tuple(each if isinstance(each, int) else None for each in value)
    return shape_of(value) if isinstance(value, dict | list) else value


def _around(blocks: Sequence[Block], recordings: Recordings, position: int) -> Hashable:
    """The names of the commands before and after one; None where its command buffer is never executed."""
    recording = recordings.at(position)
    if recording is None or position not in recording.positions:
        return None
    buffer = recording.command_buffer
    if buffer not in recordings.submits and buffer not in recordings.executions:
        return None
    at = recording.positions.index(position)
    near = [*recording.positions[max(at - 1, 0) : at], *recording.positions[at + 1 : at + 2]]
    return (at == 0, *(block_name(blocks[each]) for each in near))
