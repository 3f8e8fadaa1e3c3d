"""Traces written by hand: a builder of blocks in normal form, for tests that need no recording and no driver."""

from __future__ import annotations

import struct as packing
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from vkharness.findings import Box, Finding, Hazard, Place
from vkharness.fuzz import filled_calls
from vkharness.shader.library import load
from vkharness.spec.enums import (
    VkAccess2,
    VkBufferUsage,
    VkFormat,
    VkImageAspect,
    VkImageLayout,
    VkImageUsage,
    VkPipelineStage2,
)
from vkharness.trace.calls import Block, Call, HostWrite

ALL_COMMANDS = VkPipelineStage2.ALL_COMMANDS
TRANSFER = VkPipelineStage2.ALL_TRANSFER
COMPUTE = VkPipelineStage2.COMPUTE_SHADER
READ_WRITE = VkAccess2.MEMORY_READ | VkAccess2.MEMORY_WRITE
BUFFER_USAGE = VkBufferUsage.TRANSFER_SRC | VkBufferUsage.TRANSFER_DST | VkBufferUsage.STORAGE_BUFFER
IMAGE_USAGE = VkImageUsage.TRANSFER_SRC | VkImageUsage.TRANSFER_DST
UNDEFINED = VkImageLayout.UNDEFINED
GENERAL = VkImageLayout.GENERAL
SRC = VkImageLayout.TRANSFER_SRC_OPTIMAL
DST = VkImageLayout.TRANSFER_DST_OPTIMAL
R8G8B8A8 = VkFormat.R8G8B8A8_UNORM
R32_UINT = VkFormat.R32_UINT
D32_S8 = VkFormat.D32_SFLOAT_S8_UINT
D32 = VkFormat.D32_SFLOAT
S8 = VkFormat.S8_UINT
COLOR, DEPTH, STENCIL = VkImageAspect.COLOR, VkImageAspect.DEPTH, VkImageAspect.STENCIL
Extent = tuple[int, int, int]
struct = filled_calls.struct


def layers(aspect: int = COLOR, mip: int = 0, layer: int = 0, count: int = 1) -> dict[str, Any]:
    """VkImageSubresourceLayers."""
    return struct("VkImageSubresourceLayers", aspectMask=aspect, mipLevel=mip, baseArrayLayer=layer, layerCount=count)


def extent(size: Sequence[int]) -> dict[str, int]:
    """VkExtent3D."""
    return {"width": size[0], "height": size[1], "depth": size[2]}


def words(*values: int) -> bytes:
    """32-bit words."""
    return packing.pack(f"<{len(values)}I", *values)


class Stream:
    """Blocks in the order in which methods are called; each method returns the id that it made or the block's index."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._next = 0
        self.device = self.id()
        self.queue = self.id()
        self.call("vkCreateDevice", physicalDevice=0, pCreateInfo=struct("VkDeviceCreateInfo"), pDevice=self.device)
        self.call("vkGetDeviceQueue", device=self.device, pQueue=self.queue)
        self.pool = self.make("vkCreateCommandPool", "pCommandPool", struct("VkCommandPoolCreateInfo", flags=2))
        self.commands = 0
        self._descriptor_pool = 0

    def id(self) -> int:
        """A fresh id."""
        self._next += 1
        return self._next

    def call(self, name: str, **args: Any) -> int:
        """Any call; parameters not given are zero. The block's index."""
        made = filled_calls.arguments(name, **args)
        results = ("vkCreate", "vkAllocate", "vkQueue", "vkBegin", "vkEnd", "vkBind", "vkGetSwapchainImages")
        returns = 0 if name.startswith(results) else None
        self.blocks.append(Call(len(self.blocks) + 1, name, made, returns))
        return len(self.blocks)

    def make(self, name: str, output: str, info: dict[str, Any]) -> int:
        """A vkCreate* with `info`; the new id."""
        made = self.id()
        self.call(name, device=self.device, pCreateInfo=info, **{output: made})
        return made

    def memory(self, size: int = 1 << 20) -> int:
        """vkAllocateMemory."""
        made = self.id()
        info = struct("VkMemoryAllocateInfo", allocationSize=size)
        self.call("vkAllocateMemory", device=self.device, pAllocateInfo=info, pMemory=made)
        return made

    def buffer(self, size: int, memory: int = 0, offset: int = 0, usage: int = BUFFER_USAGE) -> int:
        """A bound VkBuffer, on memory of its own unless given."""
        made = self.make("vkCreateBuffer", "pBuffer", struct("VkBufferCreateInfo", size=size, usage=usage))
        memory = memory or self.memory(size)
        self.call("vkBindBufferMemory", device=self.device, buffer=made, memory=memory, memoryOffset=offset)
        return made

    def image(
        self,
        size: Extent,
        format_value: int = R8G8B8A8,
        mips: int = 1,
        array: int = 1,
        samples: int = 1,
        usage: int = IMAGE_USAGE,
        kind: int = 1,
        flags: int = 0,
        memory: int = 0,
        offset: int = 0,
        bytes: int = 0,
        **more: Any,
    ) -> int:
        """A bound VkImage, on memory of its own unless given; `bytes`: the size that the program is told."""
        info = struct(
            "VkImageCreateInfo",
            flags=flags,
            imageType=kind,
            format=format_value,
            extent=extent(size),
            mipLevels=mips,
            arrayLayers=array,
            samples=samples,
            usage=usage,
            **more,
        )
        made = self.make("vkCreateImage", "pImage", info)
        if bytes:
            told = struct("VkMemoryRequirements", size=bytes, alignment=1, memoryTypeBits=1)
            self.call("vkGetImageMemoryRequirements", device=self.device, image=made, pMemoryRequirements=told)
        memory = memory or self.memory()
        self.call("vkBindImageMemory", device=self.device, image=made, memory=memory, memoryOffset=offset)
        return made

    def host_write(self, memory: int, offset: int, data: bytes) -> int:
        """Bytes that the host wrote."""
        self.blocks.append(HostWrite(len(self.blocks) + 1, memory, offset, data))
        return len(self.blocks)

    def begin(self, level: int = 0) -> int:
        """A fresh command buffer, begun; `cmd` goes to it."""
        self.commands = self.id()
        info = struct("VkCommandBufferAllocateInfo", commandPool=self.pool, commandBufferCount=1, level=level)
        allocated = [self.commands]
        self.call("vkAllocateCommandBuffers", device=self.device, pAllocateInfo=info, pCommandBuffers=allocated)
        begin = struct("VkCommandBufferBeginInfo")
        if level:
            begin["pInheritanceInfo"] = struct("VkCommandBufferInheritanceInfo")
        self.call("vkBeginCommandBuffer", commandBuffer=self.commands, pBeginInfo=begin)
        return self.commands

    def end(self) -> int:
        """vkEndCommandBuffer."""
        return self.call("vkEndCommandBuffer", commandBuffer=self.commands)

    def submit(self, *command_buffers: int, wait: bool = True) -> int:
        """vkQueueSubmit of one batch (by default the current commands) and vkQueueWaitIdle; the submit's index."""
        if not command_buffers:
            self.end()
        chosen = list(command_buffers or (self.commands,))
        info = struct("VkSubmitInfo", pCommandBuffers=chosen)
        index = self.call("vkQueueSubmit", queue=self.queue, pSubmits=[info])
        if wait:
            self.call("vkQueueWaitIdle", queue=self.queue)
        return index

    def timeline(self) -> int:
        """A timeline semaphore that begins at 0."""
        kind = struct("VkSemaphoreTypeCreateInfo", semaphoreType=1)
        return self.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo", pNext=kind))

    def submit_in_turn(self, semaphore: int, value: int) -> int:
        """vkQueueSubmit2 of the current commands, which must have ended: waits for a value, then signals the next."""
        operation = struct("VkSemaphoreSubmitInfo", semaphore=semaphore, stageMask=ALL_COMMANDS)
        batch = struct(
            "VkSubmitInfo2",
            pWaitSemaphoreInfos=[{**operation, "value": value}],
            pCommandBufferInfos=[struct("VkCommandBufferSubmitInfo", commandBuffer=self.commands)],
            pSignalSemaphoreInfos=[{**operation, "value": value + 1}],
        )
        return self.call("vkQueueSubmit2", queue=self.queue, pSubmits=[batch])

    def cmd(self, name: str, **args: Any) -> int:
        """vkCmd<name> in the current command buffer."""
        return self.call(f"vkCmd{name}", commandBuffer=self.commands, **args)

    # Commands

    def fill(self, buffer: int, value: int, offset: int = 0, size: int = 0xFFFFFFFFFFFFFFFF) -> int:
        """vkCmdFillBuffer."""
        return self.cmd("FillBuffer", dstBuffer=buffer, dstOffset=offset, size=size, data=value)

    def copy(self, source: int, target: int, size: int, from_: int = 0, to: int = 0) -> int:
        """vkCmdCopyBuffer of one region."""
        region = struct("VkBufferCopy", srcOffset=from_, dstOffset=to, size=size)
        return self.cmd("CopyBuffer", srcBuffer=source, dstBuffer=target, pRegions=[region])

    def barrier(self) -> int:
        """A full memory barrier."""
        full = struct("VkMemoryBarrier", srcAccessMask=READ_WRITE, dstAccessMask=READ_WRITE)
        return self.cmd("PipelineBarrier", srcStageMask=ALL_COMMANDS, dstStageMask=ALL_COMMANDS, pMemoryBarriers=[full])

    def transition(self, image: int, old: int, new: int, aspects: int = COLOR, access: int = READ_WRITE) -> int:
        """An image barrier over the whole image."""
        span = struct("VkImageSubresourceRange", aspectMask=aspects, levelCount=0xFFFFFFFF, layerCount=0xFFFFFFFF)
        barrier = struct(
            "VkImageMemoryBarrier",
            srcAccessMask=access,
            dstAccessMask=access,
            oldLayout=old,
            newLayout=new,
            srcQueueFamilyIndex=0xFFFFFFFF,
            dstQueueFamilyIndex=0xFFFFFFFF,
            image=image,
            subresourceRange=span,
        )
        return self.cmd(
            "PipelineBarrier", srcStageMask=ALL_COMMANDS, dstStageMask=ALL_COMMANDS, pImageMemoryBarriers=[barrier]
        )

    def clear(self, image: int, color: Sequence[float], mip: int = 0, layer: int = 0, layout: int = DST) -> int:
        """vkCmdClearColorImage of one subresource."""
        raw = {"uint32": list(packing.unpack("<4I", packing.pack("<4f", *color)))}
        span = struct(
            "VkImageSubresourceRange",
            aspectMask=COLOR,
            baseMipLevel=mip,
            levelCount=1,
            baseArrayLayer=layer,
            layerCount=1,
        )
        return self.cmd("ClearColorImage", image=image, imageLayout=layout, pColor=raw, pRanges=[span])

    def clear_depth(self, image: int, depth: float, stencil: int, aspects: int, layout: int = DST) -> int:
        """vkCmdClearDepthStencilImage of the whole image."""
        span = struct("VkImageSubresourceRange", aspectMask=aspects, levelCount=1, layerCount=1)
        value = {"depth": depth, "stencil": stencil}
        return self.cmd("ClearDepthStencilImage", image=image, imageLayout=layout, pDepthStencil=value, pRanges=[span])

    def image_to_buffer(
        self, image: int, buffer: int, size: Extent, sub: dict[str, Any] | None = None, layout: int = SRC, to: int = 0
    ) -> int:
        """vkCmdCopyImageToBuffer of one region."""
        region = struct(
            "VkBufferImageCopy", bufferOffset=to, imageSubresource=sub or layers(), imageExtent=extent(size)
        )
        return self.cmd("CopyImageToBuffer", srcImage=image, srcImageLayout=layout, dstBuffer=buffer, pRegions=[region])

    def image_to_image(
        self, source: int, target: int, size: Extent, sub: dict[str, Any] | None = None, from_: int = SRC, to: int = DST
    ) -> int:
        """vkCmdCopyImage of one region, same subresource on both sides."""
        region = struct(
            "VkImageCopy", srcSubresource=sub or layers(), dstSubresource=sub or layers(), extent=extent(size)
        )
        return self.cmd(
            "CopyImage", srcImage=source, srcImageLayout=from_, dstImage=target, dstImageLayout=to, pRegions=[region]
        )

    def compute(self, shader: str | Path, buffers: Iterable[int], push: bytes = b"") -> Dispatch:
        """A compute pipeline of `shader` with storage buffers bound from binding 0 on."""
        return Dispatch(self, shader, list(buffers), push)


def two_buffers(size: int = 16) -> tuple[Stream, int, int]:
    """A stream and two buffers of it."""
    stream = Stream()
    return stream, stream.buffer(size), stream.buffer(size)


class Dispatch:
    """A compute pipeline with a descriptor set; `run` binds and dispatches it."""

    def __init__(
        self, stream: Stream, shader: str | Path, buffers: list[int], push: bytes, flags: Sequence[int] = ()
    ) -> None:
        """`flags` are the VkDescriptorBindingFlags of the bindings, if any."""
        self._stream, self._push = stream, push
        code = load(shader)
        module_info = struct("VkShaderModuleCreateInfo", codeSize=len(code), pCode=code)
        module = stream.make("vkCreateShaderModule", "pShaderModule", module_info)
        bindings = [
            struct("VkDescriptorSetLayoutBinding", binding=i, descriptorType=7, descriptorCount=1, stageFlags=0x20)
            for i in range(len(buffers))
        ]
        chain = struct("VkDescriptorSetLayoutBindingFlagsCreateInfo", pBindingFlags=list(flags)) if flags else None
        set_info = struct("VkDescriptorSetLayoutCreateInfo", pNext=chain, pBindings=bindings)
        set_layout = stream.make("vkCreateDescriptorSetLayout", "pSetLayout", set_info)
        ranges = [struct("VkPushConstantRange", stageFlags=0x20, size=len(push))] if push else []
        layout_info = struct("VkPipelineLayoutCreateInfo", pSetLayouts=[set_layout], pPushConstantRanges=ranges or None)
        self.layout = stream.make("vkCreatePipelineLayout", "pPipelineLayout", layout_info)
        self.pipeline = self._pipeline(module)
        self.set = self._descriptor_set(set_layout, buffers)

    def _pipeline(self, module: int) -> int:
        stage = struct("VkPipelineShaderStageCreateInfo", stage=0x20, module=module, pName="main")
        info = struct("VkComputePipelineCreateInfo", stage=stage, layout=self.layout)
        made = self._stream.id()
        self._stream.call(
            "vkCreateComputePipelines", device=self._stream.device, pCreateInfos=[info], pPipelines=[made]
        )
        return made

    def _descriptor_set(self, set_layout: int, buffers: list[int]) -> int:
        stream = self._stream
        size = struct("VkDescriptorPoolSize", type=7, descriptorCount=len(buffers))
        pool_info = struct("VkDescriptorPoolCreateInfo", maxSets=1, pPoolSizes=[size])
        pool = stream.make("vkCreateDescriptorPool", "pDescriptorPool", pool_info)
        made = stream.id()
        info = struct("VkDescriptorSetAllocateInfo", descriptorPool=pool, pSetLayouts=[set_layout])
        stream.call("vkAllocateDescriptorSets", device=stream.device, pAllocateInfo=info, pDescriptorSets=[made])
        writes = [
            struct(
                "VkWriteDescriptorSet",
                dstSet=made,
                dstBinding=index,
                descriptorCount=1,
                descriptorType=7,
                pBufferInfo=[struct("VkDescriptorBufferInfo", buffer=buffer, range=0xFFFFFFFFFFFFFFFF)],
            )
            for index, buffer in enumerate(buffers)
        ]
        stream.call("vkUpdateDescriptorSets", device=stream.device, pDescriptorWrites=writes)
        return made

    def run(self, groups: int = 1) -> int:
        """Binds everything and dispatches; the dispatch's index."""
        stream = self._stream
        stream.cmd("BindPipeline", pipelineBindPoint=1, pipeline=self.pipeline)
        stream.cmd("BindDescriptorSets", pipelineBindPoint=1, layout=self.layout, pDescriptorSets=[self.set])
        if self._push:
            stream.cmd("PushConstants", layout=self.layout, stageFlags=0x20, size=len(self._push), pValues=self._push)
        return stream.cmd("Dispatch", groupCountX=groups, groupCountY=1, groupCountZ=1)


def hazard(
    stream: Stream,
    kind: str,
    prior: int,
    current: int,
    resource: int,
    ranges: tuple[tuple[int, int], ...] = (),
    boxes: tuple[Box, ...] = (),
) -> Finding:
    """A finding between two blocks of a stream."""

    def place(index: int) -> Place:
        block = stream.blocks[index - 1]
        return Place(index, block.name if isinstance(block, Call) else "host write", None)

    kind_of_resource = "VkImage" if boxes else "VkBuffer"
    return Finding(
        Hazard(kind), "", "", place(current), place(prior), resource, kind_of_resource, ranges=ranges, boxes=boxes
    )
