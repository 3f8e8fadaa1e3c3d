"""Output of a run while it goes on: on a terminal the row that is being run; everywhere each row that fails.

On a terminal one line is written again and again, in place of pytest's dots. In a pipe pytest's own progress stays, and
each failed row gets a line.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from vkharness.report.printable import printable
from vkharness.results.result_lines import RowResult, reason_of
from vkharness.results.states import GOOD
from vkharness.results.stories import cause_of

NAME = "vkharness-progress"
"""The name under which it is registered."""
ROW = "vkharness_row"
"""The attribute of a test's report that holds the row's line of the results file, as JSON. It travels from the
processes of pytest-xdist to the reporter, and stays out of JUnit files."""
CLEAR = "\r\x1b[2K"
"""Back to the beginning of the line, and nothing in it."""


def follow(config: pytest.Config, total: int) -> None:
    """Follows the run of `total` rows, once, in the process that reports."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    is_worker = hasattr(config, "workerinput")
    if reporter is not None and not is_worker and not config.pluginmanager.has_plugin(NAME):
        config.pluginmanager.register(RowProgress(reporter, total), NAME)


def properties_of(result: RowResult) -> list[tuple[str, object]]:
    """Gives the properties of a row in a JUnit file, as (name, value)."""
    row = result.row
    return [
        ("driver", row["device"]),
        ("layer", ", ".join(row["layers"]) or "none"),
        ("variant", row["variant"]),
        ("state", str(result.state)),
        *(("cause", cause) for cause in [cause_of(result)] if cause),
        ("expected", "; ".join(row["expected"]) or "clean"),
        ("witness", row["witness"]),
        *(("artifact", each) for each in row["artifacts"]),
    ]


def carry(report: pytest.TestReport, result: object) -> None:
    """Puts the line of a row into the report of its call: those of its set-up and tear-down are no rows."""
    if isinstance(result, RowResult) and report.when == "call":
        setattr(report, ROW, json.dumps(result.to_dict()))


def carried(report: object) -> RowResult | None:
    """The row of the report of its call; None for any other report."""
    line = getattr(report, ROW, None)
    return None if line is None else RowResult.from_dict(json.loads(line))


class RowProgress:
    """Follows one run, in the process that reports."""

    def __init__(self, reporter: pytest.TerminalReporter, total: int) -> None:
        self._reporter = reporter
        self._total = total
        self._counts: Counter[str] = Counter()
        self._is_live = bool(reporter._tw.hasmarkup and reporter.isatty and reporter.verbosity == 0)
        if self._is_live:
            reporter.showfspath = False

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Writes the line anew."""
        if self._is_live and "::scenario_" in nodeid:
            self._draw(nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """No letter for a row that passed: the line says it."""
        if self._is_live and hasattr(report, ROW) and report.passed:
            return "passed", "", ""
        return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Counts a row, and names one that fails."""
        result = carried(report)
        if result is None:
            return
        self._counts[str(result.state)] += 1
        if result.state not in GOOD:
            self._clear()
            if self._reporter._tw.width_of_current_line:
                self._reporter._tw.line()
            self._reporter.write_line(failure_line(result), red=True)

    def pytest_sessionfinish(self) -> None:
        """Takes the line away."""
        self._clear()

    def _draw(self, nodeid: str) -> None:
        done = sum(self._counts.values())
        counts = ", ".join(f"{count} {state}" for state, count in self._counts.items())
        text = f"{done}/{self._total}  {counts}{'  ' if counts else ''}{printable(nodeid.rpartition('/')[2])}"
        self._reporter._tw.write(f"{CLEAR}{text[: self._reporter._tw.fullwidth - 1]}", flush=True)

    def _clear(self) -> None:
        if self._is_live:
            self._reporter._tw.write(CLEAR, flush=True)


def failure_line(result: RowResult) -> str:
    """`Fail: draw/triangle [without x] on lavapipe: model: ...`, one line."""
    row: dict[str, Any] = result.row
    scenario = row["scenario"].replace("scenario_", "")
    why = reason_of(row).strip().splitlines()
    return printable(f"{result.state}: {scenario} [{row['variant']}] on {row['device']}: {why[0] if why else ''}")
