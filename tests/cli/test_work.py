"""One budget that every judge obeys: what a command leaves out is said in one line, with how to ask for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from vkharness.agreement import MODEL_UNITS, ask_model, model_units
from vkharness.check import Analysis
from vkharness.cli import cli, verdict
from vkharness.fuzz.hostile.amplified import SHAPES, amplified
from vkharness.model import judge_stream_events
from vkharness.trace import work_budget
from vkharness.trace.codec import load
from vkharness.trace.work_budget import UNITS, OverBudget
from vkharness.verdicts import ModelAnswer

MULTIPLIED = {"aliases": 2, "executions": 2, "late-signals": 2, "subresources": 2, "events": 3}
"""Shapes in which several lists multiply, and how many: their work grows with that power of the size."""
COMMANDS = ("mend", "advise", "explain", "graph -o g.svg", "reduce -o small.jsonl")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def trace(folder: Path, shape: str, size: int) -> Path:
    path = folder / f"{shape}-{size}.jsonl"
    path.write_bytes(amplified(shape, size))
    return path


def asked(*words: str) -> tuple[int, str]:
    """The exit code of a command, and all that it says."""
    ended = CliRunner().invoke(cli, list(words))
    said = str(ended.exception) if ended.exception and not isinstance(ended.exception, SystemExit) else ""
    return ended.exit_code, ended.output + said


def units(path: Path) -> tuple[int, int]:
    """Units of work to follow a trace, and those of the model."""
    work_budget.share(1000.0)
    try:
        before = UNITS.left
        analysis = Analysis(keep_events=True).follow(load(path))
        between = UNITS.left
        judge_stream_events(analysis.events)
        return before - between, between - UNITS.left
    finally:
        work_budget.end_sharing()


@pytest.mark.parametrize("shape", SHAPES)
def test_the_work_grows_as_the_trace_does(shape: str, folder: Path) -> None:
    most = 1.2 * 2 ** MULTIPLIED.get(shape, 1)
    for short, long in zip(units(trace(folder, shape, 48)), units(trace(folder, shape, 96)), strict=True):
        assert short > 0
        assert long <= most * short


@pytest.mark.parametrize("shape", ["submits", "events", "secondaries"])
def test_a_check_says_what_it_leaves_out(shape: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = trace(folder, shape, 60)
    code, said = asked("check", "--json", "whole.json", str(path))
    assert "--work" not in said
    whole = json.loads((folder / "whole.json").read_text())
    assert code == {"clean": 0, "hazards": 1}[whole["verdict"]]
    monkeypatch.setattr(work_budget, "SHARED", units(path)[0] // 2)
    code, said = asked("check", "--json", "part.json", str(path))
    part = json.loads((folder / "part.json").read_text())
    (left_out,) = part["unmodelled"]
    assert f"{path}: block " in left_out and "--work 10" in left_out and left_out in said.replace("\n", "")
    assert part["model"] == "left out"
    assert (code, part["verdict"]) == ((1, "hazards") if part["findings"] else (3, "unknown"))
    assert len(part["findings"]) <= len(whole["findings"])
    assert asked("check", "--work", "10", str(path))[1].count("--work") == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_says_that_it_stopped(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = trace(folder, "two-queues", 30)
    assert "--work" not in asked(*command.split(), str(path))[1]
    took = units(path)
    monkeypatch.setattr(work_budget, "SHARED", took[0] + took[1] // 2)
    code, said = asked(*command.split(), str(path))
    assert "--work" in said
    assert path.name in said or command in ("mend", "advise")  # these go on with what they have
    assert code == (0 if command == "advise" else 1)  # an exception that `main` makes a line and exit code 2 of, or 1


def test_the_second_judge_takes_as_much_as_the_first_one_or_half_a_second(folder: Path) -> None:
    """Of few commands it may take half of what there is."""
    few, many = (Analysis(keep_events=True).follow(load(trace(folder, "executions", size))) for size in (40, 160))
    assert model_units(few.events) == work_budget.SHARED
    assert model_units(many.events) == MODEL_UNITS
    assert ask_model(few) is ModelAnswer.AGREES
    assert ask_model(many) is ModelAnswer.LEFT_OUT


def test_of_a_live_program_the_second_judge_is_asked_for_as_much_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    analysis = Analysis(keep_events=True).follow(load(trace(folder, "executions", 80)))
    monkeypatch.setattr(work_budget, "SHARED", 10)
    assert verdict.ask_model(analysis, verdict.ALWAYS) is ModelAnswer.AGREES
    monkeypatch.setattr(UNITS, "factor", 0.01)
    assert verdict.ask_model(analysis, verdict.ALWAYS) is ModelAnswer.LEFT_OUT


def test_what_is_set_aside_comes_back() -> None:
    before = UNITS.left
    with pytest.raises(OverBudget), work_budget.at_most(10):
        work_budget.spend(11, "steps")
    assert UNITS.left == before - 11


def test_the_units_of_a_command_end_with_it(folder: Path) -> None:
    asked("check", str(trace(folder, "submits", 4)))
    assert not UNITS.shared
    assert UNITS.a_call == work_budget.A_CALL
