"""Swapchains, on a headless surface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vkharness.device.failed_calls import refusal
from vkharness.device.headless import DeviceQueue
from vkharness.findings import LacksError, UserError
from vkharness.rig.command_buffers import CommandBuffers
from vkharness.rig.core import RigImage
from vkharness.rig.queues import SemaphoreUse, Submits
from vkharness.spec.enums import VkCompositeAlpha, VkImageUsage, VkPresentMode
from vkharness.spec.names import enum_value

EXTENT = (16, 16)
"""The size of a swapchain image in texels."""
USAGE = VkImageUsage.TRANSFER_SRC | VkImageUsage.TRANSFER_DST | VkImageUsage.COLOR_ATTACHMENT
"""The usage of swapchain images: TRANSFER_SRC, TRANSFER_DST, COLOR_ATTACHMENT."""
SHOWN = "PRESENT_SRC_KHR"
"""The VkImageLayout of images that are presented."""
FOREVER = 0xFFFFFFFFFFFFFFFF


@dataclass(slots=True)
class RigSwapchain:
    """A VkSwapchainKHR with its surface and images."""

    handle: Any
    surface: Any
    images: list[RigImage]
    at_once: int
    """The number of images that can be acquired at the same time."""


class Swapchains(CommandBuffers, Submits):
    """Swapchains of one device, and their presentation."""

    def _surface(self) -> Any:
        """A VkSurfaceKHR without a window. Raises `LacksError` when presentation to it is not supported."""
        vk, instance = self.vk, self.gpu.instance
        create = vk.vkGetInstanceProcAddr(instance, "vkCreateHeadlessSurfaceEXT")
        made = create(instance, vk.VkHeadlessSurfaceCreateInfoEXT(), None)
        destroy = vk.vkGetInstanceProcAddr(instance, "vkDestroySurfaceKHR")
        self.gpu.cleanup.callback(destroy, instance, made, None)
        supported = vk.vkGetInstanceProcAddr(instance, "vkGetPhysicalDeviceSurfaceSupportKHR")
        if not supported(self.gpu.physical_device, self.queues[0].family, made):
            raise LacksError(f"cannot run here: {self.gpu.device_name} does not present to a headless surface")
        return made

    def swapchain(
        self,
        old: RigSwapchain | None = None,
        *,
        images: int = 2,
        at_once: int = 1,
        format: str = "",
        extent: tuple[int, int] = EXTENT,
        usage: int = USAGE,
    ) -> RigSwapchain:
        """A swapchain of so many images, or of as near as the surface allows, and of as many more as it takes to
        acquire `at_once` of them at the same time. With `old` it takes over the surface and retires `old`. `format` is
        the name of a VkFormat without VK_FORMAT_; empty for the surface's first one. Raises `LacksError` when the
        surface has fewer images than `at_once` takes."""
        vk, physical = self.vk, self.gpu.physical_device
        where = self._surface() if old is None else old.surface
        ask = vk.vkGetInstanceProcAddr(self.gpu.instance, "vkGetPhysicalDeviceSurfaceCapabilitiesKHR")
        limits = ask(physical, where)
        fewest, most = limits.minImageCount + at_once - 1, limits.maxImageCount or FOREVER
        if fewest > most:
            raise LacksError(f"cannot run here: {self.gpu.device_name} has too few images in a swapchain")
        list_formats = vk.vkGetInstanceProcAddr(self.gpu.instance, "vkGetPhysicalDeviceSurfaceFormatsKHR")
        formats = list_formats(physical, where)  # an element of the array does not keep the array alive
        wanted = enum_value("VkFormat", f"VK_FORMAT_{format}") if format else int(formats[0].format)
        fitting = next((each for each in formats if int(each.format) == wanted), None)
        if fitting is None:
            raise UserError(f"cannot run here: {self.gpu.device_name} presents no VK_FORMAT_{format}")
        info = vk.VkSwapchainCreateInfoKHR(
            surface=where,
            minImageCount=max(fewest, min(images, most)),
            imageFormat=wanted,
            imageColorSpace=fitting.colorSpace,
            imageExtent=vk.VkExtent2D(*extent),
            imageArrayLayers=1,
            imageUsage=usage,
            preTransform=limits.currentTransform,
            compositeAlpha=VkCompositeAlpha.OPAQUE,
            presentMode=VkPresentMode.FIFO,
            clipped=True,
            oldSwapchain=None if old is None else old.handle,
            **{"imageSharingMode" if key == "sharingMode" else key: each for key, each in self.sharing(False).items()},
        )
        handle = self.function("vkCreateSwapchainKHR")(self.device, info, None)
        self.gpu.cleanup.callback(self.function("vkDestroySwapchainKHR"), self.device, handle, None)
        several = self.function("vkGetSwapchainImagesKHR")(self.device, handle)
        made = [RigImage(each, wanted, (*extent, 1), 1, 1, 1, 1, None, usage) for each in several]
        return RigSwapchain(handle, where, made, len(made) - limits.minImageCount + 1)

    def shown_swapchain(self, **options: Any) -> RigSwapchain:
        """A swapchain that has presented as many of its images as can be acquired at once, each in its own colour.

        The host has waited for that, so that the presentation engine has something to read. `options` are those of
        `swapchain`.
        """
        made = self.swapchain(**options)
        clear, target = "CLEAR/TRANSFER_WRITE", "TRANSFER_DST_OPTIMAL"
        semaphores = [(self.semaphore(), self.semaphore()) for _ in range(made.at_once)]
        indices = [self.acquire(made, acquired) for acquired, _ in semaphores]
        for index, (acquired, done) in zip(indices, semaphores, strict=True):
            image = made.images[index]
            with self.commands() as commands:
                commands.transition(image, src="CLEAR", dst=clear, new=target)
                commands.clear_color(image, 0x11111111 * (index + 1), at=target)
                commands.transition(image, src=clear, dst="NONE", old=target, new=SHOWN)
            self.submit(commands, waits=[SemaphoreUse(acquired, "CLEAR")], signals=[SemaphoreUse(done)], sync2=True)
            self.present((made, index), waits=[done])
        self.wait()
        return made

    def acquire(
        self,
        swapchain: RigSwapchain,
        semaphore: Any = None,
        fence: Any = None,
        v2: bool = False,
        *,
        wanted: int | None = None,
    ) -> int:
        """The index of an image that the presentation engine hands out, by vkAcquireNextImageKHR or
        vkAcquireNextImage2KHR.

        With `wanted`, `UserError` when that is another image.
        """
        acquire = self._acquire_v2 if v2 else self._acquire_v1
        index = acquire(swapchain, semaphore, fence)
        if wanted not in (None, index):
            raise UserError(f"cannot run here: the presentation engine hands out image {index}, and not {wanted}")
        return index

    def _acquire_v1(self, swapchain: RigSwapchain, semaphore: Any, fence: Any) -> int:
        return int(self.function("vkAcquireNextImageKHR")(self.device, swapchain.handle, FOREVER, semaphore, fence))

    def _acquire_v2(self, swapchain: RigSwapchain, semaphore: Any, fence: Any) -> int:
        # The package's own function for the second form takes one argument too few.
        vk, ffi = self.vk, self.vk.ffi
        info = vk.VkAcquireNextImageInfoKHR(
            swapchain=swapchain.handle, timeout=FOREVER, semaphore=semaphore, fence=fence, deviceMask=1
        )
        index = ffi.new("uint32_t *")
        result = self.c_function("vkAcquireNextImage2KHR")(self.device, ffi.addressof(info), index)
        if result < 0:
            raise refusal("vkAcquireNextImage2KHR failed", str(ffi.typeof("VkResult").elements.get(result, result)))
        return int(index[0])

    def present(
        self,
        *images: tuple[RigSwapchain, int],
        waits: Sequence[Any] = (),
        queue: DeviceQueue | None = None,
        fences: Sequence[Any] = (),
    ) -> None:
        """vkQueuePresentKHR of (swapchain, index) pairs, after binary semaphores. `fences` are those of the presents
        (VK_EXT_swapchain_maintenance1), one for each pair."""
        vk = self.vk
        chain = vk.VkSwapchainPresentFenceInfoEXT(swapchainCount=len(fences), pFences=list(fences)) if fences else None
        info = vk.VkPresentInfoKHR(
            pNext=chain,
            waitSemaphoreCount=len(waits),
            pWaitSemaphores=list(waits),
            swapchainCount=len(images),
            pSwapchains=[each.handle for each, _ in images],
            pImageIndices=[index for _, index in images],
        )
        self.function("vkQueuePresentKHR")((queue or self.queues[0]).handle, info)
