"""Commands that are core since Vulkan 1.4, by their core names: judged by both judges, executed by lavapipe 25."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.drivers_here import FOUND
from tests.support.streams import Dispatch, Stream, struct, words
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker
from vkharness.spec.enums import (
    VK_WHOLE_SIZE,
    VkBufferUsage,
    VkDescriptorSetLayoutCreate,
    VkDescriptorType,
    VkPipelineBindPoint,
    VkShaderStage,
    VkStructureType,
)
from vkharness.trace.calls import Call
from vkharness.trace.codec import load, save
from vkharness.trace.effects import Recorded
from vkharness.trace.resources import buffer_usage

COMPUTE = VkShaderStage.COMPUTE
WORDS, VALUE = 64, 500


class Core(Stream):
    """A stream on a device of Vulkan 1.4 that records a dispatch by core commands alone."""

    def __init__(self) -> None:
        super().__init__()
        enabled = {"maintenance5": 1, "maintenance6": 1, "pushDescriptor": 1}
        made = self.blocks[0]
        assert isinstance(made, Call)
        made.args["pCreateInfo"]["pNext"] = struct("VkPhysicalDeviceVulkan14Features", **enabled)

    def wide_buffer(self) -> int:
        """A buffer with its usage in VkBufferUsageFlags2CreateInfo alone."""
        usage = VkBufferUsage.STORAGE_BUFFER | VkBufferUsage.TRANSFER_SRC | VkBufferUsage.TRANSFER_DST
        more = struct("VkBufferUsageFlags2CreateInfo", usage=usage)
        made = self.make("vkCreateBuffer", "pBuffer", struct("VkBufferCreateInfo", size=4 * WORDS, pNext=more))
        self.call("vkBindBufferMemory", device=self.device, buffer=made, memory=self.memory(4 * WORDS))
        return made

    def dispatch(self, job: Dispatch, bind: dict[str, Any]) -> int:
        """Writes VALUE + i to word i of what is bound."""
        self.cmd("BindPipeline", pipelineBindPoint=VkPipelineBindPoint.COMPUTE, pipeline=job.pipeline)
        if "pDescriptorSets" in bind:
            info = struct("VkBindDescriptorSetsInfo", stageFlags=COMPUTE, layout=job.layout, **bind)
            self.cmd("BindDescriptorSets2", pBindDescriptorSetsInfo=info)
        else:
            info = struct("VkPushDescriptorSetInfo", stageFlags=COMPUTE, layout=job.layout, **bind)
            self.cmd("PushDescriptorSet2", pPushDescriptorSetInfo=info)
        given = {"stageFlags": COMPUTE, "layout": job.layout, "size": 4, "pValues": words(VALUE)}
        self.cmd("PushConstants2", pPushConstantsInfo=struct("VkPushConstantsInfo", **given))
        return self.cmd("Dispatch", groupCountX=1, groupCountY=1, groupCountZ=1)


def recorded(way: str, ordered: bool) -> tuple[Core, int]:
    """A fill of a buffer and a dispatch that writes it, with or without a barrier between. The buffer."""
    stream = Core()
    buffer = stream.wide_buffer()
    job = Dispatch(stream, "fill_words", [buffer], words(0))
    bind: dict[str, Any] = {"pDescriptorSets": [job.set]}
    if way == "push":
        for block in stream.blocks:
            if isinstance(block, Call) and block.name == "vkCreateDescriptorSetLayout":
                block.args["pCreateInfo"]["flags"] = VkDescriptorSetLayoutCreate.PUSH_DESCRIPTOR
        unpushed = ("vkCreateDescriptorPool", "vkAllocateDescriptorSets", "vkUpdateDescriptorSets")
        stream.blocks = [block for block in stream.blocks if not isinstance(block, Call) or block.name not in unpushed]
        held = struct("VkDescriptorBufferInfo", buffer=buffer, range=VK_WHOLE_SIZE)
        kind = VkDescriptorType.STORAGE_BUFFER
        write = struct("VkWriteDescriptorSet", descriptorCount=1, descriptorType=kind, pBufferInfo=[held])
        bind = {"pDescriptorWrites": [write]}
    stream.begin()
    stream.fill(buffer, 7)
    if ordered:
        stream.barrier()
    stream.dispatch(job, bind)
    stream.submit()
    return stream, buffer


@pytest.mark.parametrize("way", ["bind", "push"])
@pytest.mark.parametrize("ordered", [True, False])
def test_both_judges_follow_them(way: str, ordered: bool, tmp_path: Path) -> None:
    stream, buffer = recorded(way, ordered)
    save(tmp_path / "core.jsonl", stream.blocks)
    blocks = load(tmp_path / "core.jsonl")
    assert agreement(blocks).disagreements == ()
    analysis = Analysis().follow(blocks)
    assert analysis.unmodelled == {}
    found = [(finding.hazard, finding.resource, finding.ranges) for finding in analysis.findings]
    assert found == ([] if ordered else [("WRITE_AFTER_WRITE", buffer, ((0, 4 * WORDS),))])


@pytest.mark.driver
@pytest.mark.skipif("lavapipe-25" not in FOUND, reason="lavapipe-25 is not installed; ci/setup installs it")
@pytest.mark.parametrize("way", ["bind", "push"])
def test_lavapipe_25_executes_them(way: str, tmp_path: Path) -> None:
    stream, buffer = recorded(way, True)
    trace = tmp_path / "core.jsonl"
    save(trace, stream.blocks)
    with Worker(find_driver("lavapipe-25"), packages=["tests"]) as worker:
        given = {"trace": str(trace), "device": "lavapipe-25", "buffer": buffer}
        found = worker.call("tests.support.core_jobs:words_of", given)
    assert isinstance(found, dict)
    assert found == {"words": [[VALUE + i for i in range(WORDS)]] * 2, "notes": []}


def test_wider_usage_takes_the_place_of_the_other() -> None:
    wider = {"sType": VkStructureType.BUFFER_USAGE_FLAGS_2_CREATE_INFO, "pNext": None, "usage": 1 << 33}
    assert buffer_usage({"usage": 3, "pNext": wider}) == 1 << 33
    assert buffer_usage({"usage": 3, "pNext": None}) == 3


def test_a_push_with_a_layout_in_its_chain_is_followed() -> None:
    """dynamicPipelineLayout of maintenance6: `layout` is null, and the chain has a VkPipelineLayoutCreateInfo."""
    stream, _ = recorded("push", False)
    layout = next(each for each in stream.blocks if isinstance(each, Call) and each.name == "vkCreatePipelineLayout")
    for block in stream.blocks:
        if isinstance(block, Call) and block.name == "vkCmdPushDescriptorSet2":
            block.args["pPushDescriptorSetInfo"] |= {"layout": 0, "pNext": layout.args["pCreateInfo"]}
    analysis = Analysis(keep_events=True).follow(stream.blocks)
    assert [finding.hazard for finding in analysis.findings] == ["WRITE_AFTER_WRITE"]
    dispatched = [each.command for each in analysis.events if isinstance(each, Recorded)]
    assert len(dispatched[-1].effects) == 1
