"""No barrier may stand inside dynamic rendering: it ends before one and begins anew after it."""

from __future__ import annotations

import pytest

from vkharness.device.drivers import find_driver
from vkharness.device.process import Died, Worker


@pytest.mark.driver
def test_rendering_is_split_where_two_draws_conflict() -> None:
    with Worker(find_driver("lavapipe"), packages=("tests",)) as worker:
        answer = worker.call("tests.support.mend_jobs:two_draws_that_store", {"device": "lavapipe"})
    assert not isinstance(answer, Died)
    assert answer["verdict"] == "mended"
    names = [name.removesuffix("KHR") for name in answer["inserted"]]
    assert names == ["vkCmdEndRendering", "vkCmdPipelineBarrier2", "vkCmdBeginRendering"]


@pytest.mark.driver
def test_rendering_does_not_end_while_transform_feedback_is_active() -> None:
    """No barrier can stand between the draws, and no instance may end there."""
    with Worker(find_driver("lavapipe"), packages=("tests",)) as worker:
        answer = worker.call("tests.support.mend_jobs:two_draws_that_store", {"device": "lavapipe", "feedback": True})
    assert not isinstance(answer, Died)
    assert answer["inserted"] == [] and answer["verdict"] != "mended"
