"""Parts that every raw program here needs: instance, device, queue and buffers, through the `vulkan` package alone."""

import vulkan as vk


class Rig:
    """One device with one queue, and what is made on it."""

    def __init__(self, extensions=(), features=None, layers=(), instance_next=None, instance_extensions=()):
        app = vk.VkApplicationInfo(pApplicationName="rig", apiVersion=vk.VK_MAKE_VERSION(1, 3, 0))
        info = vk.VkInstanceCreateInfo(
            pNext=instance_next,
            pApplicationInfo=app,
            ppEnabledLayerNames=list(layers),
            ppEnabledExtensionNames=list(instance_extensions),
        )
        self.instance = vk.vkCreateInstance(info, None)
        self.physical = vk.vkEnumeratePhysicalDevices(self.instance)[0]
        queue = vk.VkDeviceQueueCreateInfo(queueFamilyIndex=0, pQueuePriorities=[1.0])
        features = features or vk.VkPhysicalDeviceVulkan13Features(synchronization2=1)
        info = vk.VkDeviceCreateInfo(
            pNext=features, pQueueCreateInfos=[queue], ppEnabledExtensionNames=list(extensions)
        )
        self.device = vk.vkCreateDevice(self.physical, info, None)
        self.queue = vk.vkGetDeviceQueue(self.device, 0, 0)
        flags = vk.VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT
        self.pool = vk.vkCreateCommandPool(
            self.device, vk.VkCommandPoolCreateInfo(flags=flags, queueFamilyIndex=0), None
        )
        self.made = []

    def buffer(self, size=1024, usage=0x23):
        """A buffer (by default for transfers and storage) on memory of its own that the host can see."""
        buffer = vk.vkCreateBuffer(self.device, vk.VkBufferCreateInfo(size=size, usage=usage), None)
        need = vk.vkGetBufferMemoryRequirements(self.device, buffer)
        properties = vk.vkGetPhysicalDeviceMemoryProperties(self.physical)
        kind = next(
            i
            for i in range(properties.memoryTypeCount)
            if need.memoryTypeBits >> i & 1 and properties.memoryTypes[i].propertyFlags & 6 == 6
        )
        info = vk.VkMemoryAllocateInfo(allocationSize=need.size, memoryTypeIndex=kind)
        memory = vk.vkAllocateMemory(self.device, info, None)
        vk.vkBindBufferMemory(self.device, buffer, memory, 0)
        self.made.append((buffer, memory))
        return buffer, memory

    def commands(self):
        """A command buffer that is being recorded."""
        info = vk.VkCommandBufferAllocateInfo(commandPool=self.pool, level=0, commandBufferCount=1)
        commands = vk.vkAllocateCommandBuffers(self.device, info)[0]
        vk.vkBeginCommandBuffer(commands, vk.VkCommandBufferBeginInfo())
        return commands

    def submit(self, commands, wait=True):
        """Ends and submits a command buffer, and by default waits for the queue."""
        vk.vkEndCommandBuffer(commands)
        vk.vkQueueSubmit(self.queue, 1, [vk.VkSubmitInfo(pCommandBuffers=[commands])], None)
        if wait:
            vk.vkQueueWaitIdle(self.queue)

    def close(self):
        """Destroys everything."""
        vk.vkDeviceWaitIdle(self.device)
        for buffer, memory in self.made:
            vk.vkDestroyBuffer(self.device, buffer, None)
            vk.vkFreeMemory(self.device, memory, None)
        vk.vkDestroyCommandPool(self.device, self.pool, None)
        vk.vkDestroyDevice(self.device, None)
        vk.vkDestroyInstance(self.instance, None)
