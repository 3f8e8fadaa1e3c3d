"""The named differences between the model and syncval: each entry happens, and explains no more than it says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.agreement import compare
from harness.findings import Finding, UserError
from harness.model.named_differences import explanation, load
from harness.model.order import OPTIONAL
from harness.model.pairs import FACTS
from harness.syncval.evidence import Description
from harness.syncval.validator import Validator
from harness.trace.effects import HostSignaled, PassBegin, PassEnd, RasterizationOrder, SemaphoreCreated, SubpassBegin
from tests.support.effects import IMAGE, access, at
from tests.support.model_streams import COMPUTE, FILL, FILL_TO_COPY, READ, WRITE, Stream

BLIT = access("BLIT_TRANSFER_READ")
OTHER_IMAGE = 77


def held_back() -> Stream:
    """The host waits for the first copy after the second was submitted, and lets that one go where no copy waits."""
    stream = Stream().add(SemaphoreCreated(7, 0)).submit(WRITE, fence=9).submit(WRITE, waits=at(7, COMPUTE, 1))
    return stream.wait(9).add(HostSignaled(7, 1))


ONLY_MODEL: dict[str, Callable[[], Stream]] = {"held-back": held_back}


def findings(stream: Stream) -> list[Finding]:
    validator = Validator(lambda _, spans: Description("VkBuffer", tuple(spans), ()))
    return [found for each in stream.stream_events for found in validator.consume(each)]


def test_every_entry_has_a_stream_and_every_fact_and_rule_an_entry() -> None:
    assert {entry.id for entry in load()} == set(ONLY_MODEL)
    assert {entry.fact for entry in load() if entry.fact} == set(FACTS)
    assert {entry.omitted for entry in load() if entry.omitted} == set(OPTIONAL)


@pytest.mark.parametrize("entry", ONLY_MODEL)
def test_the_model_alone_reports_it(entry: str) -> None:
    stream = ONLY_MODEL[entry]()
    opinion = stream.judge()
    assert findings(stream) == []
    assert {found.id for each in opinion.conflicts if (found := explanation(each)) is not None} == {entry}
    said = compare([], opinion)
    assert (said.disagreements, said.explained) == ((), (entry,))


def test_what_both_report_needs_no_explanation() -> None:
    """Subpasses with no path between them race for both, although attachments are in question."""
    write = access("COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE", IMAGE, order=RasterizationOrder.COLOR)
    stream = Stream().submit((PassBegin(2, ()), SubpassBegin(0)), write, SubpassBegin(1), write, PassEnd())
    said = compare(findings(stream), stream.judge())
    assert [each.hazard for each in findings(stream)] == ["WRITE_RACING_WRITE"]
    assert (said.disagreements, said.explained) == ((), ())


def test_a_rule_that_makes_no_difference_explains_nothing() -> None:
    hazards = findings(Stream().submit(FILL, READ))
    said = compare(hazards, Stream().submit(FILL, FILL_TO_COPY, READ).judge())
    assert [each.split(":")[0] for each in said.disagreements] == ["syncval only"]


def test_a_read_with_no_guard_is_not_explained() -> None:
    stream = Stream().submit(FILL, FILL_TO_COPY, READ, BLIT)
    found = compare(findings(stream), stream.judge())
    assert (found.disagreements, found.explained) == ((), ())
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


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[difference]]\nid = 'x'", "difference 1: needs 'rule', a text"),
        ("[[difference]]\nid='x'\nrule='r'\nreason='z'", "difference 1: needs either 'fact' or 'omitted'"),
        ("[[difference]]\nid='x'\nrule='r'\nreason='z'\nomitted='y'", "rule 'y' is none of"),
        ("[[difference]]\nid='x'\nfact='y'\nrule='r'\nreason='z'\nkinds=['invisible']", "fact 'y' is none of"),
        ("[[difference]]\nid='x'\nfact='held-back'\nrule='r'\nreason='z'", "needs 'kinds'"),
        ("[[difference]]\nid='x'\nfact='held-back'\nrule='r'\nreason='z'\nkinds=['odd']", "kind 'odd' is none of"),
        ("[[difference", "Expected"),
    ],
)
def test_a_malformed_entry_is_one_clear_line(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "differences.toml"
    file.write_text(text)
    with pytest.raises(UserError, match=complaint):
        load(file)
