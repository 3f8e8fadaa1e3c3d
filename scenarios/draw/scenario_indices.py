"""Index buffers, and the vertices that indices mean."""

import struct
from typing import Any

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer, RigImage
from vkharness.rig.graphics_pipelines import STRIP_POSITIONS
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.suite import Rig, read_after_write, scenario, write_after_read

DRAW, UPDATE = "vkCmdDrawIndexed", "vkCmdUpdateBuffer"
WRITTEN = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"
INDICES, VERTICES = "INDEX_INPUT/INDEX_READ", "VERTEX_ATTRIBUTE_INPUT/VERTEX_ATTRIBUTE_READ"
CORNERS = struct.pack("<10f", -1, -1, 1.25, -1, -1, 1, 1.25, 1, 0, 1)
HALF = struct.pack("<8f", -1, -1, 0, -1, -1, 1, 0, 1)
ORDER, OTHER = struct.pack("<4I", 0, 1, 2, 3), struct.pack("<4I", 0, 1, 2, 4)


def _draws(commands: Commands, image: RigImage, vertices: RigBuffer, indices: RigBuffer, **draw: Any) -> None:
    """An indexed draw of four 32-bit indices, or as `draw` says, to an image."""
    kind, offset = draw.pop("kind", "UINT32"), draw.pop("offset", 0)
    commands.begin_rendering(RenderingAttachment(commands.rig.view(image)))
    commands.bind(commands.rig.graphics(**STRIP_POSITIONS))
    commands.bind_vertices(vertices)
    commands.bind_indices(indices, offset, kind)
    commands.draw_indexed(**{"indices": 4, **draw})
    commands.end_rendering()


def _show(commands: Commands, image: RigImage, out: RigBuffer) -> None:
    commands.barrier("", WRITTEN, "COPY/TRANSFER_READ")
    commands.image_to_buffer(image, out)


@scenario(
    without={"updated before drawn": [read_after_write(DRAW, UPDATE)]},
    weakened={
        "updated before drawn / before attributes": [read_after_write(DRAW, UPDATE)],
        "updated before drawn / before all vertex input": [],
    },
    rule="indices-are-read-by-index-input",
)
def scenario_draw_reads_updated_indices(rig: Rig) -> None:
    """Indices are read by INDEX_INPUT: a dependency to the attributes alone comes too late."""
    image, vertices, indices, out = rig.target(), rig.buffer(64, data=CORNERS), rig.buffer(64), rig.buffer(1024)
    rig.host_write(indices, ORDER)
    with rig.submission() as commands:
        commands.transition(image)
        commands.update(indices, OTHER)
        commands.barrier(
            "updated before drawn",
            "CLEAR/TRANSFER_WRITE",
            INDICES,
            weaker={
                "before attributes": {"dst": VERTICES},
                "before all vertex input": {"dst": "VERTEX_INPUT/INDEX_READ"},
            },
        )
        _draws(commands, image, vertices, indices)
        _show(commands, image, out)


@scenario(
    without={"drawn before updated": [write_after_read(UPDATE, DRAW)]},
    rule="write-after-read,indices-are-read-by-index-input",
)
def scenario_indices_updated_after_a_draw(rig: Rig) -> None:
    """Indices may be overwritten once the index input of the draw is over."""
    image, vertices, indices, out = rig.target(), rig.buffer(64, data=CORNERS), rig.buffer(64), rig.buffer(1024)
    rig.host_write(indices, ORDER)
    with rig.submission() as commands:
        commands.transition(image)
        _draws(commands, image, vertices, indices)
        commands.barrier("drawn before updated", "INDEX_INPUT", "CLEAR")
        commands.update(indices, OTHER)
        _show(commands, image, out)


@scenario(
    weakened={"place / of the last index": [read_after_write(DRAW, UPDATE)], "place / before the first index": []},
    rule="indices-are-read-by-index-input",
)
def scenario_bytes_that_no_index_lies_in(rig: Rig) -> None:
    """An indexed draw reads its own indices only: 16-bit ones from the third, behind an offset."""
    image, vertices, indices, out = rig.target(), rig.buffer(64, data=CORNERS), rig.buffer(64), rig.buffer(1024)
    rig.host_write(indices, bytes(12) + struct.pack("<4H", 0, 1, 2, 3) + bytes(8))
    with rig.submission() as commands:
        commands.transition(image)
        place = rig.choose("place", 20, {"of the last index": 16, "before the first index": 8})
        commands.update(indices, struct.pack("<2H", 2, 4), offset=place)
        _draws(commands, image, vertices, indices, kind="UINT16", offset=8, first_index=2)
        _show(commands, image, out)


@scenario(
    without={"updated before drawn": [read_after_write(DRAW, UPDATE)]},
    weakened={"updated before drawn / before indices": [read_after_write(DRAW, UPDATE)]},
    rule="contents-decide-what-a-draw-reads",
)
def scenario_vertices_behind_indices(rig: Rig) -> None:
    """An indexed draw reads the vertices that its indices mean, too."""
    image, vertices, indices, out = rig.target(), rig.buffer(64, data=CORNERS), rig.buffer(64), rig.buffer(1024)
    rig.host_write(indices, ORDER)
    with rig.submission() as commands:
        commands.transition(image)
        commands.update(vertices, HALF)
        commands.barrier(
            "updated before drawn", "CLEAR/TRANSFER_WRITE", VERTICES, weaker={"before indices": {"dst": INDICES}}
        )
        _draws(commands, image, vertices, indices)
        _show(commands, image, out)


@scenario(
    weakened={"place / of the last vertex": [read_after_write(DRAW, UPDATE)], "place / behind what is bound": []},
    rule="contents-decide-what-a-draw-reads",
)
def scenario_vertices_that_no_index_means(rig: Rig) -> None:
    """An indexed draw reads the vertices that its indices mean, and no others of a buffer that several draws share."""
    image, vertices, indices, out = rig.target(), rig.buffer(64, data=CORNERS), rig.buffer(64), rig.buffer(1024)
    rig.host_write(indices, ORDER)
    with rig.submission() as commands:
        commands.transition(image)
        place = rig.choose("place", 32, {"of the last vertex": 24, "behind what is bound": 48})
        commands.update(vertices, HALF[:8], offset=place)
        _draws(commands, image, vertices, indices)
        _show(commands, image, out)
