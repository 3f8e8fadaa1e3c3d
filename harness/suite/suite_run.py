"""One run of the suite under pytest: what it runs on, and the results file that is written as it goes.

Under pytest-xdist the controller begins and ends the file, and each worker appends the rows that it ran.
"""

from __future__ import annotations

import os
import platform
import time
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.device.drivers import find_driver
from harness.device.inventory import survey
from harness.findings import UserError
from harness.layer.manifest import chosen_layers
from harness.results.read_results import read_results
from harness.results.result_file import ResultFile
from harness.results.result_lines import FILE_NAME, DeviceIdentity, LayerIdentity, RowResult, RunEnd, RunHeader

SEED_VARIABLE = "VKHARNESS_SEED"
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
        self._started: float | None = None
        folder = config.getoption("--vk-artifacts")
        self.artifacts: Path | None = (config.rootpath / folder).resolve() if folder else None
        self.file = ResultFile(self.artifacts / FILE_NAME) if self.artifacts else None

    def begin(self, devices: list[str]) -> None:
        """Begins the results file, once. Raises `UserError`."""
        if self._started is not None or hasattr(self._config, "workerinput"):
            return
        self._started = time.monotonic()
        if self.file is not None:
            self.file.begin(self._header(devices))

    def keep(self, result: RowResult) -> None:
        """Writes the line of a row that is done. Raises `UserError`."""
        if self.file is not None:
            self.file.row(result)

    def end(self, code: int) -> None:
        """Says in the file that the run is over, with the exit code of pytest."""
        if self.file is not None and self._started is not None:
            rows = len(read_results(self.file.path).rows)
            self.file.end(RunEnd(rows, round(time.monotonic() - self._started, 3), code))

    def _header(self, devices: list[str]) -> RunHeader:
        option = self._config.getoption
        surveyed = {name: _survey(name) for name in devices}
        loaders = sorted({loader for _, loader in surveyed.values() if loader})
        seed = os.environ.get(SEED_VARIABLE, "")
        return RunHeader(
            harness.__version__,
            platform.python_version(),
            datetime.now(UTC).isoformat(timespec="seconds"),
            tuple(identity for identity, _ in surveyed.values()),
            tuple(
                LayerIdentity(each.version_text, str(each.manifest), each.library)
                for each in chosen_layers(option("--vk-layer"))
            ),
            loaders[0] if loaders else None,
            int(seed) if seed.isdecimal() else None,
            options={name: option(f"--vk-{name}") for name in OPTIONS},
        )


def _survey(name: str) -> tuple[DeviceIdentity, str | None]:
    """What a driver says of itself, and the version of the loader."""
    try:
        driver = find_driver(name)
    except UserError:
        return DeviceIdentity(name, "", "", "", "", "", ""), None
    found = survey(driver)
    device: dict[str, Any] = next(iter(found["devices"]), {})
    identity = DeviceIdentity(name, "", "", "", "", str(driver.manifest), driver.library)
    told = {each.name: str(device[each.name]) for each in fields(DeviceIdentity) if each.name in device}
    return DeviceIdentity(**{**asdict(identity), **told}), found["loader"]
