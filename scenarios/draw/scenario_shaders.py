"""Accesses of the shaders of draws, and their stages."""

import struct

from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.suite import Rig, read_after_write, scenario, write_after_read

DRAW, UPDATE = "vkCmdDraw", "vkCmdUpdateBuffer"
CLEAR, COPY, UPLOAD = "vkCmdClearColorImage", "vkCmdCopyBuffer", "vkCmdCopyBufferToImage"
END = "vkCmdEndRendering"
WRITTEN = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"
SAMPLED = "FRAGMENT_SHADER/SHADER_SAMPLED_READ"
CORNERS = struct.pack("<8f", -1, -1, 1, -1, -1, 1, 1, 1)
HALF = struct.pack("<8f", -1, -1, 0, -1, -1, 1, 0, 1)


@scenario(
    without={"uploaded before sampled": [read_after_write(DRAW, UPLOAD)]},
    weakened={
        "uploaded before sampled / in the vertex shader": [read_after_write(DRAW, UPLOAD)],
        "uploaded before sampled / as storage": [read_after_write(DRAW, UPLOAD)],
        "uploaded before sampled / by any shader": [],
    },
    rule="access-scopes-do-not-reach-other-stages,each-shader-stage-accesses-for-itself",
)
def scenario_fragment_shader_samples_an_upload(rig: Rig) -> None:
    """A barrier to the vertex shader waits for the fragment shader too, and makes nothing visible to it."""
    source, image, data, out = rig.target(), rig.target(), rig.buffer(1024), rig.buffer(1024)
    rig.host_write(data, bytes(range(256)) * 4)
    sample = rig.graphics("sample_color")
    held = rig.descriptors(sample, b0=(rig.view(source), rig.sampler(), rig.vk.VK_IMAGE_LAYOUT_GENERAL))
    with rig.submission() as commands:
        commands.transition(image, source)
        commands.buffer_to_image(data, source)
        commands.barrier(
            "uploaded before sampled",
            "COPY/TRANSFER_WRITE",
            SAMPLED,
            weaker={
                "in the vertex shader": {"dst": "VERTEX_SHADER/SHADER_READ"},
                "as storage": {"dst": "FRAGMENT_SHADER/SHADER_STORAGE_READ"},
                "by any shader": {"dst": "ALL_GRAPHICS/SHADER_READ"},
            },
        )
        commands.begin_rendering(RenderingAttachment(rig.view(image)))
        commands.bind(sample, held)
        commands.draw()
        commands.end_rendering()
        commands.barrier("", WRITTEN, "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)


@scenario(
    without={"sampled before cleared": [write_after_read(CLEAR, DRAW)]},
    weakened={
        "sampled before cleared / after vertex shaders": [write_after_read(CLEAR, DRAW)],
        "sampled before cleared / after colour output": [],
    },
    rule="execution-scopes-reach-other-stages,each-shader-stage-accesses-for-itself",
)
def scenario_clear_after_sampling(rig: Rig) -> None:
    """An image that fragment shaders sample may be cleared once they are done: waiting for a later stage is enough."""
    source, image, out = rig.target(), rig.target(), rig.buffer(1024)
    sample = rig.graphics("sample_color")
    held = rig.descriptors(sample, b0=(rig.view(source), rig.sampler(), rig.vk.VK_IMAGE_LAYOUT_GENERAL))
    with rig.submission() as commands:
        commands.transition(image, source)
        commands.clear_color(source, 0x01020304)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", SAMPLED)
        commands.begin_rendering(RenderingAttachment(rig.view(image)))
        commands.bind(sample, held)
        commands.draw()
        commands.end_rendering()
        commands.barrier(
            "sampled before cleared",
            "FRAGMENT_SHADER",
            "CLEAR",
            weaker={
                "after vertex shaders": {"src": "VERTEX_SHADER"},
                "after colour output": {"src": "COLOR_ATTACHMENT_OUTPUT"},
            },
        )
        commands.clear_color(source, 0x11121314)
        commands.barrier("", WRITTEN, "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)


@scenario(
    without={"updated before drawn": [read_after_write(DRAW, UPDATE)]},
    weakened={
        "updated before drawn / in the fragment shader": [read_after_write(DRAW, UPDATE)],
        "updated before drawn / as attributes": [read_after_write(DRAW, UPDATE)],
        "updated before drawn / before rasterization": [],
    },
    rule="stage-names-that-stand-for-several-stages,each-shader-stage-accesses-for-itself",
)
def scenario_vertex_shader_reads_a_storage_buffer(rig: Rig) -> None:
    """A vertex shader's load from a storage buffer is a read in VERTEX_SHADER, not in vertex input."""
    image, corners, out = rig.target(), rig.buffer(64, data=CORNERS), rig.buffer(1024)
    pull = rig.graphics(vertex="pulled_position", topology=4)
    held = rig.descriptors(pull, b0=corners)
    with rig.submission() as commands:
        commands.transition(image)
        commands.update(corners, HALF)
        commands.barrier(
            "updated before drawn",
            "CLEAR/TRANSFER_WRITE",
            "VERTEX_SHADER/SHADER_STORAGE_READ",
            weaker={
                "in the fragment shader": {"dst": "FRAGMENT_SHADER/SHADER_STORAGE_READ"},
                "as attributes": {"dst": "VERTEX_ATTRIBUTE_INPUT/VERTEX_ATTRIBUTE_READ"},
                "before rasterization": {"dst": "PRE_RASTERIZATION_SHADERS/SHADER_READ"},
            },
        )
        commands.begin_rendering(RenderingAttachment(rig.view(image)))
        commands.bind(pull, held)
        commands.draw(4)
        commands.end_rendering()
        commands.barrier("", WRITTEN, "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)


@scenario(
    without={"updated before drawn": [read_after_write(DRAW, UPDATE)]},
    weakened={"updated before drawn / as storage": [read_after_write(DRAW, UPDATE)]},
    rule="shader-read-and-shader-write,each-descriptor-type-has-its-access",
)
def scenario_fragment_shader_reads_a_uniform_buffer(rig: Rig) -> None:
    """A uniform buffer of a fragment shader is read with UNIFORM_READ."""
    image, color, out = rig.target(), rig.buffer(64), rig.buffer(1024)
    shade = rig.graphics("uniform_color")
    held = rig.descriptors(shade, b0=(color, 0, 16))
    rig.host_write(color, struct.pack("<4f", 0, 0, 1, 1))
    with rig.submission() as commands:
        commands.transition(image)
        commands.update(color, struct.pack("<4f", 1, 0, 0, 1))
        commands.barrier(
            "updated before drawn",
            "CLEAR/TRANSFER_WRITE",
            "FRAGMENT_SHADER/UNIFORM_READ",
            weaker={"as storage": {"dst": "FRAGMENT_SHADER/SHADER_STORAGE_READ"}},
        )
        commands.begin_rendering(RenderingAttachment(rig.view(image)))
        commands.bind(shade, held)
        commands.draw()
        commands.end_rendering()
        commands.barrier("", WRITTEN, "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)


@scenario(
    without={"stored before copied": [read_after_write(COPY, DRAW)]},
    weakened={
        "stored before copied / after colour output": [read_after_write(COPY, DRAW)],
        "rasterization / discarded": [],
    },
    rule="each-shader-stage-accesses-for-itself,rasterizer-discard-leaves-attachments-alone",
)
def scenario_fragment_shader_stores_to_a_buffer(rig: Rig) -> None:
    """A fragment shader's store is available through FRAGMENT_SHADER; with rasterizer discard there is no store."""
    image, columns, out = rig.target(), rig.buffer(64), rig.buffer(64)
    discard = rig.choose("rasterization", False, {"discarded": True})
    store = rig.graphics("store_columns", discard=discard)
    held = rig.descriptors(store, b0=columns)
    with rig.submission() as commands:
        commands.transition(image)
        commands.begin_rendering(RenderingAttachment(rig.view(image)))
        commands.bind(store, held)
        commands.draw()
        commands.end_rendering()
        if not discard:
            commands.barrier(
                "stored before copied",
                "FRAGMENT_SHADER/SHADER_STORAGE_WRITE",
                "COPY/TRANSFER_READ",
                weaker={"after colour output": {"src": "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"}},
            )
        commands.copy(columns, out)


@scenario(
    without={"rendered before sampled": [read_after_write(DRAW, END)]},
    weakened={"rendered before sampled / before the vertex shader": [read_after_write(DRAW, END)]},
    rule="each-descriptor-type-has-its-access,storing-writes-the-attachment",
)
def scenario_rendered_image_is_sampled(rig: Rig) -> None:
    """A fragment shader samples an image that another rendering stored: colour output before sampled reads."""
    source, image, out = rig.target(), rig.target(), rig.buffer(1024)
    sample = rig.graphics("sample_color")
    held = rig.descriptors(sample, b0=(rig.view(source), rig.sampler(), rig.vk.VK_IMAGE_LAYOUT_GENERAL))
    with rig.submission() as commands:
        commands.transition(image, source)
        commands.begin_rendering(RenderingAttachment(rig.view(source)))
        commands.bind(rig.graphics())
        commands.draw()
        commands.end_rendering()
        commands.barrier(
            "rendered before sampled",
            WRITTEN,
            SAMPLED,
            weaker={"before the vertex shader": {"dst": "VERTEX_SHADER/SHADER_SAMPLED_READ"}},
        )
        commands.begin_rendering(RenderingAttachment(rig.view(image)))
        commands.bind(sample, held)
        commands.draw()
        commands.end_rendering()
        commands.barrier("", WRITTEN, "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)


@scenario(rule="draws-write-colour-at-attachment-output")
def scenario_draw_stays_in_its_scissor(rig: Rig) -> None:
    """A triangle over the whole image writes the left half of it alone, where the scissor ends there."""
    image, out = rig.target(), rig.buffer(1024)
    pipeline = rig.graphics("constant_color", scissor=(0, 0, 8, 16))
    with rig.submission() as commands:
        commands.transition(image)
        commands.begin_rendering(RenderingAttachment(rig.view(image), clear=0x04030201))
        commands.bind(pipeline)
        commands.push_constants(pipeline, *struct.unpack("<4I", struct.pack("<4f", 0, 0, 1, 1)))
        commands.draw()
        commands.end_rendering()
        commands.barrier("", WRITTEN, "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)
