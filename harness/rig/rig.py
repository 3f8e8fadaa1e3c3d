"""A thin, explicit device layer for scenarios: instance, device, resources and submits, one call each.

Everything goes through the `vulkan` package, so that an attached mirror sees it. Synchronization is never implied:
a resource has no tracked state, a submit waits for nothing, a barrier is exactly the barrier that was written.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import harness
from harness.device.headless import DeviceQueue, Headless, import_vulkan
from harness.rig import events as rig_events
from harness.rig import queries as rig_query
from harness.rig import queues as rig_queues
from harness.rig import render_passes as rig_graphics
from harness.rig import secondaries as rig_secondary
from harness.rig import swapchains as rig_presentation
from harness.rig.command_buffers import Amend, Commands, unamended
from harness.spec.enums import (
    VK_WHOLE_SIZE,
    VkCommandBufferUsage,
    VkDescriptorType,
    VkImageUsage,
    VkMemoryProperty,
    VkPipelineBindPoint,
    VkShaderStage,
)
from harness.spec.formats import format_of
from harness.spec.names import enum_value

BUFFER_USAGE = 0x1FF
"""TRANSFER_SRC, TRANSFER_DST, UNIFORM_TEXEL, STORAGE_TEXEL, UNIFORM, STORAGE, INDEX, VERTEX, INDIRECT."""
SIMULTANEOUS_USE = VkCommandBufferUsage.SIMULTANEOUS_USE
DIRECT = VkMemoryProperty.HOST_VISIBLE | VkMemoryProperty.HOST_COHERENT
SHADER_USAGE = VkImageUsage.SAMPLED | VkImageUsage.STORAGE
TRANSFER_USAGE = VkImageUsage.TRANSFER_SRC | VkImageUsage.TRANSFER_DST


@dataclass(slots=True)
class RigBuffer:
    """A buffer bound to memory; `size` and `offset` in bytes."""

    handle: Any
    size: int
    memory: Any
    offset: int = 0


@dataclass(slots=True)
class RigImage:
    """An image with memory of its own."""

    handle: Any
    format: int
    extent: tuple[int, int, int]
    mips: int
    layers: int
    type: int
    aspects: int
    memory: Any
    usage: int = 0


@dataclass(slots=True)
class RigPipeline:
    """A pipeline with its layout and set layout, and the descriptor types by binding; `point` is where it is bound
    (VkPipelineBindPoint), `push_stages` are the stages that see its push constants."""

    handle: Any
    layout: Any
    set_layout: Any
    types: dict[int, tuple[int, int]]
    push: bool = False
    point: int = VkPipelineBindPoint.COMPUTE
    push_stages: int = VkShaderStage.COMPUTE


@dataclass(slots=True)
class RigDescriptorSet:
    """A descriptor set of one pipeline's layout."""

    handle: Any
    pipeline: RigPipeline


class Rig:
    """One device for one scenario. Use as a context manager: leaving it waits, then destroys everything made.

    `layer` takes what the Khronos layer needs at instance creation (`LayerWitness`), `amend` decides what becomes of
    each named dependency. `queues` asks for queues beside the first, by kind (`rig_queues.QUEUE_KINDS`). Raises
    `UserError` when the device lacks a required extension or queue.
    """

    def __init__(
        self,
        extensions: Sequence[str] = (),
        layer: Any = None,
        amend: Amend = unamended,
        queues: Sequence[str] = (),
    ) -> None:
        instance, device = rig_presentation.split_extensions(import_vulkan(), extensions)
        parts = layer.instance_create_info_parts() if layer is not None else None
        chain = parts.chain(None) if parts is not None else None
        self.gpu = Headless(
            layers=parts.layer_names if parts is not None else (),
            instance_extensions=[*instance, *(parts.instance_extensions if parts is not None else ())],
            instance_next=chain.head if chain is not None else None,
            device_extensions=device,
            queues=rig_queues.queue_masks(queues),
        )
        self.vk = self.gpu.vk
        self.device = self.gpu.device
        self.queue = self.gpu.queue.handle
        self.queues = self.gpu.queues
        """The queue for everything, then those asked for, in order."""
        self.amend = amend
        self._buffer_usage = BUFFER_USAGE | rig_query.buffer_usage(self.gpu.device_extensions)
        self._undo: dict[Any, list[tuple[str, Any]]] = {}
        """What destroys each object made here, empty once it is destroyed."""
        if layer is not None:
            layer.install(self.gpu.instance)
            self.gpu.cleanup.callback(layer.uninstall)

    def __enter__(self) -> Rig:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> None:
        self.gpu.close()

    def function(self, name: str) -> Any:
        """An extension's device function."""
        return self.vk.vkGetDeviceProcAddr(self.device, name)

    def choose(self, name: str, written: Any, weaker: Mapping[str, Any]) -> Any:
        """A value that a twin may replace by a weaker one, for what is not a barrier: sizes, offsets, an order. None
        in the twin that leaves it out."""
        amended = self.amend(name, {"value": written}, {key: {"value": value} for key, value in weaker.items()})
        return None if amended is None else amended["value"]

    def _made(self, kind: str, handle: Any) -> Any:
        self._undo[handle] = once = [(kind, handle)]
        self.gpu.cleanup.callback(self._destroy_once, once)
        return handle

    def _destroy_once(self, once: list[tuple[str, Any]]) -> None:
        while once:
            kind, handle = once.pop()
            getattr(self.vk, f"vkDestroy{kind}")(self.device, handle, None)

    def destroy(self, handle: Any) -> None:
        """Destroys an object that was made here, before its time."""
        self._destroy_once(self._undo[handle])

    # -- memory and resources ------------------------------------------------------------------------------------------

    def memory(self, size: int, allowed: int = 0xFFFFFFFF, wanted: int = DIRECT) -> Any:
        """A memory object of `size` bytes in an allowed type with the wanted properties.

        Host-visible memory is cleared: an indirect dispatch of what a driver left there could run for ever.
        """
        vk = self.vk
        index = self.gpu.memory_type(allowed, wanted)
        handle = vk.vkAllocateMemory(
            self.device, vk.VkMemoryAllocateInfo(allocationSize=size, memoryTypeIndex=index), None
        )
        self.gpu.cleanup.callback(vk.vkFreeMemory, self.device, handle, None)
        if wanted & VkMemoryProperty.HOST_VISIBLE:
            vk.vkMapMemory(self.device, handle, 0, size, 0)[:] = bytes(size)
            vk.vkUnmapMemory(self.device, handle)
        return handle

    def sharing(self, exclusive: bool) -> dict[str, Any]:
        """Create info members: all families of the device share a resource, unless one at a time is to own it."""
        families = sorted({queue.family for queue in self.queues})
        shared = len(families) > 1 and not exclusive
        return {"sharingMode": int(shared), "pQueueFamilyIndices": families} if shared else {"sharingMode": 0}

    def buffer(self, size: int = 256, memory: Any = None, offset: int = 0, *, exclusive: bool = False) -> RigBuffer:
        """A buffer for every use that a scenario has, in memory of its own or at `offset` of the memory given."""
        vk = self.vk
        info = vk.VkBufferCreateInfo(size=size, usage=self._buffer_usage, **self.sharing(exclusive))
        handle = vk.vkCreateBuffer(self.device, info, None)
        if memory is None:
            needs = vk.vkGetBufferMemoryRequirements(self.device, handle)
            memory = self.memory(needs.size, needs.memoryTypeBits)
        self._made("Buffer", handle)  # after its memory, so that it is destroyed before
        vk.vkBindBufferMemory(self.device, handle, memory, offset)
        return RigBuffer(handle, size, memory, offset)

    def image(
        self,
        format: str = "VK_FORMAT_R8G8B8A8_UNORM",
        extent: tuple[int, int, int] = (16, 16, 1),
        *,
        mips: int = 1,
        layers: int = 1,
        samples: int = 1,
        usage: int | None = None,
        exclusive: bool = False,
        memory: Any = None,
        flags: int = 0,
    ) -> RigImage:
        """An optimally tiled image, in memory of its own or at the start of the memory given; its type follows from the
        extent. `flags` are VkImageCreateFlags."""
        vk = self.vk
        value = enum_value("VkFormat", format)
        aspects = format_of(value).aspects
        kind = 2 if extent[2] > 1 else 1 if extent[1] > 1 else 0
        if usage is None:
            usage = TRANSFER_USAGE | (SHADER_USAGE if samples == 1 and aspects == 1 else 0)
        if samples > 1:
            usage |= 0x10 if aspects == 1 else 0x20  # a multisample image must be an attachment of some kind
        info = vk.VkImageCreateInfo(
            flags=flags,
            imageType=kind,
            format=value,
            extent=vk.VkExtent3D(*extent),
            mipLevels=mips,
            arrayLayers=layers,
            samples=samples,
            usage=usage,
            initialLayout=vk.VK_IMAGE_LAYOUT_UNDEFINED,
            **self.sharing(exclusive),
        )
        handle = vk.vkCreateImage(self.device, info, None)
        needs = vk.vkGetImageMemoryRequirements(self.device, handle)
        if memory is None:
            memory = self.memory(needs.size, needs.memoryTypeBits, 0)
        self._made("Image", handle)
        vk.vkBindImageMemory(self.device, handle, memory, 0)
        return RigImage(handle, value, extent, mips, layers, kind, aspects, memory, usage)

    def view(
        self, image: RigImage, *, aspect: int = 1, mips: tuple[int, int] = (0, 1), layers: tuple[int, int] = (0, 1)
    ) -> Any:
        """A view of (first, count) mips and layers."""
        vk = self.vk
        part = vk.VkImageSubresourceRange(
            aspectMask=aspect, baseMipLevel=mips[0], levelCount=mips[1], baseArrayLayer=layers[0], layerCount=layers[1]
        )
        kind = image.type + 4 if layers[1] > 1 else image.type
        info = vk.VkImageViewCreateInfo(image=image.handle, viewType=kind, format=image.format, subresourceRange=part)
        return self._made("ImageView", vk.vkCreateImageView(self.device, info, None))

    def buffer_view(self, buffer: RigBuffer, format: str, offset: int = 0, size: int = VK_WHOLE_SIZE) -> Any:
        """A texel view of bytes of a buffer."""
        vk = self.vk
        info = vk.VkBufferViewCreateInfo(
            buffer=buffer.handle, format=enum_value("VkFormat", format), offset=offset, range=size
        )
        return self._made("BufferView", vk.vkCreateBufferView(self.device, info, None))

    def sampler(self) -> Any:
        """A nearest-neighbour sampler."""
        return self._made("Sampler", self.vk.vkCreateSampler(self.device, self.vk.VkSamplerCreateInfo(), None))

    # -- compute -------------------------------------------------------------------------------------------------------

    def compute(
        self,
        shader: str,
        bindings: dict[int, str],
        *,
        push_bytes: int = 0,
        push: bool = False,
        counts: dict[int, int] | None = None,
        constants: tuple[int, ...] = (),
        flags: int = 0,
    ) -> RigPipeline:
        """A compute pipeline for a shader of `shaders/`; `bindings` maps numbers to descriptor types, named without
        VK_DESCRIPTOR_TYPE_; `push` makes set 0 a push descriptor set; `counts` gives array sizes, `constants` the
        32-bit specialization constants from id 0, `flags` are VkPipelineCreateFlags."""
        vk = self.vk
        stage = VkShaderStage.COMPUTE
        layout, set_layout, types = self.pipeline_layout(bindings, push_bytes, stage, push=push, counts=counts)
        module = self.shader_module(shader)
        words = vk.ffi.new("uint32_t[]", constants)
        entries = [vk.VkSpecializationMapEntry(constantID=i, offset=4 * i, size=4) for i in range(len(constants))]
        chosen = vk.VkSpecializationInfo(pMapEntries=entries, dataSize=4 * len(constants), pData=words)
        stage = vk.VkPipelineShaderStageCreateInfo(
            stage=stage, module=module, pName="main", pSpecializationInfo=chosen if constants else None
        )
        pipeline_info = vk.VkComputePipelineCreateInfo(flags=flags, stage=stage, layout=layout)
        made = vk.vkCreateComputePipelines(self.device, None, 1, [pipeline_info], None)
        return RigPipeline(self._made("Pipeline", made[0]), layout, set_layout, types, push)

    def shader_module(self, shader: str) -> Any:
        """A VkShaderModule of a shader of `shaders/`."""
        from harness.shader.library import load

        code = load(shader)
        info = self.vk.VkShaderModuleCreateInfo(codeSize=len(code), pCode=code)
        return self._made("ShaderModule", self.vk.vkCreateShaderModule(self.device, info, None))

    def pipeline_layout(
        self,
        bindings: dict[int, str],
        push_bytes: int,
        stages: int,
        *,
        push: bool = False,
        counts: dict[int, int] | None = None,
    ) -> tuple[Any, Any, dict[int, tuple[int, int]]]:
        """(VkPipelineLayout, its one VkDescriptorSetLayout, (type, count) by binding) for some shader stages. Input
        attachments are for the fragment stage alone."""
        vk = self.vk
        types = {
            at: (enum_value("VkDescriptorType", f"VK_DESCRIPTOR_TYPE_{kind}"), (counts or {}).get(at, 1))
            for at, kind in bindings.items()
        }
        slots = [
            vk.VkDescriptorSetLayoutBinding(
                binding=at,
                descriptorType=kind,
                descriptorCount=count,
                stageFlags=VkShaderStage.FRAGMENT if kind == VkDescriptorType.INPUT_ATTACHMENT else stages,
            )
            for at, (kind, count) in types.items()
        ]
        info = vk.VkDescriptorSetLayoutCreateInfo(flags=int(push), bindingCount=len(slots), pBindings=slots)
        set_layout = self._made("DescriptorSetLayout", vk.vkCreateDescriptorSetLayout(self.device, info, None))
        pushed = [vk.VkPushConstantRange(stageFlags=stages, offset=0, size=push_bytes)] if push_bytes else []
        info = vk.VkPipelineLayoutCreateInfo(
            setLayoutCount=1,
            pSetLayouts=[set_layout],
            pushConstantRangeCount=len(pushed),
            pPushConstantRanges=pushed,
        )
        return self._made("PipelineLayout", vk.vkCreatePipelineLayout(self.device, info, None)), set_layout, types

    def descriptors(self, pipeline: RigPipeline, **held: Any) -> RigDescriptorSet:
        """A set with `b<binding>=` what it refers to (see `write`)."""
        vk = self.vk
        sizes = [vk.VkDescriptorPoolSize(type=kind, descriptorCount=count) for kind, count in pipeline.types.values()]
        info = vk.VkDescriptorPoolCreateInfo(maxSets=1, poolSizeCount=len(sizes), pPoolSizes=sizes)
        pool = self._made("DescriptorPool", vk.vkCreateDescriptorPool(self.device, info, None))
        info = vk.VkDescriptorSetAllocateInfo(
            descriptorPool=pool, descriptorSetCount=1, pSetLayouts=[pipeline.set_layout]
        )
        made = RigDescriptorSet(vk.vkAllocateDescriptorSets(self.device, info)[0], pipeline)
        self.update(made, **held)
        return made

    def update(self, target: RigDescriptorSet, **held: Any) -> None:
        """Writes descriptors of a set."""
        writes = [self.write(target.pipeline, int(at[1:]), each, target.handle) for at, each in held.items()]
        self.vk.vkUpdateDescriptorSets(self.device, len(writes), writes, 0, [])

    def copy_descriptors(
        self, source: RigDescriptorSet, target: RigDescriptorSet, *places: tuple[tuple[int, int], tuple[int, int], int]
    ) -> None:
        """Copies descriptors: ((binding, element) to read, (binding, element) to write, how many) each."""
        vk = self.vk
        copies = [
            vk.VkCopyDescriptorSet(
                srcSet=source.handle,
                srcBinding=read[0],
                srcArrayElement=read[1],
                dstSet=target.handle,
                dstBinding=write[0],
                dstArrayElement=write[1],
                descriptorCount=count,
            )
            for read, write, count in places
        ]
        vk.vkUpdateDescriptorSets(self.device, 0, [], len(copies), copies)

    def write(self, pipeline: RigPipeline, binding: int, held: Any, target: Any = None) -> Any:
        """A VkWriteDescriptorSet. `held` is a Buffer, (Buffer, offset, size), a list of those (an array), a buffer
        view, or (view, sampler, layout) for images."""
        vk = self.vk
        kind, _ = pipeline.types[binding]
        many = held if isinstance(held, list) else [held]
        common = {"dstSet": target, "dstBinding": binding, "descriptorType": kind, "descriptorCount": len(many)}
        if kind in (4, 5):
            return vk.VkWriteDescriptorSet(pTexelBufferView=many, **common)
        if kind in (1, 2, 3, VkDescriptorType.INPUT_ATTACHMENT):
            images = [vk.VkDescriptorImageInfo(imageView=v, sampler=s, imageLayout=at) for v, s, at in many]
            return vk.VkWriteDescriptorSet(pImageInfo=images, **common)
        if kind == 0:
            images = [vk.VkDescriptorImageInfo(sampler=each) for each in many]
            return vk.VkWriteDescriptorSet(pImageInfo=images, **common)
        triples = [(each, 0, VK_WHOLE_SIZE) if isinstance(each, RigBuffer) else each for each in many]
        infos = [vk.VkDescriptorBufferInfo(buffer=b.handle, offset=at, range=size) for b, at, size in triples]
        return vk.VkWriteDescriptorSet(pBufferInfo=infos, **common)

    # -- rendering -----------------------------------------------------------------------------------------------------

    target = rig_graphics.target
    render_pass = rig_graphics.render_pass
    framebuffer = rig_graphics.framebuffer
    graphics = rig_graphics.graphics

    # -- events, queries -----------------------------------------------------------------------------------------------

    event = rig_events.event
    host_set_event = rig_events.host_set_event
    host_reset_event = rig_events.host_reset_event
    queries = rig_query.queries

    # -- recording and submission --------------------------------------------------------------------------------------

    @contextmanager
    def commands(
        self, again: Commands | None = None, flags: int = SIMULTANEOUS_USE, queue: DeviceQueue | None = None
    ) -> Iterator[Commands]:
        """Records a new command buffer for a queue, or `again` the same one; `flags` are VkCommandBufferUsageFlags."""
        vk = self.vk
        if again is None:
            queue = queue or self.queues[0]
            info = vk.VkCommandBufferAllocateInfo(
                commandPool=self.gpu.pool(queue.family),
                level=vk.VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                commandBufferCount=1,
            )
            again = Commands(self, vk.vkAllocateCommandBuffers(self.device, info)[0])
            again.queue = queue
        again.event_operations.clear()
        vk.vkBeginCommandBuffer(again.handle, vk.VkCommandBufferBeginInfo(flags=flags))
        yield again
        vk.vkEndCommandBuffer(again.handle)

    secondary = rig_secondary.secondary

    operation = rig_queues.operation
    submit = rig_queues.submit
    submit_batches = rig_queues.submit_batches
    semaphore = rig_queues.semaphore
    timeline = rig_queues.timeline
    host_signal = rig_queues.host_signal
    host_wait_timeline = rig_queues.host_wait_timeline

    # -- presentation --------------------------------------------------------------------------------------------------

    swapchain = rig_presentation.swapchain
    shown_swapchain = rig_presentation.shown_swapchain
    acquire = rig_presentation.acquire
    present = rig_presentation.present

    def fence(self) -> Any:
        """An unsignaled fence."""
        return self._made("Fence", self.vk.vkCreateFence(self.device, self.vk.VkFenceCreateInfo(), None))

    def wait(self, fence: Any = None) -> None:
        """Waits for a fence, or for the queue."""
        if fence is None:
            self.vk.vkQueueWaitIdle(self.queue)
        else:
            self.vk.vkWaitForFences(self.device, 1, [fence], True, 0xFFFFFFFFFFFFFFFF)

    def host_wait(
        self, name: str, how: str, *fences: Any, weaker: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        """One named dependency of the host on the device, made by waiting unless a twin leaves it out.

        `how` is "all" or "any" of the fences (vkWaitForFences), "status" (vkGetFenceStatus until it is signaled),
        "queue" or "device" (to be idle). `weaker` replaces `how` and `fences`.
        """
        amended = self.amend(name, {"how": how, "fences": fences}, weaker or {})
        if amended is None:
            return
        vk, waited = self.vk, list(amended["fences"])
        match amended["how"]:
            case "all" | "any" as which:
                vk.vkWaitForFences(self.device, len(waited), waited, which == "all", 0xFFFFFFFFFFFFFFFF)
            case "status":
                for fence in waited:
                    while not self.signaled(fence):
                        pass
            case "queue":
                vk.vkQueueWaitIdle(self.queue)
            case _:
                vk.vkDeviceWaitIdle(self.device)

    def signaled(self, fence: Any) -> bool:
        """What vkGetFenceStatus answers."""
        try:
            self.vk.vkGetFenceStatus(self.device, fence)
        except self.vk.VkNotReady:
            return False
        return True

    def reset_fence(self, fence: Any) -> None:
        """vkResetFences of one."""
        self.vk.vkResetFences(self.device, 1, [fence])

    def host_read(self, buffer: RigBuffer, offset: int = 0, size: int | None = None) -> bytes:
        """Reads through a mapping of the buffer's memory, and says so."""
        size = buffer.size - offset if size is None else size
        mapped = self.vk.vkMapMemory(self.device, buffer.memory, buffer.offset + offset, size, 0)
        harness.host_read(mapped)
        data = bytes(mapped)
        self.vk.vkUnmapMemory(self.device, buffer.memory)
        return data

    def host_write(self, buffer: RigBuffer, data: bytes, offset: int = 0) -> None:
        """Writes through a mapping of the buffer's memory."""
        mapped = self.vk.vkMapMemory(self.device, buffer.memory, buffer.offset, buffer.size, 0)
        mapped[offset : offset + len(data)] = data
        self.vk.vkUnmapMemory(self.device, buffer.memory)
