"""The server of a shared swapchain: makes the images, and copies each frame of the client to an image of the runtime.

    python server.py SOCKET [FRAMES] [--without rendering-done|acquire] [--document] [--at-once]

It checks the pixels of every frame and exits with 1 when any is wrong. `--document` takes the masks and layouts of the
document, three of which make nothing available or visible. `--at-once` checks a frame before it answers. A client that
does not wait for the semaphore of the copy needs that: it would otherwise signal its own semaphore a second time before
the server has waited for the first signal (VUID-vkQueueSubmit-pSignalSemaphores-00067), and one signal would be lost.
"""

import argparse
import os
import socket
import sys

import vulkan as vk
from sharing import OPAQUE, SIZE, Device, barrier, color_of, receive, send

IMAGES = 3
COLOR = vk.VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL
SOURCE, TARGET = vk.VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, vk.VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL
TOP, BOTTOM = vk.VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, vk.VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT
EVERYTHING, TRANSFER = vk.VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, vk.VK_PIPELINE_STAGE_TRANSFER_BIT
READ, WRITE = vk.VK_ACCESS_TRANSFER_READ_BIT, vk.VK_ACCESS_TRANSFER_WRITE_BIT
HOST = vk.VK_PIPELINE_STAGE_HOST_BIT, vk.VK_ACCESS_HOST_READ_BIT


class Slot:
    """One image of the shared swapchain, with what belongs to it here."""

    def __init__(self, device):
        self.device = device
        export = vk.VkExportMemoryAllocateInfo(handleTypes=OPAQUE)
        self.image, self.memory = device.image(True, export)
        kept = vk.VkExportSemaphoreCreateInfo(handleTypes=OPAQUE)
        made = [vk.vkCreateSemaphore(device.device, vk.VkSemaphoreCreateInfo(pNext=kept), None) for _ in range(2)]
        self.rendering_done, self.copying_done = made
        self.shown, _ = device.image(False)
        self.commands, self.fence = device.command_buffer(), device.fence()
        self.buffer, self.buffer_memory = device.readback()
        self.frame = None
        """The frame that was copied last and not looked at."""
        self.is_new = True

    def descriptors(self):
        """The image's memory and the two semaphores, as file descriptors."""
        memory = vk.VkMemoryGetFdInfoKHR(memory=self.memory[0], handleType=OPAQUE)
        found = [self.device.function("vkGetMemoryFdKHR")(self.device.device, memory)]
        for semaphore in (self.rendering_done, self.copying_done):
            info = vk.VkSemaphoreGetFdInfoKHR(semaphore=semaphore, handleType=OPAQUE)
            found.append(self.device.function("vkGetSemaphoreFdKHR")(self.device.device, info))
        return found

    def copy(self, frame, without, document):
        """Records the commands anew, since the image of the runtime need not be the same, and submits them."""
        begin = vk.VkCommandBufferBeginInfo(flags=vk.VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT)
        commands, family = self.commands, self.device.family
        vk.vkBeginCommandBuffer(commands, begin)
        if without != "acquire":
            layouts = (SOURCE, SOURCE) if document else (COLOR, SOURCE)
            seen = (TRANSFER, 0 if document else READ)
            barrier(commands, self.image, (TOP, 0), seen, layouts, (vk.VK_QUEUE_FAMILY_EXTERNAL, family))
        before = vk.VK_IMAGE_LAYOUT_UNDEFINED if self.is_new else COLOR
        written = (TRANSFER, READ if document else WRITE)
        barrier(commands, self.shown, (EVERYTHING, 0), written, (before, TARGET))
        part = vk.VkImageSubresourceLayers(vk.VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1)
        size = vk.VkExtent3D(SIZE, SIZE, 1)
        region = vk.VkImageCopy(part, vk.VkOffset3D(0, 0, 0), part, vk.VkOffset3D(0, 0, 0), size)
        vk.vkCmdCopyImage(commands, self.image, SOURCE, self.shown, TARGET, 1, [region])
        made = (TRANSFER, 0 if document else WRITE)
        barrier(commands, self.shown, made, (BOTTOM, 0), (TARGET, COLOR))
        self.look(commands, part, size)
        vk.vkEndCommandBuffer(commands)
        waits = [] if without == "rendering-done" else [self.rendering_done]
        self.device.submit(commands, waits, [self.copying_done], self.fence)
        self.frame, self.is_new = frame, False

    def look(self, commands, part, size):
        """The runtime: what it reads of its image."""
        barrier(commands, self.shown, (EVERYTHING, WRITE), (TRANSFER, READ), (COLOR, SOURCE))
        region = vk.VkBufferImageCopy(0, 0, 0, part, vk.VkOffset3D(0, 0, 0), size)
        vk.vkCmdCopyImageToBuffer(commands, self.shown, SOURCE, self.buffer, 1, [region])
        barrier(commands, self.shown, (EVERYTHING, 0), (EVERYTHING, 0), (SOURCE, COLOR))
        seen = vk.VkMemoryBarrier(srcAccessMask=WRITE, dstAccessMask=HOST[1])
        vk.vkCmdPipelineBarrier(commands, TRANSFER, HOST[0], 0, 1, [seen], 0, None, 0, None)

    def wrong_texels(self):
        """Waits for the last copy. How many texels of it have another colour than the frame."""
        if self.frame is None:
            return 0
        self.device.wait(self.fence)
        vk.vkResetFences(self.device.device, 1, [self.fence])
        size = SIZE * SIZE * 4
        pixels = bytes(vk.vkMapMemory(self.device.device, self.buffer_memory, 0, size, 0))
        vk.vkUnmapMemory(self.device.device, self.buffer_memory)
        expected = color_of(self.frame)
        wrong = sum(pixels[at : at + 4] != expected for at in range(0, size, 4))
        self.frame = None
        return wrong


def main():
    """Serves one client."""
    parser = argparse.ArgumentParser()
    parser.add_argument("socket")
    parser.add_argument("frames", type=int, nargs="?", default=12)
    parser.add_argument("--without", choices=["rendering-done", "acquire"])
    parser.add_argument("--document", action="store_true")
    parser.add_argument("--at-once", action="store_true")
    options = parser.parse_args()
    device = Device()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(options.socket)
    listener.listen(1)
    connection, _ = listener.accept()
    slots = [Slot(device) for _ in range(IMAGES)]
    for slot in slots:
        descriptors = slot.descriptors()
        send(connection, {"size": slot.memory[1], "type": slot.memory[2], "frames": options.frames}, descriptors)
        for each in descriptors:
            os.close(each)
        receive(connection)
    send(connection, {"images": len(slots)})
    wrong, frames = 0, 0
    while True:
        message, _ = receive(connection)
        if message is None:
            break
        slot = slots[message["release"]]
        wrong += slot.wrong_texels()
        slot.copy(frames, options.without, options.document)
        frames += 1
        if options.at_once:
            wrong += slot.wrong_texels()
        send(connection, {"released": message["release"]})
    wrong += sum(slot.wrong_texels() for slot in slots)
    vk.vkDeviceWaitIdle(device.device)
    print(f"server: {frames} frames, {wrong} wrong texels")
    sys.exit(1 if wrong or not frames else 0)


if __name__ == "__main__":
    main()
