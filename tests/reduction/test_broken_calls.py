"""Calls as only broken traces have them: reduction leaves them as they are."""

from __future__ import annotations

import pytest

from tests.support.streams import Stream
from vkharness.reduction.removal import _events_come
from vkharness.reduction.sizes import _NoFitError, _region
from vkharness.trace.calls import Call


def test_a_region_of_another_kind_fits_nowhere() -> None:
    with pytest.raises(_NoFitError):
        _region({"srcOffset": 0}, "src", 16)


def test_executing_no_list_of_command_buffers_waits_for_nothing() -> None:
    stream = Stream()
    outer = stream.begin()
    stream.cmd("ExecuteCommands", commandBufferCount=1, pCommandBuffers=None)
    recorded = {outer: [each for each in stream.blocks if isinstance(each, Call) and each.name.startswith("vkCmd")]}
    assert _events_come(recorded, outer, set(), set())
