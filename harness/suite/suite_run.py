"""One run of the suite under pytest: what it runs on, and the results file that is written as it goes.

Under pytest-xdist the controller starts every driver and layer once, and begins and ends the file; each worker appends
the rows that it ran.
"""

from __future__ import annotations

import os
import platform
import time
from collections import Counter
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import pytest

import harness
from harness.device import drivers
from harness.device.drivers import Driver, chosen_drivers
from harness.findings import UserError
from harness.layer import manifest
from harness.layer.manifest import AUTO, LayerInfo, chosen_layers
from harness.report.run_header import header_lines
from harness.results.read_results import read_results
from harness.results.result_file import ResultFile
from harness.results.result_lines import FILE_NAME, RowResult, RunEnd, RunHeader
from harness.results.states import RowState
from harness.suite.preflight import Started, start_all

SEED_VARIABLE = "VKHARNESS_SEED"
STOPPED = {pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR}
"""Exit codes of runs that did not come to their end."""
OPTIONS = ("device", "layer", "native")
"""Options of the suite, without their prefix, that the results file notes."""

RUN: pytest.StashKey[SuiteRun] = pytest.StashKey()


def suite_run(config: pytest.Config) -> SuiteRun:
    """The run of this process."""
    if RUN not in config.stash:
        config.stash[RUN] = SuiteRun(config)
    return config.stash[RUN]


class SuiteRun:
    """One run, in one process."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._began: float | None = None
        self.closing: list[str] = []
        """Lines for the end of the terminal's output."""
        self._is_worker = hasattr(config, "workerinput")
        folder = config.getoption("--vk-artifacts")
        self.artifacts: Path | None = (config.rootpath / folder).resolve() if folder else None
        self.file = ResultFile(self.artifacts / FILE_NAME) if self.artifacts else None

    @cached_property
    def drivers(self) -> dict[str, Driver]:
        """The drivers to run on, by the names that rows have. Raises `UserError`."""
        return {each.name: each for each in chosen_drivers(self._config.getoption("--vk-device"))}

    @cached_property
    def layers(self) -> list[LayerInfo]:
        """The Khronos layers to ask. Raises `UserError`."""
        return chosen_layers(*(self._config.getoption("--vk-layer") or [AUTO]))

    @cached_property
    def started(self) -> Started:
        """What drivers and layers said when they were started. Raises `UserError` when one does not start."""
        return start_all(list(self.drivers.values()), self.layers)

    def check(self) -> None:
        """Starts every driver and layer in the controller. Raises `UserError` when one does not start."""
        if not self._is_worker:
            _ = self.started

    def begin(self) -> None:
        """Starts every driver and layer, says what they are and begins the results file; once, in the controller.

        Raises `UserError`.
        """
        if self._began is not None or self._is_worker:
            return
        self._began = time.monotonic()
        header = self._header()
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None and self._config.option.verbose >= 0:
            notes = drivers.contradictions(list(self.drivers.values())) + manifest.contradictions(self.layers)
            for line in [*header_lines(header), *(f"note: {note}" for note in notes)]:
                reporter.write_line(line)
        if self.file is not None:
            self.file.begin(header)

    def keep(self, result: RowResult) -> None:
        """Writes the line of a row that is done. Raises `UserError`."""
        if self.file is not None:
            self.file.row(result)

    def end(self, code: int) -> int:
        """Says in the file that the run is over. Returns the exit code of pytest, which may become a failure here."""
        if self.file is None or self._began is None:
            return code
        rows = list(read_results(self.file.path).rows.values())
        skipped = Counter(each.row["problem"] for each in rows if each.result is RowState.SKIP)
        self.closing += [f"skipped: {count} rows: {reason}" for reason, count in skipped.most_common()]
        ran, floor = len(rows) - skipped.total(), self._config.getoption("--vk-min-rows")
        if ran < floor:
            self.closing.append(f"FAILED: {ran} rows ran, and --vk-min-rows asks for {floor}")
            code = code if code in STOPPED else int(pytest.ExitCode.TESTS_FAILED)
        self.file.end(RunEnd(len(rows), round(time.monotonic() - self._began, 3), code))
        return code

    def _header(self) -> RunHeader:
        seed = os.environ.get(SEED_VARIABLE, "")
        return RunHeader(
            harness.__version__,
            platform.python_version(),
            datetime.now(UTC).isoformat(timespec="seconds"),
            *self.started,
            int(seed) if seed.isdecimal() else None,
            options={name: self._config.getoption(f"--vk-{name}") for name in OPTIONS},
        )


def usage_error(error: UserError) -> pytest.UsageError:
    """What pytest ends with, exit code 4."""
    return pytest.UsageError(str(error))
