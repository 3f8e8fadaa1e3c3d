"""Builds a structure of one triangle and a top level one of two instances, and traces rays through it.

    python top_level.py [without bottom|top] [trace_ray.comp.spv]

`without` leaves out the barrier behind the build of the bottom or top level structure.
"""

import struct
import sys
from pathlib import Path

import structures
import vulkan as vk

ffi = vk.ffi
structures.EXTENSIONS += ["VK_KHR_ray_query"]
BUILD, COMPUTE, READ, WRITE = 0x2000000, 0x800, 0x200000, 0x400000
TOP_LEVEL, BOTTOM_LEVEL, WORDS = 0, 1, 4
TRIANGLE = struct.pack("<9f", 0, 0, 0, 1, 0, 0, 0, 1, 0)


def built(made, level, geometry):
    """(VkAccelerationStructureBuildGeometryInfoKHR, structure) with its scratch memory, of one geometry."""
    info = ffi.new("VkAccelerationStructureBuildGeometryInfoKHR *", {"sType": 1000150000, "type": level})
    info.geometryCount, info.pGeometries = 1, geometry
    sizes = ffi.new("VkAccelerationStructureBuildSizesInfoKHR *", {"sType": 1000150020})
    counts = ffi.new("uint32_t[]", [2])
    made.function("vkGetAccelerationStructureBuildSizesKHR")(made.device, 1, info, counts, sizes)
    info.dstAccelerationStructure = made.structure(sizes.accelerationStructureSize, level)
    _, scratch = made.buffer(sizes.buildScratchSize + 256, structures.SCRATCH)
    info.scratchData.deviceAddress = -(-scratch // 256) * 256
    return info


def instances(made, bottom):
    """The geometry of two instances of a structure, which the host writes; the second one is 2 to the right."""
    asked = ffi.new("VkAccelerationStructureDeviceAddressInfoKHR *", {"sType": 1000150002})
    asked.accelerationStructure = bottom
    address = int(made.function("vkGetAccelerationStructureDeviceAddressKHR")(made.device, asked))
    parts = [struct.pack("<12f2IQ", 1, 0, 0, x, 0, 1, 0, 0, 0, 0, 1, 0, 0xFF << 24, 0, address) for x in (0, 2)]
    _, at = made.buffer(256, structures.INPUT, b"".join(parts))
    geometry = ffi.new("VkAccelerationStructureGeometryKHR *", {"sType": 1000150006, "geometryType": 2})
    geometry.geometry.instances.sType = 1000150004
    geometry.geometry.instances.data.deviceAddress = at
    return geometry


def build(made, commands, info, count):
    """Records one build."""
    ranges = ffi.new("VkAccelerationStructureBuildRangeInfoKHR *", {"primitiveCount": count})
    several = ffi.new("VkAccelerationStructureBuildRangeInfoKHR *[1]", [ranges])
    made.function("vkCmdBuildAccelerationStructuresKHR")(commands, 1, info, several)


def barrier(commands, until):
    """From builds to other uses of structures."""
    one = vk.VkMemoryBarrier(srcAccessMask=WRITE, dstAccessMask=READ)
    vk.vkCmdPipelineBarrier(commands, BUILD, until, 0, 1, [one], 0, None, 0, None)


def tracer(made, code, top, target):
    """(pipeline, layout, set) of a shader that traces rays through a structure."""
    device = made.device
    kinds = (1000150000, vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER)
    bindings = [
        vk.VkDescriptorSetLayoutBinding(binding=at, descriptorType=kind, descriptorCount=1, stageFlags=0x20)
        for at, kind in enumerate(kinds)
    ]
    info = vk.VkDescriptorSetLayoutCreateInfo(bindingCount=2, pBindings=bindings)
    sets = vk.vkCreateDescriptorSetLayout(device, info, None)
    layout = vk.vkCreatePipelineLayout(device, vk.VkPipelineLayoutCreateInfo(pSetLayouts=[sets]), None)
    module = vk.vkCreateShaderModule(device, vk.VkShaderModuleCreateInfo(codeSize=len(code), pCode=code), None)
    stage = vk.VkPipelineShaderStageCreateInfo(stage=0x20, module=module, pName="main")
    created = vk.VkComputePipelineCreateInfo(stage=stage, layout=layout)
    pipeline = vk.vkCreateComputePipelines(device, vk.VK_NULL_HANDLE, 1, [created], None)[0]
    sizes = [vk.VkDescriptorPoolSize(type=kind, descriptorCount=1) for kind in kinds]
    pool = vk.vkCreateDescriptorPool(device, vk.VkDescriptorPoolCreateInfo(maxSets=1, pPoolSizes=sizes), None)
    allocate = vk.VkDescriptorSetAllocateInfo(descriptorPool=pool, pSetLayouts=[sets])
    held = vk.vkAllocateDescriptorSets(device, allocate)[0]
    one = ffi.new("VkAccelerationStructureKHR *", top)
    chain = ffi.new("VkWriteDescriptorSetAccelerationStructureKHR *", {"sType": 1000150007})
    chain.accelerationStructureCount, chain.pAccelerationStructures = 1, one
    first = vk.VkWriteDescriptorSet(pNext=chain, dstSet=held, dstBinding=0, descriptorCount=1, descriptorType=kinds[0])
    buffer = vk.VkDescriptorBufferInfo(buffer=target, range=256)
    second = vk.VkWriteDescriptorSet(
        dstSet=held, dstBinding=1, descriptorCount=1, descriptorType=kinds[1], pBufferInfo=[buffer]
    )
    vk.vkUpdateDescriptorSets(device, 2, [first, second], 0, None)
    return pipeline, layout, held


def main(words):
    """Builds both, traces, and prints what the rays hit."""
    missing = words[words.index("without") + 1] if "without" in words else ""
    made = structures.Structures()
    _, vertices = made.buffer(64, structures.INPUT, TRIANGLE)
    _, geometry = structures.describe(vertices)
    bottom = built(made, BOTTOM_LEVEL, geometry)
    held = instances(made, bottom.dstAccelerationStructure)
    top = built(made, TOP_LEVEL, held)
    target, _ = made.buffer(256, 0x20, bytes(256))
    code = Path(words[-1]).read_bytes()
    pipeline, layout, descriptors = tracer(made, code, top.dstAccelerationStructure, target)
    pool = vk.vkCreateCommandPool(made.device, vk.VkCommandPoolCreateInfo(), None)
    (commands,) = vk.vkAllocateCommandBuffers(
        made.device, vk.VkCommandBufferAllocateInfo(commandPool=pool, commandBufferCount=1)
    )[0:1]
    vk.vkBeginCommandBuffer(commands, vk.VkCommandBufferBeginInfo())
    build(made, commands, bottom, 1)
    if missing != "bottom":
        barrier(commands, BUILD)
    build(made, commands, top, 2)
    if missing != "top":
        barrier(commands, COMPUTE)
    vk.vkCmdBindPipeline(commands, vk.VK_PIPELINE_BIND_POINT_COMPUTE, pipeline)
    vk.vkCmdBindDescriptorSets(commands, vk.VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, [descriptors], 0, None)
    vk.vkCmdDispatch(commands, 1, 1, 1)
    vk.vkEndCommandBuffer(commands)
    queue = made.queue
    vk.vkQueueSubmit(queue, 1, [vk.VkSubmitInfo(commandBufferCount=1, pCommandBuffers=[commands])], vk.VK_NULL_HANDLE)
    vk.vkQueueWaitIdle(queue)
    _, memory = made.buffers[-1]
    mapped = vk.vkMapMemory(made.device, memory, 0, 4 * WORDS, 0)
    print("hits", *struct.unpack(f"<{WORDS}I", bytes(mapped[: 4 * WORDS])))
    vk.vkUnmapMemory(made.device, memory)


if __name__ == "__main__":
    main(sys.argv[1:])
