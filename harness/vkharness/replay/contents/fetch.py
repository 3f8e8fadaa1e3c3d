"""Reads multisampled images sample by sample with compute shaders, since they cannot be copied to a buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vkharness.findings import Box, UserError
from vkharness.replay.contents.contents import Contents
from vkharness.replay.objects.creation import ImageResource
from vkharness.shader.library import load
from vkharness.spec.enums import (
    VkDescriptorType,
    VkImageLayout,
    VkImageUsage,
    VkImageViewType,
    VkShaderStage,
    VkStructureType,
)
from vkharness.spec.shapes import new_struct

GROUP = 64
COMBINED_SAMPLER, STORAGE_BUFFER = VkDescriptorType.COMBINED_IMAGE_SAMPLER, VkDescriptorType.STORAGE_BUFFER
SHADER_READ_ONLY = VkImageLayout.SHADER_READ_ONLY_OPTIMAL
COMPUTE_STAGE = VkShaderStage.COMPUTE


class Fetcher:
    """The fetch pipelines of one replay, each made when it is first used."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._device = contents.recorder.device
        self._ffi = self._device.target.ffi
        self._made: list[tuple[str, Any]] = []
        self._pipelines: dict[str, Any] = {}
        self._common: tuple[Any, Any, Any] | None = None
        self._kept: list[Any] = []

    def fetch(self, image: ImageResource, aspect: int, layer: int) -> npt.NDArray[np.uint8]:
        """All samples of one layer: (samples, height, width, bytes), four words a colour, one for depth or stencil.

        UserError when the format cannot be sampled on this target.
        """
        if not image.usage & VkImageUsage.SAMPLED:
            name, target = image.image.format.name, self._device.target.name
            raise UserError(f"{name} with {image.image.samples} samples cannot be sampled on {target}")
        width, height, _ = image.image.texels(aspect, 0)
        samples = image.image.samples
        words = 4 if aspect == 1 else 1
        size = width * height * samples * words * 4
        shader = _shader(image, aspect)
        data = self._run(image, aspect, layer, shader, (width, height, samples, layer), size)
        texels = data.reshape(height, width, samples, words * 4)
        return np.ascontiguousarray(np.moveaxis(texels, 2, 0))

    def _run(
        self, image: ImageResource, aspect: int, layer: int, shader: str, push: tuple[int, ...], size: int
    ) -> npt.NDArray[np.uint8]:
        ffi, recorder, contents = self._ffi, self._contents.recorder, self._contents
        pipeline_layout, sets, sampler = self._shared()
        pipeline = self._pipeline(shader, pipeline_layout)
        staging = contents.stage(size)
        self._write_set(sets[0], self._view(image, aspect), sampler, staging.raw, size)
        box = Box(aspect, 0, layer, (0, 0, 0), image.image.texels(aspect, 0))
        contents.enter(image, [box], SHADER_READ_ONLY)
        recorder.call("vkCmdBindPipeline", 1, pipeline)
        recorder.call("vkCmdBindDescriptorSets", 1, pipeline_layout, 0, 1, sets, 0, ffi.NULL)
        recorder.call("vkCmdPushConstants", pipeline_layout, COMPUTE_STAGE, 0, 16, ffi.new("uint32_t[4]", push))
        recorder.call("vkCmdDispatch", -(-push[0] * push[1] * push[2] // GROUP), 1, 1)
        contents.leave(image, [box], SHADER_READ_ONLY)
        recorder.finish()
        return np.frombuffer(staging.view[:size], np.uint8).copy()

    def close(self) -> None:
        """Destroys everything, last made first."""
        for kind, handle in reversed(self._made):
            self._device.function("vkDestroy" + kind[2:])(self._device.handle, handle, self._ffi.NULL)
        self._made.clear()

    def _create(self, kind: str, **info: Any) -> Any:
        ffi = self._ffi
        out = ffi.new(f"{kind} *")
        function = "vkCreate" + kind[2:]
        made = new_struct(ffi, f"{kind}CreateInfo", **info)
        self._kept.append(made)
        self._device.check(self._device.function(function)(self._device.handle, made, ffi.NULL, out), function)
        self._made.append((kind, out[0]))
        return out[0]

    def _shared(self) -> tuple[Any, Any, Any]:
        """Pipeline layout, the one descriptor set, and a sampler."""
        if self._common is not None:
            return self._common
        ffi = self._ffi
        bindings = ffi.new(
            "VkDescriptorSetLayoutBinding[2]",
            [
                {"binding": 0, "descriptorType": COMBINED_SAMPLER, "descriptorCount": 1, "stageFlags": COMPUTE_STAGE},
                {"binding": 1, "descriptorType": STORAGE_BUFFER, "descriptorCount": 1, "stageFlags": COMPUTE_STAGE},
            ],
        )
        layout = self._create("VkDescriptorSetLayout", bindingCount=2, pBindings=bindings)
        layouts = ffi.new("VkDescriptorSetLayout[1]", [layout])
        pushed = ffi.new("VkPushConstantRange *", {"stageFlags": COMPUTE_STAGE, "size": 16})
        pipeline_layout = self._create(
            "VkPipelineLayout",
            setLayoutCount=1,
            pSetLayouts=layouts,
            pushConstantRangeCount=1,
            pPushConstantRanges=pushed,
        )
        sizes = ffi.new(
            "VkDescriptorPoolSize[2]",
            [{"type": COMBINED_SAMPLER, "descriptorCount": 1}, {"type": STORAGE_BUFFER, "descriptorCount": 1}],
        )
        pool = self._create("VkDescriptorPool", maxSets=1, poolSizeCount=2, pPoolSizes=sizes)
        sets = ffi.new("VkDescriptorSet[1]")
        info = new_struct(
            ffi, "VkDescriptorSetAllocateInfo", descriptorPool=pool, descriptorSetCount=1, pSetLayouts=layouts
        )
        self._device.check(
            self._device.function("vkAllocateDescriptorSets")(self._device.handle, info, sets),
            "vkAllocateDescriptorSets",
        )
        sampler = self._create("VkSampler")
        self._common = (pipeline_layout, sets, sampler)
        return self._common

    def _pipeline(self, shader: str, layout: Any) -> Any:
        if shader in self._pipelines:
            return self._pipelines[shader]
        ffi, code = self._ffi, load(shader)
        words = ffi.new("uint32_t[]", len(code) // 4)
        ffi.memmove(words, code, len(code))
        module = self._create("VkShaderModule", codeSize=len(code), pCode=words)
        entry = ffi.new("char[]", b"main")
        stage = new_struct(ffi, "VkPipelineShaderStageCreateInfo", stage=COMPUTE_STAGE, module=module, pName=entry)
        info = new_struct(ffi, "VkComputePipelineCreateInfo", stage=stage[0], layout=layout)
        out = ffi.new("VkPipeline *")
        create = self._device.function("vkCreateComputePipelines")
        result = create(self._device.handle, self._device.pipeline_cache, 1, info, ffi.NULL, out)
        self._device.check(result, f"vkCreateComputePipelines of {shader}")
        self._made.append(("VkPipeline", out[0]))
        self._pipelines[shader] = out[0]
        return out[0]

    def _view(self, image: ImageResource, aspect: int) -> Any:
        span = {"aspectMask": aspect, "levelCount": 1, "layerCount": image.image.layers}
        raw, kind = self._ffi.cast("VkImage", image.raw), VkImageViewType.TYPE_2D_ARRAY
        format = image.image.format_value
        return self._create("VkImageView", image=raw, viewType=kind, format=format, subresourceRange=span)

    def _write_set(self, target: Any, view: Any, sampler: Any, buffer: Any, size: int) -> None:
        ffi = self._ffi
        image = ffi.new(
            "VkDescriptorImageInfo *", {"sampler": sampler, "imageView": view, "imageLayout": SHADER_READ_ONLY}
        )
        storage = ffi.new("VkDescriptorBufferInfo *", {"buffer": buffer, "range": size})
        writes = ffi.new("VkWriteDescriptorSet[2]")
        for index, write in enumerate(writes):
            write.sType, write.dstSet, write.dstBinding, write.descriptorCount = (
                VkStructureType.WRITE_DESCRIPTOR_SET,
                target,
                index,
                1,
            )
        writes[0].descriptorType, writes[0].pImageInfo = COMBINED_SAMPLER, image
        writes[1].descriptorType, writes[1].pBufferInfo = STORAGE_BUFFER, storage
        self._device.function("vkUpdateDescriptorSets")(self._device.handle, 2, writes, 0, ffi.NULL)


def _shader(image: ImageResource, aspect: int) -> str:
    """The fetch shader for an aspect and numeric type, in the form that takes a layer of an array."""
    if aspect == 2:
        return "fetch_ms_depth_array"
    if aspect == 4:
        return "fetch_ms_stencil_array"
    return "fetch_ms_uint_array" if "INT" in image.image.format.name else "fetch_ms_color_array"
