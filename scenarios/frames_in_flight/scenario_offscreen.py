"""One offscreen framebuffer that consecutive frames share: a dependency orders them, and no frame needs its own."""

from typing import Any

from vkharness.rig.command_buffers import Commands
from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.render_passes import RigAttachment, RigSubpass, RigSubpassDependency
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL
from vkharness.suite import Rig, scenario, write_after_read, write_after_write

OUTPUT, TESTS = "COLOR_ATTACHMENT_OUTPUT", "EARLY_FRAGMENT_TESTS|LATE_FRAGMENT_TESTS"
COLOR = f"{OUTPUT}/COLOR_ATTACHMENT_WRITE"
BOTH = f"{OUTPUT}|{TESTS}/COLOR_ATTACHMENT_WRITE|DEPTH_STENCIL_ATTACHMENT_READ|DEPTH_STENCIL_ATTACHMENT_WRITE"
SAMPLED = "FRAGMENT_SHADER/SHADER_SAMPLED_READ"
DEPTH = "VK_FORMAT_D16_UNORM"
OVERTAKEN = [write_after_write("vkCmdBeginRendering", "vkCmdEndRendering")]
STILL_SAMPLED = [write_after_read("vkCmdBeginRenderPass", "vkCmdDraw")]


@scenario(
    without={"between frames": OVERTAKEN},
    weakened={
        "between frames / execution only": OVERTAKEN,
        "between frames / of the colour alone": OVERTAKEN,
        "between frames / by a semaphore": [],
    },
    rule="write-after-write,submission-order-is-no-dependency,a-semaphore-is-a-memory-dependency",
)
def scenario_offscreen_image_drawn_again(rig: Rig) -> None:
    """A frame that draws over what the last frame drew needs a barrier, and no semaphore between the two submits, which
    would do as well."""
    color, depth, out, semaphore = rig.target(), rig.target(format=DEPTH), rig.buffer(1024), rig.semaphore()
    state: dict[str, Any] = {"depth": DEPTH, "depth_test": True, "depth_write": True}
    pipelines = rig.graphics(**state), rig.graphics(**state, scissor=(0, 0, 8, 16))
    others = {"execution only": (f"{OUTPUT}|{TESTS}",) * 2, "of the colour alone": (COLOR, COLOR), "by a semaphore": ()}
    scopes = rig.choose("between frames", (BOTH, BOTH), others)
    views = rig.view(color), rig.view(depth, aspect=2)

    def frame(commands: Commands, number: int) -> None:
        kept = RenderingAttachment(views[1], clear=(1.0 - 0.6 * number, 0))
        commands.begin_rendering(RenderingAttachment(views[0], clear=0x10203040 * number), depth=kept)
        commands.bind(pipelines[number])
        commands.draw()
        commands.end_rendering()

    with rig.commands() as first:
        first.transition(color, depth)
        frame(first, 0)
    with rig.commands() as second:
        if scopes:
            second.barrier("", *scopes)
        frame(second, 1)
        second.barrier("", COLOR, "COPY/TRANSFER_READ")
        second.image_to_buffer(color, out)
    used = [SemaphoreUse(semaphore)] if scopes == () else []
    rig.submit(first, signals=used, sync2=True)
    rig.submit(second, waits=used, sync2=True)


@scenario(
    without={"between frames": STILL_SAMPLED},
    weakened={"between frames / of vertices": STILL_SAMPLED, "the framebuffer / one a frame": []},
    rule="write-after-read,submission-order-is-no-dependency",
)
def scenario_framebuffer_drawn_again_after_sampling(rig: Rig) -> None:
    """A frame that draws over what the last frame sampled waits for that in its subpass dependency. It needs no
    framebuffer of its own."""
    drawn, out = rig.target(), rig.target()
    between = RigSubpassDependency(
        "between frames",
        VK_SUBPASS_EXTERNAL,
        0,
        "FRAGMENT_SHADER",
        COLOR,
        weaker={"of vertices": {"before": "VERTEX_SHADER"}},
    )
    leave = RigSubpassDependency("", 0, VK_SUBPASS_EXTERNAL, COLOR, SAMPLED)
    made = rig.render_pass([RigAttachment()], [RigSubpass([0])], [between, leave])
    own = rig.choose("the framebuffer", "shared", {"one a frame": "own"}) == "own"
    views = [rig.view(drawn), rig.view(rig.target())] if own else [rig.view(drawn)] * 2
    frames = [rig.framebuffer(made, [view]) for view in dict.fromkeys(views)]
    draw, sample = rig.graphics(render_pass=made), rig.graphics("sample_color")
    sampled = rig.descriptors(sample, b0=(views[0], rig.sampler(), rig.vk.VK_IMAGE_LAYOUT_GENERAL))
    with rig.submission() as first:
        first.transition(out)
        first.begin_pass(made, frames[0])
        first.bind(draw)
        first.draw()
        first.end_pass()
        first.begin_rendering(RenderingAttachment(rig.view(out)))
        first.bind(sample, sampled)
        first.draw()
        first.end_rendering()
    with rig.submission() as second:
        second.begin_pass(made, frames[-1], clear=[0x70605040])
        second.end_pass()
