"""Render passes and what is around them: external dependencies, transient attachments, fragment tests."""

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import COLOR_FORMAT, RigImage
from vkharness.rig.render_passes import RigAttachment, RigSubpass, RigSubpassDependency
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL, VkCompareOp, VkImageUsage
from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

DRAW, BEGIN, END = "vkCmdDraw", "vkCmdBeginRenderPass", "vkCmdEndRenderPass"
OUTPUT, FRAGMENT, LATE, EARLY = (
    "COLOR_ATTACHMENT_OUTPUT",
    "FRAGMENT_SHADER",
    "LATE_FRAGMENT_TESTS",
    "EARLY_FRAGMENT_TESTS",
)
WRITTEN, DRAWN = f"{OUTPUT}/COLOR_ATTACHMENT_WRITE", f"{OUTPUT}/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE"
TESTED = "DEPTH_STENCIL_ATTACHMENT_READ|DEPTH_STENCIL_ATTACHMENT_WRITE"
DEPTH = "VK_FORMAT_D32_SFLOAT"
SAMPLED = "SHADER_READ_ONLY_OPTIMAL"


def _sample(commands: Commands, source: RigImage, target: RigImage) -> None:
    """A draw that samples one image into another one."""
    rig = commands.rig
    sample = rig.graphics("sample_color", bindings={0: "COMBINED_IMAGE_SAMPLER"})
    held = rig.descriptors(
        sample, b0=(rig.view(source), rig.sampler(), rig.vk.VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL)
    )
    commands.begin_rendering(RenderingAttachment(rig.view(target)))
    commands.bind(sample, held)
    commands.draw()
    commands.end_rendering()


@scenario(
    without={"sampled before": [write_after_read(BEGIN, DRAW)], "sampled after": [read_after_write(DRAW, END)]},
    weakened={
        "sampled before / from the top": [write_after_read(BEGIN, DRAW)],
        "sampled before / with the read": [],
        "sampled after / to the bottom": [read_after_write(DRAW, END)],
        "sampled after / execution only": [read_after_write(DRAW, END), write_after_write(END, END)],
    },
    rule="external-dependencies-order-what-is-outside,implicit-external-dependencies-order-little",
)
def scenario_pass_between_two_samplings(rig: Rig) -> None:
    """The transitions of a render pass wait for an earlier sampling, and a later sampling for them, by dependencies
    with EXTERNAL: without these, the implicit ones wait for nothing and show nothing."""
    image, targets, outs = rig.target(), [rig.target(), rig.target()], [rig.buffer(1024), rig.buffer(1024)]
    before = RigSubpassDependency(
        "sampled before",
        VK_SUBPASS_EXTERNAL,
        0,
        FRAGMENT,
        WRITTEN,
        weaker={"from the top": {"before": "TOP_OF_PIPE"}, "with the read": {"before": f"{FRAGMENT}/SHADER_READ"}},
    )
    after = RigSubpassDependency(
        "sampled after",
        0,
        VK_SUBPASS_EXTERNAL,
        WRITTEN,
        f"{FRAGMENT}/SHADER_READ",
        weaker={"to the bottom": {"after": "BOTTOM_OF_PIPE"}, "execution only": {"before": OUTPUT, "after": FRAGMENT}},
    )
    made = rig.render_pass([RigAttachment(final=SAMPLED)], [RigSubpass([0])], [before, after], v2=False)
    frame = rig.framebuffer(made, [rig.view(image)])
    with rig.submission() as commands:
        commands.transition(*targets)
        commands.transition(image, new="TRANSFER_DST_OPTIMAL")
        commands.clear_color(image, 0x11223344, at="TRANSFER_DST_OPTIMAL")
        commands.barrier(
            "", "CLEAR/TRANSFER_WRITE", f"{FRAGMENT}/SHADER_READ", image=image, old="TRANSFER_DST_OPTIMAL", new=SAMPLED
        )
        _sample(commands, image, targets[0])
        commands.begin_pass(made, frame, clear=[0x55667788])
        commands.end_pass()
        _sample(commands, image, targets[1])
        commands.barrier("", WRITTEN, "COPY/TRANSFER_READ")
        for target, out in zip(targets, outs, strict=True):
            commands.image_to_buffer(target, out)


@scenario(
    without={
        "for colour": [write_after_write(BEGIN, END), write_after_write(BEGIN, BEGIN)],
        "for depth": [write_after_write(BEGIN, END), write_after_write(BEGIN, BEGIN)],
    },
    weakened={
        "for colour / execution only": [write_after_write(BEGIN, END)],
        "for colour / from the top": [write_after_write(BEGIN, END)],
        "for depth / after early tests": [write_after_write(BEGIN, END)],
        "for depth / before early tests": [],
    },
    rule="external-dependencies-order-what-is-outside,initial-transitions-wait-for-earlier-accesses",
)
def scenario_transient_attachments_of_two_frames(rig: Rig) -> None:
    """Colour samples and depth that live within a frame begin as UNDEFINED in the next one. Dependencies from EXTERNAL
    between the stages in which they can be used are all that they ever need."""
    transient = VkImageUsage.TRANSIENT_ATTACHMENT
    colour = rig.image(COLOR_FORMAT, samples=4, usage=transient | VkImageUsage.COLOR_ATTACHMENT)
    depth = rig.image(DEPTH, samples=4, usage=transient | VkImageUsage.DEPTH_STENCIL_ATTACHMENT)
    outs = [rig.buffer(1024), rig.buffer(1024)]
    dependencies = [
        RigSubpassDependency(
            "for colour",
            VK_SUBPASS_EXTERNAL,
            0,
            WRITTEN,
            DRAWN,
            weaker={"execution only": {"before": OUTPUT}, "from the top": {"before": "TOP_OF_PIPE"}},
        ),
        RigSubpassDependency(
            "for depth",
            VK_SUBPASS_EXTERNAL,
            0,
            f"{EARLY}|{LATE}/DEPTH_STENCIL_ATTACHMENT_WRITE",
            f"{EARLY}|{LATE}/{TESTED}",
            weaker={
                "after early tests": {"before": f"{EARLY}/DEPTH_STENCIL_ATTACHMENT_WRITE"},
                "before early tests": {"after": f"{EARLY}/{TESTED}"},
            },
        ),
        RigSubpassDependency("", 0, VK_SUBPASS_EXTERNAL, WRITTEN, "ALL_TRANSFER/TRANSFER_READ"),
    ]
    made = rig.render_pass(
        [
            RigAttachment(samples=4, store="DONT_CARE", final="COLOR_ATTACHMENT_OPTIMAL"),
            RigAttachment(load="DONT_CARE", final="TRANSFER_SRC_OPTIMAL"),
            RigAttachment(DEPTH, samples=4, store="DONT_CARE", final="DEPTH_STENCIL_ATTACHMENT_OPTIMAL"),
        ],
        [RigSubpass([0], resolves=[1], depth=2)],
        dependencies,
        v2=False,
    )
    draw = rig.graphics(render_pass=made, samples=4, depth_test=True, depth_write=True, depth_compare=VkCompareOp.LESS)
    with rig.submission() as commands:
        for number, out in enumerate(outs):
            target = rig.target()
            frame = rig.framebuffer(made, [rig.view(colour), rig.view(target), rig.view(depth, aspect=2)])
            commands.begin_pass(made, frame, clear=[0x10203040 * (number + 1), 0, (float(number), 0)])
            commands.bind(draw)
            commands.draw()
            commands.end_pass()
            commands.image_to_buffer(target, out, at="TRANSFER_SRC_OPTIMAL")


@scenario(
    without={"stored before tested": [read_after_write("vkCmdBeginRendering", "vkCmdEndRendering")]},
    weakened={
        "stored before tested / after early tests": [read_after_write("vkCmdBeginRendering", "vkCmdEndRendering")],
        "stored before tested / before late tests": [read_after_write("vkCmdBeginRendering", "vkCmdEndRendering")],
        "stored before tested / before early tests": [],
    },
    rule="storing-writes-the-attachment,depth-and-stencil-tests-read",
)
def scenario_depth_of_an_earlier_pass(rig: Rig) -> None:
    """Depth that one rendering stored in its late tests is loaded by the next one in its early tests, before anything
    else of it: with the load in the second scope, the late tests need not be named."""
    depth, color, out = rig.target(DEPTH), rig.target(), rig.buffer(1024)
    view = rig.view(depth, aspect=2)
    with rig.submission() as commands:
        commands.transition(color, depth)
        commands.clear_depth_stencil(depth, 0.0)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", f"{EARLY}|{LATE}/{TESTED}")
        commands.begin_rendering(depth=RenderingAttachment(view, clear=(0.5, 0)))
        commands.end_rendering()
        commands.barrier(
            "stored before tested",
            f"{LATE}/DEPTH_STENCIL_ATTACHMENT_WRITE",
            f"{EARLY}|{LATE}/{TESTED}",
            weaker={
                "after early tests": {"src": f"{EARLY}/DEPTH_STENCIL_ATTACHMENT_WRITE"},
                "before late tests": {"dst": f"{LATE}/{TESTED}"},
                "before early tests": {"dst": f"{EARLY}/{TESTED}"},
            },
        )
        commands.begin_rendering(RenderingAttachment(rig.view(color)), depth=RenderingAttachment(view, load="LOAD"))
        commands.bind(rig.graphics(depth=DEPTH, depth_test=True, depth_write=True, depth_compare=VkCompareOp.LESS))
        commands.draw()
        commands.end_rendering()
        commands.barrier("", WRITTEN, "COPY/TRANSFER_READ")
        commands.image_to_buffer(color, out)
