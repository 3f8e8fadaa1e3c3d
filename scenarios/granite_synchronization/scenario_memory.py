"""Images on fresh, recycled and aliased memory ("Safely recycling memory and aliasing memory")."""

from typing import Any

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import COLOR_FORMAT, RigImage
from vkharness.rig.render_passes import RigAttachment, RigSubpass
from vkharness.suite import Rig, scenario, write_after_write

DISPATCH, BARRIER = "vkCmdDispatch", "vkCmdPipelineBarrier"
BEGIN, END = "vkCmdBeginRenderPass", "vkCmdEndRenderPass"
COMPUTE, OUTPUT = "COMPUTE_SHADER", "COLOR_ATTACHMENT_OUTPUT"
STORED, USED = f"{COMPUTE}/SHADER_WRITE", f"{COMPUTE}/SHADER_READ|SHADER_WRITE"
WRITTEN, DRAWN = f"{OUTPUT}/COLOR_ATTACHMENT_WRITE", f"{OUTPUT}/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE"
DRAWN_OVER = [write_after_write(BARRIER, END)]


def _store(commands: Commands, image: RigImage, value: int) -> None:
    """A dispatch that stores all texels of an image."""
    rig = commands.rig
    texels = rig.compute("image_store_2d", {0: "STORAGE_IMAGE"}, push_bytes=4)
    commands.bind(texels, rig.descriptors(texels, b0=(rig.view(image), None, rig.vk.VK_IMAGE_LAYOUT_GENERAL)))
    commands.push_constants(texels, value)
    commands.dispatch(4)


@scenario(
    weakened={
        "the transition / to the bottom": [write_after_write(DISPATCH, BARRIER)],
        "the transition / execution only": [write_after_write(DISPATCH, BARRIER)],
        "the transition / before fragments": [write_after_write(DISPATCH, BARRIER)],
    },
    rule="none-before-a-transition-is-the-top-of-the-pipe,accesses-wait-for-the-transition",
)
def scenario_fresh_image_from_the_top(rig: Rig) -> None:
    """The first transition of an image in fresh memory waits for nothing. The dispatch after it waits for it."""
    image, out = rig.image(), rig.buffer(1024)
    with rig.submission() as commands:
        commands.barrier(
            "the transition",
            "TOP_OF_PIPE",
            USED,
            image=image,
            old="UNDEFINED",
            sync2=False,
            weaker={
                "to the bottom": {"dst": "BOTTOM_OF_PIPE"},
                "execution only": {"dst": COMPUTE},
                "before fragments": {"dst": "FRAGMENT_SHADER/SHADER_READ|SHADER_WRITE"},
            },
        )
        _store(commands, image, 0x01020304)
        commands.barrier("", STORED, "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)


@scenario(
    without={"the fence": [write_after_write(BARRIER, DISPATCH)]},
    weakened={
        "the fence / of the submit before": [write_after_write(BARRIER, DISPATCH)],
        "the fence / any of two": [write_after_write(BARRIER, DISPATCH)],
    },
    rule="a-fence-covers-everything-before-it,an-image-overlaps-all-of-its-memory",
)
def scenario_recycled_memory_after_a_fence(rig: Rig) -> None:
    """An image whose memory another one had begins at TOP_OF_PIPE, with no access, once the host has seen the fence of
    the work on the other one."""
    one = rig.image(extent=(32, 16, 1))
    other = rig.image(memory=one.memory)
    early, fence, out = rig.fence(), rig.fence(), rig.buffer(1024)
    with rig.commands() as first:
        first.transition(one, src="TOP_OF_PIPE", dst=USED, sync2=False)
        _store(first, one, 0x01020304)
    with rig.commands() as second:
        second.transition(other, src="TOP_OF_PIPE", dst=USED, sync2=False)
        _store(second, other, 0x05060708)
        second.barrier("", STORED, "COPY/TRANSFER_READ")
        second.image_to_buffer(other, out)
    rig.submit_batches(fence=early)
    rig.submit(first, fence=fence)
    weaker: dict[str, dict[str, Any]] = {
        "of the submit before": {"fences": (early,)},
        "any of two": {"how": "any", "fences": (early, fence)},
    }
    rig.host_wait("the fence", "all", fence, weaker=weaker)
    rig.submit(second)


@scenario(
    weakened={
        "the second image / from the top": DRAWN_OVER,
        "the second image / execution only": DRAWN_OVER,
        "the second image / after fragment tests": DRAWN_OVER,
        "the second image / before nothing": [write_after_write(BEGIN, BARRIER), write_after_write(BEGIN, END)],
        "the first image again / from the top": DRAWN_OVER,
    },
    rule="an-image-overlaps-all-of-its-memory,a-transition-from-undefined-is-still-a-write",
)
def scenario_two_attachments_of_one_memory(rig: Rig) -> None:
    """Two images in one memory take turns as attachments: each transition away from UNDEFINED waits for what was drawn
    into the other one."""
    one, out = rig.target(extent=(32, 16, 1)), rig.buffer(2048)
    other = rig.image(COLOR_FORMAT, usage=one.usage, memory=one.memory)
    made = rig.render_pass(
        [RigAttachment(initial="COLOR_ATTACHMENT_OPTIMAL", final="COLOR_ATTACHMENT_OPTIMAL")], [RigSubpass([0])]
    )
    turns = {"the first image": one, "the second image": other, "the first image again": one}
    with rig.submission() as commands:
        for value, (name, image) in enumerate(turns.items(), 0x11223344):
            _take_over(commands, name, image)
            frame = rig.framebuffer(made, [rig.view(image)], image.extent[:2])
            commands.begin_pass(made, frame, clear=[value])
            commands.end_pass()
        commands.barrier("", WRITTEN, "COPY/TRANSFER_READ")
        commands.image_to_buffer(one, out, at="COLOR_ATTACHMENT_OPTIMAL")


def _take_over(commands: Commands, name: str, image: RigImage) -> None:
    """The barrier after which an image may be drawn to in memory that it shares."""
    commands.barrier(
        name,
        WRITTEN,
        DRAWN,
        image=image,
        old="UNDEFINED",
        new="COLOR_ATTACHMENT_OPTIMAL",
        sync2=False,
        weaker={
            "from the top": {"src": "TOP_OF_PIPE"},
            "execution only": {"src": OUTPUT},
            "after fragment tests": {"src": "LATE_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_WRITE"},
            "before nothing": {"dst": "BOTTOM_OF_PIPE"},
        },
    )
