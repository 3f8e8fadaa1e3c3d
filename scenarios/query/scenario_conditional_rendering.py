"""Conditional rendering reads its condition in a stage of its own; what is under it counts as if it ran."""

import struct

from vkharness.suite import Rig, read_after_write, scenario, write_after_read

BEGIN, FILL, COPY = "vkCmdBeginConditionalRenderingEXT", "vkCmdFillBuffer", "vkCmdCopyBuffer"
DISPATCH = "vkCmdDispatch"
FILLED, CONDITION = "CLEAR/TRANSFER_WRITE", "CONDITIONAL_RENDERING/CONDITIONAL_RENDERING_READ"
STORED, READ = "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COPY/TRANSFER_READ"
NEEDS = ["VK_EXT_conditional_rendering"]
EARLY = [read_after_write(BEGIN, FILL), read_after_write(DISPATCH, FILL)]


@scenario(
    without={"filled before read": EARLY},
    weakened={"filled before read / for indirect commands": EARLY, "filled before read / execution only": EARLY},
    needs=NEEDS,
    rule="a-condition-is-read-in-its-own-stage",
)
def scenario_condition_that_a_fill_wrote(rig: Rig) -> None:
    """The condition is read on the device: it must be visible to that stage."""
    condition, a = rig.buffer(64), rig.buffer()
    pipeline = rig.compute("fill_words")
    stored = rig.descriptors(pipeline, b0=a)
    with rig.submission() as commands:
        commands.fill(condition, 1)
        commands.barrier(
            "filled before read",
            FILLED,
            CONDITION,
            weaker={
                "for indirect commands": {"dst": "DRAW_INDIRECT/INDIRECT_COMMAND_READ"},
                "execution only": {"src": "CLEAR", "dst": "CONDITIONAL_RENDERING"},
            },
        )
        commands.bind(pipeline, stored)
        commands.push_constants(pipeline, 3)
        commands.begin_condition(condition)
        commands.dispatch()
        commands.end_condition()


@scenario(
    without={"read before filled": [write_after_read(FILL, DISPATCH)]},
    needs=NEEDS,
    rule="a-condition-is-read-in-its-own-stage",
)
def scenario_condition_that_a_fill_overwrites(rig: Rig) -> None:
    """A fill of the condition must wait until it has been read."""
    condition, a = rig.buffer(64, data=struct.pack("<I", 1)), rig.buffer()
    pipeline = rig.compute("fill_words")
    stored = rig.descriptors(pipeline, b0=a)
    with rig.submission() as commands:
        commands.bind(pipeline, stored)
        commands.push_constants(pipeline, 4)
        commands.begin_condition(condition)
        commands.dispatch()
        commands.end_condition()
        commands.barrier("read before filled", "CONDITIONAL_RENDERING", "CLEAR")
        commands.fill(condition, 0)


@scenario(
    without={"filled before read again": [read_after_write(DISPATCH, FILL)]},
    weakened={"filled before read again / for the shader": [read_after_write(DISPATCH, FILL)]},
    needs=NEEDS,
    rule="a-condition-is-read-in-its-own-stage",
)
def scenario_condition_that_changes_while_it_is_active(rig: Rig) -> None:
    """The condition may be read before every command that it decides about: a fill between two must be visible."""
    condition, a = rig.buffer(64, data=struct.pack("<I", 1)), rig.buffer()
    pipeline = rig.compute("fill_words")
    stored = rig.descriptors(pipeline, b0=a)
    with rig.submission() as commands:
        commands.bind(pipeline, stored)
        commands.push_constants(pipeline, 4)
        commands.begin_condition(condition)
        commands.barrier("", "CONDITIONAL_RENDERING", "CLEAR")
        commands.fill(condition, 0)
        commands.barrier(
            "filled before read again",
            FILLED,
            CONDITION,
            weaker={"for the shader": {"dst": "COMPUTE_SHADER/SHADER_STORAGE_READ|SHADER_STORAGE_WRITE"}},
        )
        commands.dispatch()
        commands.end_condition()


@scenario(weakened={"condition / the filled word": EARLY}, needs=NEEDS, rule="a-condition-is-read-in-its-own-stage")
def scenario_condition_is_one_word(rig: Rig) -> None:
    """The condition is the word at the offset; those beside it are not read."""
    condition, a = rig.buffer(64, data=struct.pack("<I", 1)), rig.buffer()
    offset = rig.choose("condition", 0, {"the filled word": 4})
    pipeline = rig.compute("fill_words")
    stored = rig.descriptors(pipeline, b0=a)
    with rig.submission() as commands:
        commands.fill(condition, 1, 4, 4)
        commands.bind(pipeline, stored)
        commands.push_constants(pipeline, 5)
        commands.begin_condition(condition, offset)
        commands.dispatch()
        commands.end_condition()


@scenario(
    without={"dispatch before copy": [read_after_write(COPY, DISPATCH)]},
    needs=NEEDS,
    rule="a-condition-is-read-in-its-own-stage",
)
def scenario_dispatch_under_a_condition(rig: Rig) -> None:
    """A dispatch under a condition is ordered like any other."""
    condition, a, b = rig.buffer(64, data=struct.pack("<I", 1)), rig.buffer(), rig.buffer()
    pipeline = rig.compute("fill_words")
    stored = rig.descriptors(pipeline, b0=a)
    with rig.submission() as commands:
        commands.bind(pipeline, stored)
        commands.push_constants(pipeline, 6)
        commands.begin_condition(condition)
        commands.dispatch()
        commands.end_condition()
        commands.barrier("dispatch before copy", STORED, READ)
        commands.copy(a, b)
