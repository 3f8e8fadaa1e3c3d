"""Descriptor sets, and the commands that bind them, push them and dispatch."""

from __future__ import annotations

from typing import Any

from harness.rig.core import RigBuffer, RigCommandBuffer, RigDescriptorSet, RigDevice, RigPipeline
from harness.spec.enums import VK_WHOLE_SIZE, VkDescriptorType


class DescriptorSets(RigDevice):
    """Descriptor sets of one device."""

    def descriptors(self, pipeline: RigPipeline, **held: Any) -> RigDescriptorSet:
        """A descriptor set. `b<binding>=` gives the resource of a binding (see `descriptor_write`)."""
        vk = self.vk
        sizes = [vk.VkDescriptorPoolSize(type=kind, descriptorCount=count) for kind, count in pipeline.types.values()]
        info = vk.VkDescriptorPoolCreateInfo(maxSets=1, poolSizeCount=len(sizes), pPoolSizes=sizes)
        pool = self.own("DescriptorPool", vk.vkCreateDescriptorPool(self.device, info, None))
        info = vk.VkDescriptorSetAllocateInfo(
            descriptorPool=pool, descriptorSetCount=1, pSetLayouts=[pipeline.set_layout]
        )
        made = RigDescriptorSet(vk.vkAllocateDescriptorSets(self.device, info)[0], pipeline)
        self.update(made, **held)
        return made

    def update(self, target: RigDescriptorSet, **held: Any) -> None:
        """Writes descriptors of a set."""
        writes = [
            descriptor_write(self.vk, target.pipeline, int(at[1:]), each, target.handle) for at, each in held.items()
        ]
        self.vk.vkUpdateDescriptorSets(self.device, len(writes), writes, 0, [])

    def copy_descriptors(
        self, source: RigDescriptorSet, target: RigDescriptorSet, *places: tuple[tuple[int, int], tuple[int, int], int]
    ) -> None:
        """Copies descriptors, given as ((binding, element) to read, (binding, element) to write, count)."""
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


class DispatchCommands(RigCommandBuffer):
    """Commands that bind pipelines and descriptor sets, and dispatch."""

    def bind(
        self, pipeline: RigPipeline, descriptors: RigDescriptorSet | None = None, offsets: tuple[int, ...] = ()
    ) -> None:
        """Binds a pipeline and its set, with dynamic offsets."""
        vk = self.vk
        point = pipeline.point
        vk.vkCmdBindPipeline(self.handle, point, pipeline.handle)
        if descriptors is not None:
            sets = [descriptors.handle]
            vk.vkCmdBindDescriptorSets(self.handle, point, pipeline.layout, 0, 1, sets, len(offsets), list(offsets))

    def push_descriptors(self, pipeline: RigPipeline, **held: Any) -> None:
        """vkCmdPushDescriptorSetKHR of `b<binding>=` resources, as in `DescriptorSets.descriptors`."""
        writes = [descriptor_write(self.vk, pipeline, int(at[1:]), each) for at, each in held.items()]
        point = pipeline.point
        push = self.rig.function("vkCmdPushDescriptorSetKHR")
        push(self.handle, point, pipeline.layout, 0, len(writes), writes)

    def push_constants(self, pipeline: RigPipeline, *words: int) -> None:
        """vkCmdPushConstants of 32-bit words from offset 0."""
        values = self.vk.ffi.new("uint32_t[]", list(words))
        self.vk.vkCmdPushConstants(self.handle, pipeline.layout, pipeline.push_stages, 0, 4 * len(words), values)

    def dispatch(self, x: int = 1, y: int = 1, z: int = 1) -> None:
        """vkCmdDispatch."""
        self.vk.vkCmdDispatch(self.handle, x, y, z)

    def dispatch_base(self, base: tuple[int, int, int], count: tuple[int, int, int]) -> None:
        """vkCmdDispatchBase."""
        self.vk.vkCmdDispatchBase(self.handle, *base, *count)

    def dispatch_indirect(self, buffer: RigBuffer, offset: int = 0) -> None:
        """vkCmdDispatchIndirect."""
        self.vk.vkCmdDispatchIndirect(self.handle, buffer.handle, offset)


def descriptor_write(vk: Any, pipeline: RigPipeline, binding: int, held: Any, target: Any = None) -> Any:
    """A VkWriteDescriptorSet.

    `held` is a buffer, (buffer, offset, size), a list of those (an array), a buffer view, or (view, sampler, layout).
    """
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
