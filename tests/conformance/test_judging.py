"""Runs of cases that a stand-in of the suite passes, judged by a stand-in of the judge."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench.conformance.run import UNJUDGED, Judged, Runner, done_before, read_answer
from vkharness.check import CLEAN

SUITE = """#!{python}
import os, sys
listed = next(each.partition("=")[2] for each in sys.argv if each.startswith("--deqp-caselist-file="))
cases = open(listed).read().split()
for case in cases:
    print(f"Test case '{{case}}'..", flush=True)
    if "dies" in case or "shy" in case and len(cases) > 1:
        os._exit(1)
    print("  NotSupported (no)" if "misses" in case else "  Pass (OK)", flush=True)
"""
JUDGE = """#!{python}
import json, subprocess, sys
at = sys.argv.index("--")
out = subprocess.run(sys.argv[at + 1:], capture_output=True, text=True).stdout
print(out)
with open({log!r}, "a") as log:
    log.write(f"{{out.count('Test case')}}\\n")
racy = "racy" in out
with open({log!r} + ".words", "w") as words:
    words.write(" ".join(sys.argv[1:at]))
finding = dict(hazard="READ_AFTER_WRITE", access="A", prior_access="B", message="one", advice=False)
document = dict(verdict="hazards" if racy else "clean", findings=[finding] * racy, unmodelled={{}}, model="agrees")
json.dump(document, open(sys.argv[sys.argv.index("--json") + 1], "w"))
"""


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """The stand-ins as programs; how many cases each judged process had is in `log`."""
    for name, text in {"suite": SUITE, "judge": JUDGE}.items():
        (tmp_path / name).write_text(text.format(python=sys.executable, log=str(tmp_path / "log")))
        (tmp_path / name).chmod(0o755)
    return Runner(tmp_path / "suite", dict(os.environ), command=(str(tmp_path / "judge"),))


def test_a_clean_batch_takes_one_process(runner: Runner, tmp_path: Path) -> None:
    judged = list(runner.judge(["a.one", "a.two", "a.three"]))
    assert [each.case for each in judged] == ["a.one", "a.two", "a.three"]
    assert {each.verdict for each in judged} == {CLEAN}
    assert (tmp_path / "log").read_text().split() == ["3"]


@pytest.mark.parametrize("recorder", ["mirror", "gfxreconstruct"])
def test_each_process_runs_under_the_layer_that_was_chosen(runner: Runner, tmp_path: Path, recorder: str) -> None:
    assert runner.recorder == "mirror"
    assert [each.verdict for each in replace(runner, recorder=recorder).judge(["a.one"])] == [CLEAN]
    assert f"--recorder {recorder}" in (tmp_path / "log.words").read_text()


def test_a_batch_with_a_finding_is_halved_until_its_case_is_alone(runner: Runner, tmp_path: Path) -> None:
    judged = {each.case: each for each in runner.judge(["a.one", "a.two", "a.racy", "a.four"])}
    assert len(judged) == 4
    assert [case for case, each in judged.items() if each.findings] == ["a.racy"]
    assert (tmp_path / "log").read_text().split() == ["4", "2", "2", "1", "1"]


def test_cases_that_do_not_pass_are_not_judged(runner: Runner) -> None:
    judged = {each.case: each for each in runner.judge(["a.dies", "a.misses", "a.one"])}
    assert judged["a.dies"] == Judged("a.dies", "Died", UNJUDGED)
    assert judged["a.misses"].status == "NotSupported"
    assert judged["a.one"].verdict == CLEAN


def test_a_case_that_died_in_company_is_asked_alone(runner: Runner) -> None:
    judged = {each.case: each for each in runner.judge(["a.one", "a.shy", "a.dies", "a.two"])}
    assert [each.status for each in judged.values()].count("Pass") == 3
    assert judged["a.dies"].status == "Died"


def test_results_are_read_back_without_a_line_that_was_cut_off(runner: Runner, tmp_path: Path) -> None:
    judged = list(runner.judge(["a.one", "a.racy"]))
    file = tmp_path / "results.jsonl"
    file.write_text("\n".join(each.line() for each in judged) + '\n{"case": "a.th')
    assert done_before(file) == judged
    assert done_before(tmp_path / "none.jsonl") == []


def test_advice_is_no_finding_and_disagreeing_judges_are_a_problem() -> None:
    finding = {"hazard": "READ_AFTER_WRITE", "access": "A", "prior_access": "B", "message": "one", "advice": True}
    document = {"verdict": "clean", "findings": [finding], "unmodelled": {}, "model": "differs"}
    told = json.loads(json.dumps(document))
    judged = read_answer("a.one", told, passed=True)
    assert judged.findings == ()
    assert judged.problem == "the judges differ"


def test_no_answer_is_no_clean_case() -> None:
    judged = read_answer("a.one", {}, passed=False)
    assert judged.verdict == "unknown"
    assert judged.model == ""
    assert judged.problem == "no verdict; does not pass under the layer"


def test_a_verdict_that_is_unknown_for_a_reason_of_its_own_is_no_verdict() -> None:
    """The program failed after its last case had passed."""
    told = {"verdict": "unknown", "findings": [], "unmodelled": {}, "model": "agrees"}
    assert read_answer("a.one", told, passed=True).problem == "no verdict"
    assert read_answer("a.one", {**told, "unmodelled": {"vkCmdX": 1}}, passed=True).problem == "not modelled: vkCmdX"


@pytest.mark.parametrize(
    ("answers", "worst"),
    [(["agrees", "differs"], "differs"), (["agrees", "left out"], "left out"), (["agrees"], "agrees")],
)
def test_of_several_processes_the_worst_answer_counts(answers: list[str], worst: str) -> None:
    processes = [{"findings": [], "unmodelled": {}, "model": each} for each in answers]
    assert read_answer("a.one", {"verdict": "clean", "processes": processes}, passed=True).model == worst
