"""Secondary command buffers as syncval follows them, and what the layers make of their barriers."""

from __future__ import annotations

from tests.support.streams import Stream, two_buffers
from vkharness.check import Analysis
from vkharness.findings import Finding

OLD, TODAY = "1.3.239", "1.4.364"


def found(stream: Stream) -> list[Finding]:
    return Analysis().follow(stream.blocks).findings


def test_a_hazard_inside_a_secondary_is_found_once() -> None:
    """While the secondary is recorded; not again where it is executed or submitted."""
    stream, a, b = two_buffers()
    secondary = stream.begin(level=1)
    stream.fill(a, 1)
    copy = stream.copy(a, b, 16)
    stream.end()
    stream.begin()
    stream.cmd("ExecuteCommands", commandBufferCount=1, pCommandBuffers=[secondary])
    stream.submit()
    findings = found(stream)
    assert [(each.place.call, each.place.executed_by, each.place.submit) for each in findings] == [(copy, None, None)]


def test_a_hazard_between_executions_of_one_secondary_names_both() -> None:
    stream = Stream()
    a = stream.buffer(16)
    secondary = stream.begin(level=1)
    stream.fill(a, 1)
    stream.end()
    stream.begin()
    execute = stream.cmd("ExecuteCommands", commandBufferCount=2, pCommandBuffers=[secondary, secondary])
    stream.submit()
    (finding,) = found(stream)
    assert finding.hazard == "WRITE_AFTER_WRITE"
    assert (finding.place.executed_by, finding.prior.executed_by) == ((execute, 1), (execute, 0))
    assert finding.to_dict()["executed_by"] == [execute, 1]
