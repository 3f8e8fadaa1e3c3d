"""Frames of which each relies on the one before: an image, descriptors, a fence, a semaphore and a timeline.

The frame in `tests/data/renderdoc` is the third. `vkDeviceWaitIdle` ends each one.
"""

from pathlib import Path

import vulkan as vk
from rig import Rig

KERNEL = Path(__file__).resolve().parents[2] / "shaders" / "copy_words.comp.spv"
SIZE = 256
TRANSFER, SHADER = vk.VK_PIPELINE_STAGE_TRANSFER_BIT, vk.VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT
ALL, EVERY = vk.VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, vk.VK_ACCESS_MEMORY_READ_BIT | vk.VK_ACCESS_MEMORY_WRITE_BIT
UNDEFINED, SOURCE, TARGET = (
    vk.VK_IMAGE_LAYOUT_UNDEFINED,
    vk.VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL,
    vk.VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL,
)
WHOLE = vk.VkImageSubresourceRange(vk.VK_IMAGE_ASPECT_COLOR_BIT, 0, 2, 0, 2)
LAYERS = vk.VkImageSubresourceLayers(vk.VK_IMAGE_ASPECT_COLOR_BIT, 1, 1, 1)
REGION = vk.VkBufferImageCopy(
    bufferOffset=0, imageSubresource=LAYERS, imageOffset=vk.VkOffset3D(), imageExtent=vk.VkExtent3D(8, 8, 1)
)

features = vk.VkPhysicalDeviceVulkan12Features(timelineSemaphore=1)
rig = Rig(features=features)
device = rig.device
a, memory = rig.buffer(SIZE)
b, _ = rig.buffer(SIZE)
c, _ = rig.buffer(SIZE)
mapped = vk.vkMapMemory(device, memory, 0, SIZE, 0)
image = vk.vkCreateImage(
    device,
    vk.VkImageCreateInfo(
        imageType=vk.VK_IMAGE_TYPE_2D,
        format=vk.VK_FORMAT_R8G8B8A8_UNORM,
        extent=vk.VkExtent3D(16, 16, 1),
        mipLevels=2,
        arrayLayers=2,
        samples=vk.VK_SAMPLE_COUNT_1_BIT,
        usage=vk.VK_IMAGE_USAGE_TRANSFER_SRC_BIT | vk.VK_IMAGE_USAGE_TRANSFER_DST_BIT,
    ),
    None,
)
needs = vk.vkGetImageMemoryRequirements(device, image)
own = vk.vkAllocateMemory(device, vk.VkMemoryAllocateInfo(allocationSize=needs.size, memoryTypeIndex=0), None)
vk.vkBindImageMemory(device, image, own, 0)

stage, kind = vk.VK_SHADER_STAGE_COMPUTE_BIT, vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
bindings = [vk.VkDescriptorSetLayoutBinding(at, kind, 1, stage) for at in range(2)]
set_layout = vk.vkCreateDescriptorSetLayout(device, vk.VkDescriptorSetLayoutCreateInfo(pBindings=bindings), None)
layout = vk.vkCreatePipelineLayout(device, vk.VkPipelineLayoutCreateInfo(pSetLayouts=[set_layout]), None)
pool = vk.vkCreateDescriptorPool(
    device, vk.VkDescriptorPoolCreateInfo(maxSets=1, pPoolSizes=[vk.VkDescriptorPoolSize(kind, 2)]), None
)
sets = vk.vkAllocateDescriptorSets(
    device, vk.VkDescriptorSetAllocateInfo(descriptorPool=pool, pSetLayouts=[set_layout])
)[0]
for at, buffer in enumerate((b, c)):
    written = [vk.VkDescriptorBufferInfo(buffer=buffer, offset=0, range=SIZE)]
    write = vk.VkWriteDescriptorSet(dstSet=sets, dstBinding=at, descriptorType=kind, pBufferInfo=written)
    vk.vkUpdateDescriptorSets(device, 1, [write], 0, None)
code = KERNEL.read_bytes()
module = vk.vkCreateShaderModule(device, vk.VkShaderModuleCreateInfo(codeSize=len(code), pCode=code), None)
name = vk.ffi.new("char[]", b"main")
shader = vk.VkPipelineShaderStageCreateInfo(stage=stage, module=module, pName=name)
create = vk.VkComputePipelineCreateInfo(stage=shader, layout=layout)
pipeline = vk.vkCreateComputePipelines(device, None, 1, [create], None)[0]

timeline_type = vk.VkSemaphoreTypeCreateInfo(semaphoreType=vk.VK_SEMAPHORE_TYPE_TIMELINE)
timeline = vk.vkCreateSemaphore(device, vk.VkSemaphoreCreateInfo(pNext=timeline_type), None)
binary = vk.vkCreateSemaphore(device, vk.VkSemaphoreCreateInfo(), None)
fence = vk.vkCreateFence(device, vk.VkFenceCreateInfo(), None)


def barrier(commands, before, after):
    """A layout transition behind and before everything."""
    whole = vk.VkImageMemoryBarrier(
        srcAccessMask=EVERY,
        dstAccessMask=EVERY,
        oldLayout=before,
        newLayout=after,
        srcQueueFamilyIndex=vk.VK_QUEUE_FAMILY_IGNORED,
        dstQueueFamilyIndex=vk.VK_QUEUE_FAMILY_IGNORED,
        image=image,
        subresourceRange=WHOLE,
    )
    vk.vkCmdPipelineBarrier(commands, ALL, ALL, 0, 0, None, 0, None, 1, [whole])


def submit(commands, waits, signals, values, fence=None):
    """One batch; `values` are those of the timeline that it waits for and signals."""
    vk.vkEndCommandBuffer(commands)
    chain = vk.VkTimelineSemaphoreSubmitInfo(
        pWaitSemaphoreValues=[values[0]] * len(waits), pSignalSemaphoreValues=[values[1]] * len(signals)
    )
    info = vk.VkSubmitInfo(
        pNext=chain,
        pWaitSemaphores=waits,
        pWaitDstStageMask=[ALL] * len(waits),
        pCommandBuffers=[commands],
        pSignalSemaphores=signals,
    )
    vk.vkQueueSubmit(rig.queue, 1, [info], fence)


first = rig.commands()
barrier(first, UNDEFINED, TARGET)
vk.vkCmdClearColorImage(first, image, TARGET, vk.VkClearColorValue(float32=[0.2, 0.4, 0.6, 0.8]), 1, [WHOLE])
barrier(first, TARGET, SOURCE)
submit(first, [], [binary, timeline], (0, 1), fence)
vk.vkDeviceWaitIdle(device)
for number in range(1, 4):
    vk.vkWaitForFences(device, 1, [fence], True, 10**10)
    vk.vkResetFences(device, 1, [fence])
    mapped[0:4] = bytes([number] * 4)
    frame = rig.commands()
    every = vk.VkMemoryBarrier(srcAccessMask=EVERY, dstAccessMask=EVERY)
    vk.vkCmdCopyImageToBuffer(frame, image, SOURCE, b, 1, [REGION])
    vk.vkCmdPipelineBarrier(frame, ALL, ALL, 0, 1, [every], 0, None, 0, None)
    vk.vkCmdBindPipeline(frame, vk.VK_PIPELINE_BIND_POINT_COMPUTE, pipeline)
    vk.vkCmdBindDescriptorSets(frame, vk.VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, [sets], 0, None)
    vk.vkCmdDispatch(frame, 1, 1, 1)
    vk.vkCmdPipelineBarrier(frame, ALL, ALL, 0, 1, [every], 0, None, 0, None)
    vk.vkCmdCopyBuffer(frame, a, b, 1, [vk.VkBufferCopy(0, 0, 4)])
    submit(frame, [binary, timeline], [binary, timeline], (number, number + 1), fence)
    vk.vkDeviceWaitIdle(device)
print("done")
