"""Which state commands an action sees: what is bound or set and then never used can go, and nothing else may."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vkharness.reduction.shader_state import NOT_KNOWN, ShaderState, ShaderStates
from vkharness.replay.schedule.steps import StepKind, kind_of
from vkharness.spec._generated import HANDLES
from vkharness.spec.command_classes import DRAWS, RUNS_SHADERS, TRACES_RAYS
from vkharness.spec.enums import VkPipelineBindPoint
from vkharness.spec.shapes import main_name, signature
from vkharness.trace.calls import Call

_ANY_ACTION = ("vkCmdPush", "vkCmdBindShaders", "vkCmdBindDescriptorBuffers", "vkCmdSetDescriptorBufferOffsets")
_NAMES_A_PLACE = ("first", "binding", "index", "faceMask", "set", "offset", "size", "stageFlags", "pipelineBindPoint")
_DRAWS, _OTHERS = "draw", "other"
_POINTS = (VkPipelineBindPoint.GRAPHICS, VkPipelineBindPoint.COMPUTE)
"""Those whose pipelines are looked into: rays are traced with more shaders than a pipeline names."""


@dataclass(slots=True)
class _Following:
    """State that the later actions of one kind use, as seen from a command before them."""

    sets: set[int] = field(default_factory=set)
    push_constants: bool = False

    def add(self, state: ShaderState) -> None:
        self.sets |= state.sets
        self.push_constants |= state.push_constants


def unseen(commands: Sequence[Call], states: ShaderStates) -> set[int]:
    """The indices of the state commands, among those of one command buffer, that no action after them sees.

    Specification: "Command Buffer Lifecycle", "Pipeline Binding": state stays until a later command replaces it. Of
    descriptor sets and push constants, an action sees those that its shaders statically use.
    """
    used = _used(commands, states)
    found: set[int] = set()
    follows: dict[str, _Following] = {}
    replaced: set[tuple[object, ...]] = set()
    for call in reversed(commands):
        if kind_of(call.name) is StepKind.ACTION:
            if call.name.startswith(RUNS_SHADERS):
                follows.setdefault(_kind(call), _Following()).add(used[call.index])
                replaced.clear()
        elif kind_of(call.name) is StepKind.STATE:
            places = _places(call)
            seen = any(_is_used(call, follows[each]) for each in follows.keys() & _seen_by(call))
            if not seen or places <= replaced:
                found.add(call.index)
            replaced |= places | _pushed_over(call)
    return found


def _used(commands: Sequence[Call], states: ShaderStates) -> dict[int, ShaderState]:
    """Returns the state that the shaders of each action use, by call."""
    bound: dict[str, ShaderState] = {}
    found: dict[int, ShaderState] = {}
    for call in commands:
        if call.name == "vkCmdBindPipeline" and call.args["pipelineBindPoint"] in _POINTS:
            (kind,) = _seen_by(call)
            bound[kind] = states.of(call.args["pipeline"])
        elif call.name.startswith("vkCmdBindShaders"):
            bound.clear()
        elif call.name.startswith(RUNS_SHADERS):
            traces = call.name.startswith(TRACES_RAYS)
            found[call.index] = NOT_KNOWN if traces else bound.get(_kind(call), NOT_KNOWN)
    return found


def _kind(action: Call) -> str:
    return _DRAWS if action.name.startswith(DRAWS) else _OTHERS


def _is_used(call: Call, following: _Following) -> bool:
    """Whether the shaders of following actions use what a state command sets."""
    name = main_name(call.name)
    if name == "vkCmdPushConstants":
        return following.push_constants
    if name == "vkCmdBindDescriptorSets":
        first = call.args["firstSet"]
        return not following.sets.isdisjoint(range(first, first + call.args["descriptorSetCount"]))
    return True


def _seen_by(call: Call) -> set[str]:
    point = call.args.get("pipelineBindPoint")
    if call.name.startswith(_ANY_ACTION) and point is None:
        return {_DRAWS, _OTHERS}
    return {_DRAWS} if point in (None, VkPipelineBindPoint.GRAPHICS) else {_OTHERS}


def _places(call: Call) -> set[tuple[object, ...]]:
    """Returns the places that a state command sets. It is replaced by later commands that set all of them."""
    if main_name(call.name) == "vkCmdBindDescriptorSets":
        first = call.args["firstSet"]
        return {_set(call, each) for each in range(first, first + call.args["descriptorSetCount"])}
    if main_name(call.name) == "vkCmdBindShadersEXT":
        return {("shader", each) for each in call.args["pStages"] or ()}
    listed = signature(call.name)
    assert listed is not None
    values = [
        (each.name, call.args[each.name])
        for each in listed.params
        if each.type not in HANDLES
        and isinstance(call.args[each.name], int)
        and (each.name.startswith(_NAMES_A_PLACE) or each.name.endswith("Count"))
    ]
    return {(main_name(call.name), *values)}


def _pushed_over(call: Call) -> set[tuple[object, ...]]:
    """The bound descriptor set that pushed descriptors take the place of: its layout is not compatible with theirs."""
    pushes = call.name.startswith("vkCmdPushDescriptorSet") and "pipelineBindPoint" in call.args
    return {_set(call, call.args["set"])} if pushes else set()


def _set(call: Call, number: int) -> tuple[object, ...]:
    return ("descriptor set", call.args["pipelineBindPoint"], number)
