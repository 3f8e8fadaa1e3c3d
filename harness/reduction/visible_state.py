"""Which state commands an action sees: what is bound or set and then never used can go, and nothing else may."""

from __future__ import annotations

from collections.abc import Sequence

from harness.replay.schedule.steps import StepKind, kind_of
from harness.spec._generated import HANDLES
from harness.spec.command_classes import DRAWS, RUNS_SHADERS
from harness.spec.enums import VkPipelineBindPoint
from harness.spec.shapes import main_name, signature
from harness.trace.calls import Call

_ANY_ACTION = ("vkCmdPush", "vkCmdBindShaders", "vkCmdBindDescriptorBuffers", "vkCmdSetDescriptorBufferOffsets")
_NAMES_A_PLACE = ("first", "binding", "index", "faceMask", "set", "offset", "size", "stageFlags", "pipelineBindPoint")
_DRAWS, _OTHERS = "draw", "other"


def unseen(commands: Sequence[Call]) -> set[int]:
    """The indices of the state commands, among those of one command buffer, that no action after them sees.

    Specification: "Command Buffer Lifecycle", "Pipeline Binding": state stays until a later command replaces it.
    """
    found: set[int] = set()
    follows: set[str] = set()
    replaced: set[tuple[object, ...]] = set()
    for call in reversed(commands):
        if kind_of(call.name) is StepKind.ACTION:
            if call.name.startswith(RUNS_SHADERS):
                follows.add(_DRAWS if call.name.startswith(DRAWS) else _OTHERS)
                replaced.clear()
        elif kind_of(call.name) is StepKind.STATE:
            place = _place(call)
            if not follows & _seen_by(call) or place in replaced:
                found.add(call.index)
            replaced.add(place)
    return found


def _seen_by(call: Call) -> set[str]:
    point = call.args.get("pipelineBindPoint")
    if call.name.startswith(_ANY_ACTION) and point is None:
        return {_DRAWS, _OTHERS}
    return {_DRAWS} if point in (None, VkPipelineBindPoint.GRAPHICS) else {_OTHERS}


def _place(call: Call) -> tuple[object, ...]:
    """What a command sets: two that set the same place replace each other."""
    listed = signature(call.name)
    assert listed is not None
    values = [
        (each.name, call.args[each.name])
        for each in listed.params
        if each.type not in HANDLES
        and isinstance(call.args[each.name], int)
        and (each.name.startswith(_NAMES_A_PLACE) or each.name.endswith("Count"))
    ]
    return (main_name(call.name), *values)
