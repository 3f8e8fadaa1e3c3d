"""Clears and presents the images of a swapchain: two frames in flight, semaphores and fences, no render pass.

Every dependency is there: the clear waits for the acquire at the transfer stage, where the layout transition starts
too, and the present waits for the clear. `mend=False` makes the transition start at the top of the pipe instead, which
the semaphore's wait does not cover.
"""

import vulkan as vk

FRAMES_IN_FLIGHT = 2
FOREVER = 0xFFFFFFFFFFFFFFFF
TRANSFER = vk.VK_PIPELINE_STAGE_TRANSFER_BIT
WRITE = vk.VK_ACCESS_TRANSFER_WRITE_BIT


def make_instance(extensions):
    """A Vulkan 1.3 instance for surfaces."""
    app = vk.VkApplicationInfo(pApplicationName="presenter", apiVersion=vk.VK_MAKE_VERSION(1, 3, 0))
    info = vk.VkInstanceCreateInfo(pApplicationInfo=app, ppEnabledExtensionNames=list(extensions))
    return vk.vkCreateInstance(info, None)


class Presenter:
    """A device and a swapchain on a surface."""

    def __init__(self, instance, surface, extent, mend=True, frames=FRAMES_IN_FLIGHT, images=0):
        self.instance, self.surface, self.mend, self.count = instance, surface, mend, images
        self.physical = vk.vkEnumeratePhysicalDevices(instance)[0]
        queue = vk.VkDeviceQueueCreateInfo(queueFamilyIndex=0, pQueuePriorities=[1.0])
        info = vk.VkDeviceCreateInfo(
            pQueueCreateInfos=[queue], ppEnabledExtensionNames=[vk.VK_KHR_SWAPCHAIN_EXTENSION_NAME]
        )
        self.device = vk.vkCreateDevice(self.physical, info, None)
        self.queue = vk.vkGetDeviceQueue(self.device, 0, 0)
        self.swapchain = self.make_swapchain(extent)
        self.images = self.device_function("vkGetSwapchainImagesKHR")(self.device, self.swapchain)
        info = vk.VkCommandPoolCreateInfo(flags=vk.VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT)
        self.pool = vk.vkCreateCommandPool(self.device, info, None)
        info = vk.VkCommandBufferAllocateInfo(commandPool=self.pool, level=0, commandBufferCount=frames)
        self.commands = vk.vkAllocateCommandBuffers(self.device, info)
        self.acquired = [self.semaphore() for _ in range(frames)]
        self.cleared = [self.semaphore() for _ in self.images]
        signaled = vk.VkFenceCreateInfo(flags=vk.VK_FENCE_CREATE_SIGNALED_BIT)
        self.fences = [vk.vkCreateFence(self.device, signaled, None) for _ in range(frames)]

    def device_function(self, name):
        """An extension function of the device."""
        return vk.vkGetDeviceProcAddr(self.device, name)

    def instance_function(self, name):
        """An extension function of the instance."""
        return vk.vkGetInstanceProcAddr(self.instance, name)

    def semaphore(self):
        """A binary semaphore."""
        return vk.vkCreateSemaphore(self.device, vk.VkSemaphoreCreateInfo(), None)

    def make_swapchain(self, extent, old=None):
        """A swapchain of the surface's first format with the images asked for, or with one more than it must have."""
        supported = self.instance_function("vkGetPhysicalDeviceSurfaceSupportKHR")
        if not supported(self.physical, 0, self.surface):
            raise SystemExit("the device cannot present to this surface")
        limits = self.instance_function("vkGetPhysicalDeviceSurfaceCapabilitiesKHR")(self.physical, self.surface)
        formats = self.instance_function("vkGetPhysicalDeviceSurfaceFormatsKHR")(self.physical, self.surface)
        format = formats[0]  # which does not keep the array alive
        least = limits.minImageCount + (limits.maxImageCount != limits.minImageCount)
        info = vk.VkSwapchainCreateInfoKHR(
            surface=self.surface,
            minImageCount=max(limits.minImageCount, self.count or least),
            imageFormat=format.format,
            imageColorSpace=format.colorSpace,
            imageExtent=vk.VkExtent2D(*extent),
            imageArrayLayers=1,
            imageUsage=vk.VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | vk.VK_IMAGE_USAGE_TRANSFER_DST_BIT,
            imageSharingMode=vk.VK_SHARING_MODE_EXCLUSIVE,
            preTransform=limits.currentTransform,
            compositeAlpha=vk.VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR,
            presentMode=vk.VK_PRESENT_MODE_FIFO_KHR,
            clipped=True,
            oldSwapchain=old,
        )
        return self.device_function("vkCreateSwapchainKHR")(self.device, info, None)

    def frame(self, number):
        """Acquires, clears and presents one image."""
        slot = number % len(self.fences)
        fence, acquired, commands = self.fences[slot], self.acquired[slot], self.commands[slot]
        vk.vkWaitForFences(self.device, 1, [fence], True, FOREVER)
        vk.vkResetFences(self.device, 1, [fence])
        acquire = self.device_function("vkAcquireNextImageKHR")
        index = acquire(self.device, self.swapchain, FOREVER, acquired, None)
        self.record(commands, self.images[index], number)
        submit = vk.VkSubmitInfo(
            pWaitSemaphores=[acquired],
            pWaitDstStageMask=[TRANSFER],
            pCommandBuffers=[commands],
            pSignalSemaphores=[self.cleared[index]],
        )
        vk.vkQueueSubmit(self.queue, 1, [submit], fence)
        present = vk.VkPresentInfoKHR(
            pWaitSemaphores=[self.cleared[index]], pSwapchains=[self.swapchain], pImageIndices=[index]
        )
        self.device_function("vkQueuePresentKHR")(self.queue, present)

    def record(self, commands, image, number):
        """One clear between two layout transitions."""
        whole = vk.VkImageSubresourceRange(vk.VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1)
        undefined, writable = vk.VK_IMAGE_LAYOUT_UNDEFINED, vk.VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL
        presented = vk.VK_IMAGE_LAYOUT_PRESENT_SRC_KHR
        top, bottom = vk.VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, vk.VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT
        vk.vkBeginCommandBuffer(commands, vk.VkCommandBufferBeginInfo())
        self.transition(
            commands, image, whole, (undefined, writable), (TRANSFER if self.mend else top, 0), (TRANSFER, WRITE)
        )
        color = vk.VkClearColorValue(float32=[number % 2, 0.5, 0.25, 1.0])
        vk.vkCmdClearColorImage(commands, image, writable, [color], 1, [whole])
        self.transition(commands, image, whole, (writable, presented), (TRANSFER, WRITE), (bottom, 0))
        vk.vkEndCommandBuffer(commands)

    def transition(self, commands, image, whole, layouts, before, after):
        """A layout transition; `before` and `after` are (stage, accesses)."""
        barrier = vk.VkImageMemoryBarrier(
            srcAccessMask=before[1],
            dstAccessMask=after[1],
            oldLayout=layouts[0],
            newLayout=layouts[1],
            srcQueueFamilyIndex=vk.VK_QUEUE_FAMILY_IGNORED,
            dstQueueFamilyIndex=vk.VK_QUEUE_FAMILY_IGNORED,
            image=image,
            subresourceRange=whole,
        )
        vk.vkCmdPipelineBarrier(commands, before[0], after[0], 0, 0, None, 0, None, 1, [barrier])

    def close(self):
        """Destroys everything, the instance too."""
        vk.vkDeviceWaitIdle(self.device)
        for semaphore in (*self.acquired, *self.cleared):
            vk.vkDestroySemaphore(self.device, semaphore, None)
        for fence in self.fences:
            vk.vkDestroyFence(self.device, fence, None)
        vk.vkDestroyCommandPool(self.device, self.pool, None)
        self.device_function("vkDestroySwapchainKHR")(self.device, self.swapchain, None)
        vk.vkDestroyDevice(self.device, None)
        self.instance_function("vkDestroySurfaceKHR")(self.instance, self.surface, None)
        vk.vkDestroyInstance(self.instance, None)
