"""Advice on streams of tests."""

from __future__ import annotations

from tests.support.streams import Stream
from vkharness.advising.advise import Advising, advise
from vkharness.mending.proof import judge
from vkharness.report.advice import Advice


def advised(stream: Stream) -> Advising:
    """Advice on a stream; the trace with all of it is as clean as the stream."""
    found = advise(stream.blocks, seconds=300)
    assert found.trace is not None and found.done == found.dependencies
    assert judge(found.trace).pairs <= judge(found.trace.of(stream.blocks)).pairs
    return found


def only(found: Advising) -> Advice:
    [advice] = found.advice
    return advice
