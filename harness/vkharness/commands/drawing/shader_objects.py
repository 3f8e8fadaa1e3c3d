"""Shader objects: the shaders that are bound stage by stage stand in the place of a pipeline with dynamic state alone.

Specification: "Shader Objects", "Interaction With Pipelines"; rules.md#shader-objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vkharness.commands.drawing.bind_points import STAGES_OF
from vkharness.commands.drawing.pipelines import specialization
from vkharness.commands.handlers import call, command
from vkharness.commands.object_state import NOTHING, CommandBuffer, ObjectState
from vkharness.spec._generated import ENUMS
from vkharness.spec.enums import VkPipelineBindPoint, VkStructureType
from vkharness.trace.calls import Call
from vkharness.trace.chain import chained
from vkharness.trace.effects import Effect, StreamEvent
from vkharness.trace.graphics_state import GraphicsPipeline, GraphicsState
from vkharness.trace.resources import Pipeline, ShaderObject, Stage

SPIRV = ENUMS["VkShaderCodeTypeEXT"]["VK_SHADER_CODE_TYPE_SPIRV_EXT"]
BINARY = "shader objects of binary code"
MAPPED = "shader objects whose bindings lie in descriptor heaps"
UNSEEN = ShaderObject(0, None, "shader objects that were not seen")
ALL_DYNAMIC = GraphicsState(dynamic=frozenset(ENUMS["VkDynamicState"].values()))
"""The state of draws with shader objects: commands set all of it."""
MOST_LINKED = 1 << 12
"""The most combinations of shader objects that are remembered."""


@call("vkCreateShadersEXT")
def create_shaders(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Adds shader objects. Null handles (failed creation) are passed over."""
    for id, info in zip(call.args["pShaders"] or (), call.args["pCreateInfos"] or (), strict=False):
        code = info["pCode"] if info["codeType"] == SPIRV else None
        if code is None:
            objects.add(ShaderObject(id, None, BINARY))
        elif chained(info, VkStructureType.SHADER_DESCRIPTOR_SET_AND_BINDING_MAPPING_INFO_EXT) is not None:
            objects.add(ShaderObject(id, None, MAPPED))
        else:
            constants = specialization(info.get("pSpecializationInfo"))
            objects.add(ShaderObject(id, Stage(info["stage"], code, info["pName"], constants)))
    return ()


@call("vkDestroyShaderEXT")
def destroy_shader(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Removes a shader object. Commands that were recorded with it stay as they are."""
    gone = objects.remove(call.args["shader"])
    for key, made in list(objects.shaders.linked.items()):
        if gone in made.objects.values():
            _forget(objects, key)
    return ()


@command("vkCmdBindShadersEXT")
def bind_shaders(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Binds a shader object to each of the stages, or none. A pipeline that is bound to the same bind point is bound no
    more, as shader objects are once a pipeline is bound."""
    stages = args["pStages"] or ()
    shaders = args["pShaders"] or [0] * len(stages)
    for point, own in STAGES_OF.items():
        named = [(stage, id) for stage, id in zip(stages, shaders, strict=False) if stage & own]
        if named:
            _bind(objects, buffer, point, named)
    return NOTHING


def _bind(objects: ObjectState, buffer: CommandBuffer, point: int, named: list[tuple[int, int]]) -> None:
    before = buffer.pipelines.pop(point, None)
    bound = {} if before is None else dict(before.objects)
    for stage, id in named:
        if id:
            bound[stage] = objects.get(ShaderObject, id) or UNSEEN
        else:
            bound.pop(stage, None)
    if bound:
        buffer.pipelines[point] = _linked(objects, point, bound)


def _linked(objects: ObjectState, point: int, bound: dict[int, ShaderObject]) -> Pipeline:
    """Makes the object in the place of a pipeline of a bind point (VkPipelineBindPoint): one for the same shaders."""
    key = tuple(sorted(bound.items(), key=_stage_of))
    found = objects.shaders.linked.get(key)
    if found is None:
        if len(objects.shaders.linked) >= MOST_LINKED:
            for each in list(objects.shaders.linked):
                _forget(objects, each)
        number = -objects.shaders.fresh()  # those of a trace are above 0
        stages = tuple(each.stage for _, each in key if each.stage is not None)
        reason = next((each.unmodelled for _, each in key if each.unmodelled), "")
        if point == VkPipelineBindPoint.GRAPHICS:
            found = GraphicsPipeline(number, point, None, stages, ALL_DYNAMIC, unmodelled=reason, objects=bound)
        else:
            found = Pipeline(number, point, None, stages, unmodelled=reason, objects=bound)
        objects.shaders.linked[key] = found
    return found


def _stage_of(item: tuple[int, ShaderObject]) -> int:
    return item[0]


def _forget(objects: ObjectState, key: tuple[tuple[int, ShaderObject], ...]) -> None:
    objects.reflected.pop(objects.shaders.linked.pop(key).id, None)
