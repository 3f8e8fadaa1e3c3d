"""Advice on streams of tests."""

from __future__ import annotations

from harness.advising.advise import Advising, advise
from harness.mending.proof import judge
from harness.report.advice import Advice
from tests.support.streams import Stream


def advised(stream: Stream) -> Advising:
    """Advice on a stream; the trace with all of it is as clean as the stream."""
    found = advise(stream.blocks, seconds=300)
    assert found.trace is not None and found.done == found.dependencies
    assert judge(found.trace).pairs <= judge(found.trace.of(stream.blocks)).pairs
    return found


def only(found: Advising) -> Advice:
    [advice] = found.advice
    return advice
