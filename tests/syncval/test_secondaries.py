"""Secondary command buffers as syncval follows them, and what the layers make of their barriers."""

from __future__ import annotations

from typing import Any

import pytest

from harness.check import Analysis
from harness.device.drivers import find_driver
from harness.device.process import Worker
from harness.findings import Finding
from harness.layer.manifest import find_layer
from tests.support.layer_rig import TRANSFER, TRANSFER_READ, TRANSFER_WRITE, Rig, rig
from tests.support.streams import Stream

OLD, TODAY = "1.3.239", "1.4.364"


def found(stream: Stream) -> list[Finding]:
    return Analysis().follow(stream.blocks).findings


def test_a_hazard_inside_a_secondary_is_found_once() -> None:
    """While the secondary is recorded; not again where it is executed or submitted."""
    stream = Stream()
    a, b = stream.buffer(16), stream.buffer(16)
    secondary = stream.begin(level=1)
    stream.fill(a, 1)
    copy = stream.copy(a, b, 16)
    stream.end()
    stream.begin()
    stream.cmd("ExecuteCommands", commandBufferCount=1, pCommandBuffers=[secondary])
    stream.submit()
    findings = found(stream)
    assert [(each.place.call, each.place.executed_by, each.place.submit) for each in findings] == [(copy, None, None)]


def test_a_hazard_between_executions_of_one_secondary_names_both() -> None:
    stream = Stream()
    a = stream.buffer(16)
    secondary = stream.begin(level=1)
    stream.fill(a, 1)
    stream.end()
    stream.begin()
    execute = stream.cmd("ExecuteCommands", commandBufferCount=2, pCommandBuffers=[secondary, secondary])
    stream.submit()
    (finding,) = found(stream)
    assert finding.hazard == "WRITE_AFTER_WRITE"
    assert (finding.place.executed_by, finding.prior.executed_by) == ((execute, 1), (execute, 0))
    assert finding.to_dict()["executed_by"] == [execute, 1]


@pytest.mark.parametrize("version", [OLD, TODAY])
def test_what_a_barrier_in_a_secondary_does_at_submit(version: str) -> None:
    """[barriers-of-secondaries]"""
    layer = find_layer(version)
    if layer is None:
        pytest.skip(f"evidence about the layer {version}, which is not installed")
    with rig(layer) as device:
        a, b = device.buffer(), device.buffer()
        secondary = _only_a_barrier(device)
        with device.recording() as first:
            device.fill(first, a)
        with device.recording() as second:
            device.vk.vkCmdExecuteCommands(second, 1, [secondary])
            device.copy(second, a, b)
        device.submit(first, second, wait=True)
        assert [message.hazard for message in device.said()] == (["READ_AFTER_WRITE"] if version == OLD else [])


def _only_a_barrier(device: Rig) -> Any:
    vk = device.vk
    info = vk.VkCommandBufferAllocateInfo(commandPool=device.pool, level=1, commandBufferCount=1)
    made = vk.vkAllocateCommandBuffers(device.device, info)[0]
    inherited = vk.VkCommandBufferInheritanceInfo()
    vk.vkBeginCommandBuffer(made, vk.VkCommandBufferBeginInfo(flags=4, pInheritanceInfo=inherited))
    device.barrier(made, (TRANSFER, TRANSFER), (TRANSFER_WRITE, TRANSFER_READ))
    vk.vkEndCommandBuffer(made)
    return made


@pytest.mark.parametrize("version", [OLD, TODAY])
def test_what_secondaries_do_to_attachments_is_nothing_to_the_layer(version: str) -> None:
    """[draws-of-secondaries] Within a subpass a clear by a secondary and a read after it meet in silence: the store
    operation is said to come after the load operation, which is older."""
    layer = find_layer(version)
    if layer is None:
        pytest.skip(f"evidence about the layer {version}, which is not installed")
    with Worker(find_driver("lavapipe"), packages=["tests"]) as worker:
        answer = worker.call("tests.support.secondary_jobs:said_of_two_subpasses", {"version": version})
    assert isinstance(answer, dict), answer
    said = answer["said"]
    assert ["WRITE_RACING_WRITE", "vkCmdEndRenderPass2", "vkCmdBeginRenderPass2"] in said
    assert not [each for each in said if "vkCmdClearAttachments" in each]
