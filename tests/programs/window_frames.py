"""A frame loop in a window: the host writes the texels of each frame, with several frames in flight.

python window_frames.py FRAMES_IN_FLIGHT IMAGES FRAMES [resize] [shared]

`resize` gives the window another size in the middle, so that the swapchain is made anew. `shared` is a mistake: one
staging buffer for all frames in flight.
"""

import sys

import glfw
import vulkan as vk
from presenter import TRANSFER, WRITE, Presenter, make_instance

SIZE, OTHER_SIZE = (96, 64), (64, 48)
OUT_OF_DATE = (vk.VkSuboptimalKhr, vk.VkErrorOutOfDateKhr)


class Frames(Presenter):
    """A presenter that copies a staging buffer of each frame in flight to the image."""

    def __init__(self, instance, surface, frames, images, shared):
        self.extent, self.retired = SIZE, []
        super().__init__(instance, surface, SIZE, frames=frames, images=images)
        count = 1 if shared else frames
        self.staging = [self.make_staging(4 * SIZE[0] * SIZE[1]) for _ in range(count)]

    def make_staging(self, size):
        """A buffer that stays mapped: the buffer, its memory, and the bytes."""
        usage = vk.VK_BUFFER_USAGE_TRANSFER_SRC_BIT
        buffer = vk.vkCreateBuffer(self.device, vk.VkBufferCreateInfo(size=size, usage=usage), None)
        needs = vk.vkGetBufferMemoryRequirements(self.device, buffer)
        wanted = vk.VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | vk.VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
        found = vk.vkGetPhysicalDeviceMemoryProperties(self.physical)
        index = next(
            at
            for at in range(found.memoryTypeCount)
            if needs.memoryTypeBits >> at & 1 and found.memoryTypes[at].propertyFlags & wanted == wanted
        )
        info = vk.VkMemoryAllocateInfo(allocationSize=needs.size, memoryTypeIndex=index)
        memory = vk.vkAllocateMemory(self.device, info, None)
        vk.vkBindBufferMemory(self.device, buffer, memory, 0)
        return buffer, memory, vk.vkMapMemory(self.device, memory, 0, size, 0)

    def record(self, commands, image, number):
        """The host writes the texels; the commands copy them to the image."""
        buffer, _, texels = self.staging[number % len(self.staging)]
        width, height = self.extent
        texels[: 4 * width * height] = bytes([number * 40 % 256, 128, 64, 255]) * (width * height)
        whole = vk.VkImageSubresourceRange(vk.VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1)
        undefined, writable = vk.VK_IMAGE_LAYOUT_UNDEFINED, vk.VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL
        presented, bottom = vk.VK_IMAGE_LAYOUT_PRESENT_SRC_KHR, vk.VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT
        part = vk.VkImageSubresourceLayers(vk.VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1)
        region = vk.VkBufferImageCopy(imageSubresource=part, imageExtent=vk.VkExtent3D(width, height, 1))
        vk.vkBeginCommandBuffer(commands, vk.VkCommandBufferBeginInfo())
        self.transition(commands, image, whole, (undefined, writable), (TRANSFER, 0), (TRANSFER, WRITE))
        vk.vkCmdCopyBufferToImage(commands, buffer, image, writable, 1, [region])
        self.transition(commands, image, whole, (writable, presented), (TRANSFER, WRITE), (bottom, 0))
        vk.vkEndCommandBuffer(commands)

    def recreate(self, extent):
        """Replaces the swapchain. What frames in flight use is destroyed when the device is idle.

        That says nothing of the presentation engine, so that the semaphores of presents live on.
        """
        vk.vkDeviceWaitIdle(self.device)
        old, self.extent = self.swapchain, extent
        self.swapchain = self.make_swapchain(extent, old)
        self.device_function("vkDestroySwapchainKHR")(self.device, old, None)
        self.images = self.device_function("vkGetSwapchainImagesKHR")(self.device, self.swapchain)
        self.retired += self.cleared
        self.cleared = [self.semaphore() for _ in self.images]

    def close(self):
        """Destroys everything."""
        vk.vkDeviceWaitIdle(self.device)
        for semaphore in self.retired:
            vk.vkDestroySemaphore(self.device, semaphore, None)
        for buffer, memory, _ in self.staging:
            vk.vkUnmapMemory(self.device, memory)
            vk.vkDestroyBuffer(self.device, buffer, None)
            vk.vkFreeMemory(self.device, memory, None)
        super().close()


def main(words):
    """Presents frames, and says how many swapchains of how many images it had."""
    in_flight, images, count = (int(word) for word in words[:3])
    if not glfw.init():
        raise SystemExit("no display")
    glfw.window_hint(glfw.CLIENT_API, glfw.NO_API)
    window = glfw.create_window(*SIZE, "frames in flight", None, None)
    instance = make_instance(glfw.get_required_instance_extensions())
    surface = vk.ffi.new("VkSurfaceKHR *")
    if glfw.create_window_surface(instance, window, None, surface) != vk.VK_SUCCESS:
        raise SystemExit("no surface")
    presenter = Frames(instance, surface[0], in_flight, images, shared="shared" in words)
    made = 1
    for number in range(count):
        glfw.poll_events()
        if "resize" in words and number == count // 2:
            glfw.set_window_size(window, *OTHER_SIZE)
            while glfw.get_framebuffer_size(window) != OTHER_SIZE:
                glfw.wait_events()
            presenter.recreate(OTHER_SIZE)
            made += 1
        presenter.frame(number)
    presenter.close()
    glfw.destroy_window(window)
    glfw.terminate()
    print(f"presented {count} frames with {made} swapchains of {len(presenter.images)} images")


if __name__ == "__main__":
    main(sys.argv[1:])
