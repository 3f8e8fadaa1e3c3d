"""Secondary command buffers inside render pass instances: what they draw and clear are the primary's attachments."""

import struct

from vkharness.findings import Hazard
from vkharness.rig.core import COLOR_FORMAT
from vkharness.rig.graphics_pipelines import POSITIONS
from vkharness.rig.render_passes import RigAttachment, RigSubpass, RigSubpassDependency
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL, VkDependency, VkRendering
from vkharness.suite import Rig, race, read_after_write, scenario

FILL, DRAW, DOWNLOAD = "vkCmdFillBuffer", "vkCmdDraw", "vkCmdCopyImageToBuffer"
COLOR, FROM = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE", "COPY/TRANSFER_READ"
CORNERS = struct.pack("<6f", -1, -1, 3, -1, -1, 3)
FAR = struct.unpack("<I", struct.pack("<f", 2.0))[0]
"""The word that puts every vertex outside."""


@scenario(
    without={"filled before drawn": [read_after_write(DRAW, FILL)]},
    weakened={"filled before drawn / for indices": [read_after_write(DRAW, FILL)]},
    rule="draws-of-a-secondary-use-the-attachments-of-the-primary,vertices-are-read-by-vertex-input",
)
def scenario_secondary_draws_vertices_that_the_primary_filled(rig: Rig) -> None:
    """A draw of a secondary needs a dependency for its reads before the render pass instance."""
    image, out, corners = rig.target(), rig.buffer(1024), rig.buffer(24, data=CORNERS)
    pipeline = rig.graphics(**POSITIONS)
    with rig.secondary(colors=[COLOR_FORMAT]) as draws:
        draws.bind(pipeline)
        draws.bind_vertices(corners)
        draws.draw()
    with rig.submission() as commands:
        commands.transition(image)
        commands.fill(corners, FAR)
        commands.barrier(
            "filled before drawn",
            "CLEAR/TRANSFER_WRITE",
            "VERTEX_ATTRIBUTE_INPUT/VERTEX_ATTRIBUTE_READ",
            weaker={"for indices": {"dst": "INDEX_INPUT/INDEX_READ"}},
        )
        commands.begin_rendering(
            RenderingAttachment(rig.view(image)), flags=VkRendering.CONTENTS_SECONDARY_COMMAND_BUFFERS
        )
        commands.execute(draws)
        commands.end_rendering()
        commands.barrier("", COLOR, FROM)
        commands.image_to_buffer(image, out)


@scenario(
    without={"rendered before copied": [read_after_write(DOWNLOAD, "vkCmdEndRendering")]},
    rule="draws-of-a-secondary-use-the-attachments-of-the-primary,attachment-accesses-are-in-rasterization-order",
)
def scenario_two_secondaries_draw_in_one_instance(rig: Rig) -> None:
    """Secondaries of one instance draw in rasterization order: nothing is needed between them."""
    image, out = rig.target(), rig.buffer(1024)
    pipeline = rig.graphics()
    made = []
    for _ in range(2):
        with rig.secondary(colors=[COLOR_FORMAT]) as draws:
            draws.bind(pipeline)
            draws.draw()
        made.append(draws)
    with rig.secondary(colors=[COLOR_FORMAT]) as clears:
        clears.clear_attachments((1, 0, 5), rects=[((0, 0, 4, 4), 0, 1)])
    with rig.submission() as commands:
        commands.transition(image)
        commands.begin_rendering(
            RenderingAttachment(rig.view(image)), flags=VkRendering.CONTENTS_SECONDARY_COMMAND_BUFFERS
        )
        commands.execute(*made, clears)
        commands.end_rendering()
        commands.barrier("rendered before copied", COLOR, FROM)
        commands.image_to_buffer(image, out)


@scenario(
    without={"one after the other": [read_after_write(DRAW, DRAW)]},
    weakened={"one after the other / execution only": [read_after_write(DRAW, DRAW)]},
    rule="draws-of-a-secondary-use-the-attachments-of-the-primary,a-barrier-inside-a-subpass-stays-there",
)
def scenario_barrier_of_a_secondary_in_a_subpass(rig: Rig) -> None:
    """Within a subpass a secondary may hold the barrier that orders the next draw after it."""
    image, out = rig.target(), rig.buffer(1024)
    masks = (COLOR, "FRAGMENT_SHADER/INPUT_ATTACHMENT_READ")
    made = rig.render_pass(
        [RigAttachment()],
        [RigSubpass([(0, "GENERAL")], inputs=[(0, "GENERAL")])],
        [
            RigSubpassDependency("", 0, 0, *masks, VkDependency.BY_REGION),
            RigSubpassDependency("", 0, VK_SUBPASS_EXTERNAL, COLOR, FROM),
        ],
    )
    view = rig.view(image)
    frame = rig.framebuffer(made, [view])
    draw = rig.graphics(render_pass=made)
    invert = rig.graphics("invert_input", render_pass=made)
    inputs = rig.descriptors(invert, b0=(view, None, 1))
    with rig.secondary(render_pass=made, framebuffer=frame) as draws:
        draws.bind(draw)
        draws.draw()
        draws.barrier(
            "one after the other",
            *masks,
            flags=VkDependency.BY_REGION,
            weaker={"execution only": {"src": "COLOR_ATTACHMENT_OUTPUT", "dst": "FRAGMENT_SHADER"}},
        )
    with rig.secondary(render_pass=made, framebuffer=frame) as inverts:
        inverts.bind(invert, inputs)
        inverts.draw()
    with rig.submission() as commands:
        commands.begin_pass(made, frame, v2=True, secondaries=True)
        commands.execute(draws, inverts)
        commands.end_pass(v2=True)
        commands.image_to_buffer(image, out)


@scenario(
    without={"first subpass before second": [race(Hazard.READ_RACING_WRITE, DRAW, DRAW)]},
    rule="draws-of-a-secondary-use-the-attachments-of-the-primary,a-subpass-dependency-orders-two-subpasses",
)
def scenario_secondaries_of_two_subpasses(rig: Rig) -> None:
    """Draws in secondaries of two subpasses are ordered by the subpass dependency and nothing else."""
    image, second, out = rig.target(), rig.target(), rig.buffer(1024)
    masks = (COLOR, "FRAGMENT_SHADER/INPUT_ATTACHMENT_READ")
    made = rig.render_pass(
        [RigAttachment(), RigAttachment()],
        [RigSubpass([(0, "GENERAL")]), RigSubpass([(1, "GENERAL")], inputs=[(0, "GENERAL")])],
        [
            RigSubpassDependency("first subpass before second", 0, 1, *masks),
            RigSubpassDependency("", 1, VK_SUBPASS_EXTERNAL, COLOR, FROM),
        ],
    )
    views = [rig.view(image), rig.view(second)]
    frame = rig.framebuffer(made, views)
    draw = rig.graphics(render_pass=made)
    invert = rig.graphics("invert_input", render_pass=made, subpass=1)
    inputs = rig.descriptors(invert, b0=(views[0], None, 1))
    with rig.secondary(render_pass=made, framebuffer=frame) as draws:
        draws.bind(draw)
        draws.draw()
    with rig.secondary(render_pass=made, subpass=1, framebuffer=frame) as inverts:
        inverts.bind(invert, inputs)
        inverts.draw()
    with rig.submission() as commands:
        commands.begin_pass(made, frame, v2=True, secondaries=True)
        commands.execute(draws)
        commands.next_subpass(v2=True, secondaries=True)
        commands.execute(inverts)
        commands.end_pass(v2=True)
        commands.image_to_buffer(second, out)
