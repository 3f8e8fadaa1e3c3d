"""Descriptor buffers (VK_EXT_descriptor_buffer): descriptors that the host, or a command, writes into memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vkharness.rig.buffers_images import BuffersImages
from vkharness.rig.compute_pipelines import ComputePipelines
from vkharness.rig.core import RigBuffer, RigCommandBuffer, RigPipeline
from vkharness.spec.enums import VkDescriptorType

DESCRIPTOR_BUFFER = 0x20000000
"""VK_PIPELINE_CREATE_DESCRIPTOR_BUFFER_BIT_EXT."""
MEMBERS = {VkDescriptorType.UNIFORM_BUFFER: "pUniformBuffer", VkDescriptorType.STORAGE_BUFFER: "pStorageBuffer"}
"""The members of VkDescriptorDataEXT for buffers."""
SIZES = {VkDescriptorType.UNIFORM_BUFFER: "uniform", VkDescriptorType.STORAGE_BUFFER: "storage"}


class DescribedSets(BuffersImages, ComputePipelines):
    """Sets in descriptor buffers of one device."""

    def described_compute(self, shader: str | Path) -> RigPipeline:
        """A compute pipeline of which the descriptors lie in memory."""
        return self.compute(shader, flags=DESCRIPTOR_BUFFER, described=True)

    def described_set(self, pipeline: RigPipeline, **held: RigBuffer) -> RigBuffer:
        """A buffer that begins with set 0 of a pipeline. `b<binding>=` gives the buffer of a binding; the host writes
        its descriptor."""
        made = self.buffer(max(256, self.described_size(pipeline)))
        for at, each in held.items():
            self.host_write(made, self.descriptor(pipeline, int(at[1:]), each), self.descriptor_place(pipeline, at))
        return made

    def described_size(self, pipeline: RigPipeline) -> int:
        """vkGetDescriptorSetLayoutSizeEXT of set 0, in bytes, as a multiple of 256: no device asks for more
        (descriptorBufferOffsetAlignment)."""
        size = self.function("vkGetDescriptorSetLayoutSizeEXT")(self.device, pipeline.shape.sets[0].handle)
        return -(-int(size) // 256) * 256

    def descriptor_place(self, pipeline: RigPipeline, name: str) -> int:
        """Where the binding `b<binding>` begins in set 0, in bytes."""
        ask = self.function("vkGetDescriptorSetLayoutBindingOffsetEXT")
        return int(ask(self.device, pipeline.shape.sets[0].handle, int(name[1:])))

    def descriptor(self, pipeline: RigPipeline, binding: int, held: RigBuffer) -> bytes:
        """vkGetDescriptorEXT of a whole buffer for a binding of set 0."""
        ffi, kind = self.vk.ffi, pipeline.shape.sets[0].types[binding][0]
        low, high = self.address(held)
        where = ffi.new("VkDescriptorAddressInfoEXT *", {"address": low | high << 32, "range": held.size})
        where.sType = self.vk.VK_STRUCTURE_TYPE_DESCRIPTOR_ADDRESS_INFO_EXT
        info = ffi.new("VkDescriptorGetInfoEXT *", {"type": kind, "data": {MEMBERS[kind]: where}})
        info.sType = self.vk.VK_STRUCTURE_TYPE_DESCRIPTOR_GET_INFO_EXT
        size = self._descriptor_bytes(SIZES[kind])
        data = ffi.new("uint8_t[]", size)
        self.function("vkGetDescriptorEXT")(self.device, info, size, data)
        return bytes(data)

    def _descriptor_bytes(self, kind: str) -> int:
        """The size of a buffer descriptor (VkPhysicalDeviceDescriptorBufferPropertiesEXT)."""
        vk = self.vk
        found = vk.ffi.new("VkPhysicalDeviceDescriptorBufferPropertiesEXT *")
        found.sType = vk.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_BUFFER_PROPERTIES_EXT
        asked = vk.ffi.new("VkPhysicalDeviceProperties2 *", {"pNext": found})
        asked.sType = vk.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2
        vk.vkGetPhysicalDeviceProperties2(self.gpu.physical_device, asked)
        return int(getattr(found, f"{kind}BufferDescriptorSize"))


class DescribedCommands(RigCommandBuffer):
    """Commands for descriptor buffers."""

    rig: DescribedSets

    def bind_described(self, pipeline: RigPipeline, held: Any, offset: int = 0) -> None:
        """Binds a pipeline, and set 0 at an offset in a buffer."""
        vk, low_high = self.vk, self.rig.address(held)
        vk.vkCmdBindPipeline(self.handle, pipeline.point, pipeline.handle)
        bound = vk.VkDescriptorBufferBindingInfoEXT(
            address=low_high[0] | low_high[1] << 32, usage=vk.VK_BUFFER_USAGE_RESOURCE_DESCRIPTOR_BUFFER_BIT_EXT
        )
        self.rig.function("vkCmdBindDescriptorBuffersEXT")(self.handle, 1, [bound])
        place = (self.handle, pipeline.point, pipeline.layout, 0, 1)
        self.rig.function("vkCmdSetDescriptorBufferOffsetsEXT")(*place, [0], [offset])
