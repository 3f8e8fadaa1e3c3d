"""Render state that is set, saved and restored, with pipelines made when a draw needs them."""

import struct

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigPipeline
from vkharness.rig.lazy_pipelines import LazyPipelines, RenderState
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.suite import Rig, read_after_write, scenario, write_after_read

DRAW, DOWNLOAD, END = "vkCmdDraw", "vkCmdCopyImageToBuffer", "vkCmdEndRendering"
TESTS = "EARLY_FRAGMENT_TESTS|LATE_FRAGMENT_TESTS"
DEPTH_USED = f"{TESTS}/DEPTH_STENCIL_ATTACHMENT_READ|DEPTH_STENCIL_ATTACHMENT_WRITE"
DEPTH_TESTED = f"{TESTS}/DEPTH_STENCIL_ATTACHMENT_READ"
COLOR_USED = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE"
COPIED, DEPTH = "COPY/TRANSFER_READ", "VK_FORMAT_D32_SFLOAT"


def _draw(commands: Commands, pipeline: RigPipeline, depth: float) -> None:
    """Fragments of one depth."""
    commands.bind(pipeline)
    commands.push_constants(pipeline, *struct.unpack("<I", struct.pack("<f", depth)))
    commands.draw()


@scenario(
    without={"depth before copy": [read_after_write(DOWNLOAD, END)]},
    weakened={"the state / left as it was set": [write_after_read(DRAW, DOWNLOAD)]},
    rule="depth-and-stencil-tests-read,depth-writes-happen-in-the-late-tests",
)
def scenario_state_saved_and_restored(rig: Rig) -> None:
    """A pass that only tests depth needs no barrier after a copy that reads it. State that leaks into it writes depth.

    The pass before sets depth writes for its own draws, and restores what it was given."""
    target, depth, out = rig.target(), rig.target(DEPTH), rig.buffer(1024)
    pipelines, restored = LazyPipelines(rig), rig.choose("the state", True, {"left as it was set": False})
    state = RenderState(fragment="write_depth", depth=DEPTH, depth_test=True)
    color, deep = rig.view(target), rig.view(depth, aspect=2)
    with rig.submission() as commands:
        commands.transition(target, depth)
        commands.begin_rendering(
            RenderingAttachment(color), depth=RenderingAttachment(deep, clear=(1.0, 0), store="NONE")
        )
        saved = state.save("depth_write")
        state.set(depth_write=True)
        _draw(commands, pipelines.get(state.pieces), 0.25)
        commands.end_rendering()
        if restored:
            state.restore(saved)
        commands.barrier("", DEPTH_USED, DEPTH_TESTED)
        commands.barrier("", COLOR_USED, COLOR_USED)
        commands.barrier("depth before copy", DEPTH_USED, COPIED)
        commands.image_to_buffer(depth, out, {"aspect": 2})
        commands.begin_rendering(
            RenderingAttachment(color, load="LOAD"), depth=RenderingAttachment(deep, load="LOAD", store="NONE")
        )
        _draw(commands, pipelines.get(state.pieces), 0.75)
        commands.end_rendering()
    assert len(pipelines.seen) == 1 + restored
