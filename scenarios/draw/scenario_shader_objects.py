"""VK_EXT_shader_object: shaders that are bound stage by stage access what those of a pipeline do."""

import struct

from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.spec.enums import VkFormat
from vkharness.suite import Rig, read_after_write, scenario, write_after_read

OBJECTS = ("VK_EXT_shader_object",)
WRITE, READ = "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COMPUTE_SHADER/SHADER_STORAGE_READ"
WRITTEN = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"
VERTICES = "VERTEX_ATTRIBUTE_INPUT/VERTEX_ATTRIBUTE_READ"
TRIANGLE, SMALL = struct.pack("<6f", -1, -1, 3, -1, -1, 3), struct.pack("<6f", -1, -1, 0, -1, -1, 0)


@scenario(
    without={"dispatch before copy": [read_after_write("vkCmdCopyBuffer", "vkCmdDispatch")]},
    needs=OBJECTS,
    rule="shader-objects",
)
def scenario_a_compute_shader_object_writes(rig: Rig) -> None:
    """A dispatch with a shader object writes what its shader writes."""
    a, out = rig.buffer(), rig.buffer()
    fill = rig.compute_object("fill_words")
    with rig.submission() as commands:
        commands.bind(fill, rig.descriptors(fill, b0=a))
        commands.push_constants(fill, 0x11)
        commands.dispatch()
        commands.barrier("dispatch before copy", WRITE, "COPY/TRANSFER_READ")
        commands.copy(a, out)


@scenario(
    without={"read before fill": [write_after_read("vkCmdFillBuffer", "vkCmdDispatch")]},
    needs=OBJECTS,
    rule="shader-objects",
)
def scenario_a_pipeline_takes_the_place_of_a_shader_object(rig: Rig) -> None:
    """Of a shader object and a pipeline of one bind point, the one that was bound last runs: it reads the buffer."""
    a, b = rig.buffer(data=bytes(range(256))), rig.buffer()
    fill, copy = rig.compute_object("fill_words"), rig.compute("copy_words")
    with rig.submission() as commands:
        commands.bind(fill)
        commands.bind(copy, rig.descriptors(copy, b0=a, b1=b))
        commands.dispatch()
        commands.barrier("read before fill", READ, "CLEAR/TRANSFER_WRITE")
        commands.fill(a, 0x22)


@scenario(
    without={
        "updated before drawn": [read_after_write("vkCmdDraw", "vkCmdUpdateBuffer")],
        "drawn before copied": [read_after_write("vkCmdCopyImageToBuffer", "vkCmdEndRendering")],
    },
    needs=OBJECTS,
    rule="shader-objects",
)
def scenario_a_draw_with_shader_objects(rig: Rig) -> None:
    """A draw with shader objects reads its vertices, as the dynamic vertex input says, and writes its attachment."""
    image, vertices, out = rig.target(), rig.buffer(64, data=TRIANGLE), rig.buffer(1024)
    shaders = rig.graphics_objects(vertex="vertex_position")
    with rig.submission() as commands:
        commands.transition(image)
        commands.update(vertices, SMALL)
        commands.barrier("updated before drawn", "CLEAR/TRANSFER_WRITE", VERTICES)
        commands.begin_rendering(RenderingAttachment(rig.view(image)))
        commands.bind(shaders)
        commands.set_all_state(vertex_buffers=((8, 0),), attributes=((0, 0, VkFormat.R32G32_SFLOAT, 0),))
        commands.bind_vertices(vertices)
        commands.draw(3)
        commands.end_rendering()
        commands.barrier("drawn before copied", WRITTEN, "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)
