"""The named differences between the model and syncval: each entry happens, and explains no more than it says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.agreement import compare
from harness.findings import Finding, UserError
from harness.model.accesses import FACTS
from harness.model.differences import explanation, load
from harness.syncval.evidence import Description
from harness.syncval.validator import Validator
from tests.model_streams import FILL, FILL_TO_COPY, READ, Stream, access, barrier

BLIT = access("BLIT_TRANSFER_READ")


def guarded_read() -> Stream:
    return Stream().submit(FILL, FILL_TO_COPY, READ, barrier(("COPY", "BLIT")), BLIT)


def host_overwrite() -> Stream:
    return Stream().submit(FILL, fence=9).wait(9).host_write()


HAPPENS: dict[str, Callable[[], Stream]] = {"guarded-read": guarded_read, "host-overwrite": host_overwrite}


def findings(stream: Stream) -> list[Finding]:
    validator = Validator(lambda _, spans: Description("VkBuffer", tuple(spans), ()))
    return [found for each in stream.occurrences for found in validator.consume(each)]


def test_every_entry_has_a_stream_and_every_fact_an_entry() -> None:
    assert {entry.id for entry in load()} == set(HAPPENS)
    assert {entry.fact for entry in load()} == set(FACTS)


@pytest.mark.parametrize("entry", HAPPENS)
def test_the_model_alone_reports_it(entry: str) -> None:
    stream = HAPPENS[entry]()
    opinion = stream.judge()
    assert findings(stream) == []
    assert [found.id for each in opinion.conflicts if (found := explanation(each)) is not None] == [entry]
    said = compare([], opinion)
    assert (said.disagreements, said.explained) == ((), (entry,))


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
        ("[[difference]]\nid = 'x'", "difference 1: needs 'fact', a text"),
        ("[[difference]]\nid='x'\nfact='y'\nrule='r'\nreason='z'\nkinds=['invisible']", "fact 'y' is none of"),
        ("[[difference]]\nid='x'\nfact='guarded-read'\nrule='r'\nreason='z'", "needs 'kinds'"),
        ("[[difference]]\nid='x'\nfact='guarded-read'\nrule='r'\nreason='z'\nkinds=['odd']", "kind 'odd' is none of"),
        ("[[difference", "Expected"),
    ],
)
def test_a_malformed_entry_is_one_clear_line(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "differences.toml"
    file.write_text(text)
    with pytest.raises(UserError, match=complaint):
        load(file)
