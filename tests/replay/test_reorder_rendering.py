"""Whole render pass instances change places, with the state that they need, and leave the same pixels."""

from __future__ import annotations

import pytest

from harness.device.drivers import find_driver
from harness.device.process import Worker
from tests.support.drivers_here import on_each_driver
from tests.support.graphics_jobs import WAYS

PAIRS = [("subpasses 2", "dynamic"), ("clear", "indexed"), ("suspended", "self-dependency")]


@on_each_driver
@pytest.mark.parametrize("how", PAIRS, ids=" and ".join)
def test_two_pictures_in_any_order(driver: str, how: tuple[str, str]) -> None:
    assert set(how) <= WAYS.keys()
    with Worker(find_driver(driver), packages=["tests"]) as worker:
        found = worker.call("tests.support.reorder_jobs:two_pictures", {"how": list(how), "device": driver})
    assert isinstance(found, dict), found
    assert found["orders"] and all(order["moved"] for order in found["orders"])
    assert [order["differences"] for order in found["orders"]] == [[]] * len(found["orders"])
