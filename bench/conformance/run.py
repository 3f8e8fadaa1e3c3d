"""Runs cases of the suite, alone and under the mirror layer or the capture layer, and judges them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from vkharness.check import CLEAN, UNKNOWN
from vkharness.findings import UserError
from vkharness.verdicts import ModelAnswer

from .known import Said
from .sample import halves
from .suite_log import DIED, NOT_RUN, PASS, statuses

SUITE = ("--deqp-log-filename=/dev/null", "--deqp-log-images=disable", "--deqp-shadercache=disable")
UNJUDGED = "unjudged"
"""The verdict of a case that the suite itself does not pass, so that nothing is expected of it."""
ANSWERS = (ModelAnswer.DIFFERS, ModelAnswer.LEFT_OUT, ModelAnswer.NOT_ASKED, ModelAnswer.AGREES)
"""Of several processes the first of these that one has is the answer about all."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A case: the suite's word for it when it runs alone, our verdict, the second judge's answer and what was found."""

    case: str
    status: str
    verdict: str = UNJUDGED
    model: str = ""
    """Empty where there is no verdict to ask about."""
    findings: tuple[Said, ...] = ()
    problem: str = ""
    """Why there is no whole verdict, a line."""

    def line(self) -> str:
        """The case as a line of the file of results."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, line: str) -> Judged:
        """The case that such a line tells."""
        told = json.loads(line)
        return cls(**{**told, "findings": tuple(Said(**each) for each in told["findings"])})


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs the suite's program on one driver."""

    program: Path
    environment: Mapping[str, str]
    seconds: float = 300.0
    """How long one process may take."""
    model: str = "always"
    recorder: str = "mirror"
    """The layer, as `vkharness run --recorder` names it."""
    keep: Path | None = None
    """Where the traces of cases that have findings are written."""
    command: tuple[str, ...] = field(default=(sys.executable, "-m", "vkharness", "run"))

    def cases(self) -> list[str]:
        """All cases of the program, in the suite's order."""
        with tempfile.TemporaryDirectory() as folder:
            self._call([str(self.program), "--deqp-runmode=txt-caselist"], Path(folder))
            lists = sorted(Path(folder).glob("dEQP-VK-cases.txt"))
            if not lists:
                raise UserError(f"{self.program}: lists no cases; is it what `build` made, and does it start?")
            return [line[6:] for line in lists[0].read_text().splitlines() if line.startswith("TEST: ")]

    def native(self, cases: Sequence[str]) -> dict[str, str]:
        """The suite's word for each case. One that ends its process does not hide those behind it, and gets a process
        of its own, since the fault may be that of a case before it."""
        said: dict[str, str] = {}
        left = list(cases)
        while left:
            came = self._alone(left)
            said |= {case: status for case, status in came.items() if status != NOT_RUN}
            after = [case for case, status in came.items() if status == NOT_RUN]
            if len(after) == len(left):
                return said | came
            left = after
        died = [case for case, status in said.items() if status == DIED and len(cases) > 1]
        return said | {case: self._alone([case])[case] for case in died}

    def _alone(self, cases: Sequence[str]) -> dict[str, str]:
        """One process for the cases, without a layer."""
        with tempfile.TemporaryDirectory() as folder:
            return statuses(self._call(self._suite(cases, Path(folder)), Path(folder)), cases)

    def judge(self, batch: Sequence[str]) -> Iterator[Judged]:
        """Each case of a batch. Those that pass share a process; a process that is not clean is halved until each case
        that is not stands alone."""
        said = self.native(batch)
        yield from (Judged(case, status) for case, status in said.items() if status != PASS)
        waiting = [[case for case in batch if said[case] == PASS]]
        while waiting:
            cases = waiting.pop()
            if not cases:
                continue
            judged = self._judge_together(cases)
            if len(cases) == 1:
                yield judged
            elif judged.verdict == CLEAN and not judged.problem:
                yield from (Judged(case, PASS, CLEAN, judged.model) for case in cases)
            else:
                waiting += reversed(halves(cases))

    def _judge_together(self, cases: Sequence[str]) -> Judged:
        """One process for the cases; what is said counts for the first of them."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            answer, trace = folder / "findings.json", folder / f"{cases[0]}.jsonl"
            options = ["--json", str(answer), "--model", self.model, "--recorder", self.recorder]
            options += ["--trace", str(trace)] if self.keep and len(cases) == 1 else []
            printed = self._call([*self.command, *options, "--", *self._suite(cases, folder)], folder)
            told = json.loads(answer.read_text()) if answer.exists() else {}
            passed = set(statuses(printed, cases).values()) == {PASS}
            judged = read_answer(cases[0], told, passed)
            if self.keep and len(cases) == 1:
                _keep(trace, told, self.keep)
            return judged

    def _suite(self, cases: Sequence[str], folder: Path) -> list[str]:
        listed = folder / "cases.txt"
        listed.write_text("\n".join(cases) + "\n")
        return [str(self.program), f"--deqp-caselist-file={listed}", *SUITE]

    def _call(self, command: Sequence[str], folder: Path) -> str:
        """What a process prints; of one that takes too long, what it had printed by then."""
        environment = {**os.environ, **self.environment}
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.communicate(timeout=self.seconds)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            return process.communicate()[0].decode(errors="replace")


def _keep(trace: Path, told: Mapping[str, Any], kept: Path) -> None:
    """Moves the traces of the instances that have findings, each with its contents beside it."""
    kept.mkdir(parents=True, exist_ok=True)
    for at, process in enumerate(told.get("processes", ())):
        path = trace.with_stem(f"{trace.stem}-{at + 1}") if at else trace
        for each in (path, path.with_suffix(".bin")) if process["findings"] else ():
            if each.exists():
                shutil.move(each, kept / each.name)


def read_answer(case: str, told: Mapping[str, Any], passed: bool) -> Judged:
    """What `vkharness run --json` says of a process whose first case this is; of findings that are known by the same,
    the first."""
    processes = told.get("processes", [told] if told else [])
    found = [Said.of(each) for one in processes for each in one["findings"] if not each.get("advice")]
    findings = {(each.hazard, each.access, each.prior_access): each for each in reversed(found)}.values()
    models = {one.get("model", "") for one in processes if not one.get("nothing_submitted")}
    verdict = told.get("verdict", UNKNOWN)
    problems = [f"not modelled: {', '.join(one['unmodelled'])}" for one in processes if one["unmodelled"]]
    if verdict == UNKNOWN and not problems:
        problems.append("no verdict")
    if not passed:
        problems.append("does not pass under the layer")
    model = next((each for each in ANSWERS if each in models), "")
    if model == ModelAnswer.DIFFERS:
        problems.append("the judges differ")
    return Judged(case, PASS, verdict, model, tuple(reversed(findings)), "; ".join(problems))


def done_before(path: Path) -> list[Judged]:
    """The cases of a file of results that an earlier run wrote. A line that was cut off is left out."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else ():
        with suppress(ValueError, TypeError, KeyError):
            found.append(Judged.read(line))
    return found
