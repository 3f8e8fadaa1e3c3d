"""Input attachments inside a subpass: reads by the fragment shader, which rasterization order does not cover."""

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigImage, RigPipeline
from vkharness.rig.render_passes import RigAttachment, RigFramebuffer, RigRenderPass, RigSubpass, RigSubpassDependency
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL, VkDependency
from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

BEGIN, DRAW, CLEAR, NEXT = "vkCmdBeginRenderPass", "vkCmdDraw", "vkCmdClearAttachments", "vkCmdNextSubpass"
FILL = "vkCmdClearColorImage"
OUTPUT, AT = "COLOR_ATTACHMENT_OUTPUT", "GENERAL"
WRITTEN = f"{OUTPUT}/COLOR_ATTACHMENT_WRITE"
USED = f"{OUTPUT}/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE"
INPUT = "FRAGMENT_SHADER/INPUT_ATTACHMENT_READ"
READ_OR_USED = (
    "COLOR_ATTACHMENT_OUTPUT|FRAGMENT_SHADER/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE|INPUT_ATTACHMENT_READ"
)
EARLY = "EARLY_FRAGMENT_TESTS"
RASTER_ORDERED_COLOR = 0x10
"""VK_SUBPASS_DESCRIPTION_RASTERIZATION_ORDER_ATTACHMENT_COLOR_ACCESS_BIT_EXT."""
DEPTH = "VK_FORMAT_D32_SFLOAT"
COPIED = "COPY/TRANSFER_READ"
SELF = [
    RigSubpassDependency("", 0, 0, WRITTEN, READ_OR_USED, VkDependency.BY_REGION),
    RigSubpassDependency("", 0, 0, "FRAGMENT_SHADER", WRITTEN, VkDependency.BY_REGION),
]
LEAVE = RigSubpassDependency("", 0, VK_SUBPASS_EXTERNAL, WRITTEN, COPIED)


class _Pass:
    """One subpass with two colour attachments, the first drawn to, the second also an input; both loaded."""

    def __init__(self, rig: Rig, shown: RigImage, read: RigImage) -> None:
        loaded = RigAttachment(load="LOAD", store="STORE", initial=AT)
        kept = RigAttachment(load="LOAD", initial=AT)
        both = RigSubpass([(0, AT), (1, AT)], inputs=[(1, AT)])
        self.rig = rig
        self.made: RigRenderPass = rig.render_pass([loaded, kept], [both], [*SELF, LEAVE])
        views = [rig.view(shown), rig.view(read)]
        self.frame: RigFramebuffer = rig.framebuffer(self.made, views)
        self.invert: RigPipeline = rig.graphics("invert_input", render_pass=self.made)
        self.held = rig.descriptors(self.invert, b0=(views[1], None, rig.vk.VK_IMAGE_LAYOUT_GENERAL))

    def begin(self, commands: Commands, *images: RigImage) -> None:
        """Fills the images and begins."""
        for image in images:
            commands.transition(image)
            commands.clear_color(image, 0x01010101)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", READ_OR_USED)
        commands.begin_pass(self.made, self.frame)

    def draw(self, commands: Commands) -> None:
        """A draw that reads the input and writes the first attachment."""
        commands.bind(self.invert, self.held)
        commands.draw()


@scenario(
    weakened={"order / none": [read_after_write(DRAW, CLEAR)]},
    needs=["VK_EXT_rasterization_order_attachment_access"],
    rule="rasterization-order-attachment-access",
)
def scenario_rasterization_order_attachment_access(rig: Rig) -> None:
    """With rasterization order attachment access a draw reads as input what an earlier draw or clear wrote."""
    shown, read, out = rig.target(), rig.target(), rig.buffer(1024)
    ordered = rig.choose("order", True, {"none": False})
    kept = RigAttachment(load="LOAD", initial=AT)
    both = RigSubpass([(0, AT), (1, AT)], inputs=[(1, AT)], flags=RASTER_ORDERED_COLOR)
    made = rig.render_pass([kept, kept], [both], [*SELF, LEAVE])
    views = [rig.view(shown), rig.view(read)]
    frame = rig.framebuffer(made, views)
    invert = rig.graphics("invert_input", render_pass=made, raster_ordered=ordered)
    with rig.submission() as commands:
        commands.transition(shown, read)
        for image in (shown, read):
            commands.clear_color(image, 0x01010101)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", READ_OR_USED)
        commands.begin_pass(made, frame)
        commands.clear_attachments((1, 1, 0x10203040), rects=[((0, 0, 16, 16), 0, 1)])
        commands.bind(invert, rig.descriptors(invert, b0=(views[1], None, rig.vk.VK_IMAGE_LAYOUT_GENERAL)))
        commands.draw()
        commands.end_pass()
        commands.image_to_buffer(shown, out)


@scenario(
    without={"cleared before read": [read_after_write(DRAW, CLEAR)]},
    weakened={"cleared before read / execution only": [read_after_write(DRAW, CLEAR)]},
    rule="input-attachments-are-read-by-the-shader,a-barrier-inside-a-subpass-stays-there",
)
def scenario_input_attachment_read_after_a_write(rig: Rig) -> None:
    """A shader that reads as input what the subpass itself wrote needs a barrier there: raster order is not enough."""
    shown, read, out = rig.target(), rig.target(), rig.buffer(1024)
    one = _Pass(rig, shown, read)
    with rig.submission() as commands:
        one.begin(commands, shown, read)
        commands.clear_attachments((1, 1, 0x10203040))
        commands.barrier(
            "cleared before read",
            WRITTEN,
            READ_OR_USED,
            flags=VkDependency.BY_REGION,
            weaker={"execution only": {"src": OUTPUT, "dst": "FRAGMENT_SHADER"}},
        )
        one.draw(commands)
        commands.end_pass()
        commands.image_to_buffer(shown, out)


@scenario(
    without={"read before cleared": [write_after_read(CLEAR, DRAW)]},
    rule="input-attachments-are-read-by-the-shader,a-barrier-inside-a-subpass-stays-there",
)
def scenario_input_attachment_written_after_a_read(rig: Rig) -> None:
    """A write to an attachment that an earlier draw reads as input needs an execution dependency."""
    shown, read, out = rig.target(), rig.target(), rig.buffer(1024)
    one = _Pass(rig, shown, read)
    with rig.submission() as commands:
        one.begin(commands, shown, read)
        one.draw(commands)
        commands.barrier("read before cleared", "FRAGMENT_SHADER", WRITTEN, flags=VkDependency.BY_REGION)
        commands.clear_attachments((1, 1, 0x10203040))
        commands.end_pass()
        commands.image_to_buffer(shown, out)


@scenario(rule="input-reads-come-after-loads-and-before-stores")
def scenario_input_attachment_that_was_loaded_and_is_stored(rig: Rig) -> None:
    """Loads come before the reads of input attachments of the instance, and stores after them."""
    shown, read, out = rig.target(), rig.target(), rig.buffer(1024)
    made = rig.render_pass(
        [RigAttachment(initial=AT), RigAttachment(load="CLEAR", initial=AT)],
        [RigSubpass([(0, AT)], inputs=[(1, AT)])],
        [LEAVE],
    )
    views = [rig.view(shown), rig.view(read)]
    frame = rig.framebuffer(made, views)
    invert = rig.graphics("invert_input", render_pass=made)
    held = rig.descriptors(invert, b0=(views[1], None, rig.vk.VK_IMAGE_LAYOUT_GENERAL))
    with rig.submission() as commands:
        commands.transition(shown, read)
        commands.begin_pass(made, frame, clear=[0, 0x01020304])
        commands.bind(invert, held)
        commands.draw()
        commands.end_pass()
        commands.image_to_buffer(shown, out)


@scenario(
    without={"uploaded before read": [read_after_write(BEGIN, FILL)]},
    weakened={
        "uploaded before read / for the shader only": [read_after_write(BEGIN, FILL)],
        "uploaded before read / for the load only": [],
    },
    rule="attachment-accesses-are-in-rasterization-order,input-reads-come-after-loads-and-before-stores",
)
def scenario_input_attachment_is_loaded_before_it_is_read(rig: Rig) -> None:
    """The load operation defines what the fragment shader reads: only the load needs a dependency with an upload."""
    shown, read, out = rig.target(), rig.target(), rig.buffer(1024)
    made = rig.render_pass(
        [RigAttachment(initial=AT), RigAttachment(load="LOAD", store="NONE", initial=AT)],
        [RigSubpass([(0, AT)], inputs=[(1, AT)])],
        [LEAVE],
    )
    views = [rig.view(shown), rig.view(read)]
    frame = rig.framebuffer(made, views)
    invert = rig.graphics("invert_input", render_pass=made)
    held = rig.descriptors(invert, b0=(views[1], None, rig.vk.VK_IMAGE_LAYOUT_GENERAL))
    with rig.submission() as commands:
        commands.transition(shown, read)
        commands.clear_color(read, 0x10203040)
        commands.barrier(
            "uploaded before read",
            "CLEAR/TRANSFER_WRITE",
            READ_OR_USED,
            weaker={
                "for the shader only": {"dst": INPUT},
                "for the load only": {"dst": f"{OUTPUT}/COLOR_ATTACHMENT_READ"},
            },
        )
        commands.begin_pass(made, frame)
        commands.bind(invert, held)
        commands.draw()
        commands.end_pass()
        commands.image_to_buffer(shown, out)


@scenario(
    weakened={"resolved before read / no writes made available": [write_after_write(NEXT, NEXT)]},
    rule="resolves-at-the-end-of-rendering-are-colour-accesses,a-resolve-waits-for-draws-of-another-subpass",
)
def scenario_resolved_attachment_as_input(rig: Rig) -> None:
    """A subpass reads an attachment that the one before resolved: the dependency must make that write available."""
    many, one, shown, out = rig.target(samples=4), rig.target(), rig.target(), rig.buffer(1024)
    weaker = {"no writes made available": {"before": f"{OUTPUT}/COLOR_ATTACHMENT_READ"}}
    made = rig.render_pass(
        [
            RigAttachment(samples=4, store="DONT_CARE", final="COLOR_ATTACHMENT_OPTIMAL"),
            RigAttachment(
                load="LOAD", store="NONE", initial="COLOR_ATTACHMENT_OPTIMAL", final="SHADER_READ_ONLY_OPTIMAL"
            ),
            RigAttachment(initial=AT),
        ],
        [RigSubpass([0], resolves=[1]), RigSubpass([(2, AT)], inputs=[1])],
        [
            RigSubpassDependency("resolved before read", 0, 1, WRITTEN, INPUT, weaker=weaker),
            RigSubpassDependency("", 1, VK_SUBPASS_EXTERNAL, WRITTEN, COPIED),
        ],
    )
    views = [rig.view(many), rig.view(one), rig.view(shown)]
    frame = rig.framebuffer(made, views)
    invert = rig.graphics("invert_input", render_pass=made, subpass=1)
    held = rig.descriptors(invert, b0=(views[1], None, rig.vk.VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL))
    with rig.submission() as commands:
        commands.transition(shown)
        commands.transition(one, new="COLOR_ATTACHMENT_OPTIMAL")
        commands.begin_pass(made, frame, clear=[0x10203040])
        commands.next_subpass()
        commands.bind(invert, held)
        commands.draw()
        commands.end_pass()
        commands.image_to_buffer(shown, out)


@scenario(
    without={"input read before moved": [write_after_read("vkCmdPipelineBarrier2", DRAW)]},
    weakened={"input read before moved / after vertices": [write_after_read("vkCmdPipelineBarrier2", DRAW)]},
    rule="operation-none-accesses-nothing,input-reads-come-after-loads-and-before-stores,final-transitions-wait-for-the-store",
)
def scenario_transition_after_an_input_read_that_is_not_stored(rig: Rig) -> None:
    """With nothing stored, the fragment shader is the last to access an input: a transition must wait for that."""
    shown, read, out = rig.target(), rig.target(DEPTH), rig.buffer(1024)
    made = rig.render_pass(
        [RigAttachment(initial=AT), RigAttachment(DEPTH, load="LOAD", store="NONE", initial=AT)],
        [RigSubpass([(0, AT)], depth=(1, AT), inputs=[(1, AT)])],
        [LEAVE],
    )
    views = [rig.view(shown), rig.view(read, aspect=2)]
    frame = rig.framebuffer(made, views)
    invert = rig.graphics("invert_input", render_pass=made)
    held = rig.descriptors(invert, b0=(views[1], None, rig.vk.VK_IMAGE_LAYOUT_GENERAL))
    with rig.submission() as commands:
        commands.transition(shown, read)
        commands.clear_depth_stencil(read, 0.25)
        commands.barrier(
            "", "CLEAR/TRANSFER_WRITE", f"{EARLY}|FRAGMENT_SHADER/DEPTH_STENCIL_ATTACHMENT_READ|INPUT_ATTACHMENT_READ"
        )
        commands.begin_pass(made, frame)
        commands.bind(invert, held)
        commands.draw()
        commands.end_pass()
        commands.barrier(
            "input read before moved", "FRAGMENT_SHADER", EARLY, weaker={"after vertices": {"src": "VERTEX_SHADER"}}
        )
        commands.transition(read, src=EARLY, dst=COPIED, old=AT, new="TRANSFER_SRC_OPTIMAL")
        commands.image_to_buffer(shown, out)
