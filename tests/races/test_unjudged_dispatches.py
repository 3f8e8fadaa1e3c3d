"""What is not executed is never called clean: each command that may run invocations counts, with the reason."""

from __future__ import annotations

import pytest

from tests.support.streams import Stream
from vkharness.races.dispatch_races import RacesFound, find_races
from vkharness.trace.calls import Block, Call


def answered(name: str, **arguments: int) -> RacesFound:
    """For a stream whose dispatch is another command, of the same command buffer."""
    stream = Stream()
    held = [stream.buffer(256), stream.buffer(256)]
    other = stream.buffer(256, usage=0x1FF)
    stream.begin()
    stream.compute("reverse_words", held).run()
    stream.submit()
    return find_races([*changed(stream.blocks, name, {"buffer": other, **arguments})])


def changed(blocks: list[Block], name: str, arguments: dict[str, int]) -> list[Block]:
    found: list[Block] = []
    for each in blocks:
        if isinstance(each, Call) and each.name == "vkCmdDispatch":
            each = Call(each.index, name, {"commandBuffer": each.args["commandBuffer"], **arguments}, None)
        found.append(each)
    return found


@pytest.mark.parametrize(
    ("name", "why"),
    [("vkCmdDispatchIndirect", "its parameters are zero"), ("vkCmdTraceRaysIndirectKHR", "vkCmdTraceRaysIndirectKHR")],
)
def test_what_is_not_executed_is_not_judged(name: str, why: str) -> None:
    found = answered(name, offset=0, indirectDeviceAddress=0)
    assert (found.races, found.judged, [*found.unjudged.values()]) == ([], 0, [1])
    assert why in next(iter(found.unjudged))


def test_a_dispatch_without_a_shader_is_not_judged() -> None:
    stream = Stream()
    held = [stream.buffer(256), stream.buffer(256)]
    stream.begin()
    stream.compute("reverse_words", held).run()
    stream.submit()
    blocks = [each for each in stream.blocks if not isinstance(each, Call) or each.name != "vkCmdBindPipeline"]
    found = find_races(blocks)
    assert (found.judged, sum(found.unjudged.values())) == (0, 1)
