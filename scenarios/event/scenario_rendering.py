"""Events around rendering: set before a render pass instance and waited for inside, or set after it."""

import struct

from vkharness.rig.graphics_pipelines import POSITIONS
from vkharness.rig.render_passes import RigAttachment, RigSubpass, RigSubpassDependency
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL
from vkharness.suite import Rig, read_after_write, scenario

FILL, DRAW, DOWNLOAD = "vkCmdFillBuffer", "vkCmdDraw", "vkCmdCopyImageToBuffer"
COLOR, FROM = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE", "COPY/TRANSFER_READ"
FILLED, VERTICES = "CLEAR/TRANSFER_WRITE", "VERTEX_ATTRIBUTE_INPUT/VERTEX_ATTRIBUTE_READ"
CORNERS = struct.pack("<6f", -1, -1, 3, -1, -1, 3)
FAR = struct.unpack("<I", struct.pack("<f", 2.0))[0]
"""The word that puts every vertex outside."""


@scenario(
    without={"rendered before copied": [read_after_write(DOWNLOAD, "vkCmdEndRendering")]},
    weakened={
        "rendered before copied / execution only": [read_after_write(DOWNLOAD, "vkCmdEndRendering")],
        "rendered before copied / fragment shader": [read_after_write(DOWNLOAD, "vkCmdEndRendering")],
    },
    rule="a-set-and-its-wait-are-one-dependency,events-reach-into-rendering",
)
def scenario_copy_waits_for_rendering(rig: Rig) -> None:
    """An event set after rendering carries its store operations to a wait before a copy."""
    image, out = rig.target(), rig.buffer(1024)
    rendered = rig.event(
        "rendered before copied",
        COLOR,
        FROM,
        weaker={
            "execution only": {"src": "COLOR_ATTACHMENT_OUTPUT", "dst": "COPY"},
            "fragment shader": {"src": "FRAGMENT_SHADER/SHADER_STORAGE_WRITE"},
        },
    )
    with rig.submission() as commands:
        commands.transition(image)
        commands.begin_rendering(RenderingAttachment(rig.view(image)))
        commands.bind(rig.graphics())
        commands.draw()
        commands.end_rendering()
        commands.set_event(rendered)
        commands.wait_events(rendered)
        commands.image_to_buffer(image, out)


@scenario(
    without={"filled before drawn": [read_after_write(DRAW, FILL)]},
    weakened={"filled before drawn / for indices": [read_after_write(DRAW, FILL)]},
    rule="events-reach-into-rendering",
)
def scenario_wait_inside_dynamic_rendering(rig: Rig) -> None:
    """A wait inside rendering orders the draws after it, not those before it."""
    image, out, corners = rig.target(), rig.buffer(1024), rig.buffer(24, data=CORNERS)
    filled = rig.event(
        "filled before drawn", FILLED, VERTICES, weaker={"for indices": {"dst": "INDEX_INPUT/INDEX_READ"}}
    )
    with rig.submission() as commands:
        commands.transition(image)
        commands.fill(corners, FAR)
        commands.set_event(filled)
        commands.begin_rendering(RenderingAttachment(rig.view(image)))
        commands.wait_events(filled)
        commands.bind(rig.graphics(**POSITIONS))
        commands.bind_vertices(corners)
        commands.draw()
        commands.end_rendering()
        commands.barrier("", COLOR, FROM)
        commands.image_to_buffer(image, out)


@scenario(
    without={"filled before drawn": [read_after_write(DRAW, FILL)]},
    weakened={"filled before drawn / for indices": [read_after_write(DRAW, FILL)]},
    rule="events-reach-into-rendering",
)
def scenario_wait_inside_a_subpass(rig: Rig) -> None:
    """The same inside a subpass, whose own dependencies order no fill before it."""
    image, out, corners = rig.target(), rig.buffer(1024), rig.buffer(24, data=CORNERS)
    made = rig.render_pass(
        [RigAttachment()], [RigSubpass([0])], [RigSubpassDependency("", 0, VK_SUBPASS_EXTERNAL, COLOR, FROM)]
    )
    frame = rig.framebuffer(made, [rig.view(image)])
    pipeline = rig.graphics(render_pass=made, **POSITIONS)
    filled = rig.event(
        "filled before drawn", FILLED, VERTICES, weaker={"for indices": {"dst": "INDEX_INPUT/INDEX_READ"}}
    )
    with rig.submission() as commands:
        commands.fill(corners, FAR)
        commands.set_event(filled)
        commands.begin_pass(made, frame, v2=True)
        commands.wait_events(filled)
        commands.bind(pipeline)
        commands.bind_vertices(corners)
        commands.draw()
        commands.end_pass(v2=True)
        commands.image_to_buffer(image, out)
