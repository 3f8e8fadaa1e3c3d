"""The software drivers that tests replay on: a mark that runs a test on each, and says so where one is missing."""

from __future__ import annotations

import pytest

from vkharness.device.drivers import find_drivers

NAMES = ("lavapipe", "lavapipe-25", "swiftshader")


FOUND = {driver.name for driver in find_drivers()}


def _mark(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(name not in FOUND, reason=f"{name} is not installed; ci/setup installs it")


on_each_driver = pytest.mark.parametrize("driver", [pytest.param(name, marks=_mark(name)) for name in NAMES])
