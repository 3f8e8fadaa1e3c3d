"""Declared bindings of a shader, those that it uses, and the code that an execution of it runs."""

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer, RigPipeline
from vkharness.spec.enums import VkPipelineCreate
from vkharness.suite import Rig, read_after_write, scenario, write_after_write

AFTER_FILL = write_after_write("vkCmdDispatch", "vkCmdFillBuffer")
FROM_FILL = read_after_write("vkCmdDispatch", "vkCmdFillBuffer")
THREE = dict.fromkeys((0, 1, 2), "STORAGE_BUFFER")
DISPATCH_BASE = VkPipelineCreate.DISPATCH_BASE
"""VK_PIPELINE_CREATE_DISPATCH_BASE_BIT."""


def _fill(rig: Rig, flags: int = 0) -> RigPipeline:
    return rig.compute("fill_words", flags=flags)


def _ready(commands: Commands, pipeline: RigPipeline, target: RigBuffer, value: int) -> None:
    commands.bind(pipeline, commands.rig.descriptors(pipeline, b0=target))
    commands.push_constants(pipeline, value)


@scenario(weakened={"filled / the used one": [AFTER_FILL]}, rule="static-use-decides")
def scenario_declared_but_unused_bindings(rig: Rig) -> None:
    """A binding that the entry point does not use is no access, also when a function that nothing calls uses it."""
    unused, used, dead = rig.buffer(), rig.buffer(), rig.buffer()
    pipeline = rig.compute("unused_binding", THREE, push_bytes=4)
    with rig.submission() as commands:
        for each in rig.choose("filled", (unused, dead), {"the used one": (unused, used, dead)}):
            commands.fill(each, 0x11)
        commands.bind(pipeline, rig.descriptors(pipeline, b0=unused, b1=used, b2=dead))
        commands.push_constants(pipeline, 0x2000)
        commands.dispatch()


@scenario(weakened={"shader / that loads": [FROM_FILL]}, rule="asking-for-a-size-reads-nothing")
def scenario_length_of_a_block(rig: Rig) -> None:
    """Asking a storage block for its length reads the descriptor, not the buffer."""
    source, target = rig.buffer(), rig.buffer()
    shader = rig.choose("shader", "length_only", {"that loads": "copy_words"})
    pipeline = rig.compute(shader)
    with rig.submission() as commands:
        commands.fill(source, 0x22)
        commands.bind(pipeline, rig.descriptors(pipeline, b0=source, b1=target))
        commands.dispatch()


@scenario(without={"fill before dispatch": [AFTER_FILL]}, rule="static-use-decides")
def scenario_store_in_a_branch_not_taken(rig: Rig) -> None:
    """A store counts although a word in memory keeps it from happening: what a shader wrote there is not known."""
    a, switch = rig.buffer(), rig.buffer()
    pipeline = rig.compute("branch_on_a_word")
    writer = rig.compute("fill_words")
    with rig.submission() as commands:
        commands.bind(writer, rig.descriptors(writer, b0=switch))
        commands.push_constants(writer, 0)
        commands.dispatch()
    rig.wait()
    with rig.submission() as commands:
        commands.fill(a, 0x33)
        commands.barrier(
            "fill before dispatch", "ALL_TRANSFER/TRANSFER_WRITE", "COMPUTE_SHADER/SHADER_WRITE", sync2=False
        )
        commands.bind(pipeline, rig.descriptors(pipeline, b0=a, b1=switch))
        commands.push_constants(pipeline, 0x3000)
        commands.dispatch()


@scenario(
    weakened={"half / that the shader writes": [AFTER_FILL], "half / both": [AFTER_FILL]},
    rule="constant-offsets-narrow-an-access",
)
def scenario_shader_that_writes_half_of_its_block(rig: Rig) -> None:
    """A shader that stores by constant indices accesses these bytes alone, not the whole bound range."""
    a = rig.buffer(128)
    pipeline = rig.compute("half_range")
    offset, size = rig.choose("half", (64, 64), {"that the shader writes": (0, 64), "both": (0, 128)})
    with rig.submission() as commands:
        commands.fill(a, 0x44, offset, size)
        _ready(commands, pipeline, a, 0x4000)
        commands.dispatch()


@scenario(
    weakened={"second shader / of the same half": [write_after_write("vkCmdDispatch", "vkCmdDispatch")]},
    rule="constant-offsets-narrow-an-access",
)
def scenario_shaders_that_write_different_halves(rig: Rig) -> None:
    """Two dispatches through one descriptor that store to different halves of it do not conflict."""
    a = rig.buffer(128)
    low = rig.compute("half_range")
    other = rig.choose("second shader", "half_range_high", {"of the same half": "half_range"})
    high = rig.compute(other)
    with rig.submission() as commands:
        for pipeline, value in ((low, 0x5000), (high, 0x5500)):
            _ready(commands, pipeline, a, value)
            commands.dispatch()


@scenario(weakened={"groups / some": [AFTER_FILL]}, rule="empty-dispatches-and-draws-access-nothing")
def scenario_dispatch_of_no_groups(rig: Rig) -> None:
    """A dispatch with a count of zero in any direction runs no shader and accesses nothing."""
    a = rig.buffer()
    pipeline = _fill(rig)
    with rig.submission() as commands:
        commands.fill(a, 0x55)
        _ready(commands, pipeline, a, 0x6000)
        commands.dispatch(1, rig.choose("groups", 0, {"some": 1}), 1)


@scenario(
    without={"fill before dispatch": [write_after_write("vkCmdDispatchBase", "vkCmdFillBuffer")]},
    rule="each-shader-stage-accesses-for-itself",
)
def scenario_dispatch_with_a_base(rig: Rig) -> None:
    """vkCmdDispatchBase accesses what vkCmdDispatch does."""
    a = rig.buffer(512)
    pipeline = _fill(rig, DISPATCH_BASE)
    with rig.submission() as commands:
        commands.fill(a, 0x66)
        commands.barrier("fill before dispatch", "ALL_TRANSFER/TRANSFER_WRITE", "COMPUTE_SHADER/SHADER_STORAGE_WRITE")
        _ready(commands, pipeline, a, 0x7000)
        commands.dispatch_base((1, 0, 0), (1, 1, 1))


@scenario(
    without={"between": [write_after_write("vkCmdDispatch", "vkCmdDispatch")]}, rule="asking-for-a-size-reads-nothing"
)
def scenario_push_constants_between_dispatches(rig: Rig) -> None:
    """Push constants belong to the command buffer: changing them is no access and no dependency."""
    a = rig.buffer()
    pipeline = rig.compute("push_constant_copy")
    with rig.submission() as commands:
        commands.bind(pipeline, rig.descriptors(pipeline, b0=a))
        commands.push_constants(pipeline, 1, 2, 3, 4)
        commands.dispatch()
        commands.barrier("between", "COMPUTE_SHADER/SHADER_WRITE", "COMPUTE_SHADER/SHADER_WRITE", sync2=False)
        commands.push_constants(pipeline, 5, 6, 7, 8)
        commands.dispatch()
