"""What the layer 1.4.352 does and the ones beside it do not: the evidence for differences.toml, provoked on lavapipe.

As test_layer_today.py is for 1.4.364. The ids in brackets are entries of differences.toml.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.layer.manifest import find_layer
from tests.support.layer_rig import ALL_COMMANDS, COMPUTE, Rig, compile_compute, rig

LAYER = find_layer("1.4.352")
pytestmark = pytest.mark.skipif(LAYER is None, reason="evidence about the layer 1.4.352, which is not installed")

DRAW_INDIRECT, COPY, CLEAR = 0x2, 1 << 32, 1 << 35
LENGTH = """#version 450
layout(local_size_x=1) in; layout(binding=0) buffer A{uint a[];}; layout(binding=1) buffer B{uint b[];};
void main(){ b[0]=a.length(); }"""


@pytest.fixture
def device() -> Iterator[Rig]:
    with rig(LAYER) as made:
        yield made


def test_a_length_is_an_access_of_no_stage(device: Rig, tmp_path: Path) -> None:
    """[size-is-an-access-of-no-stage]"""
    a, b = device.buffer(), device.buffer()
    kernel = device.compute(compile_compute(LENGTH, tmp_path), (7, a), (7, b))
    with device.recording() as buffer:
        device.fill(buffer, a)
        device.dispatch(buffer, kernel)
    assert [(m.hazard, m.access) for m in device.said()] == [("WRITE_AFTER_WRITE", "SYNC_NONE_NONE")]


def test_transfers_wait_with_draw_indirect(device: Rig) -> None:
    """[transfers-after-draw-indirect]"""
    a, b, c = device.buffer(), device.buffer(), device.buffer()
    for stage, expected in ((DRAW_INDIRECT, []), (COMPUTE, ["WRITE_AFTER_READ"])):
        with device.recording() as buffer:
            device.copy(buffer, a, b)
            device.barrier(buffer, (ALL_COMMANDS, stage))
            after = device.vk.VkMemoryBarrier2(srcStageMask=CLEAR, dstStageMask=COPY)
            device.vk.vkCmdPipelineBarrier2(buffer, device.vk.VkDependencyInfo(pMemoryBarriers=[after]))
            device.copy(buffer, c, a)
        assert [m.hazard for m in device.said()] == expected


def test_one_hazard_a_segment(device: Rig) -> None:
    """[one-hazard-a-segment]"""
    a, b = device.buffer(), device.buffer()
    for barrier, expected in ((False, 1), (True, 2)):
        with device.recording() as first:
            device.fill(first, a)
            device.fill(first, b)
        with device.recording() as second:
            device.fill(second, b)
            if barrier:
                device.barrier(second, (COMPUTE, COMPUTE))
            device.fill(second, a)
        device.submit(first, second, wait=True)
        assert len(device.said()) == expected
