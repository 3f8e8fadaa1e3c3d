"""The small engine that the programs here share: device, memory, pipelines, commands, queues, swapchain."""

import vulkan as vk
from short_names import *
from small_commands import SmallCommands
from small_device import Image


class Engine(SmallCommands):
    """Submits, waits and presents."""

    # Queues

    def fence(self, signaled=False):
        return vk.vkCreateFence(self.device, vk.VkFenceCreateInfo(flags=int(signaled)), None)

    def semaphore(self, timeline=False):
        chain = vk.VkSemaphoreTypeCreateInfo(semaphoreType=1) if timeline else None
        return vk.vkCreateSemaphore(self.device, vk.VkSemaphoreCreateInfo(pNext=chain), None)

    def submit(self, commands, waits=(), signals=(), fence=None, family=0):
        """Ends and submits; a wait is (semaphore, "STAGE"[, value]), a signal (semaphore[, value])."""
        each = commands if isinstance(commands, list) else [commands] if commands else []
        for one in each:
            vk.vkEndCommandBuffer(one)
        if self.sync2:
            w = [
                vk.VkSemaphoreSubmitInfo(semaphore=s, stageMask=stages(at), value=v[0] if v else 0)
                for s, at, *v in waits
            ]
            s = [
                vk.VkSemaphoreSubmitInfo(semaphore=s, stageMask=stages("ALL_COMMANDS"), value=v[0] if v else 0)
                for s, *v in signals
            ]
            c = [vk.VkCommandBufferSubmitInfo(commandBuffer=one) for one in each]
            vk.vkQueueSubmit2(
                self.queues[family],
                1,
                [vk.VkSubmitInfo2(pWaitSemaphoreInfos=w, pCommandBufferInfos=c, pSignalSemaphoreInfos=s)],
                fence,
            )
        else:
            values = vk.VkTimelineSemaphoreSubmitInfo(
                pWaitSemaphoreValues=[w[2] if len(w) > 2 else 0 for w in waits],
                pSignalSemaphoreValues=[s[1] if len(s) > 1 else 0 for s in signals],
            )
            info = vk.VkSubmitInfo(
                pNext=values if any(len(w) > 2 for w in waits) or any(len(s) > 1 for s in signals) else None,
                pWaitSemaphores=[w[0] for w in waits],
                pWaitDstStageMask=[stages(w[1]) for w in waits],
                pCommandBuffers=each,
                pSignalSemaphores=[s[0] for s in signals],
            )
            vk.vkQueueSubmit(self.queues[family], 1, [info], fence)

    def wait(self, fence, reset=True):
        vk.vkWaitForFences(self.device, 1, [fence], True, FOREVER)
        if reset:
            vk.vkResetFences(self.device, 1, [fence])

    def idle(self):
        vk.vkDeviceWaitIdle(self.device)

    def swapchain(self, size=(16, 16), images=3):
        create = vk.vkGetInstanceProcAddr(self.instance, "vkCreateHeadlessSurfaceEXT")
        surface = create(self.instance, vk.VkHeadlessSurfaceCreateInfoEXT(), None)
        vk.vkGetInstanceProcAddr(self.instance, "vkGetPhysicalDeviceSurfaceSupportKHR")(self.physical, 0, surface)
        formats = vk.vkGetInstanceProcAddr(self.instance, "vkGetPhysicalDeviceSurfaceFormatsKHR")(
            self.physical, surface
        )
        first = formats[0]
        info = vk.VkSwapchainCreateInfoKHR(
            surface=surface,
            minImageCount=images,
            imageFormat=first.format,
            imageColorSpace=first.colorSpace,
            imageExtent=vk.VkExtent2D(*size),
            imageArrayLayers=1,
            imageUsage=0x17,
            preTransform=1,
            compositeAlpha=1,
            presentMode=vk.VK_PRESENT_MODE_FIFO_KHR,
            clipped=True,
        )
        made = self.call("vkCreateSwapchainKHR")(self.device, info, None)
        held = {"format": first.format, "extent": size, "mips": 1, "layers": 1}
        return made, [Image(self, h, None, held) for h in self.call("vkGetSwapchainImagesKHR")(self.device, made)]

    def call(self, name):
        return vk.vkGetDeviceProcAddr(self.device, name)

    def acquire(self, swapchain, semaphore=None, fence=None):
        return self.call("vkAcquireNextImageKHR")(self.device, swapchain, FOREVER, semaphore, fence)

    def present(self, swapchain, index, waits, family=0):
        info = vk.VkPresentInfoKHR(pWaitSemaphores=waits, pSwapchains=[swapchain], pImageIndices=[index])
        self.call("vkQueuePresentKHR")(self.queues[family], info)
