"""What commands do in states that others have set is what they do call by call."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from harness.commands import said_states
from harness.commands.object_state import CommandBuffer, ObjectState
from harness.commands.said_states import SaidStates
from harness.device.drivers import find_driver
from harness.device.process import Died, Worker
from harness.trace.resources import DescriptorSet, SetLayout
from tests.support.said_calls import Said

SEEDS = (11, 48, 56, *range(24))
JOB = "tests.support.said_jobs:judge_program"


def test_random_programs_do_what_they_do_call_by_call() -> None:
    counts = Counter[str]()
    with Worker(find_driver("lavapipe"), packages=("tests",)) as worker:
        for seed in SEEDS:
            told = worker.call(JOB, {"seed": seed})
            assert not isinstance(told, Died)
            assert told["by saying"] == told["by call"], f"seed {seed}"
            counts.update(known=told["known"], heard=told["heard"], findings=len(told["by call"]))
    assert counts["known"] > counts["heard"] / 4 and counts["findings"] > 10 * len(SEEDS)


def test_nothing_is_kept_of_descriptor_sets_that_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may make new ones in each frame for ever."""
    monkeypatch.setattr(said_states, "LASTS", {})  # these here are no objects
    states, sizes = SaidStates(ObjectState()), list[int]()
    for id in range(100, 120):
        buffer, args = CommandBuffer(1, 2), bound(id)
        buffer.parts = {}
        said = Said("vkCmdBindDescriptorSets", args)
        for _ in range(2):
            states.note(buffer, said.name, args, said, (None, True, None))
        assert id in states._binds
        states.gone(DescriptorSet(id, SetLayout(3, {})))
        sizes.append(len(states._binds) + len(states._ended))
    assert sizes == [0] * 20


def bound(id: int) -> dict[str, Any]:
    return {"pipelineBindPoint": 1, "layout": 0, "firstSet": 0, "pDescriptorSets": [id], "pDynamicOffsets": []}
