"""One run of the suite under pytest: what it runs on, and the results file that is written as it goes.

Under pytest-xdist the controller starts every driver and layer once, and begins and ends the file; each worker appends
the rows that it ran.
"""

from __future__ import annotations

import os
import platform
import time
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

import vkharness
from vkharness.device import drivers
from vkharness.device.drivers import Driver, chosen_drivers
from vkharness.device.layer_settings import put_aside
from vkharness.findings import UserError
from vkharness.layer import manifest
from vkharness.layer.manifest import AUTO, LayerInfo, chosen_layers
from vkharness.report.printable import printable
from vkharness.report.run_header import header_lines
from vkharness.results.baseline import Baseline, read_baseline, unmatched_lines
from vkharness.results.read_results import Results, read_results
from vkharness.results.result_file import ResultFile
from vkharness.results.result_lines import FILE_NAME, RowResult, RunEnd, RunHeader
from vkharness.results.states import GOOD, RowState
from vkharness.suite.baseline_update import update_baseline
from vkharness.suite.preflight import Started, start_all
from vkharness.suite.selection import Shard, in_shard, is_part, name_in_lists, parse_shard, require_same

SEED_VARIABLE = "VKHARNESS_SEED"
OPTIONS = ("device", "layer", "native", "retries", "timeout", "baseline")
"""Options of the suite, without their prefix, that the results file notes."""
UNFINISHED = {pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR}
"""Exit codes of runs that did not come to their end."""
SHOWN = 3
"""Lines of a baseline that are shown where more match no row."""
TOLD = "vkharness"
"""The key, in the input of pytest-xdist's workers, of the values that the controller gives them (`for_workers`)."""

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
        self._told: dict[str, Any] = getattr(config, "workerinput", {}).get(TOLD, {})
        self._is_worker = hasattr(config, "workerinput")
        self._start = self._told.get("start", time.time())
        self._has_begun = False
        self._planned: set[str] = set()
        self.closing: list[str] = []
        """Lines for the end of the terminal's output."""
        folder = config.getoption("--vk-artifacts")
        self.artifacts: Path | None = (config.invocation_params.dir / folder).resolve() if folder else None
        self.file = ResultFile(self.artifacts / FILE_NAME) if self.artifacts else None

    @cached_property
    def drivers(self) -> dict[str, Driver]:
        """The drivers to run on, by the names that rows have. Raises `UserError`."""
        return {each.name: each for each in chosen_drivers(self._option("device"))}

    @cached_property
    def layers(self) -> list[LayerInfo]:
        """The Khronos layers to ask. Raises `UserError`."""
        return chosen_layers(*(self._option("layer") or [AUTO]))

    @cached_property
    def started(self) -> Started:
        """Drivers and layers as they identified themselves when they were started. Raises `UserError` when one does not
        start."""
        return start_all(list(self.drivers.values()), self.layers)

    @cached_property
    def shard(self) -> Shard | None:
        """The part of the suite to run. Raises `UserError`."""
        text = self._option("shard")
        return None if text is None else parse_shard(text)

    @cached_property
    def baselines(self) -> dict[str, Baseline]:
        """The known results of each device. Raises `UserError`."""
        folder = self.baseline_folder
        if folder is None or (self.updates and not folder.exists()):
            return {name: Baseline() for name in self.drivers}
        return {name: read_baseline(folder, name) for name in self.drivers}

    @property
    def baseline_folder(self) -> Path | None:
        """The folder of the lists, as it was given."""
        return Path(self._option("baseline")) if self._option("baseline") else None

    @property
    def updates(self) -> bool:
        """Whether this run writes the lists."""
        return bool(self._option("update-baseline"))

    @cached_property
    def earlier(self) -> Results | None:
        """The results that an ended run left and that this run continues (`--vk-resume`); None for a new run, and in
        workers. Raises `UserError`."""
        if not self._option("resume") or self._is_worker:
            return None
        if self.file is None:
            raise UserError("--vk-resume needs the folder of --vk-artifacts")
        return read_results(self.file.path) if self.file.path.exists() else None

    def check(self) -> None:
        """Looks at all that was asked for, in the controller. Raises `UserError` for what is not right."""
        if self._is_worker:
            return
        if self.updates and self.baseline_folder is None:
            raise UserError("--vk-update-baseline needs --vk-baseline DIR")
        _ = self.shard, self.baselines, self.started
        if self.earlier is not None:
            self.begin(())

    def for_workers(self) -> dict[str, Any]:
        """Values for each worker of pytest-xdist, the same for one that is started late: the start of the run, in
        seconds since the epoch, and the ids of the rows that are done."""
        return {"start": self._start, "done": list(self.earlier.rows) if self.earlier else []}

    def wants(self, nodeid: str) -> bool:
        """Whether this run is to run a row: it is in the shard, and not done. Raises `UserError`."""
        if self.shard is not None and not in_shard(nodeid, self.shard):
            return False
        return nodeid not in self._done

    @cached_property
    def _done(self) -> frozenset[str]:
        return frozenset(self._told.get("done", ()) if self._is_worker else self.earlier.rows if self.earlier else ())

    @property
    def seconds_left(self) -> float:
        """Seconds until the time limit of the run; infinite without one."""
        limit = self._option("time-limit")
        return float("inf") if limit is None else float(self._start + limit - time.time())

    def begin(self, ids: Iterable[str]) -> None:
        """Says what the run is on and begins the results file; once, in the controller. `ids` are those of the rows to
        run. Raises `UserError`."""
        if self._is_worker:
            return
        self._planned.update(ids)
        if self._has_begun:
            return
        header = self._header()
        if self.earlier is not None:
            require_same(self.earlier.header, header)
        self._say(header)
        if self.file is not None and self.earlier is not None:
            self.file.resume(header.started)
        elif self.file is not None:
            self.file.begin(header)
        self._has_begun = True

    def keep(self, result: RowResult) -> None:
        """Writes the line of a row that is done. Raises `UserError`."""
        if self.file is not None:
            self.file.row(result)

    def end(self, code: int) -> int:
        """Says in the file that the run is over. Returns the exit code of pytest, which may become a failure here."""
        if self.file is None or not self._has_begun:
            return code
        found = read_results(self.file.path)
        rows = list(found.rows.values())
        skipped = Counter(each.row["problem"] for each in rows if each.result is RowState.SKIP)
        self.closing += [f"skipped: {count} rows: {reason}" for reason, count in skipped.most_common()]
        self.closing += [f"{each.state}: {each.nodeid}: {each.retried}" for each in rows if each.retried]
        self.closing += self._idle_lines({*self._planned, *found.rows})
        failures = list(self._failures(found, len(rows) - skipped.total()))
        self.closing += [f"FAILED: {line}" for line in failures]
        if self.earlier is not None and code == pytest.ExitCode.NO_TESTS_COLLECTED:
            code = int(pytest.ExitCode.OK)
        if code not in UNFINISHED and (failures or any(each.state not in GOOD for each in rows)):
            code = int(pytest.ExitCode.TESTS_FAILED)
        if self.updates and self.baseline_folder is not None and code not in UNFINISHED:
            written = update_baseline(self.baseline_folder, rows, self.baselines)
            self.closing += [f"baseline: {path} written" for path in written]
        self.file.end(RunEnd(len(rows), round(time.time() - self._start, 3), code))
        return code

    def _idle_lines(self, ids: Iterable[str]) -> list[str]:
        """Says which lines of the baseline are about no row. Where options choose among rows, nobody can know."""
        if is_part(self._config):
            return []
        names = {device: {name_in_lists(each, device) for each in ids} - {""} for device in self.drivers}
        idle = unmatched_lines(self.baselines, names)
        more = f"; and {len(idle) - SHOWN} more" if len(idle) > SHOWN else ""
        said = f"note: {len(idle)} lines of the baseline match no row of this run: {'; '.join(idle[:SHOWN])}{more}"
        return [said] if idle else []

    def _failures(self, found: Results, ran: int) -> Iterable[str]:
        """Yields a line for each reason, apart from its rows, why the run fails: rows that the time limit cut off, and
        too few rows."""
        missing = len(self._planned - found.rows.keys())
        if missing and self.seconds_left <= 0:
            limit = self._option("time-limit")
            yield f"the time limit of {limit:g} s is over, and {missing} rows did not run; --vk-resume runs them"
        floor = self._option("min-rows")
        if ran < floor:
            yield f"{ran} rows ran, and --vk-min-rows asks for {floor}"

    def _say(self, header: RunHeader) -> None:
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if reporter is None or self._config.option.verbose < 0:
            return
        notes = drivers.contradictions(list(self.drivers.values())) + manifest.contradictions(self.layers)
        aside = put_aside(os.environ) if self.layers else []
        notes += [f"put aside, so that layers do as the suite asks: {', '.join(aside)}"] * bool(aside)
        if self.earlier is not None:
            notes.append(f"{len(self.earlier.rows)} rows are done; this run goes on")
        for line in [*header_lines(header), *(f"note: {note}" for note in notes)]:
            reporter.write_line(printable(line))

    def _header(self) -> RunHeader:
        seed = os.environ.get(SEED_VARIABLE, "")
        return RunHeader(
            vkharness.__version__,
            platform.python_version(),
            datetime.now(UTC).isoformat(timespec="seconds"),
            *self.started,
            int(seed) if seed.isdecimal() else None,
            self.shard,
            {name: self._option(name) for name in OPTIONS},
        )

    def _option(self, name: str) -> Any:
        return self._config.getoption(f"--vk-{name}")


def usage_error(error: UserError) -> pytest.UsageError:
    """The exception for pytest that ends the run with this message and exit code 4."""
    return pytest.UsageError(str(error))
