"""The client of a shared swapchain: renders to images of the server.

python client.py SOCKET [--without copying-done|release|transition] [--document]

`--document` takes the masks of the document, by which a release comes before what was rendered is available.
"""

import argparse
import socket
import time

import vulkan as vk
from sharing import FORMAT, OPAQUE, SIZE, Device, barrier, color_of, receive, send, whole

COLOR = vk.VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL
SOURCE = vk.VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL
EVERYTHING, BOTTOM = vk.VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, vk.VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT
RENDERED = vk.VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT
TRIES = 1000
"""How often to look for the server's socket."""


class Slot:
    """One image of the swapchain: imported, with the commands that are recorded once for it."""

    def __init__(self, device, message, descriptors, options):
        self.device = device
        there = vk.VkImportMemoryFdInfoKHR(handleType=OPAQUE, fd=descriptors[0])
        self.image, _ = device.image(True, there, (message["size"], message["type"]))
        made = [self.imported(each) for each in descriptors[1:]]
        self.rendering_done, self.copying_done = made
        self.view = self.made_view()
        self.fence = device.fence(signaled=True)
        self.is_new = True
        self.drawing = device.command_buffer()
        self.getting = self.recorded(self.get, options)
        self.giving = self.recorded(self.give, options)

    def imported(self, descriptor):
        """A semaphore with the payload of the server's. The descriptor is the driver's then."""
        semaphore = vk.vkCreateSemaphore(self.device.device, vk.VkSemaphoreCreateInfo(), None)
        info = vk.VkImportSemaphoreFdInfoKHR(semaphore=semaphore, handleType=OPAQUE, fd=descriptor)
        self.device.function("vkImportSemaphoreFdKHR")(self.device.device, info)
        return semaphore

    def made_view(self):
        """A view of the image."""
        info = vk.VkImageViewCreateInfo(
            image=self.image, viewType=vk.VK_IMAGE_VIEW_TYPE_2D, format=FORMAT, subresourceRange=whole()
        )
        return vk.vkCreateImageView(self.device.device, info, None)

    def recorded(self, record, options):
        """A command buffer that is recorded once."""
        commands = self.device.command_buffer()
        vk.vkBeginCommandBuffer(commands, vk.VkCommandBufferBeginInfo())
        record(commands, options)
        vk.vkEndCommandBuffer(commands)
        return commands

    def get(self, commands, options):
        """The image gets its layout for rendering, and its old contents are lost. Everything later waits for that."""
        layouts = (vk.VK_IMAGE_LAYOUT_UNDEFINED, COLOR)
        if options.without != "transition":
            barrier(commands, self.image, (EVERYTHING, 0), (EVERYTHING, RENDERED), layouts)

    def give(self, commands, options):
        """The image gets its layout for copies, and goes to whoever is outside."""
        if options.without != "release":
            families = (self.device.family, vk.VK_QUEUE_FAMILY_EXTERNAL)
            layouts = (COLOR, COLOR if options.without == "transition" else SOURCE)
            made = (EVERYTHING, 0 if options.document else RENDERED)
            barrier(commands, self.image, made, (BOTTOM, 0), layouts, families)

    def acquire(self, without):
        """xrAcquireSwapchainImage: the first time, nothing has to be waited for."""
        waits = [] if self.is_new or without == "copying-done" else [self.copying_done]
        if not self.is_new:
            self.device.submit(self.getting, waits, fence=self.fence)
        else:
            self.device.submit(self.getting)
        self.is_new = False

    def wait(self):
        """xrWaitSwapchainImage."""
        self.device.wait(self.fence)

    def render(self, frame):
        """The application: clears the image to the colour of the frame."""
        begin = vk.VkCommandBufferBeginInfo(flags=vk.VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT)
        vk.vkBeginCommandBuffer(self.drawing, begin)
        color = vk.VkClearColorValue(float32=[each / 255 for each in color_of(frame)])
        attachment = vk.VkRenderingAttachmentInfo(
            imageView=self.view,
            imageLayout=COLOR,
            loadOp=vk.VK_ATTACHMENT_LOAD_OP_CLEAR,
            storeOp=vk.VK_ATTACHMENT_STORE_OP_STORE,
            clearValue=vk.VkClearValue(color=color),
        )
        area = vk.VkRect2D(vk.VkOffset2D(0, 0), vk.VkExtent2D(SIZE, SIZE))
        info = vk.VkRenderingInfo(renderArea=area, layerCount=1, pColorAttachments=[attachment])
        vk.vkCmdBeginRendering(self.drawing, info)
        vk.vkCmdEndRendering(self.drawing)
        vk.vkEndCommandBuffer(self.drawing)
        self.device.submit(self.drawing)

    def release(self):
        """xrReleaseSwapchainImage."""
        self.device.submit(self.giving, signals=[self.rendering_done])
        vk.vkResetFences(self.device.device, 1, [self.fence])


def connected(path):
    """The connection to the server, which may not listen yet."""
    for _ in range(TRIES):
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(path)
            return connection
        except OSError:
            connection.close()
            time.sleep(0.01)
    raise SystemExit(f"no server at {path}")


def main():
    """Renders the frames that the server asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("socket")
    parser.add_argument("--without", choices=["copying-done", "release", "transition"])
    parser.add_argument("--document", action="store_true")
    options = parser.parse_args()
    connection = connected(options.socket)
    device = Device()
    slots, frames = [], 0
    while True:
        message, descriptors = receive(connection, 3)
        if not descriptors:
            break
        slots.append(Slot(device, message, descriptors, options))
        frames = message["frames"]
        send(connection, {"imported": len(slots)})
    for frame in range(frames):
        index = frame % len(slots)
        slot = slots[index]
        slot.acquire(options.without)
        slot.wait()
        slot.render(frame)
        slot.release()
        send(connection, {"release": index})
        receive(connection)
    vk.vkDeviceWaitIdle(device.device)
    print(f"client: {frames} frames")


if __name__ == "__main__":
    main()
