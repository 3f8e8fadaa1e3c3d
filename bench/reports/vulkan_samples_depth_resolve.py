"""Vulkan-Samples 235: a resolved depth image is transitioned behind late tests; the resolve happens in COLOR_ATTACHMENT_OUTPUT."""

import struct

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(sync2=False)
depth = e.image(format=D32, samples=4, usage=0x20)
resolved, out = e.image(format=D32), e.buffer(1024, host=True)
write = e.graphics("fullscreen.vert", "write_depth.frag", push=4, colors=(), depth=D32, samples=4)
c = e.commands()
TESTS, ACCESS = (
    "EARLY_FRAGMENT_TESTS|LATE_FRAGMENT_TESTS",
    "DEPTH_STENCIL_ATTACHMENT_WRITE|DEPTH_STENCIL_ATTACHMENT_READ",
)
e.transition(c, depth, "UNDEFINED", "DEPTH_STENCIL_ATTACHMENT_OPTIMAL", "TOP_OF_PIPE", f"{TESTS}/{ACCESS}")
e.transition(
    c,
    resolved,
    "UNDEFINED",
    "DEPTH_STENCIL_ATTACHMENT_OPTIMAL",
    "TOP_OF_PIPE",
    f"{TESTS}|COLOR_ATTACHMENT_OUTPUT/{ACCESS}|COLOR_ATTACHMENT_WRITE",
)
value = vk.VkClearValue(depthStencil=vk.VkClearDepthStencilValue(1.0, 0))
held = vk.VkRenderingAttachmentInfo(
    imageView=depth.view(),
    imageLayout=layout("DEPTH_STENCIL_ATTACHMENT_OPTIMAL"),
    resolveMode=1,
    resolveImageView=resolved.view(),
    resolveImageLayout=layout("DEPTH_STENCIL_ATTACHMENT_OPTIMAL"),
    loadOp=1,
    storeOp=1,
    clearValue=value,
)
vk.vkCmdBeginRendering(
    c,
    vk.VkRenderingInfo(
        renderArea=vk.VkRect2D(vk.VkOffset2D(0, 0), vk.VkExtent2D(16, 16)), layerCount=1, pDepthAttachment=held
    ),
)
e.bind(c, write, push=struct.pack("f", 0.5))
vk.vkCmdDraw(c, 3, 1, 0, 0)
vk.vkCmdEndRendering(c)
before = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE" if MENDED else f"{TESTS}/{ACCESS}"
e.transition(c, resolved, "DEPTH_STENCIL_ATTACHMENT_OPTIMAL", "TRANSFER_SRC_OPTIMAL", before, "TRANSFER/TRANSFER_READ")
e.read_back(c, resolved, out)
e.submit(c)
e.idle()
