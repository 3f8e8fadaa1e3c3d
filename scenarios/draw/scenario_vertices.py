"""Vertex buffers: what draws read of them, to the byte."""

import struct
from typing import Any

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer, RigImage
from vkharness.rig.graphics_pipelines import STRIP_POSITIONS
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.suite import Rig, read_after_write, scenario, write_after_read

DRAW, UPDATE = "vkCmdDraw", "vkCmdUpdateBuffer"
WRITTEN = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"
VERTICES = "VERTEX_ATTRIBUTE_INPUT/VERTEX_ATTRIBUTE_READ"
CORNERS = struct.pack("<8f", -1, -1, 1.25, -1, -1, 1, 1.25, 1)
HALF = struct.pack("<8f", -1, -1, 0, -1, -1, 1, 0, 1)
"""Strips of two triangles: over all of the viewport, and over its left half."""


def _draws(
    commands: Commands, image: RigImage, *buffers: RigBuffer | tuple[RigBuffer, int], count: int = 4, **state: Any
) -> None:
    """A draw of some vertices of these buffers to an image."""
    commands.begin_rendering(RenderingAttachment(commands.rig.view(image)))
    commands.bind(commands.rig.graphics(**{**STRIP_POSITIONS, **state}))
    commands.bind_vertices(*buffers)
    commands.draw(count)
    commands.end_rendering()


def _show(commands: Commands, image: RigImage, out: RigBuffer) -> None:
    commands.barrier("", WRITTEN, "COPY/TRANSFER_READ")
    commands.image_to_buffer(image, out)


@scenario(
    without={"updated before drawn": [read_after_write(DRAW, UPDATE)]},
    weakened={
        "updated before drawn / before indices": [read_after_write(DRAW, UPDATE)],
        "updated before drawn / before the vertex shader": [read_after_write(DRAW, UPDATE)],
        "updated before drawn / execution only": [read_after_write(DRAW, UPDATE)],
        "updated before drawn / before all vertex input": [],
    },
    rule="stage-names-that-stand-for-several-stages,vertices-are-read-by-vertex-input",
)
def scenario_draw_reads_updated_vertices(rig: Rig) -> None:
    """Vertices are read by VERTEX_ATTRIBUTE_INPUT, which VERTEX_INPUT contains, and not by the vertex shader."""
    image, vertices, out = rig.target(), rig.buffer(64, data=CORNERS), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(image)
        commands.update(vertices, HALF)
        commands.barrier(
            "updated before drawn",
            "CLEAR/TRANSFER_WRITE",
            VERTICES,
            weaker={
                "before indices": {"dst": "INDEX_INPUT/INDEX_READ"},
                "before the vertex shader": {"dst": "VERTEX_SHADER/SHADER_READ"},
                "execution only": {"src": "CLEAR", "dst": "VERTEX_ATTRIBUTE_INPUT"},
                "before all vertex input": {"dst": "VERTEX_INPUT/MEMORY_READ"},
            },
        )
        _draws(commands, image, vertices)
        _show(commands, image, out)


@scenario(
    without={"drawn before updated": [write_after_read(UPDATE, DRAW)]},
    weakened={"drawn before updated / after indices": [write_after_read(UPDATE, DRAW)]},
    rule="write-after-read,vertices-are-read-by-vertex-input",
)
def scenario_vertices_updated_after_a_draw(rig: Rig) -> None:
    """Vertices that a draw reads may be overwritten once its vertex input is over."""
    image, vertices, out = rig.target(), rig.buffer(64, data=CORNERS), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(image)
        _draws(commands, image, vertices)
        commands.barrier(
            "drawn before updated", "VERTEX_ATTRIBUTE_INPUT", "CLEAR", weaker={"after indices": {"src": "INDEX_INPUT"}}
        )
        commands.update(vertices, HALF)
        _show(commands, image, out)


@scenario(
    weakened={"place / overlapping": [read_after_write(DRAW, UPDATE)], "place / before the first vertex": []},
    rule="vertices-are-read-by-vertex-input",
)
def scenario_bytes_that_no_vertex_reaches(rig: Rig) -> None:
    """A draw reads from its first vertex to the end of its last one: an update beside that needs no dependency."""
    image, vertices, out = rig.target(), rig.buffer(128, data=bytes(32) + CORNERS + bytes(64)), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(image)
        place = rig.choose("place", 64, {"overlapping": 56, "before the first vertex": 0})
        commands.update(vertices, HALF[:8], offset=place)
        _draws(commands, image, (vertices, 32))
        _show(commands, image, out)


@scenario(
    without={"updated before drawn": [read_after_write(DRAW, UPDATE)]},
    weakened={"element / of the next instance": []},
    rule="vertices-are-read-by-vertex-input",
)
def scenario_bindings_of_instance_rate(rig: Rig) -> None:
    """A binding of instance rate reads one element an instance, whatever the number of vertices."""
    image, vertices, shifts, out = rig.target(), rig.buffer(64), rig.buffer(64), rig.buffer(1024)
    element = rig.choose("element", 0, {"of the next instance": 1})
    rig.host_write(vertices, CORNERS)
    shifted: dict[str, Any] = {
        "vertex": "shifted_position",
        "vertex_buffers": [(8, 0), (8, 1)],
        "attributes": [(each, each, "VK_FORMAT_R32G32_SFLOAT", 0) for each in (0, 1)],
    }
    with rig.submission() as commands:
        commands.transition(image)
        commands.update(shifts, struct.pack("<2f", 1, 0), offset=8 * element)
        if not element:
            commands.barrier("updated before drawn", "CLEAR/TRANSFER_WRITE", VERTICES)
        _draws(commands, image, vertices, shifts, **shifted)
        _show(commands, image, out)


@scenario(
    weakened={"draw / of four": [read_after_write(DRAW, UPDATE)]}, rule="empty-dispatches-and-draws-access-nothing"
)
def scenario_draw_of_no_vertices(rig: Rig) -> None:
    """A draw of no vertices reads nothing."""
    image, vertices, out = rig.target(), rig.buffer(64, data=CORNERS), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(image)
        commands.update(vertices, HALF)
        _draws(commands, image, vertices, count=rig.choose("draw", 0, {"of four": 4}))
        _show(commands, image, out)


@scenario(
    weakened={"pipeline / with vertex input": [read_after_write(DRAW, UPDATE)]},
    rule="vertices-are-read-by-vertex-input",
)
def scenario_bound_vertices_that_the_pipeline_does_not_use(rig: Rig) -> None:
    """A vertex buffer that is bound but no binding of the pipeline is not read."""
    image, vertices, out = rig.target(), rig.buffer(64, data=CORNERS), rig.buffer(1024)
    plain = {"vertex": "fullscreen", "vertex_buffers": [], "attributes": [], "topology": 3}
    with rig.submission() as commands:
        commands.transition(image)
        commands.update(vertices, HALF)
        _draws(commands, image, vertices, **rig.choose("pipeline", plain, {"with vertex input": {}}))
        _show(commands, image, out)
