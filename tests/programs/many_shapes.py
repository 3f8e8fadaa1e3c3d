"""Calls of many argument shapes, small enough to read: chains, unions, bytes, masks of 32 and 64 bits, failed calls.

Its capture, converted, is tests/data/gfxrecon/debian-0.9.18.jsonl. It needs a driver of Vulkan 1.3.
"""

from pathlib import Path

import vulkan as vk

SHADER = Path(__file__).resolve().parents[2] / "shaders" / "array_specialized_index.comp.spv"
IGNORED = 0xFFFFFFFF
ffi, lib = vk.ffi, vk.lib
kept = []  # what C structs point at must live as long as they do


def new(kind, **members):
    """A C struct or array; `members` of a struct, or `init` of an array."""
    value = ffi.new(kind, members.pop("init") if "init" in members else members)
    kept.append(value)
    return value


def check(result):
    """Stops the program when a C call failed."""
    if result != 0:
        raise SystemExit(f"VkResult {result}")


def make_device():
    """Instance, device and queue of the first physical device."""
    name = "many shapes ∑"
    app = vk.VkApplicationInfo(pApplicationName=name, applicationVersion=1, apiVersion=vk.VK_MAKE_VERSION(1, 3, 0))
    instance = vk.vkCreateInstance(vk.VkInstanceCreateInfo(pApplicationInfo=app), None)
    physical = vk.vkEnumeratePhysicalDevices(instance)[0]
    vk.vkGetPhysicalDeviceMemoryProperties(physical)
    features = vk.VkPhysicalDeviceFeatures2(pNext=vk.VkPhysicalDeviceVulkan13Features(synchronization2=1))
    queue = vk.VkDeviceQueueCreateInfo(queueFamilyIndex=0, pQueuePriorities=[0.3])
    info = vk.VkDeviceCreateInfo(
        pNext=features, pQueueCreateInfos=[queue], ppEnabledExtensionNames=["VK_KHR_push_descriptor"]
    )
    device = vk.vkCreateDevice(physical, info, None)
    return instance, device, vk.vkGetDeviceQueue(device, 0, 0)


def make_resources(device):
    """A memory object with two buffers and an image of two mips on it."""
    memory = vk.vkAllocateMemory(device, vk.VkMemoryAllocateInfo(allocationSize=65536, memoryTypeIndex=0), None)
    usage = vk.VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | vk.VK_BUFFER_USAGE_TRANSFER_SRC_BIT
    usage |= vk.VK_BUFFER_USAGE_TRANSFER_DST_BIT
    buffers = [vk.vkCreateBuffer(device, vk.VkBufferCreateInfo(size=256, usage=usage), None) for _ in range(2)]
    for place, buffer in enumerate(buffers):
        vk.vkGetBufferMemoryRequirements(device, buffer)
        vk.vkBindBufferMemory(device, buffer, memory, 4096 * place)
    info = vk.VkImageCreateInfo(
        imageType=vk.VK_IMAGE_TYPE_2D,
        format=vk.VK_FORMAT_R8G8B8A8_UNORM,
        extent=vk.VkExtent3D(8, 8, 1),
        mipLevels=2,
        arrayLayers=1,
        samples=vk.VK_SAMPLE_COUNT_1_BIT,
        usage=vk.VK_IMAGE_USAGE_TRANSFER_SRC_BIT | vk.VK_IMAGE_USAGE_TRANSFER_DST_BIT,
    )
    image = vk.vkCreateImage(device, info, None)
    vk.vkBindImageMemory(device, image, memory, 16384)
    mapped = vk.vkMapMemory(device, memory, 0, 8192, 0)
    mapped[0:8] = bytes(range(8))
    return memory, buffers, image


def make_pipeline(device, buffers):
    """A compute pipeline with a specialization constant, its layout, and a descriptor set of four buffers."""
    code = SHADER.read_bytes()
    module = vk.vkCreateShaderModule(device, vk.VkShaderModuleCreateInfo(codeSize=len(code), pCode=code), None)
    kind, stage = vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, vk.VK_SHADER_STAGE_COMPUTE_BIT
    binding = vk.VkDescriptorSetLayoutBinding(0, kind, 4, stage)
    set_layout = vk.vkCreateDescriptorSetLayout(device, vk.VkDescriptorSetLayoutCreateInfo(pBindings=[binding]), None)
    push = vk.VkPushConstantRange(stage, 0, 4)
    layout_info = vk.VkPipelineLayoutCreateInfo(pSetLayouts=[set_layout], pPushConstantRanges=[push])
    layout = vk.vkCreatePipelineLayout(device, layout_info, None)
    entry = new("VkSpecializationMapEntry*", constantID=0, offset=0, size=4)
    constants = new("uint32_t[]", init=[1])
    special = new("VkSpecializationInfo*", mapEntryCount=1, pMapEntries=entry, dataSize=4, pData=constants)
    info = new("VkComputePipelineCreateInfo*", sType=vk.VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO, layout=layout)
    info.stage.sType = vk.VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO
    info.stage.stage, info.stage.module = stage, module
    info.stage.pName = new("char[]", init=b"main")
    info.stage.pSpecializationInfo = special
    pipelines = new("VkPipeline[1]", init=[ffi.NULL])
    check(lib.vkCreateComputePipelines(device, ffi.NULL, 1, info, ffi.NULL, pipelines))
    pool_info = vk.VkDescriptorPoolCreateInfo(maxSets=1, pPoolSizes=[vk.VkDescriptorPoolSize(kind, 4)])
    pool = vk.vkCreateDescriptorPool(device, pool_info, None)
    allocate = vk.VkDescriptorSetAllocateInfo(descriptorPool=pool, pSetLayouts=[set_layout])
    descriptors = vk.vkAllocateDescriptorSets(device, allocate)[0]
    whole = (1 << 64) - 1
    infos = new("VkDescriptorBufferInfo[]", init=[(buffers[i % 2], 0, whole) for i in range(4)])
    write = new("VkWriteDescriptorSet*", sType=vk.VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, dstSet=descriptors)
    write.descriptorCount, write.descriptorType, write.pBufferInfo = 4, kind, infos
    lib.vkUpdateDescriptorSets(device, 1, write, 0, ffi.NULL)
    return pipelines[0], layout, descriptors


def record_transfers(commands, buffers, image):
    """Fill, copy, update, clear, and barriers of both generations; the copy, and the update after it, lack theirs."""
    vk.vkBeginCommandBuffer(commands, vk.VkCommandBufferBeginInfo(flags=0))
    vk.vkCmdFillBuffer(commands, buffers[0], 0, 256, 0xDEADBEEF)
    vk.vkCmdCopyBuffer(commands, buffers[0], buffers[1], 1, [vk.VkBufferCopy(0, 0, 256)])
    lib.vkCmdUpdateBuffer(commands, buffers[0], 0, 8, new("char[]", init=b"abcdefg"))
    whole = {"aspectMask": vk.VK_IMAGE_ASPECT_COLOR_BIT, "levelCount": 2, "layerCount": 1}
    same = {"srcQueueFamilyIndex": IGNORED, "dstQueueFamilyIndex": IGNORED, "image": image, "subresourceRange": whole}
    to_clear = new("VkImageMemoryBarrier2*", sType=vk.VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER_2, **same)
    to_clear.srcStageMask = vk.VK_PIPELINE_STAGE_2_COPY_BIT | vk.VK_PIPELINE_STAGE_2_CLEAR_BIT
    to_clear.dstStageMask = vk.VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT
    to_clear.dstAccessMask = vk.VK_ACCESS_2_TRANSFER_WRITE_BIT | vk.VK_ACCESS_2_TRANSFER_READ_BIT
    to_clear.newLayout = vk.VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL
    dependency = new("VkDependencyInfo*", sType=vk.VK_STRUCTURE_TYPE_DEPENDENCY_INFO)
    dependency.imageMemoryBarrierCount, dependency.pImageMemoryBarriers = 1, to_clear
    lib.vkCmdPipelineBarrier2(commands, dependency)
    color = new("VkClearColorValue*", float32=[0.25, 0.5, 0.75, 1.0])
    ranges = new("VkImageSubresourceRange*", **whole)
    lib.vkCmdClearColorImage(commands, image, vk.VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, color, 1, ranges)
    to_read = new("VkImageMemoryBarrier*", sType=vk.VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER, **same)
    to_read.srcAccessMask = vk.VK_ACCESS_TRANSFER_WRITE_BIT
    to_read.dstAccessMask = vk.VK_ACCESS_TRANSFER_READ_BIT | vk.VK_ACCESS_SHADER_READ_BIT
    to_read.oldLayout, to_read.newLayout = to_clear.newLayout, vk.VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL
    before = vk.VK_PIPELINE_STAGE_TRANSFER_BIT
    after = before | vk.VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT
    lib.vkCmdPipelineBarrier(commands, before, after, 0, 0, ffi.NULL, 0, ffi.NULL, 1, to_read)
    vk.vkEndCommandBuffer(commands)


def record_dispatches(commands, pipeline, layout, descriptors):
    """Two dispatches that write the same buffer with no barrier between."""
    vk.vkBeginCommandBuffer(commands, vk.VkCommandBufferBeginInfo(flags=0))
    point = vk.VK_PIPELINE_BIND_POINT_COMPUTE
    vk.vkCmdBindPipeline(commands, point, pipeline)
    vk.vkCmdBindDescriptorSets(commands, point, layout, 0, 1, [descriptors], 0, None)
    constants = new("uint32_t[]", init=[64])
    lib.vkCmdPushConstants(commands, layout, vk.VK_SHADER_STAGE_COMPUTE_BIT, 0, 4, constants)
    vk.vkCmdDispatch(commands, 1, 1, 1)
    vk.vkCmdDispatch(commands, 1, 1, 1)
    vk.vkEndCommandBuffer(commands)


def main():
    """Everything once; prints `done`."""
    instance, device, queue = make_device()
    memory, buffers, image = make_resources(device)
    pipeline, layout, descriptors = make_pipeline(device, buffers)
    flags = vk.VK_COMMAND_POOL_CREATE_TRANSIENT_BIT | vk.VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT
    pool = vk.vkCreateCommandPool(device, vk.VkCommandPoolCreateInfo(queueFamilyIndex=0, flags=flags), None)
    first, second = vk.vkAllocateCommandBuffers(
        device, vk.VkCommandBufferAllocateInfo(commandPool=pool, level=0, commandBufferCount=2)
    )
    record_transfers(first, buffers, image)
    record_dispatches(second, pipeline, layout, descriptors)
    fence = vk.vkCreateFence(device, vk.VkFenceCreateInfo(flags=0), None)
    not_ready = lib.vkGetFenceStatus(device, fence)
    submits = [vk.VkSubmitInfo(pCommandBuffers=[first]), vk.VkSubmitInfo(pCommandBuffers=[second])]
    vk.vkQueueSubmit(queue, 2, submits, fence)
    vk.vkWaitForFences(device, 1, [fence], 1, 10**10)
    huge = new("VkMemoryAllocateInfo*", sType=vk.VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, allocationSize=1 << 55)
    failed = lib.vkAllocateMemory(device, huge, ffi.NULL, new("VkDeviceMemory*", init=ffi.NULL))
    vk.vkUnmapMemory(device, memory)
    for buffer in buffers:
        vk.vkDestroyBuffer(device, buffer, None)
    vk.vkDestroyImage(device, image, None)
    vk.vkFreeMemory(device, memory, None)
    vk.vkDestroyDevice(device, None)
    vk.vkDestroyInstance(instance, None)
    print("done" if (not_ready, failed < 0) == (1, True) else "the calls that should fail did not")


if __name__ == "__main__":
    main()
