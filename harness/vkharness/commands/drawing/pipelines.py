"""Pipelines: the SPIR-V that runs in each stage."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vkharness.commands.handlers import call
from vkharness.commands.object_state import ObjectState
from vkharness.spec.enums import VkPipelineBindPoint, VkStructureType
from vkharness.trace.calls import Call
from vkharness.trace.chain import chained
from vkharness.trace.effects import StreamEvent
from vkharness.trace.resources import Pipeline, PipelineLayout, ShaderModule, Stage


@call("vkCreateComputePipelines")
def create_compute_pipelines(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Adds pipelines with one compute stage each. Null handles (failed or deferred creation) are passed over."""
    for id, info in zip(call.args["pPipelines"] or (), call.args["pCreateInfos"] or (), strict=False):
        stage = make_stage(objects, info["stage"])
        layout = objects.get(PipelineLayout, info["layout"])
        objects.add(Pipeline(id, VkPipelineBindPoint.COMPUTE, layout, (stage,) if stage else ()))
    return ()


def make_stage(objects: ObjectState, info: dict[str, Any]) -> Stage | None:
    """A stage with its SPIR-V, which a VkPipelineShaderStageCreateInfo gives as a module or as a
    chained create info."""
    module = objects.get(ShaderModule, info["module"])
    inline = chained(info, VkStructureType.SHADER_MODULE_CREATE_INFO)
    code = module.code if module is not None else inline["pCode"] if inline else None
    if code is None:
        return None
    return Stage(info["stage"], code, info["pName"], specialization(info.get("pSpecializationInfo")))


def specialization(info: dict[str, Any] | None) -> dict[int, bytes]:
    """The bytes of each constant of a VkSpecializationInfo, by its id."""
    if not info or not info["pData"]:
        return {}
    data = info["pData"]
    return {
        entry["constantID"]: data[entry["offset"] : entry["offset"] + entry["size"]]
        for entry in info["pMapEntries"] or ()
    }
