"""Calls as only broken traces have them: reduction leaves them as they are."""

from __future__ import annotations

import pytest

from tests.support.streams import Stream, struct
from vkharness.findings import UserError
from vkharness.reduction.removal import _events_come
from vkharness.reduction.shader_state import NOT_KNOWN, ShaderStates
from vkharness.reduction.sizes import _NoFitError, _region
from vkharness.reduction.structure import Structure
from vkharness.replay.objects.sparse_binds import sparse_binds
from vkharness.trace.calls import Call, unread_call


def test_a_region_of_another_kind_fits_nowhere() -> None:
    with pytest.raises(_NoFitError):
        _region({"srcOffset": 0}, "src", 16)


def test_executing_no_list_of_command_buffers_waits_for_nothing() -> None:
    stream = Stream()
    outer = stream.begin()
    stream.cmd("ExecuteCommands", commandBufferCount=1, pCommandBuffers=None)
    recorded = {outer: [each for each in stream.blocks if isinstance(each, Call) and each.name.startswith("vkCmd")]}
    assert _events_come(recorded, outer, set(), set())


def test_what_a_call_that_could_not_be_read_lacks_is_one_line() -> None:
    call = unread_call(4, "vkQueueBindSparse", "block 4: .pBindInfo[0]: not an object")
    with pytest.raises(UserError, match=r"^vkQueueBindSparse could not be read \(block 4: .*\), and its arguments are"):
        list(sparse_binds(call))
    assert call.args.get("queue") is None


def test_a_pipeline_without_stages_may_use_any_state() -> None:
    stream = Stream()
    infos = [struct("VkDataGraphPipelineCreateInfoARM")]
    stream.call("vkCreateDataGraphPipelinesARM", createInfoCount=1, pCreateInfos=infos, pPipelines=[9])
    assert ShaderStates(Structure(stream.blocks)).of(9) == NOT_KNOWN
