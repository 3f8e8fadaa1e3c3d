"""Pipelines of the rig without a session, which would keep alive what the `vulkan` package lets die."""

from __future__ import annotations

from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker
from vkharness.rig.rig import Rig

MANY = 50
"""Freed names are mostly intact when they are read: one pipeline would show nothing."""


def make_pipelines() -> dict[str, int]:
    """In a process with one driver."""
    with Rig((), None) as rig:
        for _ in range(MANY):
            rig.graphics()
            rig.compute("fill_words")
    return {"made": MANY}


def test_pipelines_are_made_without_a_session() -> None:
    with Worker(find_driver("lavapipe"), packages=("tests",)) as worker:
        assert worker.call("tests.rig.test_pipelines:make_pipelines", {}) == {"made": MANY}
