"""Dispatches that are executed on the host, held against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.streams import Stream, words
from vkharness.computed.executed_shaders import MOST_INSTRUCTIONS
from vkharness.computed.expected_bytes import ComputedBytes, compute


def known_words(computed: ComputedBytes, buffer: int) -> list[int | None]:
    """The words of a buffer; None where a byte is unknown."""
    cells = computed.cells[buffer, None]
    known = np.asarray(cells.known.reshape(-1, 4).all(axis=1))
    held = cells.data.view("<u4").tolist()
    return [word if sure else None for word, sure in zip(held, known.tolist(), strict=True)]


def test_a_dispatch_reads_what_the_commands_before_it_left() -> None:
    stream = Stream()
    a, b = stream.buffer(256), stream.buffer(256)
    stream.begin()
    stream.fill(a, 7)
    stream.compute("copy_words", [a, b]).run()
    stream.fill(a, 8)
    stream.submit()
    computed = compute(stream.blocks)
    assert known_words(computed, b) == [7] * 64
    assert known_words(computed, a) == [8] * 64
    assert not computed.reasons


def test_push_constants_are_those_of_the_command() -> None:
    stream = Stream()
    a = stream.buffer(256)
    stream.begin()
    stream.compute("fill_words", [a], words(3)).run()
    stream.submit()
    assert known_words(compute(stream.blocks), a) == list(range(3, 67))


def test_an_indirect_dispatch_reads_its_parameters_when_it_is_executed() -> None:
    stream = Stream()
    a, parameters = stream.buffer(256), stream.buffer(16)
    stream.begin()
    fill = stream.compute("fill_words", [a], words(3))
    stream.fill(a, 9)
    stream.fill(parameters, 0)
    fill.run(groups=0)
    stream.cmd("DispatchIndirect", buffer=parameters, offset=0)
    stream.submit()
    assert known_words(compute(stream.blocks), a) == [9] * 64
    stream.begin()
    stream.fill(parameters, 1)
    fill.run(groups=0)
    stream.cmd("DispatchIndirect", buffer=parameters, offset=4)
    stream.submit()
    assert known_words(compute(stream.blocks), a) == list(range(3, 67))


def test_words_that_depend_on_the_order_of_invocations_are_unknown() -> None:
    stream = Stream()
    memory = stream.memory(256)
    a = stream.buffer(256, memory)
    stream.host_write(memory, 0, words(*range(32), *([5] * 32)))
    stream.begin()
    stream.compute("reverse_words", [a, a]).run()
    stream.submit()
    found = known_words(compute(stream.blocks), a)
    assert found == [5 if word == 5 else None for word in range(32)] + [
        5 if word == 58 else None for word in range(32, 64)
    ]


def test_a_shader_that_reads_unknown_bytes_makes_what_it_writes_unknown() -> None:
    stream = Stream()
    a, b = stream.buffer(256), stream.buffer(256)
    stream.begin()
    query = stream.make("vkCreateQueryPool", "pQueryPool", {"queryType": 2, "queryCount": 1, "pNext": None})
    copied = {"queryPool": query, "firstQuery": 0, "queryCount": 1, "dstBuffer": a, "dstOffset": 0, "stride": 8}
    stream.cmd("WriteTimestamp", pipelineStage=1, queryPool=query, query=0)
    stream.cmd("CopyQueryPoolResults", **copied, flags=1)
    stream.compute("copy_words", [a, b]).run()
    stream.submit()
    computed = compute(stream.blocks)
    assert known_words(computed, b) == [None] * 64
    assert "vkCmdDispatch: the shader reads bytes that are not known" in computed.reasons


def test_a_dispatch_of_too_much_work_is_left_open() -> None:
    stream = Stream()
    a = stream.buffer(256)
    stream.begin()
    stream.compute("fill_words", [a], words(3)).run(groups=MOST_INSTRUCTIONS)
    stream.submit()
    computed = compute(stream.blocks)
    assert known_words(computed, a) == [None] * 64
    assert list(computed.reasons) == [
        f"vkCmdDispatch: the dispatch executes more than {MOST_INSTRUCTIONS} instructions"
    ]


@pytest.mark.parametrize(("on", "left"), [(0, [1] * 64), (1, list(range(3, 67)))])
def test_conditional_rendering_discards_a_dispatch(on: int, left: list[int]) -> None:
    stream = Stream()
    a, switch = stream.buffer(256), stream.buffer(4)
    stream.begin()
    stream.fill(a, 1)
    stream.fill(switch, on)
    begun = {"buffer": switch, "offset": 0, "flags": 0, "pNext": None}
    stream.cmd("BeginConditionalRenderingEXT", pConditionalRenderingBegin=begun)
    stream.compute("fill_words", [a], words(3)).run()
    stream.cmd("EndConditionalRenderingEXT")
    stream.submit()
    assert known_words(compute(stream.blocks), a) == left
