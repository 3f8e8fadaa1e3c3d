"""Depth and stencil aspects: separate ranges of one image."""

from vkharness.spec.enums import VkImageAspect
from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

CLEAR, COPY = "vkCmdClearDepthStencilImage", "vkCmdCopyImage"
UPLOAD, DOWNLOAD = "vkCmdCopyBufferToImage", "vkCmdCopyImageToBuffer"
BOTH = "VK_FORMAT_D32_SFLOAT_S8_UINT"
DEPTH, STENCIL = VkImageAspect.DEPTH, VkImageAspect.STENCIL


@scenario(weakened={"read aspect / depth": [read_after_write(DOWNLOAD, CLEAR)]}, rule="depth-and-stencil-are-apart")
def scenario_stencil_is_apart_from_depth(rig: Rig) -> None:
    """A download of stencil does not conflict with a clear of depth; a download of depth does."""
    a, data = rig.image(BOTH, (8, 8, 1)), rig.buffer(256)
    aspect = rig.choose("read aspect", STENCIL, {"depth": DEPTH})
    with rig.submission() as commands:
        commands.transition(a)
        commands.clear_depth_stencil(a, 0.25, aspects=DEPTH)
        commands.image_to_buffer(a, data, {"aspect": aspect})


@scenario(
    weakened={
        "first aspects / stencil": [write_after_write(CLEAR, CLEAR)],
        "first aspects / both": [write_after_write(CLEAR, CLEAR)],
    },
    rule="depth-and-stencil-are-apart",
)
def scenario_clears_of_depth_and_stencil_need_nothing(rig: Rig) -> None:
    """Two clears of one image need no dependency when one names depth and the other stencil."""
    a = rig.image(BOTH)
    aspects = rig.choose("first aspects", DEPTH, {"stencil": STENCIL, "both": DEPTH | STENCIL})
    with rig.submission() as commands:
        commands.transition(a)
        commands.clear_depth_stencil(a, 0.25, 3, aspects=aspects)
        commands.clear_depth_stencil(a, 0.75, 5, aspects=STENCIL)


@scenario(
    without={"clear before copy": [read_after_write(COPY, CLEAR)]},
    weakened={"clear before copy / to late tests": [read_after_write(COPY, CLEAR)]},
    rule="fills-updates-and-clears-use-the-clear-stage,depth-and-stencil-are-apart",
)
def scenario_copy_reads_a_cleared_depth_image(rig: Rig) -> None:
    """Clearing and copying a depth image are transfers: the stages of fragment tests do not cover them."""
    a, b = rig.image("VK_FORMAT_D16_UNORM"), rig.image("VK_FORMAT_D16_UNORM")
    with rig.submission() as commands:
        commands.transition(a, b)
        commands.clear_depth_stencil(a, 0.2)
        commands.barrier(
            "clear before copy",
            "CLEAR/TRANSFER_WRITE",
            "COPY/TRANSFER_READ",
            weaker={"to late tests": {"dst": "LATE_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_READ"}},
        )
        commands.copy_image(a, b)


@scenario(
    without={"copy before upload": [write_after_read(UPLOAD, COPY)]},
    weakened={"copy before upload / into the clear stage": [write_after_read(UPLOAD, COPY)]},
    rule="depth-and-stencil-are-apart",
)
def scenario_upload_overwrites_stencil_that_a_copy_read(rig: Rig) -> None:
    """A copy of both aspects reads stencil too: an upload of stencil alone has to wait for it."""
    a, b, data = rig.image(BOTH, (8, 8, 1)), rig.image(BOTH, (8, 8, 1)), rig.buffer(64, data=bytes(range(64)))
    with rig.submission() as commands:
        commands.transition(a, b)
        commands.copy_image(a, b)
        commands.barrier("copy before upload", "COPY", "COPY", weaker={"into the clear stage": {"dst": "CLEAR"}})
        commands.buffer_to_image(data, a, {"aspect": STENCIL})
