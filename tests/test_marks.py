"""Tests without the mark `driver` cannot use a driver: `pytest -m "not driver and not layer"` needs no Vulkan."""

from __future__ import annotations

import subprocess
import sys

import pytest

from vkharness.device import process


def test_a_test_without_the_mark_starts_no_driver_process(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("driver") is None
    make = getattr(process, "Wor" + "ker")  # the name itself would set the mark
    with pytest.raises(Exception, match="without the mark 'driver' starts a process"):
        make(variables={"VK_DRIVER_FILES": "driver.json"}).call("vkharness.device.survey:survey", {})


def test_a_test_without_the_mark_does_not_import_vulkan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "vul" + "kan", raising=False)
    with pytest.raises(Exception, match="without the mark 'driver' imports"):
        __import__("vul" + "kan")


def test_other_processes_start() -> None:
    assert subprocess.run([sys.executable, "-c", ""], check=False).returncode == 0


def test_a_test_that_names_a_driver_has_the_mark(request: pytest.FixtureRequest) -> None:
    assert process.Worker.__name__ == "Worker"
    assert request.node.get_closest_marker("driver") is not None
