"""The last findings of a session are those of `check` on its trace."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.streams import ALL_COMMANDS, Stream, struct, two_buffers
from vkharness.check import Analysis
from vkharness.late_analysis import LateAnalysis
from vkharness.record.session_stream import SessionStream


def waits_for_an_event() -> Stream:
    """A fill, and one behind a wait for an event that nothing signals."""
    stream, buffer, _ = two_buffers()
    event = stream.make("vkCreateEvent", "pEvent", struct("VkEventCreateInfo"))
    stream.begin()
    stream.fill(buffer, 7)
    stream.end()
    stream.submit(stream.commands, wait=False)
    stream.begin()
    stream.cmd("WaitEvents", pEvents=[event], srcStageMask=ALL_COMMANDS, dstStageMask=ALL_COMMANDS)
    stream.fill(buffer, 8)
    stream.end()
    stream.submit(stream.commands, wait=False)
    return stream


def is_not_ended() -> Stream:
    """Two fills in a command buffer that is still being recorded."""
    stream, buffer, _ = two_buffers()
    stream.begin()
    stream.fill(buffer, 7)
    stream.fill(buffer, 8)
    return stream


@pytest.mark.parametrize("made", [waits_for_an_event, is_not_ended])
@pytest.mark.parametrize("judge", [Analysis, LateAnalysis])
def test_the_end_of_a_session_is_the_end_of_its_trace(made: Callable[[], Stream], judge: type[Analysis]) -> None:
    mirror, failed = judge(), list[str]()
    stream = SessionStream(mirror, True, None, failed.append, failed.append)
    found = [each for block in made().blocks for each in stream.take(block)]
    assert not found
    found += stream.end()
    assert [each.hazard for each in found] == ["WRITE_AFTER_WRITE"] and not failed
    checked = Analysis().follow(stream.blocks or [])
    assert [each.message for each in found] == [each.message for each in checked.findings]
    assert mirror.verdict == checked.verdict == "hazards"
    assert not stream.end()
