"""Descriptor sets, and the commands that bind them, push them and dispatch."""

from __future__ import annotations

from typing import Any

from vkharness.rig.core import RigBuffer, RigCommandBuffer, RigDescriptorSet, RigDevice, RigPipeline, RigSetLayout
from vkharness.spec.enums import VK_WHOLE_SIZE, VkDescriptorType


class DescriptorSets(RigDevice):
    """Descriptor sets of one device."""

    def descriptors(self, pipeline: RigPipeline, **held: Any) -> RigDescriptorSet:
        """Set 0 of a pipeline. `b<binding>=` gives the resource of a binding (see `descriptor_write`)."""
        return self.numbered_set(pipeline, 0, **held)

    def numbered_set(self, pipeline: RigPipeline, number: int, **held: Any) -> RigDescriptorSet:
        """Any set of a pipeline, as `descriptors`."""
        vk, layout = self.vk, pipeline.shape.sets[number]
        sizes = [vk.VkDescriptorPoolSize(type=kind, descriptorCount=count) for kind, count in layout.types.values()]
        info = vk.VkDescriptorPoolCreateInfo(maxSets=1, poolSizeCount=len(sizes), pPoolSizes=sizes)
        pool = self.own("DescriptorPool", vk.vkCreateDescriptorPool(self.device, info, None))
        info = vk.VkDescriptorSetAllocateInfo(descriptorPool=pool, descriptorSetCount=1, pSetLayouts=[layout.handle])
        made = RigDescriptorSet(vk.vkAllocateDescriptorSets(self.device, info)[0], layout, number)
        self.update(made, **held)
        return made

    def update(self, target: RigDescriptorSet, **held: Any) -> None:
        """Writes descriptors of a set."""
        writes = [
            descriptor_write(self.vk, target.layout, int(at[1:]), each, target.handle) for at, each in held.items()
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

    rig: DescriptorSets

    def run(self, pipeline: RigPipeline, *words: int, groups: tuple[int, int, int] = (1, 1, 1), **held: Any) -> None:
        """Binds a pipeline with a new set of `b<binding>=` resources, pushes 32-bit words, and dispatches."""
        self.bind(pipeline, self.rig.descriptors(pipeline, **held) if held else None)
        if words:
            self.push_constants(pipeline, *words)
        self.dispatch(*groups)

    def bind(
        self, pipeline: RigPipeline, descriptors: RigDescriptorSet | None = None, offsets: tuple[int, ...] = ()
    ) -> None:
        """Binds a pipeline, or shader objects, and its set, with dynamic offsets."""
        if pipeline.objects:
            stages, shaders = list(pipeline.objects), list(pipeline.objects.values())
            self.rig.function("vkCmdBindShadersEXT")(self.handle, len(stages), stages, shaders)
        else:
            self.vk.vkCmdBindPipeline(self.handle, pipeline.point, pipeline.handle)
        if descriptors is not None:
            self.bind_set(pipeline, descriptors, offsets)

    def bind_set(self, pipeline: RigPipeline, descriptors: RigDescriptorSet, offsets: tuple[int, ...] = ()) -> None:
        """Binds a set to its number, with dynamic offsets."""
        place, sets = (self.handle, pipeline.point, pipeline.layout, descriptors.number), [descriptors.handle]
        self.vk.vkCmdBindDescriptorSets(*place, 1, sets, len(offsets), list(offsets))

    def push_descriptors(self, pipeline: RigPipeline, **held: Any) -> None:
        """vkCmdPushDescriptorSetKHR of `b<binding>=` resources, as in `DescriptorSets.descriptors`."""
        writes = [descriptor_write(self.vk, pipeline.shape.sets[0], int(at[1:]), each) for at, each in held.items()]
        point = pipeline.point
        push = self.rig.function("vkCmdPushDescriptorSetKHR")
        push(self.handle, point, pipeline.layout, 0, len(writes), writes)

    def push_constants(self, pipeline: RigPipeline, *words: int) -> None:
        """vkCmdPushConstants of 32-bit words from offset 0."""
        values = self.vk.ffi.new("uint32_t[]", list(words))
        self.vk.vkCmdPushConstants(self.handle, pipeline.layout, pipeline.shape.push_stages, 0, 4 * len(words), values)

    def dispatch(self, x: int = 1, y: int = 1, z: int = 1) -> None:
        """vkCmdDispatch."""
        self.vk.vkCmdDispatch(self.handle, x, y, z)

    def dispatch_base(self, base: tuple[int, int, int], count: tuple[int, int, int]) -> None:
        """vkCmdDispatchBase."""
        self.vk.vkCmdDispatchBase(self.handle, *base, *count)

    def dispatch_indirect(self, buffer: RigBuffer, offset: int = 0) -> None:
        """vkCmdDispatchIndirect."""
        self.vk.vkCmdDispatchIndirect(self.handle, buffer.handle, offset)


def descriptor_write(vk: Any, layout: RigSetLayout, binding: int, held: Any, target: Any = None) -> Any:
    """A VkWriteDescriptorSet.

    `held` is a buffer, (buffer, offset, size), a list of those (an array), a buffer view, (view, sampler, layout) or an
    acceleration structure.
    """
    kind, _ = layout.types[binding]
    many = held if isinstance(held, list) else [held]
    common = {"dstSet": target, "dstBinding": binding, "descriptorType": kind, "descriptorCount": len(many)}
    if kind in (4, 5):
        return vk.VkWriteDescriptorSet(pTexelBufferView=many, **common)
    if kind in (1, 2, 3, VkDescriptorType.INPUT_ATTACHMENT):
        images = [vk.VkDescriptorImageInfo(imageView=v, sampler=s, imageLayout=at) for v, s, at in many]
        return vk.VkWriteDescriptorSet(pImageInfo=images, **common)
    if kind == VkDescriptorType.ACCELERATION_STRUCTURE_KHR:
        chain = vk.VkWriteDescriptorSetAccelerationStructureKHR(pAccelerationStructures=many)
        return vk.VkWriteDescriptorSet(pNext=chain, **common)
    if kind == 0:
        images = [vk.VkDescriptorImageInfo(sampler=each) for each in many]
        return vk.VkWriteDescriptorSet(pImageInfo=images, **common)
    triples = [(each, 0, VK_WHOLE_SIZE) if isinstance(each, RigBuffer) else each for each in many]
    infos = [vk.VkDescriptorBufferInfo(buffer=b.handle, offset=at, range=size) for b, at, size in triples]
    return vk.VkWriteDescriptorSet(pBufferInfo=infos, **common)
