"""Indirect draws: parameters and counts, struct by struct, and what they may reach."""

import struct
from typing import Any

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer, RigImage
from vkharness.rig.graphics_pipelines import STRIP_POSITIONS
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.suite import Rig, read_after_write, scenario, write_after_read

DRAW, COUNTED, UPDATE = "vkCmdDrawIndirect", "vkCmdDrawIndirectCount", "vkCmdUpdateBuffer"
WRITTEN = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"
PARAMETERS = "DRAW_INDIRECT/INDIRECT_COMMAND_READ"
CORNERS = struct.pack("<8f", -1, -1, 1.25, -1, -1, 1, 1.25, 1)
HALF = struct.pack("<8f", -1, -1, 0, -1, -1, 1, 0, 1)
FOUR, THREE = struct.pack("<4I", 4, 1, 0, 0), struct.pack("<4I", 3, 1, 0, 0)
"""VkDrawIndirectCommand of the whole strip, and of its first triangle."""
INDEXED = struct.pack("<5I", 4, 1, 0, 0, 0)


def _draws(commands: Commands, image: RigImage, vertices: RigBuffer, parameters: RigBuffer, **draw: Any) -> None:
    """An indirect draw to an image; `draw` are arguments of `Commands.draw_indirect`."""
    commands.begin_rendering(RenderingAttachment(commands.rig.view(image)))
    commands.bind(commands.rig.graphics(**STRIP_POSITIONS))
    commands.bind_vertices(vertices)
    indices = draw.pop("indices", None)
    if indices is not None:
        commands.bind_indices(indices)
    commands.draw_indirect(parameters, **draw)
    commands.end_rendering()


def _show(commands: Commands, image: RigImage, out: RigBuffer) -> None:
    commands.barrier("", WRITTEN, "COPY/TRANSFER_READ")
    commands.image_to_buffer(image, out)


@scenario(
    without={"updated before drawn": [read_after_write(DRAW, UPDATE)]},
    weakened={
        "updated before drawn / before vertices": [read_after_write(DRAW, UPDATE)],
        "updated before drawn / execution only": [read_after_write(DRAW, UPDATE)],
    },
    rule="indirect-parameters-are-read-first",
)
def scenario_draw_reads_updated_parameters(rig: Rig) -> None:
    """The parameters of an indirect draw are read by DRAW_INDIRECT, before anything else of it."""
    image, vertices, parameters, out = rig.target(), rig.buffer(64, data=CORNERS), rig.buffer(64), rig.buffer(1024)
    rig.host_write(parameters, FOUR)
    with rig.submission() as commands:
        commands.transition(image)
        commands.update(parameters, THREE)
        commands.barrier(
            "updated before drawn",
            "CLEAR/TRANSFER_WRITE",
            PARAMETERS,
            weaker={
                "before vertices": {"dst": "VERTEX_INPUT/VERTEX_ATTRIBUTE_READ"},
                "execution only": {"src": "CLEAR", "dst": "DRAW_INDIRECT"},
            },
        )
        _draws(commands, image, vertices, parameters)
        _show(commands, image, out)


@scenario(
    without={"drawn before updated": [write_after_read(UPDATE, DRAW)]},
    rule="write-after-read,indirect-parameters-are-read-first",
)
def scenario_parameters_updated_after_a_draw(rig: Rig) -> None:
    """Parameters may be overwritten once DRAW_INDIRECT of the draw is over."""
    image, vertices, parameters, out = rig.target(), rig.buffer(64, data=CORNERS), rig.buffer(64), rig.buffer(1024)
    rig.host_write(parameters, FOUR)
    with rig.submission() as commands:
        commands.transition(image)
        _draws(commands, image, vertices, parameters)
        commands.barrier("drawn before updated", "DRAW_INDIRECT", "CLEAR")
        commands.update(parameters, THREE)
        _show(commands, image, out)


@scenario(
    weakened={"place / in the second struct": [read_after_write(DRAW, UPDATE)], "place / behind the last struct": []},
    rule="indirect-parameters-are-read-first",
)
def scenario_bytes_between_parameters(rig: Rig) -> None:
    """Of parameters with a stride the structs are read, and not what lies between them."""
    image, vertices, parameters, out = rig.target(), rig.buffer(64, data=CORNERS), rig.buffer(128), rig.buffer(1024)
    rig.host_write(parameters, THREE + bytes(16) + FOUR + bytes(16))
    with rig.submission() as commands:
        commands.transition(image)
        place = rig.choose("place", 16, {"in the second struct": 32, "behind the last struct": 48})
        commands.update(parameters, THREE, offset=place)
        _draws(commands, image, vertices, parameters, count=2, stride=32)
        _show(commands, image, out)


@scenario(
    without={"updated before counted": [read_after_write(COUNTED, UPDATE)]},
    weakened={"updated before counted / before vertices": [read_after_write(COUNTED, UPDATE)]},
    needs=["VK_KHR_draw_indirect_count"],
    rule="indirect-parameters-are-read-first",
)
def scenario_number_of_draws_in_a_buffer(rig: Rig) -> None:
    """The number of draws is read from its buffer as parameters are."""
    image, vertices, parameters, number, out = (rig.target(), *(rig.buffer(size) for size in (64, 64, 64, 1024)))
    rig.host_write(vertices, CORNERS)
    rig.host_write(parameters, FOUR)
    with rig.submission() as commands:
        commands.transition(image)
        commands.update(number, struct.pack("<I", 1), offset=8)
        commands.barrier(
            "updated before counted",
            "CLEAR/TRANSFER_WRITE",
            PARAMETERS,
            weaker={"before vertices": {"dst": "VERTEX_INPUT/VERTEX_ATTRIBUTE_READ"}},
        )
        _draws(commands, image, vertices, parameters, counted=(number, 8))
        _show(commands, image, out)


@scenario(
    without={
        "parameters before": [read_after_write("vkCmdDrawIndexedIndirect", UPDATE)],
        "indices before": [read_after_write("vkCmdDrawIndexedIndirect", UPDATE)],
        "vertices before": [read_after_write("vkCmdDrawIndexedIndirect", UPDATE)],
    },
    rule="indices-are-read-by-index-input,contents-decide-what-a-draw-reads,indirect-parameters-are-read-first",
)
def scenario_indexed_indirect_draw(rig: Rig) -> None:
    """An indexed indirect draw reads parameters, indices and vertices: each needs its dependency."""
    image, vertices, indices, parameters, out = (rig.target(), *(rig.buffer(size) for size in (64, 64, 64, 1024)))
    rig.host_write(vertices, CORNERS)
    rig.host_write(indices, struct.pack("<4I", 0, 1, 2, 3))
    rig.host_write(parameters, INDEXED)
    with rig.submission() as commands:
        commands.transition(image)
        commands.update(parameters, struct.pack("<5I", 3, 1, 0, 0, 0))
        commands.update(indices, struct.pack("<4I", 1, 2, 3, 0))
        commands.update(vertices, HALF)
        cleared = "CLEAR/TRANSFER_WRITE"
        commands.barrier("parameters before", cleared, PARAMETERS, buffer=parameters)
        commands.barrier("indices before", cleared, "INDEX_INPUT/INDEX_READ", buffer=indices)
        commands.barrier("vertices before", cleared, "VERTEX_ATTRIBUTE_INPUT/VERTEX_ATTRIBUTE_READ", buffer=vertices)
        _draws(commands, image, vertices, parameters, indexed=True, indices=indices)
        _show(commands, image, out)
