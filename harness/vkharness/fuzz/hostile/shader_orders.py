"""Calls of `call_orders` with shaders and descriptor sets, and with swapchains."""

from __future__ import annotations

from typing import Any

from vkharness.fuzz.filled_calls import struct
from vkharness.fuzz.hostile.fitting_calls import (
    BUFFERS,
    DEVICE,
    EXTENT,
    FENCE,
    FORMAT,
    IMAGES,
    QUEUES,
    RANGE,
    SEMAPHORES,
    SIDE,
    SIZE,
    VIEWS,
    Calls,
)
from vkharness.shader.library import load
from vkharness.spec.enums import VkDescriptorType, VkImageLayout, VkPipelineBindPoint, VkShaderStage

SET_LAYOUT, PIPELINE_LAYOUT, SET_POOL, SAMPLER, TEMPLATE = 50, 51, 52, 53, 54
MODULES, PIPELINES, SETS, GRAPHICS = (60, 61, 62), (63, 64, 65), (66, 67, 68), 69
SURFACE, SWAPCHAINS, SWAPCHAIN_IMAGES = 70, (71, 72), (73, 74)
SHADERS = ("copy_words.comp", "image_copy_2d.comp", "atomic_add.comp", "uniform_word.frag", "fullscreen.vert")
CODE = {f"code/{name}.spv": load(name) for name in SHADERS}
"""The files beside the traces."""
STORAGE, STORED_IMAGE = VkDescriptorType.STORAGE_BUFFER, VkDescriptorType.STORAGE_IMAGE
DYNAMIC, SAMPLED = VkDescriptorType.STORAGE_BUFFER_DYNAMIC, VkDescriptorType.COMBINED_IMAGE_SAMPLER
TYPES = (STORAGE, STORAGE, STORED_IMAGE, DYNAMIC, SAMPLED)
"""Those of a set's bindings; a pipeline's shader may want others."""
WHOLE = (1 << 64) - 1
GRAPHICS_STAGES = (("fullscreen.vert", VkShaderStage.VERTEX), ("uniform_word.frag", VkShaderStage.FRAGMENT))


class Shaders(Calls):
    """Pipelines, and the sets that they use."""

    def _make_sets(self) -> None:
        bindings = [
            struct(
                "VkDescriptorSetLayoutBinding",
                binding=at,
                descriptorType=self._mostly(kind),
                descriptorCount=self._rng.choice((1, 1, 2)),
                stageFlags=VkShaderStage.ALL,
            )
            for at, kind in enumerate(TYPES)
        ]
        self._create(
            "vkCreateDescriptorSetLayout",
            "VkDescriptorSetLayoutCreateInfo",
            pSetLayout=SET_LAYOUT,
            info={"flags": self._rng.choice((0, 0, 1, 2)), "pBindings": bindings},
        )
        layouts = {"pSetLayouts": [SET_LAYOUT] * self._rng.randint(1, 2)}
        self._create(
            "vkCreatePipelineLayout", "VkPipelineLayoutCreateInfo", pPipelineLayout=PIPELINE_LAYOUT, info=layouts
        )
        self._create("vkCreateDescriptorPool", "VkDescriptorPoolCreateInfo", pDescriptorPool=SET_POOL)
        self._create("vkCreateSampler", "VkSamplerCreateInfo", pSampler=SAMPLER)
        info = struct("VkDescriptorSetAllocateInfo", descriptorPool=SET_POOL, pSetLayouts=[SET_LAYOUT] * len(SETS))
        self._call("vkAllocateDescriptorSets", device=DEVICE, pAllocateInfo=info, pDescriptorSets=[*SETS])
        for each in SETS:
            self._write(each)

    def _make_shaders(self) -> None:
        for module, pipeline, name in zip(MODULES, PIPELINES, SHADERS, strict=False):
            self._create_module(module, name)
            info = struct("VkComputePipelineCreateInfo", stage=self._stage(module), layout=PIPELINE_LAYOUT)
            self._call("vkCreateComputePipelines", device=DEVICE, pCreateInfos=[info], pPipelines=[pipeline])

    def _make_the_drawing(self) -> None:
        stages = []
        for module, (name, stage) in zip(MODULES, GRAPHICS_STAGES, strict=False):
            self._create_module(module, name)
            stages.append(self._stage(module, stage))
        info = struct("VkGraphicsPipelineCreateInfo", pStages=stages, layout=PIPELINE_LAYOUT)
        self._call("vkCreateGraphicsPipelines", device=DEVICE, pCreateInfos=[info], pPipelines=[GRAPHICS])

    def _create_module(self, module: int, name: str) -> None:
        file = f"code/{name}.spv"
        code = {"codeSize": len(CODE[file]), "pCode": file}
        self._create("vkCreateShaderModule", "VkShaderModuleCreateInfo", pShaderModule=module, info=code)

    def _stage(self, module: int, stage: int = VkShaderStage.COMPUTE) -> dict[str, Any]:
        return struct("VkPipelineShaderStageCreateInfo", stage=stage, module=module, pName="main")

    def _write(self, target: int) -> None:
        writes = [self._written(target, at, kind) for at, kind in enumerate(TYPES) if self._rng.random() < 0.95]
        copied = struct("VkCopyDescriptorSet", srcSet=self._rng.choice(SETS), dstSet=target, descriptorCount=1)
        copies = [copied] * (self._rng.random() < 0.2)
        self._call("vkUpdateDescriptorSets", device=DEVICE, pDescriptorWrites=writes, pDescriptorCopies=copies)

    def _written(self, target: int, at: int, kind: int) -> dict[str, Any]:
        kind = self._mostly(kind)
        buffer = struct(
            "VkDescriptorBufferInfo",
            buffer=self._rng.choice(BUFFERS),
            offset=self._rng.choice((0, 256, SIZE)),
            range=self._rng.choice((256, WHOLE)),
        )
        image = struct(
            "VkDescriptorImageInfo",
            sampler=SAMPLER,
            imageView=self._rng.choice((0, *VIEWS)),
            imageLayout=VkImageLayout.GENERAL,
        )
        described = {"pImageInfo": [image]} if kind in (STORED_IMAGE, SAMPLED) else {"pBufferInfo": [buffer]}
        place = {"dstSet": target, "dstBinding": at, "descriptorCount": 1, "descriptorType": kind}
        return struct("VkWriteDescriptorSet", **place, **described)

    def _mostly(self, kind: int) -> int:
        """A type that fits, or for once another one."""
        return self._rng.choice(TYPES) if self._rng.random() < 0.1 else kind

    def _do_write_a_set(self) -> None:
        self._write(self._rng.choice(SETS))

    def _do_push_a_set(self) -> None:
        writes = [self._written(0, at, kind) for at, kind in enumerate(TYPES)]
        place = {"pipelineBindPoint": self._point(), "layout": PIPELINE_LAYOUT, "set": self._rng.randint(0, 1)}
        self._record("vkCmdPushDescriptorSetKHR", pDescriptorWrites=writes, **place)

    def _do_free_a_set(self) -> None:
        if self._rng.random() < 0.5:
            self._call("vkResetDescriptorPool", device=DEVICE, descriptorPool=SET_POOL)
        else:
            gone = self._some(SETS)
            self._call("vkFreeDescriptorSets", device=DEVICE, descriptorPool=SET_POOL, pDescriptorSets=gone)

    def _do_destroy_what_shaders_need(self) -> None:
        name, parameter, several = self._rng.choice(
            (
                ("vkDestroyPipeline", "pipeline", (*PIPELINES, GRAPHICS)),
                ("vkDestroyShaderModule", "shaderModule", MODULES),
                ("vkDestroyPipelineLayout", "pipelineLayout", (PIPELINE_LAYOUT,)),
                ("vkDestroyDescriptorSetLayout", "descriptorSetLayout", (SET_LAYOUT,)),
                ("vkDestroyDescriptorPool", "descriptorPool", (SET_POOL,)),
            )
        )
        self._call(name, device=DEVICE, **{parameter: self._rng.choice(several)})

    def _point(self) -> int:
        return self._rng.choice((VkPipelineBindPoint.COMPUTE, VkPipelineBindPoint.GRAPHICS))

    def _do_bind_a_pipeline(self) -> None:
        pipeline = self._rng.choice((*PIPELINES, GRAPHICS))
        self._record("vkCmdBindPipeline", pipelineBindPoint=self._point(), pipeline=pipeline)

    def _do_bind_sets(self) -> None:
        sets = self._rng.choices(SETS, k=self._rng.randint(1, 2))
        offsets = [0] * self._rng.choice((0, len(sets), 2 * len(sets)))
        place = {"pipelineBindPoint": self._point(), "layout": PIPELINE_LAYOUT, "firstSet": self._rng.randint(0, 1)}
        self._record("vkCmdBindDescriptorSets", pDescriptorSets=sets, pDynamicOffsets=offsets, **place)

    def _do_dispatch(self) -> None:
        if self._rng.random() < 0.3:
            place = {"buffer": self._rng.choice(BUFFERS), "offset": self._rng.choice((0, 16, SIZE))}
            self._record("vkCmdDispatchIndirect", **place)
        else:
            self._record("vkCmdDispatch", groupCountX=self._rng.choice((0, 1, 4)), groupCountY=1, groupCountZ=1)

    def _do_bind_and_dispatch(self) -> None:
        self._recorded = self._buffer()
        for step in (self._do_bind_a_pipeline, self._do_bind_sets, self._do_dispatch):
            step()
        self._recorded = None


class SwapchainCalls(Calls):
    """Swapchains, whose images are acquired and presented."""

    def _make_a_swapchain(self) -> None:
        made, old = self._rng.choices(SWAPCHAINS, k=2)
        info = {
            "surface": SURFACE,
            "imageFormat": FORMAT,
            "imageExtent": {"width": SIDE, "height": EXTENT["height"]},
            "imageArrayLayers": 1,
            "minImageCount": 2,
            "oldSwapchain": self._rng.choice((0, old)),
        }
        self._create("vkCreateSwapchainKHR", "VkSwapchainCreateInfoKHR", pSwapchain=made, info=info)
        self._do_ask_for_images()

    def _do_ask_for_images(self) -> None:
        images = [self._rng.choice((SWAPCHAIN_IMAGES, IMAGES))[at] for at in range(2)]
        self._call(
            "vkGetSwapchainImagesKHR",
            device=DEVICE,
            swapchain=self._rng.choice(SWAPCHAINS),
            pSwapchainImageCount=len(images),
            pSwapchainImages=images,
        )
        seen = struct("VkImageViewCreateInfo", image=images[0], viewType=1, format=FORMAT, subresourceRange=RANGE)
        self._call("vkCreateImageView", device=DEVICE, pCreateInfo=seen, pView=self._rng.choice(VIEWS))

    def _do_acquire(self) -> None:
        self._call(
            "vkAcquireNextImageKHR",
            device=DEVICE,
            swapchain=self._rng.choice(SWAPCHAINS),
            semaphore=self._rng.choice((0, *SEMAPHORES)),
            fence=self._rng.choice((0, FENCE)),
            pImageIndex=self._rng.choice((0, 1, 2)),
        )

    def _do_present(self) -> None:
        several = self._some(SWAPCHAINS)
        info = struct(
            "VkPresentInfoKHR",
            pWaitSemaphores=self._some(SEMAPHORES),
            pSwapchains=several,
            pImageIndices=[self._rng.choice((0, 1, 2)) for _ in several],
        )
        self._call("vkQueuePresentKHR", queue=self._rng.choice(QUEUES), pPresentInfo=info)

    def _do_destroy_a_swapchain(self) -> None:
        self._call("vkDestroySwapchainKHR", device=DEVICE, swapchain=self._rng.choice(SWAPCHAINS))
