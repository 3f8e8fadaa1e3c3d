"""Parts of both the client and the server of a shared swapchain: a device, images, messages with descriptors."""

import json
import socket
import sys
from array import array

import vulkan as vk

SIZE = 64
"""Texels of an image, each way."""
FORMAT = vk.VK_FORMAT_R8G8B8A8_UNORM
OPAQUE = 1
"""VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT, and the same for semaphores."""
EXTENSIONS = ["VK_KHR_external_memory_fd", "VK_KHR_external_semaphore_fd"]
SECONDS = 10_000_000_000
"""How long to wait for a fence, in nanoseconds."""


class Device:
    """The first device that the loader finds, with one queue that can draw."""

    def __init__(self):
        app = vk.VkApplicationInfo(pApplicationName="shared swapchain", apiVersion=vk.VK_MAKE_VERSION(1, 3, 0))
        self.instance = vk.vkCreateInstance(vk.VkInstanceCreateInfo(pApplicationInfo=app), None)
        self.physical = vk.vkEnumeratePhysicalDevices(self.instance)[0]
        offered = {each.extensionName for each in vk.vkEnumerateDeviceExtensionProperties(self.physical, None)}
        if lacking := [each for each in EXTENSIONS if each not in offered]:
            sys.exit(f"this driver has no {', '.join(lacking)}")
        families = vk.vkGetPhysicalDeviceQueueFamilyProperties(self.physical)
        self.family = next(i for i, each in enumerate(families) if each.queueFlags & vk.VK_QUEUE_GRAPHICS_BIT)
        queue = vk.VkDeviceQueueCreateInfo(queueFamilyIndex=self.family, pQueuePriorities=[1.0])
        features = vk.VkPhysicalDeviceVulkan13Features(synchronization2=True, dynamicRendering=True)
        info = vk.VkDeviceCreateInfo(pNext=features, pQueueCreateInfos=[queue], ppEnabledExtensionNames=EXTENSIONS)
        self.device = vk.vkCreateDevice(self.physical, info, None)
        self.queue = vk.vkGetDeviceQueue(self.device, self.family, 0)
        flags = vk.VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT
        pool = vk.VkCommandPoolCreateInfo(flags=flags, queueFamilyIndex=self.family)
        self.pool = vk.vkCreateCommandPool(self.device, pool, None)

    def function(self, name):
        """A function of an extension."""
        return vk.vkGetDeviceProcAddr(self.device, name)

    def command_buffer(self):
        """A command buffer, which can be recorded again."""
        info = vk.VkCommandBufferAllocateInfo(commandPool=self.pool, commandBufferCount=1)
        return vk.vkAllocateCommandBuffers(self.device, info)[0]

    def fence(self, signaled=False):
        """A fence."""
        flags = vk.VK_FENCE_CREATE_SIGNALED_BIT if signaled else 0
        return vk.vkCreateFence(self.device, vk.VkFenceCreateInfo(flags=flags), None)

    def wait(self, fence):
        """Waits for a fence."""
        vk.vkWaitForFences(self.device, 1, [fence], True, SECONDS)

    def submit(self, commands, waits=(), signals=(), fence=None):
        """Submits one command buffer. Each wait holds back all of it."""
        info = vk.VkSubmitInfo(
            waitSemaphoreCount=len(waits),
            pWaitSemaphores=list(waits),
            pWaitDstStageMask=[vk.VK_PIPELINE_STAGE_ALL_COMMANDS_BIT] * len(waits),
            pCommandBuffers=[commands],
            signalSemaphoreCount=len(signals),
            pSignalSemaphores=list(signals),
        )
        vk.vkQueueSubmit(self.queue, 1, [info], fence)

    # -- memory --------------------------------------------------------------------------------------------------------

    def memory_type(self, bits, properties=0):
        """The first allowed memory type with these properties."""
        held = vk.vkGetPhysicalDeviceMemoryProperties(self.physical)
        for index in range(held.memoryTypeCount):
            if bits >> index & 1 and held.memoryTypes[index].propertyFlags & properties == properties:
                return index
        sys.exit("no memory type fits")

    def image(self, external, chain=None, like=None):
        """An image and its memory (handle, size, type). `external`: the memory is shared, by `chain`; `like` is the
        size and type of the memory that it is imported from."""
        usage = vk.VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT
        usage |= vk.VK_IMAGE_USAGE_TRANSFER_SRC_BIT | vk.VK_IMAGE_USAGE_TRANSFER_DST_BIT
        info = vk.VkImageCreateInfo(
            pNext=vk.VkExternalMemoryImageCreateInfo(handleTypes=OPAQUE) if external else None,
            imageType=vk.VK_IMAGE_TYPE_2D,
            format=FORMAT,
            extent=vk.VkExtent3D(SIZE, SIZE, 1),
            mipLevels=1,
            arrayLayers=1,
            samples=1,
            usage=usage,
        )
        image = vk.vkCreateImage(self.device, info, None)
        need = vk.vkGetImageMemoryRequirements(self.device, image)
        size, kind = like or (need.size, self.memory_type(need.memoryTypeBits))
        if external:  # some drivers share images on memory of their own alone
            chain = vk.VkMemoryDedicatedAllocateInfo(pNext=chain, image=image)
        allocate = vk.VkMemoryAllocateInfo(pNext=chain, allocationSize=size, memoryTypeIndex=kind)
        memory = vk.vkAllocateMemory(self.device, allocate, None)
        vk.vkBindImageMemory(self.device, image, memory, 0)
        return image, (memory, size, kind)

    def readback(self):
        """A buffer that the host can read, and its memory."""
        size = SIZE * SIZE * 4
        info = vk.VkBufferCreateInfo(size=size, usage=vk.VK_BUFFER_USAGE_TRANSFER_DST_BIT)
        buffer = vk.vkCreateBuffer(self.device, info, None)
        need = vk.vkGetBufferMemoryRequirements(self.device, buffer)
        wanted = vk.VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | vk.VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
        kind = self.memory_type(need.memoryTypeBits, wanted)
        allocate = vk.VkMemoryAllocateInfo(allocationSize=need.size, memoryTypeIndex=kind)
        memory = vk.vkAllocateMemory(self.device, allocate, None)
        vk.vkBindBufferMemory(self.device, buffer, memory, 0)
        return buffer, memory


def whole():
    """All of an image."""
    return vk.VkImageSubresourceRange(vk.VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1)


def barrier(commands, image, source, target, layouts, families=None):
    """One image barrier. `source` and `target` are pairs of a stage mask and an access mask."""
    from_family, to_family = families or (vk.VK_QUEUE_FAMILY_IGNORED, vk.VK_QUEUE_FAMILY_IGNORED)
    made = vk.VkImageMemoryBarrier(
        srcAccessMask=source[1],
        dstAccessMask=target[1],
        oldLayout=layouts[0],
        newLayout=layouts[1],
        srcQueueFamilyIndex=from_family,
        dstQueueFamilyIndex=to_family,
        image=image,
        subresourceRange=whole(),
    )
    vk.vkCmdPipelineBarrier(commands, source[0], target[0], 0, 0, None, 0, None, 1, [made])


def color_of(frame):
    """The colour of a frame, four bytes."""
    return bytes(((frame * 40 + 10) % 256, (frame * 70 + 20) % 256, (frame * 90 + 30) % 256, 255))


def send(connection, message, descriptors=()):
    """Sends one message with file descriptors."""
    socket.send_fds(connection, [json.dumps(message).encode() + b"\n"], list(descriptors))


def receive(connection, count=0):
    """One message, and its file descriptors; None when the other side is gone. Messages come one at a time, since each
    side waits for the answer to its own."""
    text, descriptors = b"", array("i")
    while not text.endswith(b"\n"):
        more, given, _, _ = socket.recv_fds(connection, 4096, count)
        if not more:
            return None, []
        text += more
        descriptors.extend(given)
    return json.loads(text), list(descriptors)
