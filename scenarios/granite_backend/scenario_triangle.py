"""Vertices, indices and a uniform block from one scratch ring, drawn in each frame."""

import struct

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer, RigImage, RigPipeline
from vkharness.rig.frame_contexts import FrameContexts, ScratchRange
from vkharness.rig.graphics_pipelines import POSITIONS
from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.suite import Rig, race, read_after_write, scenario, write_after_read

DRAW, COPY = "vkCmdDrawIndexed", "vkCmdCopyBuffer"
OUTPUT = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"
CORNERS = struct.pack("<8f", -1, -1, 1, -1, -1, 1, 1, 1)
INDICES = struct.pack("<6I", 0, 1, 2, 2, 1, 3)
Parts = tuple[ScratchRange, ScratchRange, ScratchRange]


def _parts(frames: FrameContexts, number: int) -> Parts:
    """Vertices, indices and the colour of a frame, in its scratch memory."""
    color = struct.pack("<4f", number / 5, 1 - number / 5, 0.4, 1)
    return frames.scratch(CORNERS), frames.scratch(INDICES), frames.scratch(color)


def _drawn(rig: Rig, commands: Commands, pipeline: RigPipeline, parts: Parts, target: RigImage) -> None:
    """A quad over the target."""
    vertices, indices, color = parts
    commands.begin_rendering(RenderingAttachment(rig.view(target)))
    commands.bind(pipeline, rig.descriptors(pipeline, b0=color))
    commands.bind_vertices(vertices.start)
    commands.bind_indices(*indices.start)
    commands.draw_indexed(6)
    commands.end_rendering()


@scenario(
    without={"the fence of the frame": [write_after_read("host write", DRAW)]},
    weakened={"the ring / of one frame": [write_after_read("host write", DRAW)]},
    rule="a-host-write-waits-for-the-device,vertices-are-read-by-vertex-input,indices-are-read-by-index-input",
)
def scenario_triangle_from_a_scratch_ring(rig: Rig) -> None:
    """Each frame writes its vertices, indices and uniform block to its part of one ring, and no barrier is due.

    The part of a frame is written again when the fence of that frame is signaled. A ring for one frame is written while
    the frame before reads it."""
    frames, target, out = FrameContexts(rig), rig.target(), rig.buffer(1024)
    apart = rig.choose("the ring", True, {"of one frame": False})
    pipeline = rig.graphics("uniform_color", **POSITIONS)
    for number in range(3):
        frames.begin("the fence of the frame")
        if not apart:
            frames.current.begin = 0
        parts = _parts(frames, number)
        with rig.commands() as commands:
            commands.transition(target, src="COPY", dst=OUTPUT)
            _drawn(rig, commands, pipeline, parts, target)
            commands.barrier("", f"{OUTPUT}", "COPY/TRANSFER_READ")
            commands.barrier("", "COPY/TRANSFER_WRITE", "COPY/TRANSFER_WRITE")
            commands.image_to_buffer(target, out)
        frames.submit(commands)


@scenario(
    without={"the semaphore": [race("READ_RACING_WRITE", DRAW, COPY)]},
    weakened={
        "the semaphore / at vertex input": [],
        "the semaphore / at fragment shaders": [read_after_write(DRAW, COPY)],
        "the semaphore / at both": [],
    },
    queues=["TRANSFER"],
    rule="a-wait-orders-its-stages,each-shader-stage-accesses-for-itself",
)
def scenario_triangle_from_copied_scratch_memory(rig: Rig) -> None:
    """Copied to memory near the device by the transfer queue, the same data need a wait for all stages that read them.

    Vertex input comes before fragment shaders, so that a wait there is enough; a wait at fragment shaders is not."""
    frames, target, copied = FrameContexts(rig), rig.target(), rig.semaphore()
    frames.begin()
    host = _parts(frames, 1)
    near: list[RigBuffer] = [rig.buffer() for _ in host]
    with rig.commands(queue=rig.queues[1]) as upload:
        for part, buffer in zip(host, near, strict=True):
            upload.copy(part.buffer, buffer, (part.offset, 0, part.size))
    frames.submit(upload, signals=[SemaphoreUse(copied)], sync2=True)
    pipeline = rig.graphics("uniform_color", **POSITIONS)
    vertices, indices, color = (ScratchRange(buffer, 0, part.size) for buffer, part in zip(near, host, strict=True))
    with rig.commands() as commands:
        commands.transition(target, dst=OUTPUT)
        _drawn(rig, commands, pipeline, (vertices, indices, color), target)
    weaker = {
        "at vertex input": {"stages": "VERTEX_INPUT"},
        "at fragment shaders": {"stages": "FRAGMENT_SHADER"},
        "at both": {"stages": "VERTEX_INPUT|FRAGMENT_SHADER"},
    }
    waits = rig.operation("the semaphore", copied, weaker=weaker)
    frames.submit(commands, waits=waits, sync2=True)
