"""Texels, mip levels and layers that shaders reach, and words that loops reach: what the dispatch decides."""

from typing import Any

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigPipeline
from vkharness.spec.enums import VkImageLayout
from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

WAW = write_after_write("vkCmdDispatch", "vkCmdDispatch")
RAW = read_after_write("vkCmdDispatch", "vkCmdDispatch")
WAR = write_after_read("vkCmdDispatch", "vkCmdDispatch")
AFTER_FILL = write_after_write("vkCmdDispatch", "vkCmdFillBuffer")
GENERAL = VkImageLayout.GENERAL


def _run(rig: Rig, commands: Commands, pipeline: RigPipeline, groups: int = 1, pushed: Any = (), **held: Any) -> None:
    commands.bind(pipeline, rig.descriptors(pipeline, **held))
    commands.push_constants(pipeline, *pushed)
    commands.dispatch(groups)


@scenario(
    weakened={"second tile / one column earlier": [WAW], "second tile / one row later": [WAW]},
    rule="texels-that-a-shader-reaches",
)
def scenario_tiles_of_one_image(rig: Rig) -> None:
    """Two dispatches store to tiles of one image that lie side by side."""
    pipeline = rig.compute("store_tile_2d")
    second = rig.choose("second tile", (5, 2), {"one column earlier": (4, 2), "one row later": (1, 5)})
    with rig.submission() as commands:
        image = rig.image(extent=(13, 11, 1))
        commands.transition(image)
        bound = (rig.view(image), None, GENERAL)
        _run(rig, commands, pipeline, 1, (1, 2, 0x11223344), b0=bound)
        _run(rig, commands, pipeline, 2, (*second, 0x55667788), b0=bound)


@scenario(weakened={"second tile / that reaches into the image": [WAW]}, rule="texels-that-a-shader-reaches")
def scenario_tile_outside_of_the_image(rig: Rig) -> None:
    """A store outside of the image changes nothing."""
    pipeline = rig.compute("store_tile_2d")
    second = rig.choose("second tile", 8, {"that reaches into the image": 7})
    with rig.submission() as commands:
        image = rig.image(extent=(8, 8, 1))
        commands.transition(image)
        bound = (rig.view(image), None, GENERAL)
        _run(rig, commands, pipeline, 1, (4, 0, 0x11223344), b0=bound)
        _run(rig, commands, pipeline, 1, (second, 0, 0x55667788), b0=bound)


@scenario(
    without={"store before the fetch": [RAW]},
    weakened={"level / that the store writes": [WAR]},
    rule="texels-that-a-shader-reaches",
)
def scenario_level_fetched_beside_a_store(rig: Rig) -> None:
    """Level 0 is fetched through a view of all levels beside a store to level 1, which is fetched then."""
    fetch, store = rig.compute("fetch_level_2d"), rig.compute("store_tile_2d")
    level = rig.choose("level", 0, {"that the store writes": 1})
    first, second = rig.buffer(256), rig.buffer(256)
    with rig.submission() as commands:
        image = rig.image(extent=(8, 8, 1), mips=2)
        commands.transition(image)
        every = (rig.view(image, mips=(0, 2)), rig.sampler(), GENERAL)
        _run(rig, commands, fetch, 1, (level,), b0=every, b1=first)
        _run(rig, commands, store, 1, (0, 0, 0x11223344), b0=(rig.view(image, mips=(1, 1)), None, GENERAL))
        commands.barrier(
            "store before the fetch", "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COMPUTE_SHADER/SHADER_SAMPLED_READ"
        )
        _run(rig, commands, fetch, 1, (1,), b0=every, b1=second)


@scenario(weakened={"second layer / the same": [WAW]}, rule="texels-that-a-shader-reaches")
def scenario_layers_of_one_view(rig: Rig) -> None:
    """Two dispatches store to different layers through one view of all of them."""
    pipeline = rig.compute("store_layer_2d")
    second = rig.choose("second layer", 2, {"the same": 1})
    with rig.submission() as commands:
        image = rig.image(extent=(8, 8, 1), layers=4)
        commands.transition(image)
        bound = (rig.view(image, layers=(1, 3)), None, GENERAL)
        _run(rig, commands, pipeline, 2, (1, 0x11223344), b0=bound)
        _run(rig, commands, pipeline, 2, (second, 0x55667788), b0=bound)


@scenario(
    weakened={"second words / the same": [WAW], "count / one more than the gap": [WAW]},
    rule="loops-that-the-dispatch-decides",
)
def scenario_words_in_turns(rig: Rig) -> None:
    """Two dispatches store in loops, with more words than invocations: to the even words and to the odd ones."""
    pipeline, a = rig.compute("stride_words"), rig.buffer(512)
    second = rig.choose("second words", 1, {"the same": 0})
    count = rig.choose("count", 20, {"one more than the gap": 21})
    with rig.submission() as commands:
        _run(rig, commands, pipeline, 1, (0, count, 0x100), b0=a)
        _run(rig, commands, pipeline, 1, (second, 20, 0x200), b0=a)
        commands.push_constants(pipeline, 40, 3, 0x300)
        commands.dispatch()


@scenario(
    weakened={"filled / the last word": [AFTER_FILL], "filled / the first word": [AFTER_FILL]},
    rule="loops-that-the-dispatch-decides",
)
def scenario_count_of_a_loop_in_a_uniform_block(rig: Rig) -> None:
    """A count that the host wrote to a uniform block says how many words a loop stores to."""
    pipeline, a = rig.compute("uniform_stride"), rig.buffer(512)
    numbers = rig.buffer(data=b"".join(word.to_bytes(4, "little") for word in (10, 37, *[0] * 14)))
    words = rig.choose("filled", (0, 10), {"the last word": (46, 1), "the first word": (10, 1)})
    with rig.submission() as commands:
        commands.fill(a, 0x22, 4 * words[0], 4 * words[1])
        commands.fill(a, 0x33, 4 * 47)
        _run(rig, commands, pipeline, 2, (0x400,), b0=a, b1=numbers)
