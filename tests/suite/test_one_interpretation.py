"""A row interprets its stream once: syncval, the model and the legal orders are handed the same events.

The bytes of a stream with shaders take a second interpretation: events do not say what a draw or dispatch is bound to.
"""

from __future__ import annotations

from typing import Any

import pytest

from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker

AGAIN = (
    "vkCreateImage",
    "vkCreateRenderPass",
    "vkCreateFramebuffer",
    "vkCmdBeginRender",
    "vkCmdNext",
    "vkCmdEndRender",
)
"""Beginnings of what replays follow once more: they need to know the layouts at each step of an order of their own."""


@pytest.mark.parametrize(
    ("module", "name", "times"),
    [
        ("submit/scenario_order.py", "scenario_two_submits_write_one_buffer", 1),
        ("rendering/scenario_clears.py", "scenario_clears_and_draws_are_ordered", 2),
    ],
    ids=["submits", "rendering"],
)
def test_how_often_a_row_interprets_each_call(module: str, name: str, times: int) -> None:
    with Worker(find_driver("lavapipe"), packages=["tests"]) as worker:
        arguments = {"module": module, "scenario": name, "variant": "whole", "device": "lavapipe"}
        answer: Any = worker.call("tests.support.row_jobs:interpretations", arguments)
    row, most = answer["row"], answer["most"]
    assert (row["problem"], row["syncval"]) == ("", [])
    assert row["verdicts"]["orders"]["problem"] == ""
    assert most["vkQueueSubmit"] == times
    assert {each: count for each, count in most.items() if count > times and not each.startswith(AGAIN)} == {}
