"""Dispatches of shaders that a test writes as GLSL, with buffers and image views bound in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from tests.support.interpreted import InterpretedStream
from tests.support.streams import COLOR, struct
from vkharness.findings import Certainty
from vkharness.shader.library import load
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.trace.effects import Access

SAMPLED, COMBINED_SAMPLER, STORAGE_IMAGE, UNIFORM, STORAGE = 2, 1, 3, 6, 7
EXACT, DECLARED = Certainty.EXACT, Certainty.DECLARED
Reached = tuple[str, tuple[tuple[int, int], ...], Certainty]
"""A kind of access, addresses, and how sure it is."""


class Bound(NamedTuple):
    """One descriptor: VkDescriptorType, and a buffer or an image view."""

    type: int
    resource: int


class GlslDispatch:
    """A compute pipeline of GLSL, with one descriptor set of `bound`."""

    def __init__(
        self,
        stream: InterpretedStream,
        folder: Path,
        body: str,
        bound: list[Bound],
        push: bytes = b"",
        constants: dict[int, bytes] | None = None,
    ) -> None:
        source = folder / f"shader{len(list(folder.iterdir()))}.comp"
        source.write_text("#version 450\n" + body)
        code = load(source)
        self.stream, self._push = stream, push
        info = struct("VkShaderModuleCreateInfo", codeSize=len(code), pCode=code)
        module = stream.make("vkCreateShaderModule", "pShaderModule", info)
        bindings = [
            struct(
                "VkDescriptorSetLayoutBinding", binding=at, descriptorType=each.type, descriptorCount=1, stageFlags=0x20
            )
            for at, each in enumerate(bound)
        ]
        sets = struct("VkDescriptorSetLayoutCreateInfo", pBindings=bindings)
        layout = stream.make("vkCreateDescriptorSetLayout", "pSetLayout", sets)
        ranges = [struct("VkPushConstantRange", stageFlags=0x20, size=128)]
        made = struct("VkPipelineLayoutCreateInfo", pSetLayouts=[layout], pPushConstantRanges=ranges)
        self.layout = stream.make("vkCreatePipelineLayout", "pPipelineLayout", made)
        stage = struct("VkPipelineShaderStageCreateInfo", stage=0x20, module=module, pName="main")
        if constants:
            stage["pSpecializationInfo"] = _specialization(constants)
        self.pipeline = stream.id()
        pipeline = struct("VkComputePipelineCreateInfo", stage=stage, layout=self.layout)
        stream.call(
            "vkCreateComputePipelines", device=stream.device, pCreateInfos=[pipeline], pPipelines=[self.pipeline]
        )
        pool = stream.make("vkCreateDescriptorPool", "pDescriptorPool", struct("VkDescriptorPoolCreateInfo", maxSets=1))
        self.set = stream.id()
        allocate = struct("VkDescriptorSetAllocateInfo", descriptorPool=pool, pSetLayouts=[layout])
        stream.call(
            "vkAllocateDescriptorSets", device=stream.device, pAllocateInfo=allocate, pDescriptorSets=[self.set]
        )
        writes = [_write(self.set, at, each) for at, each in enumerate(bound)]
        stream.call("vkUpdateDescriptorSets", device=stream.device, pDescriptorWrites=writes)

    def record(self, groups: tuple[int, int, int], push: bytes | None = None) -> tuple[Any, ...]:
        """Binds everything and dispatches; the effects."""
        stream, pushed = self.stream, self._push if push is None else push
        stream.cmd("BindPipeline", pipelineBindPoint=1, pipeline=self.pipeline)
        stream.cmd("BindDescriptorSets", pipelineBindPoint=1, layout=self.layout, pDescriptorSets=[self.set])
        if pushed:
            stream.cmd("PushConstants", layout=self.layout, stageFlags=0x20, size=len(pushed), pValues=pushed)
        x, y, z = groups
        return stream.effects("Dispatch", groupCountX=x, groupCountY=y, groupCountZ=z)

    def reached(self, *groups: int, push: bytes | None = None) -> list[Reached]:
        """Records a dispatch and returns its accesses."""
        x, y, z = (*groups, 1, 1, 1)[:3]
        found = []
        for each in self.record((x, y, z), push):
            assert isinstance(each, Access), each
            name = ACCESS_KINDS[each.access_kind].name.removeprefix("SYNC_COMPUTE_SHADER_SHADER_")
            found.append((name + "*" * each.atomic, each.spans, each.certainty))
        return found


def _specialization(constants: dict[int, bytes]) -> dict[str, Any]:
    entries, data = [], b""
    for id, value in constants.items():
        entries.append(struct("VkSpecializationMapEntry", constantID=id, offset=len(data), size=len(value)))
        data += value
    return struct("VkSpecializationInfo", pMapEntries=entries, dataSize=len(data), pData=data)


def _write(set: int, at: int, bound: Bound) -> dict[str, Any]:
    held: dict[str, Any] = {}
    if bound.type in (UNIFORM, STORAGE):
        held["pBufferInfo"] = [struct("VkDescriptorBufferInfo", buffer=bound.resource, range=0xFFFFFFFFFFFFFFFF)]
    else:
        held["pImageInfo"] = [struct("VkDescriptorImageInfo", imageView=bound.resource, imageLayout=1)]
    return struct(
        "VkWriteDescriptorSet", dstSet=set, dstBinding=at, descriptorCount=1, descriptorType=bound.type, **held
    )


def view(stream: InterpretedStream, image: int, type: int, mips: tuple[int, int], layers: tuple[int, int]) -> int:
    """A view of (first, count) mip levels and layers; `type` is a VkImageViewType."""
    part = struct(
        "VkImageSubresourceRange",
        aspectMask=COLOR,
        baseMipLevel=mips[0],
        levelCount=mips[1],
        baseArrayLayer=layers[0],
        layerCount=layers[1],
    )
    info = struct("VkImageViewCreateInfo", image=image, viewType=type, format=37, subresourceRange=part)
    return stream.make("vkCreateImageView", "pView", info)
