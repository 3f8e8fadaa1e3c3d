"""Jobs in this process: bound to one driver while they run, and nothing left of it afterwards."""

from __future__ import annotations

import os

import pytest

from vkharness.device.drivers import Driver, find_drivers
from vkharness.device.in_process import InProcess
from vkharness.device.layer_settings import NO_SETTINGS
from vkharness.findings import UserError


def any_driver() -> Driver:
    """A driver that this machine has; it is not started."""
    found = find_drivers()
    if not found:
        pytest.skip("no driver on this machine")
    return found[0]


def test_the_environment_is_a_workers_and_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = any_driver()
    monkeypatch.setenv("VK_LAYER_ENABLES", "the user's")
    monkeypatch.setenv("VK_DRIVER_FILES", "another")
    before = dict(os.environ)
    with InProcess(driver):
        assert os.environ["VK_DRIVER_FILES"] == str(driver.manifest)
        assert "VK_LAYER_ENABLES" not in os.environ
        assert {name: os.environ[name] for name in NO_SETTINGS} == NO_SETTINGS
    assert dict(os.environ) == before


def test_a_function_of_another_package_is_refused() -> None:
    with InProcess(any_driver()) as caller, pytest.raises(UserError, match="not a public function"):
        caller.call("os:getcwd")
