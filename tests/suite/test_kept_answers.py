"""Answers of `matrix` and `mutate` that outlive a killed run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.suite_runs import ROOT
from vkharness.findings import UserError
from vkharness.suite.kept_answers import MATRIX, KeptAnswers

PLAN = {"seed": 1}
MATRIX_RUN = ["matrix", "--sample", "40", "--device", "lavapipe", "--layer", "off", "--judge-only", "--jobs", "1"]
MUTATE_RUN = ["mutate", "scenarios/event", "--sample", "4", "--layer", "off", "--jobs", "1"]
DRIVERS_RUN = ["mutate", "scenarios/secondary", "--drivers", "--sample", "4", "--jobs", "1"]


def opened(path: Path | None, *, resume: bool = False, plan: dict[str, Any] = PLAN) -> KeptAnswers:
    return KeptAnswers(path, MATRIX, plan, resume=resume)


def test_what_was_kept_is_there_after_a_line_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "matrix.jsonl"
    with opened(path) as kept:
        kept.keep("a", {"says": 1})
        kept.keep("b", {"says": 2})
    path.write_bytes(path.read_bytes()[:-5])
    with opened(path, resume=True) as kept:
        assert kept.answers == {"a": {"says": 1}}
        kept.keep("b", {"says": 3})
    with opened(path, resume=True) as kept:
        assert kept.answers == {"a": {"says": 1}, "b": {"says": 3}}


def test_a_file_is_gone_on_with_only_where_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "matrix.jsonl"
    with opened(path), pytest.raises(UserError, match="another matrix is writing it"):
        opened(path, resume=True)
    before = path.read_bytes()
    with pytest.raises(UserError, match="--resume goes on with it"):
        opened(path)
    with pytest.raises(UserError, match="another run: seed was 1 and is 2"):
        opened(path, resume=True, plan={"seed": 2})
    with pytest.raises(UserError, match="--resume needs the file of --out"):
        opened(None, resume=True)
    assert path.read_bytes() == before
    path.write_bytes(before + b'{"key": 5}\n')
    with pytest.raises(UserError, match=r"matrix\.jsonl:2: not a line of a matrix"):
        opened(path, resume=True)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()[1:]] if path.exists() else []


KILLED = """
import os, signal
from vkharness.cli import main
from vkharness.suite.kept_answers import KeptAnswers

keep = KeptAnswers.keep
def keep_two(self, key, answer):
    keep(self, key, answer)
    if len(self.answers) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
KeptAnswers.keep = keep_two
main()
"""
WHOLE = "from vkharness.cli import main; main()"


def ran(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.driver
@pytest.mark.slow
@pytest.mark.parametrize("command", [MATRIX_RUN, MUTATE_RUN, DRIVERS_RUN], ids=lambda command: command[-5])
def test_a_killed_run_goes_on_and_comes_to_the_same(tmp_path: Path, command: list[str]) -> None:
    path, other = tmp_path / "killed.jsonl", tmp_path / "whole.jsonl"
    assert ran(KILLED, *command, "--out", path).returncode == -signal.SIGKILL
    before = lines(path)
    assert len(before) == 2
    resumed, whole = ran(WHOLE, *command, "--out", path, "--resume"), ran(WHOLE, *command, "--out", other)
    assert lines(path)[:2] == before and len(lines(path)) == len(lines(other)) > 2
    assert sorted(lines(path), key=str) == sorted(lines(other), key=str)
    assert (resumed.returncode, resumed.stdout) == (whole.returncode, whole.stdout), resumed.stderr
