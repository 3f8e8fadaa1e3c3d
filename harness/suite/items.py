"""Scenarios as pytest items: one for each variant and device, run in a worker process of that device's driver."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.device.drivers import find_driver
from harness.device.process import Died, JobError, Worker
from harness.findings import UserError
from harness.suite.claims import Claim
from harness.suite.expectations import load
from harness.suite.row import DIED, FAILED, UNAVAILABLE, Row, settle
from harness.suite.row_job import AUTO, chosen_layers

SOFTWARE_DEVICES = ("lavapipe", "swiftshader")
EXPECTATIONS = "expectations.toml"
PROPERTY = "vkharness-row"

WORKERS: pytest.StashKey[dict[str, Worker]] = pytest.StashKey()


def add_options(group: pytest.OptionGroup) -> None:
    """The options of the scenario suite."""
    group.addoption(
        "--vk-device",
        action="append",
        default=[],
        metavar="NAME",
        help="driver to run scenarios on (repeatable; default: lavapipe and swiftshader)",
    )
    group.addoption(
        "--vk-layer",
        type=_layer_choice,
        default=AUTO,
        metavar="auto|off|VERSION",
        help="ask the Khronos validation layer too: every version on this machine (auto), none (off), or one "
        "('old', 'today', '1.3.239')",
    )
    group.addoption(
        "--vk-artifacts", default="artifacts", metavar="DIR", help="folder for pictures, records and traces of hazards"
    )
    group.addoption(
        "--vk-native",
        type=int,
        default=0,
        metavar="N",
        help="also run each stream N times as recorded (on a GPU a missing barrier may show by itself)",
    )


def _layer_choice(text: str) -> str:
    """Checks the value of `--vk-layer` before anything runs."""
    try:
        chosen_layers(text)
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def devices(config: pytest.Config) -> list[str]:
    """The drivers to run on."""
    return list(config.getoption("--vk-device")) or list(SOFTWARE_DEVICES)


def items(collector: pytest.Collector, name: str, claim: Claim) -> Iterator[pytest.Item]:
    """One item for each variant and device."""
    for variant in claim.variants:
        for device in devices(collector.config):
            made: pytest.Item = ScenarioItem.from_parent(collector, name=f"{name}[{variant.name}-{device}]")
            assert isinstance(made, ScenarioItem)
            made.scenario, made.variant, made.device = name, variant.name, device
            yield made


class ScenarioFailure(Exception):
    """A row that does not pass; the text is shown as it is."""


class ScenarioItem(pytest.Item):
    """One variant of one scenario on one device."""

    scenario: str
    variant: str
    device: str

    def runtest(self) -> None:
        """Runs the job in the device's worker and settles its row."""
        row = self._row()
        if not row.problem:
            folder = next((f for f in self.path.parents if (f / EXPECTATIONS).exists()), self.path.parent)
            settle(row, load(folder / EXPECTATIONS))
        self.user_properties.append((PROPERTY, json.dumps(row.to_dict())))
        if row.status == UNAVAILABLE:
            pytest.skip(row.problem)
        if row.status != "passed":
            raise ScenarioFailure(_explain(row))

    def _row(self) -> Row:
        empty = Row(f"{self.path.parent.name}/{self.scenario}", self.variant, self.device, [])
        config = self.config
        try:
            worker = _worker(config, self.device)
            answer = worker.call(
                "harness.suite.row_job:run",
                {
                    "module": str(self.path),
                    "scenario": self.scenario,
                    "variant": self.variant,
                    "device": self.device,
                    "artifacts": _artifacts(config),
                    "layer": config.getoption("--vk-layer"),
                    "native": config.getoption("--vk-native"),
                },
            )
        except UserError as error:
            empty.problem, empty.status = str(error), UNAVAILABLE
            return empty
        except JobError as error:
            empty.problem, empty.status = str(error), FAILED
            return empty
        if isinstance(answer, Died):
            empty.problem, empty.status = f"the driver process was {answer.reason}\n{answer.stderr_tail}", DIED
            return empty
        return Row.from_dict(answer)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """The row in words; no traceback of ours."""
        if isinstance(excinfo.value, ScenarioFailure):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the item is, for reports."""
        return self.path, None, self.name


def _artifacts(config: pytest.Config) -> str | None:
    folder = config.getoption("--vk-artifacts")
    return str((config.rootpath / folder).resolve()) if folder else None


def _worker(config: pytest.Config, device: str) -> Worker:
    workers = config.stash.setdefault(WORKERS, {})
    if device not in workers:
        workers[device] = Worker(find_driver(device))
    return workers[device]


def close_workers(config: pytest.Config) -> None:
    """Ends the child processes."""
    for worker in config.stash.get(WORKERS, {}).values():
        worker.close()


def _explain(row: Row) -> str:
    lines = [f"{row.scenario} [{row.variant}] on {row.device}: {row.status}"]
    lines += row.reasons or [row.problem]
    lines.append("expected: " + ("; ".join(row.expected) or "clean"))
    lines += [f"finding: {each}" for each in row.messages]
    lines += [f"artifacts: {each}" for each in row.artifacts]
    return "\n".join(lines)
