"""The smallest stream of which something holds that is no finding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from tests.support.streams import Stream, two_buffers
from vkharness.check import Analysis
from vkharness.reduction.whatever_holds import smallest
from vkharness.trace.calls import Block, Call


def names(blocks: Sequence[Block]) -> list[str]:
    """The commands that are left."""
    return [each.name for each in blocks if isinstance(each, Call) and each.name.startswith("vkCmd")]


def is_fill(block: Block) -> TypeGuard[Call]:
    return isinstance(block, Call) and block.name == "vkCmdFillBuffer"


def clean() -> Stream:
    """Fills of buffers and a copy behind a barrier."""
    stream, a, b = two_buffers(64)
    commands = stream.begin()
    for _ in range(4):
        stream.fill(stream.buffer(256), 2)
    stream.fill(a, 1)
    stream.barrier()
    stream.copy(a, b, 64)
    stream.end()
    stream.submit(commands)
    return stream


def test_what_takes_no_part_goes_and_no_hazard_comes() -> None:
    """The barrier stays between the fill and the copy: without it there is a finding that the whole stream lacks."""
    stream = clean()
    filled = next(each.args["dstBuffer"] for each in stream.blocks if is_fill(each) and each.args["data"] == 1)
    wanted = ["vkCmdFillBuffer", "vkCmdPipelineBarrier", "vkCmdCopyBuffer"]

    def holds(left: list[Block]) -> bool:
        return "vkCmdCopyBuffer" in names(left) and any(is_fill(e) and e.args["dstBuffer"] == filled for e in left)

    small = smallest(stream.blocks, holds, steps=500)
    assert small.complete and small.asked < 500 and names(small.blocks) == wanted
    assert Analysis().follow(small.blocks).findings == []
    assert {each.index for each in small.blocks} <= {each.index for each in stream.blocks}


def test_the_limit_of_steps_leaves_the_best_so_far() -> None:
    stream = clean()
    small = smallest(stream.blocks, lambda left: "vkCmdCopyBuffer" in names(left), steps=3)
    assert (small.asked, small.complete) == (3, False) and "vkCmdCopyBuffer" in names(small.blocks)


def test_what_never_holds_leaves_the_whole_stream() -> None:
    stream = clean()
    small = smallest(stream.blocks, lambda left: False, steps=500)
    assert small.complete and small.blocks == stream.blocks


def test_another_order_of_numbers_is_left_alone() -> None:
    stream = clean()
    turned = [*stream.blocks[1:], stream.blocks[0]]
    small = smallest(turned, lambda left: True, steps=500)
    assert (small.asked, small.complete, small.blocks) == (0, False, turned)
