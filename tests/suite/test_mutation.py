"""The mutation score: what is taken from a dependency, who is to notice, and that syncval does."""

from __future__ import annotations

from pathlib import Path

import pytest

from vkharness.device.pool import sample
from vkharness.findings import UserError
from vkharness.suite.mutation import score
from vkharness.suite.mutation.judge_mutants import claims, judge_mutants
from vkharness.suite.mutation.mutant import Mutant
from vkharness.suite.mutation.operators import OPERATORS, mutants

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SEED, SAMPLE = 20261121, 12

BARRIER = {"src": "COPY|CLEAR/TRANSFER_WRITE", "dst": "COPY/TRANSFER_READ|TRANSFER_WRITE"}
DEPENDS = {"src": 0, "dst": 1, "before": "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE", "after": "FRAGMENT_SHADER"}


def changes(written: dict[str, object]) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    for name, _, mutated in mutants(written):
        found.setdefault(name, []).append(mutated)
    return found


def test_each_piece_of_a_barrier_is_dropped_once() -> None:
    found = changes(dict(BARRIER))
    assert found["whole dependency"] == [None]
    assert found["all accesses"] == [{"src": "COPY|CLEAR", "dst": "COPY"}]
    assert [each["src"] for each in found["source stage"]] == ["CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_WRITE"]  # type: ignore[index]
    assert found["destination stage"] == [{**BARRIER, "dst": "NONE"}]
    assert [each["dst"] for each in found["destination access"]] == ["COPY/TRANSFER_WRITE", "COPY/TRANSFER_READ"]  # type: ignore[index]
    assert found["direction"] == [{"src": BARRIER["dst"], "dst": BARRIER["src"]}]
    assert "layout" not in found


def test_an_access_goes_with_the_only_stage_that_has_it() -> None:
    written = {"src": "COPY|COMPUTE_SHADER/TRANSFER_WRITE|SHADER_STORAGE_WRITE", "dst": "ALL_COMMANDS/MEMORY_READ"}
    found = [each["src"] for each in changes(dict(written))["source stage"]]  # type: ignore[index]
    assert found == ["COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COPY/TRANSFER_WRITE"]


def test_scopes_of_subpass_dependencies_are_not_their_subpasses() -> None:
    found = changes(dict(DEPENDS))
    assert found["source access"] == [{**DEPENDS, "before": "COLOR_ATTACHMENT_OUTPUT"}]
    assert found["direction"] == [{**DEPENDS, "before": DEPENDS["after"], "after": DEPENDS["before"]}]


def test_of_several_barriers_one_is_weakened_at_a_time() -> None:
    found = changes({"several": [BARRIER, DEPENDS]})
    assert found["whole dependency"] == [None]
    assert [each["several"][1] for each in found["all accesses"][:1]] == [DEPENDS]  # type: ignore[index]
    assert [each["several"][0] for each in found["all accesses"][1:]] == [BARRIER]  # type: ignore[index]


def test_a_semaphore_is_left_with_another_stage_and_a_smaller_value() -> None:
    found = changes({"semaphore": object(), "stages": "COPY", "value": 3})
    assert [each["stages"] for each in found["semaphore stage"]] == ["VERTEX_SHADER"]  # type: ignore[index]
    assert [each["value"] for each in found["semaphore value"]] == [2]  # type: ignore[index]


def test_the_score_counts_by_operator_and_judge() -> None:
    made = [
        Mutant("a/b", "d", "direction", "x", model=["unordered"], syncval=["WAR"], layers={"1.4.364": []}),
        Mutant("a/b", "d", "direction", "y", layers={"1.4.364": ["WAR"]}),
        Mutant("a/b", "d", "layout", "x", problem="not recorded"),
    ]
    counted = score.scores(made)
    assert set(counted) == {"direction", score.TOTAL}
    one = counted["direction"]
    assert (one.mutants, one.legal) == (2, 1)
    assert one.caught == {"syncval": 1, "layer 1.4.364": 0}
    assert one.false == {"syncval": 0, "layer 1.4.364": 1}
    assert score.wrong(made) == []
    assert score.wrong([Mutant("a/b", "d", "direction", "x", model=["unordered"])]) != []
    assert [Mutant.from_dict(each.to_dict()) for each in made] == made


@pytest.mark.driver
@pytest.mark.slow
def test_a_sample_is_caught_exactly_where_the_model_says_so() -> None:
    several = claims([SCENARIOS])
    chosen = [several[at] for at in sample(len(several), SAMPLE, SEED)]
    print(f"{SAMPLE} scenarios, seed {SEED}")
    found = [each for _, made in judge_mutants(chosen, "swiftshader", "off", 1) for each in made]
    assert [str(each) for each in score.wrong(found)] == []
    assert len(found) > SAMPLE
    assert {each.operator for each in found} <= {"", *OPERATORS}
    assert sum(bool(each.syncval) for each in found) > SAMPLE


def test_a_path_that_is_not_there_is_named() -> None:
    with pytest.raises(UserError, match="no_such"):
        claims([SCENARIOS / "no_such.py"])
