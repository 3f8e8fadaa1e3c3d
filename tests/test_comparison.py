"""Comparison of the answers of syncval and of the model: where they agree, and what is told where they do not."""

from __future__ import annotations

from tests.support.effects import IMAGE, access
from tests.support.model_streams import FILL, FILL_TO_COPY, READ, Stream
from vkharness.agreement import compare
from vkharness.findings import Finding
from vkharness.syncval.evidence import Description
from vkharness.syncval.validator import Validator
from vkharness.trace.attachment_operations import RasterizationOrder
from vkharness.trace.effects import PassBegin, PassEnd, SubpassBegin

BLIT = access("BLIT_TRANSFER_READ")


def findings(stream: Stream) -> list[Finding]:
    validator = Validator(lambda _, spans: Description("VkBuffer", tuple(spans), ()))
    return [found for each in stream.stream_events for found in validator.consume(each)]


def test_what_both_report_is_no_disagreement() -> None:
    """Subpasses with no path between them race for both, although attachments are in question."""
    write = access("COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE", IMAGE, order=RasterizationOrder.COLOR)
    stream = Stream().submit((PassBegin(2, ()), SubpassBegin(0)), write, SubpassBegin(1), write, PassEnd())
    said = compare(findings(stream), stream.judge())
    assert [each.hazard for each in findings(stream)] == ["WRITE_RACING_WRITE"]
    assert said.disagreements == ()


def test_what_syncval_alone_reports_is_told() -> None:
    hazards = findings(Stream().submit(FILL, READ))
    said = compare(hazards, Stream().submit(FILL, FILL_TO_COPY, READ).judge())
    assert [each.split(":")[0] for each in said.disagreements] == ["syncval only"]


def test_reads_of_two_kinds_after_a_write() -> None:
    stream = Stream().submit(FILL, FILL_TO_COPY, READ, BLIT)
    found = compare(findings(stream), stream.judge())
    assert found.disagreements == ()
    assert findings(stream)[0].hazard == "READ_AFTER_WRITE"


def test_disagreements_are_told() -> None:
    stream = Stream().submit(FILL, READ)
    hazards = findings(stream)
    assert compare([], stream.judge()).disagreements == (
        "model only: unordered: vkCmdAccess SYNC_COPY_TRANSFER_READ (call 3) after "
        "vkCmdAccess SYNC_CLEAR_TRANSFER_WRITE (call 2)",
    )
    assert compare(hazards, Stream().judge()).disagreements == (
        "syncval only: READ_AFTER_WRITE: vkCmdAccess SYNC_COPY_TRANSFER_READ (call 3) after "
        "vkCmdAccess SYNC_CLEAR_TRANSFER_WRITE (call 2)",
    )
    assert compare(hazards, stream.judge()).disagreements == ()


def test_the_first_offender_must_be_the_same() -> None:
    stream = Stream().submit(FILL, READ, FILL)
    last = findings(stream)[-1:]
    assert [each.split(":")[0] for each in compare(last, stream.judge()).disagreements] == [
        "the model's first conflict is not one of syncval's commands"
    ]
