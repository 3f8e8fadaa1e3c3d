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
from vkharness.trace.resources import (
    PUSH_ADDRESS,
    PUSH_DATA,
    HeapIndex,
    HeapMapping,
    Pipeline,
    PipelineLayout,
    ShaderModule,
    Stage,
)

PACKED_BITS = 20
"""The bits of the index of an image, before that of its sampler, where one word of push data has both."""


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
    maps = chained(info, VkStructureType.SHADER_DESCRIPTOR_SET_AND_BINDING_MAPPING_INFO_EXT)
    found = [_mapping(each) for each in (maps or {}).get("pMappings") or ()]
    followed = tuple([each for each in found if each is not None])
    constants = specialization(info.get("pSpecializationInfo"))
    return Stage(info["stage"], code, info["pName"], constants, maps is not None, followed)


def _mapping(info: dict[str, Any]) -> HeapMapping | None:
    """A VkDescriptorSetAndBindingMappingEXT; None where its source lies in memory, in heap data or in shader records.

    Specification: "VkDescriptorMappingSourceConstantOffsetEXT", "VkDescriptorMappingSourcePushIndexEXT".
    """
    place = info["descriptorSet"], info["firstBinding"], info["bindingCount"], info["resourceMask"], info["source"]
    data = info["sourceData"]
    for source, member in (PUSH_DATA, "pushDataOffset"), (PUSH_ADDRESS, "pushAddressOffset"):
        if info["source"] == source:
            return HeapMapping(*place, HeapIndex(data[member]))
    held = data.get("constantOffset") or data.get("pushIndex")
    if held is None:
        return None
    resource = HeapIndex(held["heapOffset"], held["heapArrayStride"])
    sampler = HeapIndex(held["samplerHeapOffset"], held["samplerHeapArrayStride"])
    if "pushOffset" in held:
        own = held["samplerPushOffset"], held["samplerHeapIndexStride"]
        resource = HeapIndex(*resource[:2], held["pushOffset"], held["heapIndexStride"])
        sampler = HeapIndex(*sampler[:2], *own)
        if held["useCombinedImageSamplerIndex"]:
            sampler = HeapIndex(*sampler[:2], resource.push, own[1], PACKED_BITS)
            packed = resource._replace(mask=(1 << PACKED_BITS) - 1)
            return HeapMapping(*place, resource, sampler, bool(held["pEmbeddedSampler"]), packed)
    return HeapMapping(*place, resource, sampler, bool(held["pEmbeddedSampler"]))


def specialization(info: dict[str, Any] | None) -> dict[int, bytes]:
    """The bytes of each constant of a VkSpecializationInfo, by its id."""
    if not info or not info["pData"]:
        return {}
    data = info["pData"]
    return {
        entry["constantID"]: data[entry["offset"] : entry["offset"] + entry["size"]]
        for entry in info["pMapEntries"] or ()
    }
