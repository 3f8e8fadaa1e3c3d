"""The fault driver before lavapipe, built once a run of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from vkharness.device.drivers import Driver, find_driver
from vkharness.device.faults.fault_driver import build_fault_driver, compiler
from vkharness.device.faults.fault_plan import FAULT_FILE, Fault, FaultPlan


def built(folder: Path) -> Driver:
    """The fault driver before lavapipe, in this folder; skips the test where there is no C compiler."""
    if compiler() is None:
        pytest.skip("no C compiler here, with which the fault driver is built")
    return build_fault_driver(find_driver("lavapipe"), folder)


@contextmanager
def planned(folder: Path, fault: Fault | None, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultPlan]:
    """A plan with this fault, which the processes of drivers that begin from now on share."""
    path = folder / "plan"
    monkeypatch.setenv(FAULT_FILE, str(path))
    with FaultPlan(path) as plan:
        plan.plan(fault)
        yield plan
