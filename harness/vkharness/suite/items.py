"""Scenarios as pytest items: one for each variant and device, run in a worker process of that device's driver."""

from __future__ import annotations

import inspect
import os
import shlex
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vkharness.findings import UserError
from vkharness.layer.manifest import LayerInfo
from vkharness.report.rows import failure_text
from vkharness.results.baseline import EXPECTABLE
from vkharness.results.result_lines import ClaimText, RowResult, reason_of
from vkharness.results.states import GOOD, RowState
from vkharness.suite.claims import Claim, Variant
from vkharness.suite.expectations import beside, of_claim
from vkharness.suite.row import Row, settle, versions_of
from vkharness.suite.row_progress import follow, properties_of
from vkharness.suite.runner import ROW, NoAnswer, Runner, row_of
from vkharness.suite.suite_run import suite_run
from vkharness.verdicts import Status

LAYER_REPORT = "vkharness.suite.layer_reports:report_job"

RESULT_OF = {
    Status.PASSED: RowState.PASS,
    Status.FAILED: RowState.FAIL,
    Status.DIED: RowState.CRASH,
    Status.TIMED_OUT: RowState.TIMEOUT,
    Status.DEVICE_LOST: RowState.DEVICE_LOST,
    Status.UNAVAILABLE: RowState.SKIP,
}

UPDATED = dict.fromkeys(EXPECTABLE, RowState.EXPECTED_FAIL) | {
    RowState.FLAKE: RowState.KNOWN_FLAKE,
    RowState.IMPROVED_PASS: RowState.PASS,
    RowState.IMPROVED_SKIP: RowState.SKIP,
    RowState.IMPROVED_FAIL: RowState.EXPECTED_FAIL,
}
"""States as they are when the lists are written after this run."""

RUNNER: pytest.StashKey[Runner] = pytest.StashKey()


def items(collector: pytest.Collector, name: str, claim: Claim) -> Iterator[pytest.Item]:
    """One item for each variant and device."""
    try:
        devices = suite_run(collector.config).drivers
    except UserError as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
    for variant in claim.variants:
        for device in devices:
            made: pytest.Item = ScenarioItem.from_parent(collector, name=f"{name}[{variant.name}-{device}]")
            assert isinstance(made, ScenarioItem)
            made.scenario, made.variant, made.claim, made.device = name, variant, claim, device
            yield made


class ScenarioFailure(Exception):
    """A row that does not pass; the text is shown as it is."""


class ScenarioItem(pytest.Item):
    """One variant of one scenario on one device."""

    scenario: str
    variant: Variant
    claim: Claim
    device: str
    result: RowResult | None = None
    """The row, once it is done."""

    def runtest(self) -> None:
        """Runs the job in the device's worker, again where retries are asked for, and keeps the row in the results
        file. A row that the run has no time for is not kept."""
        run, started = suite_run(self.config), time.monotonic()
        rows = list(self._attempts())
        seconds = time.monotonic() - started
        results = tuple(RESULT_OF[row.status] for row in rows)
        row, result = rows[-1], results[-1]
        if RowState.PASS in results and len(results) > 1:
            result = RowState.FLAKE
        elif len(results) > 1:  # it never passed: the worst counts
            row, result = max(zip(rows, results, strict=True), key=lambda both: both[1] is not RowState.FAIL)
        name = f"{row.scenario}[{row.variant}]"
        state, where = run.baselines[self.device].hold(name, result)
        if run.updates:
            state, where = UPDATED.get(state, state), ""
        row.artifacts += self._layer_reports(row)
        told = row.to_dict()
        if run.artifacts is not None:
            told["artifacts"] = [os.path.relpath(each, run.artifacts) for each in row.artifacts]
        retried = reason_of(rows[0].to_dict()) if len(rows) > 1 else ""
        self.result = RowResult(self.nodeid, told, result, state, round(seconds, 3), self._claim(), results, retried)
        self.user_properties += properties_of(self.result)
        run.keep(self.result)
        _conclude(row, state, where)

    def _attempts(self) -> Iterator[Row]:
        """The row, settled, for each attempt until one does not fail."""
        run = suite_run(self.config)
        name = f"{self.path.parent.name}/{self.scenario}"
        listed = run.baselines[self.device].skip(f"{name}[{self.variant.name}]")
        if listed:
            problem = f"listed in {listed}"
            yield Row(name, self.variant.name, self.device, [], problem=problem, status=Status.UNAVAILABLE)
            return
        for _ in range(1 + self.config.getoption("--vk-retries")):
            left, limit = run.seconds_left, self.config.getoption("--vk-timeout")
            row = self._row(min(left, limit)) if left > 0 else None
            if row is None or (row.status is Status.TIMED_OUT and left < limit):
                pytest.skip("the time limit of the run is over: the row did not run")
            if not row.problem:
                settle(row, [*beside(self.path), *of_claim(row.scenario, row.variant, self.claim.known)])
            yield row
            if row.status in (Status.PASSED, Status.UNAVAILABLE):
                return

    def _row(self, timeout: float) -> Row:
        config, run = self.config, suite_run(self.config)
        task = {
            "module": str(self.path),
            "scenario": self.scenario,
            "variant": self.variant.name,
            "device": self.device,
            "artifacts": None if run.artifacts is None else str(run.artifacts),
            "layers": [str(each.manifest) for each in run.layers],
            "native": config.getoption("--vk-native"),
            # One driver's trace is enough, but the first driver may lack what a scenario needs.
            "keep": self.device == next(iter(run.drivers)) or bool(self.claim.needs),
        }
        answer = self._runner.run(ROW, task, run.drivers[self.device], timeout)
        return row_of(answer, f"{self.path.parent.name}/{self.scenario}", self.variant.name, self.device)

    def _layer_reports(self, row: Row) -> Iterator[str]:
        """Writes a report for the team of each layer whose disagreement fails the row; their folders."""
        run, versions = suite_run(self.config), [*versions_of(row)]
        for layer in run.layers if run.artifacts is not None and versions else ():
            if layer.version_text in versions:
                assert run.artifacts is not None
                folder = run.artifacts / row.scenario / row.variant / row.device / f"layer-{layer.version_text}"
                if self._has_reported(layer, folder):
                    yield str(folder)

    def _has_reported(self, layer: LayerInfo, folder: Path) -> bool:
        """Writes one of these reports; where the driver dies of a smaller trace, with the whole one."""
        run, limit = suite_run(self.config), self.config.getoption("--vk-timeout")
        repeat = f"pytest {shlex.quote(self.nodeid)} --vk-device {self.device} --vk-layer {layer.version_text}"
        for smaller in (True, False):
            task = {
                "module": str(self.path),
                "scenario": self.scenario,
                "variant": self.variant.name,
                "device": self.device,
                "layer": str(layer.manifest),
                "folder": str(folder),
                "repeat": repeat,
                "smaller": smaller,
            }
            timeout = min(run.seconds_left, limit)
            if timeout <= 0:
                return False
            answer = self._runner.run(LAYER_REPORT, task, run.drivers[self.device], timeout)
            if not isinstance(answer, NoAnswer):
                return True
            self.add_report_section("call", "layer", f"no report of layer {layer.version_text}: {answer}")
        return False

    @property
    def _runner(self) -> Runner:
        return self.config.stash.setdefault(RUNNER, Runner())

    def _claim(self) -> ClaimText:
        function = self.claim.function
        doc = inspect.cleandoc(function.__doc__ or "")
        root = self.config.rootpath
        file = self.path.relative_to(root) if self.path.is_relative_to(root) else self.path
        return ClaimText(
            doc.splitlines()[0],
            doc,
            str(file),
            function.__code__.co_firstlineno,
            self.path.parent.name,
            self.claim.rule,
            self.variant.kind,
            self.variant.dependency,
            self.variant.weakness,
        )

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """The row in words; no traceback of ours."""
        if isinstance(excinfo.value, ScenarioFailure | UserError):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the item is, for reports."""
        return self.path, None, self.name


def _conclude(row: Row, state: RowState, where: str) -> None:
    """Tells pytest what a row came to; `where` is the place of the list that the state follows from."""
    if state is RowState.SKIP:
        pytest.skip(row.problem)
    if state in (RowState.EXPECTED_FAIL, RowState.KNOWN_FLAKE) and row.status is not Status.PASSED:
        pytest.xfail(f"{state}{f' ({where})' if where else ''}: {reason_of(row.to_dict())}")
    if state not in GOOD:
        text = failure_text(row.to_dict())
        raise ScenarioFailure(f"{state}: {where} expects otherwise\n{text}" if where else text)


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what belongs to another shard, and what is done already."""
    try:
        run = suite_run(config)
        kept = [each for each in items if not isinstance(each, ScenarioItem) or run.wants(each.nodeid)]
    except UserError as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
    if len(kept) < len(items):
        chosen = {each.nodeid for each in kept}
        config.hook.pytest_deselected(items=[each for each in items if each.nodeid not in chosen])
        items[:] = kept


def begin_run(config: pytest.Config, ids: Iterable[str]) -> None:
    """Begins the results file where one of these ids is that of a scenario."""
    rows = [each for each in ids if "::scenario_" in each]
    if rows:
        try:
            suite_run(config).begin(rows)
            follow(config, len(rows))
        except UserError as error:
            pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)


def end_run(session: pytest.Session, code: int) -> None:
    """Says in the results file that the run is over; what the suite asks for beside its rows may fail it."""
    try:
        changed = suite_run(session.config).end(code)
    except UserError as error:
        suite_run(session.config).closing.append(f"FAILED: {error}")
        changed = int(pytest.ExitCode.TESTS_FAILED)
    if changed != code:
        session.exitstatus = changed


def close_workers(config: pytest.Config) -> None:
    """Ends the child processes."""
    if RUNNER in config.stash:
        config.stash[RUNNER].close()
