"""Bytes that follow from the dispatch: workgroups, push constants, guards, and the kind of each access."""

import struct

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer, RigPipeline
from vkharness.spec.enums import VkPipelineCreate
from vkharness.suite import Rig, read_after_write, scenario, write_after_write

AFTER_FILL = write_after_write("vkCmdDispatch", "vkCmdFillBuffer")
WAW = write_after_write("vkCmdDispatch", "vkCmdDispatch")


def _ready(commands: Commands, pipeline: RigPipeline, target: RigBuffer, *words: int) -> None:
    commands.bind(pipeline, commands.rig.descriptors(pipeline, b0=target))
    commands.push_constants(pipeline, *words)


@scenario(
    weakened={"second half / the first again": [write_after_write("vkCmdDispatchBase", "vkCmdDispatchBase")]},
    rule="indices-that-the-dispatch-decides",
)
def scenario_two_halves_of_one_grid(rig: Rig) -> None:
    """Two dispatches of different workgroups store to different bytes of one buffer."""
    a = rig.buffer(512)
    pipeline = rig.compute("fill_words", flags=VkPipelineCreate.DISPATCH_BASE)
    second = rig.choose("second half", 1, {"the first again": 0})
    with rig.submission() as commands:
        _ready(commands, pipeline, a, 0x100)
        commands.dispatch_base((0, 0, 0), (1, 1, 1))
        commands.push_constants(pipeline, 0x200)
        commands.dispatch_base((second, 0, 0), (1, 1, 1))


@scenario(weakened={"groups / two": [AFTER_FILL]}, rule="indices-that-the-dispatch-decides")
def scenario_buffer_larger_than_the_dispatch(rig: Rig) -> None:
    """A dispatch of 64 invocations does not reach the words after the first 64, although they are bound."""
    a = rig.buffer(512)
    pipeline = rig.compute("fill_words")
    with rig.submission() as commands:
        commands.fill(a, 0x11, 256, 256)
        _ready(commands, pipeline, a, 0x300)
        commands.dispatch(rig.choose("groups", 1, {"two": 2}))


@scenario(
    weakened={"filled / the last word": [AFTER_FILL], "filled / the first word": [AFTER_FILL]},
    rule="indices-that-the-dispatch-decides,conditions-that-the-dispatch-decides",
)
def scenario_range_from_push_constants(rig: Rig) -> None:
    """An offset in the push constants moves what is stored to, and a guard against a count of words ends it."""
    a = rig.buffer(512)
    pipeline = rig.compute("limited_words")
    words = rig.choose("filled", (0, 10), {"the last word": (49, 1), "the first word": (10, 1)})
    with rig.submission() as commands:
        commands.fill(a, 0x22, 4 * words[0], 4 * words[1])
        commands.fill(a, 0x33, 4 * 50)
        _ready(commands, pipeline, a, 10, 40, 0x400)
        commands.dispatch()


@scenario(
    weakened={"second tile / one column earlier": [WAW], "pitch / of fifteen words": [WAW]},
    rule="indices-that-the-dispatch-decides",
)
def scenario_tiles_side_by_side(rig: Rig) -> None:
    """Tiles of 8 by 8 words in rows of 16 lie side by side, row by row."""
    a = rig.buffer(1024)
    pipeline = rig.compute("tile_words")
    second = rig.choose("second tile", 8, {"one column earlier": 7})
    pitch = rig.choose("pitch", 16, {"of fifteen words": 15})
    with rig.submission() as commands:
        _ready(commands, pipeline, a, 0, pitch, 0x500)
        commands.dispatch()
        commands.push_constants(pipeline, second, 16, 0x600)
        commands.dispatch()


@scenario(weakened={"enabled / yes": [AFTER_FILL]}, rule="conditions-that-the-dispatch-decides")
def scenario_branch_on_push_constants(rig: Rig) -> None:
    """A store in a branch that the push constants of this dispatch rule out is no access."""
    a = rig.buffer()
    pipeline = rig.compute("branch_not_taken")
    with rig.submission() as commands:
        commands.fill(a, 0x44)
        _ready(commands, pipeline, a, rig.choose("enabled", 0, {"yes": 1}), 0x700)
        commands.dispatch()


@scenario(
    weakened={"second words / the same": [WAW], "second words / one that overlaps": [WAW]},
    rule="atomics-do-not-conflict-with-one-another,atomics-and-stores-of-one-buffer",
)
def scenario_atomic_counter_beside_stores(rig: Rig) -> None:
    """Two dispatches that count in one word and store to different others of the same buffer do not conflict."""
    a = rig.buffer(4 + 4 * 32)
    pipeline = rig.compute("count_and_store")
    second = rig.choose("second words", 16, {"the same": 0, "one that overlaps": 15})
    with rig.submission() as commands:
        _ready(commands, pipeline, a, 0, 0x800)
        commands.dispatch()
        commands.push_constants(pipeline, second, 0x900)
        commands.dispatch()


@scenario(
    without={"counts before the copy": [read_after_write("vkCmdCopyBuffer", "vkCmdDispatch")]},
    rule="atomics-and-stores-of-one-buffer",
)
def scenario_counter_read_after_atomics_beside_stores(rig: Rig) -> None:
    """The counter beside the stores is still written by the atomic."""
    a, b = rig.buffer(4 + 4 * 32), rig.buffer()
    pipeline = rig.compute("count_and_store")
    with rig.submission() as commands:
        _ready(commands, pipeline, a, 0, 0xA00)
        commands.dispatch()
        commands.barrier("counts before the copy", "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COPY/TRANSFER_READ")
        commands.copy(a, b, (0, 0, 4))


@scenario(weakened={"element / that the shader names": [AFTER_FILL]}, rule="any-element-of-an-array")
def scenario_array_element_from_push_constants(rig: Rig) -> None:
    """An index in the push constants chooses one descriptor of an array. The others are not accessed."""
    buffers = [rig.buffer() for _ in range(4)]
    pipeline = rig.compute("array_dynamic_index")
    element = rig.choose("element", 3, {"that the shader names": 1})
    with rig.submission() as commands:
        commands.fill(buffers[element], 0x55)
        commands.bind(pipeline, rig.descriptors(pipeline, b0=buffers))
        commands.push_constants(pipeline, 1, 0xB00)
        commands.dispatch()


@scenario(
    weakened={"filled / the first element": [AFTER_FILL], "filled / the third element": [AFTER_FILL]},
    rule="any-element-of-an-array",
)
def scenario_array_element_from_memory(rig: Rig) -> None:
    """An index that comes from memory may choose any descriptor that the set holds."""
    buffers = [rig.buffer() for _ in range(4)]
    filled = rig.choose("filled", 4, {"the first element": 0, "the third element": 2})
    choice = rig.buffer(data=(filled % 4).to_bytes(4, "little"))
    pipeline = rig.compute("array_any_index")
    with rig.submission() as commands:
        commands.fill([*buffers, rig.buffer()][filled], 0x66)
        commands.bind(pipeline, rig.descriptors(pipeline, b0=buffers, b1=choice))
        commands.push_constants(pipeline, 0xC00)
        commands.dispatch()


@scenario(
    weakened={"remainder / of the first pair": [WAW], "low bit / of the first pair": [WAW]},
    rule="any-element-of-an-array",
)
def scenario_array_elements_by_remainder_and_mask(rig: Rig) -> None:
    """A remainder by two and a mask of one bit choose one of two elements, whatever number they are of."""
    a, b = rig.buffer(512), rig.buffer(512)
    choice = rig.buffer(data=struct.pack("<2f", 5.0, 3.0))
    pipeline = rig.compute("array_remainder_index")
    remainder = rig.choose("remainder", 2, {"of the first pair": 0})
    masked = rig.choose("low bit", 2, {"of the first pair": 0})
    with rig.submission() as commands:
        commands.bind(pipeline, rig.descriptors(pipeline, b0=[a, a, b, b], b1=choice))
        commands.push_constants(pipeline, 0, 0, 0xD00)
        commands.dispatch()
        commands.push_constants(pipeline, remainder, masked, 0xE00)
        commands.dispatch()
