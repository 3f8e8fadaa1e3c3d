"""What the layers take a copy of query results for: the evidence for differences.toml, provoked on lavapipe."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.device.drivers import find_driver
from harness.device.process import Worker
from harness.layer.manifest import find_layer
from harness.spec.enums import VkQueryResult, VkQueryType
from tests.support.layer_rig import Rig, rig

OLD, TODAY = "1.3.239", "1.4.364"
WAIT, WITH_AVAILABILITY = VkQueryResult.WAIT, VkQueryResult.WITH_AVAILABILITY
OCCLUSION = VkQueryType.OCCLUSION


BY_READ = {
    "DRAW_INDIRECT/INDIRECT_COMMAND_READ": [],
    "DRAW_INDIRECT/TRANSFORM_FEEDBACK_COUNTER_READ": ["SYNC_DRAW_INDIRECT_INDIRECT_COMMAND_READ"],
}


@pytest.mark.parametrize("read", BY_READ)
def test_a_byte_count_is_read_like_a_command(read: str) -> None:
    """[byte-counts-are-commands] [byte-counts-beside-commands] After a fill and a barrier to that access."""
    if find_layer(TODAY) is None:
        pytest.skip(f"evidence about the layer {TODAY}, which is not installed")
    with Worker(find_driver("lavapipe"), packages=["tests"]) as worker:
        answer = worker.call("tests.support.feedback_jobs:said_of_a_byte_count", {"version": TODAY, "read": read})
    assert answer == {"said": BY_READ[read]}


@pytest.fixture(params=[OLD, TODAY])
def device(request: pytest.FixtureRequest) -> Iterator[tuple[Rig, str]]:
    layer = find_layer(request.param)
    if layer is None:
        pytest.skip(f"evidence about the layer {request.param}, which is not installed")
    with rig(layer) as made:
        yield made, request.param


@pytest.mark.parametrize(
    ("filled", "count", "stride", "flags", "seen_by"),
    [(4, 2, 16, 0, (OLD, TODAY)), (4, 1, 8, 0, (OLD,)), (4, 1, 4, WITH_AVAILABILITY, ()), (0, 1, 4, 0, (OLD, TODAY))],
    ids=["gap", "stride", "availability", "result"],
)
def test_bytes_of_query_results(
    device: tuple[Rig, str], filled: int, count: int, stride: int, flags: int, seen_by: tuple[str, ...]
) -> None:
    """[query-results-are-one-range]"""
    rig, version = device
    vk, a = rig.vk, rig.buffer()
    pool = vk.vkCreateQueryPool(rig.device, vk.VkQueryPoolCreateInfo(queryType=OCCLUSION, queryCount=2), None)
    with rig.recording() as buffer:
        vk.vkCmdResetQueryPool(buffer, pool, 0, 2)
        rig.fill(buffer, a, filled, 4)
        vk.vkCmdCopyQueryPoolResults(buffer, pool, 0, count, a, 0, stride, flags)
    found = [message.hazard for message in rig.said()]
    vk.vkDestroyQueryPool(rig.device, pool, None)
    assert found == (["WRITE_AFTER_WRITE"] if version in seen_by else [])
