"""A program with hazards, for `vkharness run`: it imports nothing of the harness and needs no change.

It fills a buffer and copies it with no barrier between. A second submit has two dispatches that read and write the same
two buffers. The verdict and five hazards go to stderr; the program's own output stays as it is.

    $ vkharness run examples/two_submits.py  # exits 1
    done
    1. READ_AFTER_WRITE on VkBuffer 6 [0, 256)
            vkCmdCopyBuffer SYNC_COPY_TRANSFER_READ at examples/two_submits.py:77 (call 26, command buffer 16)
      after vkCmdFillBuffer SYNC_CLEAR_TRANSFER_WRITE at examples/two_submits.py:76 (call 25, command buffer 16)
    ...
    hazards - 5 hazards: 3 READ_AFTER_WRITE, 2 WRITE_AFTER_WRITE
    races between invocations are not judged here; `vkharness races` looks inside dispatches
"""

import sys
from pathlib import Path

import vulkan as vk

SIZE = 256
KERNEL = Path(__file__).resolve().parents[1] / "shaders" / "copy_words.comp.spv"

app = vk.VkApplicationInfo(pApplicationName="two submits", apiVersion=vk.VK_MAKE_VERSION(1, 3, 0))
instance = vk.vkCreateInstance(vk.VkInstanceCreateInfo(pApplicationInfo=app), None)
physical = vk.vkEnumeratePhysicalDevices(instance)[0]
queue_info = vk.VkDeviceQueueCreateInfo(queueFamilyIndex=0, pQueuePriorities=[1.0])
device = vk.vkCreateDevice(physical, vk.VkDeviceCreateInfo(pQueueCreateInfos=[queue_info]), None)
queue = vk.vkGetDeviceQueue(device, 0, 0)
pool = vk.vkCreateCommandPool(device, vk.VkCommandPoolCreateInfo(queueFamilyIndex=0), None)


def make_buffer():
    usage = vk.VK_BUFFER_USAGE_TRANSFER_SRC_BIT | vk.VK_BUFFER_USAGE_TRANSFER_DST_BIT
    usage |= vk.VK_BUFFER_USAGE_STORAGE_BUFFER_BIT
    buffer = vk.vkCreateBuffer(device, vk.VkBufferCreateInfo(size=SIZE, usage=usage), None)
    needs = vk.vkGetBufferMemoryRequirements(device, buffer)
    kind = (needs.memoryTypeBits & -needs.memoryTypeBits).bit_length() - 1
    memory = vk.vkAllocateMemory(device, vk.VkMemoryAllocateInfo(allocationSize=needs.size, memoryTypeIndex=kind), None)
    vk.vkBindBufferMemory(device, buffer, memory, 0)
    return buffer, memory


def make_kernel(a, b):
    stage, kind = vk.VK_SHADER_STAGE_COMPUTE_BIT, vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
    bindings = [
        vk.VkDescriptorSetLayoutBinding(binding=i, descriptorType=kind, descriptorCount=1, stageFlags=stage)
        for i in range(2)
    ]
    set_layout = vk.vkCreateDescriptorSetLayout(device, vk.VkDescriptorSetLayoutCreateInfo(pBindings=bindings), None)
    layout = vk.vkCreatePipelineLayout(device, vk.VkPipelineLayoutCreateInfo(pSetLayouts=[set_layout]), None)
    sizes = [vk.VkDescriptorPoolSize(type=kind, descriptorCount=2)]
    sets = vk.vkCreateDescriptorPool(device, vk.VkDescriptorPoolCreateInfo(maxSets=1, pPoolSizes=sizes), None)
    allocate = vk.VkDescriptorSetAllocateInfo(descriptorPool=sets, pSetLayouts=[set_layout])
    descriptors = vk.vkAllocateDescriptorSets(device, allocate)[0]
    for binding, buffer in enumerate((a, b)):
        info = [vk.VkDescriptorBufferInfo(buffer=buffer, offset=0, range=SIZE)]
        write = vk.VkWriteDescriptorSet(dstSet=descriptors, dstBinding=binding, descriptorType=kind, pBufferInfo=info)
        vk.vkUpdateDescriptorSets(device, 1, [write], 0, None)
    code = KERNEL.read_bytes()
    module = vk.vkCreateShaderModule(device, vk.VkShaderModuleCreateInfo(codeSize=len(code), pCode=code), None)
    name = vk.ffi.new("char[]", b"main")
    main = vk.VkPipelineShaderStageCreateInfo(stage=stage, module=module, pName=name)
    create = vk.VkComputePipelineCreateInfo(stage=main, layout=layout)
    pipeline = vk.vkCreateComputePipelines(device, None, 1, [create], None)[0]
    return pipeline, layout, descriptors


a, _ = make_buffer()
b, _ = make_buffer()
pipeline, layout, descriptors = make_kernel(a, b)
allocate = vk.VkCommandBufferAllocateInfo(commandPool=pool, commandBufferCount=2)
first, second = vk.vkAllocateCommandBuffers(device, allocate)

vk.vkBeginCommandBuffer(first, vk.VkCommandBufferBeginInfo())
vk.vkCmdFillBuffer(first, a, 0, SIZE, 0x11111111)
vk.vkCmdCopyBuffer(first, a, b, 1, [vk.VkBufferCopy(srcOffset=0, dstOffset=0, size=SIZE)])
vk.vkEndCommandBuffer(first)

vk.vkBeginCommandBuffer(second, vk.VkCommandBufferBeginInfo())
vk.vkCmdBindPipeline(second, vk.VK_PIPELINE_BIND_POINT_COMPUTE, pipeline)
vk.vkCmdBindDescriptorSets(second, vk.VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, [descriptors], 0, None)
vk.vkCmdDispatch(second, 1, 1, 1)
vk.vkCmdDispatch(second, 1, 1, 1)
vk.vkEndCommandBuffer(second)

vk.vkQueueSubmit(queue, 1, [vk.VkSubmitInfo(pCommandBuffers=[first])], None)
vk.vkQueueSubmit(queue, 1, [vk.VkSubmitInfo(pCommandBuffers=[second])], None)
vk.vkQueueWaitIdle(queue)
print("done", *sys.argv[1:])
