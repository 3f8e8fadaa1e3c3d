"""docs/hazards.md: a heading for each hazard, and streams that have it and are mended as the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vkharness.agreement import hazard_of
from vkharness.findings import Finding, Hazard
from vkharness.fuzz.agreement_fuzz import judge
from vkharness.model import judge_stream_events
from vkharness.report.rules import rule_of
from vkharness.text_form import stream_text

PAGE = Path(__file__).resolve().parents[2] / "docs" / "hazards.md"
SECTIONS = {
    tuple(re.findall(r"`([^`]+)`", section.partition("\n")[0])): section
    for section in re.split(r"^### ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
}
"""By the hazards of its heading, the text of each section."""
STREAMS = [
    (hazards, stream)
    for hazards, section in SECTIONS.items()
    for stream in re.findall(r"^```diff\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
]
BESIDE = {Hazard.WAIT_FOR_UNORDERED_SET: [Hazard.SET_EVENT2_AFTER_RESET]}
"""Hazards that come with another one, as their sections say."""
OF_TRACES = {(Hazard.REWRITES_OTHER_ASPECT,), (Hazard.PRESERVED_AND_USED,), (Hazard.SPARSE_NOT_BOUND,)}
"""Depend on objects of a trace, and not on effects: tests/commands has their streams, in test_other_aspect.py,
test_render_passes.py and test_sparse_memory.py."""


def test_each_hazard_has_one_heading_and_no_heading_is_left_over() -> None:
    assert sorted(name for hazards in SECTIONS for name in hazards) == sorted(Hazard)


def test_the_table_says_which_values_are_advice() -> None:
    rows = re.findall(r"^\| (`.*`) \| (hazard|advice) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    said = {name: word for names, word in rows for name in re.findall(r"`([^`]+)`", names)}
    assert said == {hazard: "advice" if hazard.is_advice else "hazard" for hazard in Hazard}


def test_each_section_has_a_stream() -> None:
    assert {hazards for hazards, _ in STREAMS} == set(SECTIONS) - OF_TRACES


def judged(stream: str, sign: str) -> list[Finding]:
    """Returns the findings of both judges before (`-`) or after (`+`) a stream's change, and the model's remarks."""
    lines = "\n".join(line[1:] for line in stream.splitlines() if line[0] in (" ", sign))
    findings, agreement = judge(lines)
    assert agreement.disagreements == ()
    opinion = judge_stream_events(stream_text.parse(lines))
    return findings + [
        Finding(hazard_of(each), "", "", each.current.place, each.prior.place, 0, "") for each in opinion.remarks
    ]


@pytest.mark.parametrize(
    ("hazards", "stream"), STREAMS, ids=[f"{hazards[0]}-{at}" for at, (hazards, _) in enumerate(STREAMS)]
)
def test_the_stream_has_the_hazard_and_its_mended_form_has_none(hazards: tuple[str, ...], stream: str) -> None:
    *beside, found = judged(stream, "-")
    assert found.hazard in hazards
    assert [each.hazard for each in beside] == BESIDE.get(found.hazard, [])
    anchor = "#" + rule_of(found)
    assert f"(rules.md{anchor})" in SECTIONS[hazards]
    assert judged(stream, "+") == []
