"""Which traces observe a fill: those that would leave other bytes if it ran late, or wrote another word."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.streams import Stream
from vkharness.replay.schedule.replayable import replayable
from vkharness.replay.schedule.steps import flatten
from vkharness.suite.mutation.observed_fills import late_fills, observes

LATE, WRONG = "fill-past-a-barrier", "fill-of-a-wrong-value"


def fill_then_copy(stream: Stream) -> None:
    a, b = stream.buffer(16), stream.buffer(16)
    stream.begin()
    stream.fill(a, 7)
    stream.copy(a, b, 16)
    stream.submit()


def copy_then_fill(stream: Stream) -> None:
    a, b = stream.buffer(16), stream.buffer(16)
    stream.begin()
    stream.copy(a, b, 16)
    stream.fill(a, 7)
    stream.submit()


def fill_beside_a_copy(stream: Stream) -> None:
    a, b, c = stream.buffer(16), stream.buffer(16), stream.buffer(16)
    stream.begin()
    stream.fill(c, 7)
    stream.copy(a, b, 16)
    stream.submit()


def fill_that_is_overwritten(stream: Stream) -> None:
    a, b = stream.buffer(16), stream.buffer(16)
    stream.begin()
    stream.fill(b, 7)
    stream.copy(a, b, 16)
    stream.submit()


def copy_alone(stream: Stream) -> None:
    a, b = stream.buffer(16), stream.buffer(16)
    stream.begin()
    stream.copy(a, b, 16)
    stream.submit()


@pytest.mark.parametrize(
    ("record", "late", "wrong"),
    [
        (fill_then_copy, True, True),
        (copy_then_fill, False, True),
        (fill_beside_a_copy, False, True),
        (fill_that_is_overwritten, True, False),
        (copy_alone, False, False),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_a_trace_observes_a_fill_where_its_bytes_depend_on_it(
    record: Callable[[Stream], None], late: bool, wrong: bool
) -> None:
    stream = Stream()
    record(stream)
    assert (observes(stream.blocks, LATE), observes(stream.blocks, WRONG)) == (late, wrong)


def test_a_late_fill_comes_after_one_command_and_before_the_host_goes_on() -> None:
    stream = Stream()
    fill_then_copy(stream)
    copy_then_fill(stream)
    names = [each.name for each in late_fills(flatten(replayable(stream.blocks))) if each.name.startswith("vkCmd")]
    assert names == ["vkCmdCopyBuffer", "vkCmdFillBuffer", "vkCmdCopyBuffer", "vkCmdFillBuffer"]
