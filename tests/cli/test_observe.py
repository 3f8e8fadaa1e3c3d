"""`vkharness observe`: a trace, scenarios and random streams, each command held against what is declared for it."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from tests.support.drivers_here import on_each_driver
from tests.support.streams import two_buffers, words
from vkharness.cli.check import check
from vkharness.cli.observe import observe
from vkharness.cli.replay import replay
from vkharness.device.process import Died, Worker
from vkharness.findings import UserError
from vkharness.replay.observation import in_worker
from vkharness.replay.observation.experiments import Budget
from vkharness.replay.observation.in_worker import observe_in_worker
from vkharness.trace.codec import save
from vkharness.trace.observations import read_observations

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str | Path, command: click.Command = observe) -> Result:
    result = CliRunner().invoke(command, [str(each) for each in arguments], catch_exceptions=False)
    print(result.output)
    return result


def a_trace(folder: Path) -> tuple[Path, int, int]:
    stream, a, b = two_buffers()
    stream.begin()
    stream.fill(a, 7)
    stream.copy(a, b, 8)
    stream.submit()
    save(folder / "trace.jsonl", stream.blocks)
    return folder / "trace.jsonl", a, b


@on_each_driver
def test_a_trace_is_observed_and_the_file_says_what_was_seen(driver: str, tmp_path: Path) -> None:
    trace, a, b = a_trace(tmp_path)
    result = run(trace, "--device", driver, "-o", tmp_path / "seen")
    assert result.exit_code == 0
    assert f"2 of 2 commands observed on {driver}, 0 of 4096 MiB read back" in result.output
    fill, copy = read_observations(tmp_path / "seen").pieces
    assert (fill.writes, copy.reads, copy.writes) == ({a: ((0, 16),)}, {a: ((0, 8),)}, {b: ((0, 8),)})


@on_each_driver
def test_a_sample_of_the_suite_touches_only_what_is_declared(driver: str, given_seed: int) -> None:
    print(f"seed {given_seed}")
    folder = ROOT / "scenarios"
    result = run("--scenarios", folder, "--sample", "25", "--seed", str(given_seed), "--device", driver)
    assert "streams observed" in result.output
    assert result.exit_code == 0


@on_each_driver
def test_random_streams_touch_only_what_is_declared(driver: str, given_seed: int) -> None:
    result = run("--random", "10", "--seed", str(given_seed), "--device", driver)
    assert f"seeds {given_seed} to {given_seed + 9}" in result.output
    assert "10 of 10 streams observed" in result.output
    assert result.exit_code == 0


@pytest.mark.parametrize("arguments", [[], ["x", "--random", "3"], ["--random", "3", "-o", "y"]])
def test_one_source_is_asked_for(arguments: list[str]) -> None:
    with pytest.raises(UserError):
        run(*arguments)


@on_each_driver
def test_a_driver_that_dies_costs_one_command(driver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace, _, b = a_trace(tmp_path)
    monkeypatch.setattr(in_worker, "Worker", DiesOfTheFirst)
    first, second = observe_in_worker(trace, driver, Budget(1 << 20, 4), 60)
    assert ([each.name for each in first.commands], first.problem) == (
        ["vkCmdFillBuffer"],
        f"{driver} killed by SIGSEGV: a last word",
    )
    assert second.writes == {b: ((0, 8),)}


class DiesOfTheFirst(Worker):
    """A worker whose driver crashes in the experiments on the first command."""

    def call(self, target: str, arguments: object = None) -> dict[str, object] | Died:
        assert isinstance(arguments, dict)
        if arguments["first"] == 0 and 0 not in arguments["passed_over"]:
            return Died(11, None, "a last word")
        return super().call(target, arguments)


def a_guarded_hazard(folder: Path, on: bool) -> Path:
    """A shader writes a buffer if a word that another shader wrote says so, and a copy reads it without a barrier."""
    stream, a, b = two_buffers(256)
    switch = stream.buffer(16)
    decides = stream.compute("fill_words", [switch], words(int(on)))
    guarded = stream.compute("branch_on_a_word", [a, switch], words(2))
    stream.begin()
    decides.run()
    stream.barrier()
    guarded.run()
    stream.copy(a, b, 64)
    stream.submit()
    save(folder / "trace.jsonl", stream.blocks)
    return folder / "trace.jsonl"


@on_each_driver
@pytest.mark.parametrize("on", [True, False])
def test_a_finding_whose_bytes_never_meet_is_refuted_on_this_run(driver: str, on: bool, tmp_path: Path) -> None:
    trace = a_guarded_hazard(tmp_path, on)
    seen, answer = tmp_path / "seen", tmp_path / "answer.json"
    assert run(trace, "--device", driver, "-o", seen).exit_code == 0
    assert run(trace, command=check).exit_code == 1
    result = run(trace, "--observed", seen, "--json", answer, command=check)
    (found,) = json.loads(answer.read_text(encoding="utf-8"))["findings"]
    assert found["hazard"] == "READ_AFTER_WRITE"
    reason = "" if on else f"on {driver}, noted by its shaders"
    assert (found["refuted"], result.exit_code) == (reason, 1 if on else 0)
    assert (f"refuted on this run: the two touch no byte in common ({reason})" in result.output) is not on
    assert ("clean - no hazard" in result.output) is not on
    assert ("refuted on this run, and not counted: 1 READ_AFTER_WRITE" in result.output) is not on


@on_each_driver
def test_a_replay_judges_with_what_was_observed(driver: str, tmp_path: Path) -> None:
    trace, seen = a_guarded_hazard(tmp_path, on=False), tmp_path / "seen"
    run(trace, "--device", driver, "-o", seen)
    result = run(trace, "--mode", "witness", "--device", driver, "--observed", seen, command=replay)
    assert result.exit_code == 0
    assert "refuted on this run: the two touch no byte in common" in result.output


@on_each_driver
def test_observations_of_another_trace_are_refused(driver: str, tmp_path: Path) -> None:
    trace, seen = a_guarded_hazard(tmp_path, on=False), tmp_path / "seen"
    run(trace, "--device", driver, "-o", seen)
    (tmp_path / "other").mkdir()
    other, _, _ = a_trace(tmp_path / "other")
    with pytest.raises(UserError, match="the observations are of another trace"):
        run(other, "--observed", seen, command=check)
