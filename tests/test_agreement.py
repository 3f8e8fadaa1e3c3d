"""Asking the model about what syncval has judged: who finds what, and what the model says in syncval's terms."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.streams import Stream, two_buffers
from vkharness import agreement
from vkharness.agreement import ask_model, conflicts_of, numbers_by_conflict
from vkharness.check import Analysis
from vkharness.findings import Hazard
from vkharness.model import judge
from vkharness.trace.codec import load
from vkharness.trace.work_budget import SHARED, UNITS
from vkharness.verdicts import ModelAnswer


def copies(*, barrier: bool) -> Stream:
    stream, a, b = two_buffers(64)
    stream.begin()
    stream.fill(a, 7)
    if barrier:
        stream.barrier()
    stream.copy(a, b, 64)
    stream.end()
    stream.submit()
    return stream


@pytest.mark.parametrize("barrier", [True, False])
def test_both_judges_agree(barrier: bool) -> None:
    analysis = Analysis(keep_events=True).follow(copies(barrier=barrier).blocks)
    assert ask_model(analysis) is ModelAnswer.AGREES
    assert [each.judges for each in analysis.findings] == [("syncval", "model")] * (not barrier)


def test_a_broken_rule_of_valid_usage_that_only_the_model_finds_has_its_name() -> None:
    """A render pass is begun in a command buffer that nothing begins or submits."""
    trace = Path(__file__).parent / "data" / "hostile" / "preserved_attachment_of_what_is_not_submitted" / "t.jsonl"
    analysis = Analysis(keep_events=True).follow(load(trace))
    assert analysis.findings == []
    assert ask_model(analysis) is ModelAnswer.DIFFERS
    (added,) = analysis.findings
    assert (added.hazard, added.resource_type, added.judges) == (Hazard.PRESERVED_AND_USED, "VkRenderPass", ("model",))


def test_what_only_the_model_finds_is_a_finding_like_others() -> None:
    analysis = Analysis(keep_events=True).follow(copies(barrier=False).blocks)
    (found,) = analysis.findings
    analysis.findings.clear()
    assert analysis.verdict == "clean"
    assert ask_model(analysis) is ModelAnswer.DIFFERS
    (added,) = analysis.findings
    assert analysis.verdict == "hazards"
    assert added.judges == ("model",)
    assert (added.key, added.resource, added.ranges) == (found.key, found.resource, found.ranges)
    assert "missing" in added.to_dict() and added.missing.startswith("a memory dependency from")


def test_what_only_syncval_finds_stays_and_is_marked() -> None:
    analysis = Analysis(keep_events=True).follow(copies(barrier=True).blocks)
    (wrong,) = Analysis().follow(copies(barrier=False).blocks).findings
    analysis.findings.append(replace(wrong))
    assert ask_model(analysis) is ModelAnswer.DIFFERS
    assert [each.judges for each in analysis.findings] == [("syncval",)]


def test_a_long_stream_is_not_given_to_the_model() -> None:
    blocks = copies(barrier=False).blocks
    for analysis, limit in ((Analysis(keep_events=True), 2), (Analysis(), 100), (Analysis(True, keep_at_most=2), 100)):
        assert ask_model(analysis.follow(blocks), limit) is ModelAnswer.LEFT_OUT
        assert [each.judges for each in analysis.findings] == [()]


def test_a_conflict_has_the_least_number_of_the_findings_about_it() -> None:
    stream, a, b = two_buffers(64)
    stream.begin()
    stream.fill(a, 7)
    stream.copy(a, b, 64)
    stream.fill(b, 7)
    stream.end()
    stream.submit()
    opinion = judge(stream.blocks)
    findings = Analysis().follow(stream.blocks).findings
    several = [(3, findings), (2, findings[1:]), (5, findings[:1])]
    each = {at: [number for number, of in several if at in conflicts_of(of, opinion)] for at in (1, 2)}
    assert numbers_by_conflict(several, opinion) == {at: min(numbers) for at, numbers in each.items()} == {1: 3, 2: 2}


def test_a_live_program_gives_the_model_the_work_of_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many commands it executes again."""
    given: list[int] = []

    def judge(_: object, units: int) -> None:
        given.append(units)

    monkeypatch.setattr(agreement, "judge_stream_events", judge)
    monkeypatch.setattr(agreement, "model_units", lambda _: 1 << 40)
    analysis = Analysis(keep_events=True).follow(copies(barrier=False).blocks)
    monkeypatch.setattr(UNITS, "left", 1 << 50)
    agreement.ask_opinion(analysis)
    monkeypatch.setattr(UNITS, "shared", True)
    agreement.ask_opinion(analysis)
    assert given == [SHARED, 1 << 40]
