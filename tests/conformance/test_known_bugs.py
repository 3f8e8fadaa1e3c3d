"""Which findings the proved bugs of the conformance suite explain."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.conformance.known import Bug, Said, known_bugs, suspects, unexplained

BUG = Bug(
    name="late write",
    cases=("dEQP-VK.group.*.host",),
    hazards=("READ_AFTER_WRITE",),
    access="SYNC_COPY_*",
    prior_access="SYNC_HOST_WRITE",
    sentence="a sentence",
    report="page.md",
)
SAID = Said("READ_AFTER_WRITE", "SYNC_COPY_TRANSFER_READ", "SYNC_HOST_WRITE", "a message")
CASE = "dEQP-VK.group.one.host"


def test_a_bug_explains_what_fits_it() -> None:
    assert unexplained(CASE, [SAID], [BUG]) == []


@pytest.mark.parametrize(
    "said",
    [
        replace(SAID, hazard="WRITE_AFTER_WRITE"),
        replace(SAID, access="SYNC_CLEAR_TRANSFER_WRITE"),
        replace(SAID, prior_access="SYNC_COPY_TRANSFER_WRITE"),
    ],
)
def test_a_bug_explains_no_other_accesses(said: Said) -> None:
    assert unexplained(CASE, [SAID, said], [BUG]) == [said]


def test_a_bug_explains_no_other_cases() -> None:
    assert unexplained("dEQP-VK.other.one.host", [SAID], [BUG]) == [SAID]
    assert suspects("dEQP-VK.other.one.host", [BUG]) == []
    assert suspects(CASE, [BUG]) == [BUG]


def test_each_listed_bug_has_a_page_and_a_sentence() -> None:
    pages = Path(__file__).resolve().parents[2] / "docs" / "upstream"
    listed = known_bugs()
    assert listed
    assert len({each.name for each in listed}) == len(listed)
    for each in listed:
        assert each.sentence and each.cases and each.hazards
        assert (pages / each.report).is_file(), each.report
