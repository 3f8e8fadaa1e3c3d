"""VK_EXT_multi_draw: several ranges of vertices or indices in one command."""

import struct

from vkharness.rig.graphics_pipelines import POSITIONS
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.suite import Rig, read_after_write, scenario

MULTI, INDEXED, UPDATE = "vkCmdDrawMultiEXT", "vkCmdDrawMultiIndexedEXT", "vkCmdUpdateBuffer"
WRITTEN = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"
VERTICES = "VERTEX_ATTRIBUTE_INPUT/VERTEX_ATTRIBUTE_READ"
FIRST, SECOND = struct.pack("<6f", -1, -1, 1.25, -1, -1, 1), struct.pack("<6f", 1, 1, 1.25, -1, -1, 1)
"""Two triangles that cover the viewport."""
SMALL = struct.pack("<6f", 1, 1, 0, 1, 1.25, 0)


@scenario(
    without={"updated before drawn": [read_after_write(MULTI, UPDATE)]},
    weakened={"place / between the draws": []},
    needs=["VK_EXT_multi_draw"],
    rule="vertices-are-read-by-vertex-input",
)
def scenario_several_draws_of_vertices(rig: Rig) -> None:
    """A multi-draw reads each of its ranges of vertices, and not what lies between them."""
    image, vertices, out = rig.target(), rig.buffer(128, data=FIRST + bytes(24) + SECOND), rig.buffer(1024)
    place = rig.choose("place", 48, {"between the draws": 24})
    with rig.submission() as commands:
        commands.transition(image)
        commands.update(vertices, SMALL, offset=place)
        if place == 48:
            commands.barrier("updated before drawn", "CLEAR/TRANSFER_WRITE", VERTICES)
        commands.begin_rendering(RenderingAttachment(rig.view(image)))
        commands.bind(rig.graphics(**POSITIONS))
        commands.bind_vertices(vertices)
        commands.draw_multi((0, 3), (6, 3))
        commands.end_rendering()
        commands.barrier("", WRITTEN, "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)


@scenario(
    without={"updated before drawn": [read_after_write(INDEXED, UPDATE)]},
    weakened={"place / between the draws": []},
    needs=["VK_EXT_multi_draw"],
    rule="indices-are-read-by-index-input",
)
def scenario_several_draws_of_indices(rig: Rig) -> None:
    """An indexed multi-draw reads each of its ranges of indices, and not what lies between them."""
    image, vertices, indices, out = rig.target(), rig.buffer(64, data=FIRST + SECOND), rig.buffer(64), rig.buffer(1024)
    rig.host_write(indices, struct.pack("<9I", 0, 1, 2, 0, 0, 0, 0, 1, 2))
    place = rig.choose("place", 24, {"between the draws": 12})
    with rig.submission() as commands:
        commands.transition(image)
        commands.update(indices, struct.pack("<3I", 0, 0, 0), offset=place)
        if place == 24:
            commands.barrier("updated before drawn", "CLEAR/TRANSFER_WRITE", "INDEX_INPUT/INDEX_READ")
        commands.begin_rendering(RenderingAttachment(rig.view(image)))
        commands.bind(rig.graphics(**POSITIONS))
        commands.bind_vertices(vertices)
        commands.bind_indices(indices)
        commands.draw_multi_indexed((0, 3, 0), (6, 3, 3))
        commands.end_rendering()
        commands.barrier("", WRITTEN, "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)
