"""One device with one queue, and buffers on it: what the examples need of Vulkan beside what they show."""

import vulkan as vk


class Device:
    """The first device that the loader finds."""

    def __init__(self):
        app = vk.VkApplicationInfo(pApplicationName="example", apiVersion=vk.VK_MAKE_VERSION(1, 3, 0))
        self.instance = vk.vkCreateInstance(vk.VkInstanceCreateInfo(pApplicationInfo=app), None)
        self.physical = vk.vkEnumeratePhysicalDevices(self.instance)[0]
        queue = vk.VkDeviceQueueCreateInfo(queueFamilyIndex=0, pQueuePriorities=[1.0])
        self.device = vk.vkCreateDevice(self.physical, vk.VkDeviceCreateInfo(pQueueCreateInfos=[queue]), None)
        self.queue = vk.vkGetDeviceQueue(self.device, 0, 0)
        self.pool = vk.vkCreateCommandPool(self.device, vk.VkCommandPoolCreateInfo(queueFamilyIndex=0), None)

    def buffer(self, size=256):
        """A buffer for transfers, on memory of its own."""
        usage = vk.VK_BUFFER_USAGE_TRANSFER_SRC_BIT | vk.VK_BUFFER_USAGE_TRANSFER_DST_BIT
        buffer = vk.vkCreateBuffer(self.device, vk.VkBufferCreateInfo(size=size, usage=usage), None)
        need = vk.vkGetBufferMemoryRequirements(self.device, buffer)
        kind = (need.memoryTypeBits & -need.memoryTypeBits).bit_length() - 1
        info = vk.VkMemoryAllocateInfo(allocationSize=need.size, memoryTypeIndex=kind)
        vk.vkBindBufferMemory(self.device, buffer, vk.vkAllocateMemory(self.device, info, None), 0)
        return buffer

    def begin(self):
        """A command buffer that is being recorded."""
        info = vk.VkCommandBufferAllocateInfo(commandPool=self.pool, commandBufferCount=1)
        commands = vk.vkAllocateCommandBuffers(self.device, info)[0]
        vk.vkBeginCommandBuffer(commands, vk.VkCommandBufferBeginInfo())
        return commands

    def submit(self, commands):
        """Ends and submits a command buffer, and waits for the queue."""
        vk.vkEndCommandBuffer(commands)
        vk.vkQueueSubmit(self.queue, 1, [vk.VkSubmitInfo(pCommandBuffers=[commands])], None)
        vk.vkQueueWaitIdle(self.queue)


def transfer_barrier(commands):
    """Makes writes of transfers before it visible to transfers after it."""
    transfer = vk.VK_PIPELINE_STAGE_TRANSFER_BIT
    write, read = vk.VK_ACCESS_TRANSFER_WRITE_BIT, vk.VK_ACCESS_TRANSFER_READ_BIT
    barrier = vk.VkMemoryBarrier(srcAccessMask=write, dstAccessMask=read)
    vk.vkCmdPipelineBarrier(commands, transfer, transfer, 0, 1, [barrier], 0, None, 0, None)
