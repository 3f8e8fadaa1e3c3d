"""Counts of a call that would take long to follow: one line that says so, and no memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.streams import GENERAL, Stream, extent, layers, struct
from vkharness.check import Analysis
from vkharness.spec.enums import VkDescriptorType, VkPipelineStage2
from vkharness.trace import work_budget
from vkharness.trace.codec import load, save
from vkharness.trace.work_budget import OverBudget

HUGE = (1 << 32) - 1


def copy_of_a_part(stream: Stream, image: int, **where: int) -> None:
    """A copy of a region that has neither all columns nor all rows."""
    region = struct("VkBufferImageCopy", imageSubresource=layers(**where), imageExtent=extent((1, 1 << 31, 1)))
    stream.begin()
    buffer = stream.buffer(64)
    stream.call(
        "vkCmdCopyBufferToImage",
        commandBuffer=stream.commands,
        srcBuffer=buffer,
        dstImage=image,
        dstImageLayout=GENERAL,
        regionCount=1,
        pRegions=[region],
    )


def tall(stream: Stream) -> None:
    copy_of_a_part(stream, stream.image((2, 1 << 31, 1)))


def many_layers(stream: Stream) -> None:
    copy_of_a_part(stream, stream.image((4, 4, 1), array=HUGE), count=HUGE)


def many_descriptors(stream: Stream) -> None:
    sets = []
    for _ in range(2):
        binding = struct("VkDescriptorSetLayoutBinding", descriptorType=7, descriptorCount=HUGE, stageFlags=32)
        info = struct("VkDescriptorSetLayoutCreateInfo", bindingCount=1, pBindings=[binding])
        layout = stream.make("vkCreateDescriptorSetLayout", "pSetLayout", info)
        made = stream.id()
        allocation = struct("VkDescriptorSetAllocateInfo", descriptorSetCount=1, pSetLayouts=[layout])
        stream.call("vkAllocateDescriptorSets", device=stream.device, pAllocateInfo=allocation, pDescriptorSets=[made])
        sets.append(made)
    copy = struct("VkCopyDescriptorSet", srcSet=sets[0], dstSet=sets[1], descriptorCount=HUGE)
    stream.call("vkUpdateDescriptorSets", device=stream.device, descriptorCopyCount=1, pDescriptorCopies=[copy])


def secondaries_that_multiply(stream: Stream) -> None:
    inner = 0
    for _ in range(6):
        buffer = stream.id()
        info = struct("VkCommandBufferAllocateInfo", commandPool=stream.pool, level=1, commandBufferCount=1)
        stream.call("vkAllocateCommandBuffers", device=stream.device, pAllocateInfo=info, pCommandBuffers=[buffer])
        begin = struct("VkCommandBufferBeginInfo", flags=4)
        stream.call("vkBeginCommandBuffer", commandBuffer=buffer, pBeginInfo=begin)
        if inner:
            many = [inner] * 50
            stream.call("vkCmdExecuteCommands", commandBuffer=buffer, commandBufferCount=50, pCommandBuffers=many)
        else:
            stages = dict.fromkeys(
                ("srcStageMask", "dstStageMask"), VkPipelineStage2.COPY
            )  # a racing command is more work itself
            stream.call("vkCmdPipelineBarrier", commandBuffer=buffer, **stages)
        stream.call("vkEndCommandBuffer", commandBuffer=buffer)
        inner = buffer


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (tall, "vkCmdCopyBufferToImage: out of proportion to the size of its stream: 2,147,483,648 rows of an image"),
        (many_layers, "4,294,967,295 rows of a buffer"),
        (many_descriptors, "vkUpdateDescriptorSets: out of proportion"),
        (secondaries_that_multiply, "steps of executed commands"),
    ],
)
def test_a_count_out_of_proportion_ends_the_judging_in_one_line(
    record: Callable[[Stream], None], said: str, tmp_path: Path
) -> None:
    stream = Stream()
    record(stream)
    save(tmp_path / "t.jsonl", stream.blocks)
    blocks = load(tmp_path / "t.jsonl")
    assert not any(getattr(block, "unread", "") for block in blocks)
    with pytest.raises(OverBudget) as caught:
        Analysis().follow(blocks)
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path / 't.jsonl'}: block ")


def test_more_mip_levels_than_an_image_can_have_cost_the_image() -> None:
    stream = Stream()
    stream.image((4, 4, 1), mips=HUGE)
    analysis = Analysis().follow(stream.blocks)
    named, bound = analysis.unmodelled
    assert named.startswith("vkCreateImage (block ") and bound.startswith("vkBindImageMemory (VkImage ")
    assert f"{HUGE} mip levels of an image of 4 x 4 x 1 texels" in named


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_more_texels_than_an_image_can_have_cost_the_image(kind: int) -> None:
    """Each count alone may be as large as it is: an image has at most three of them."""
    every = (1 << 32) - 1
    for sizes, count, named in (
        ((every, every, every), 1, False),
        ((every, every, 1), every, False),
        ((every, every, 2), every, True),
        ((every, every, every), every, True),
    ):
        stream = Stream()
        info = {"extent": dict(zip(("width", "height", "depth"), sizes, strict=True)), "arrayLayers": count}
        image = stream.make(
            "vkCreateImage",
            "pImage",
            struct("VkImageCreateInfo", imageType=kind, format=37, mipLevels=32, samples=1, **info),
        )
        stream.begin()
        part = struct("VkImageSubresourceRange", aspectMask=1, levelCount=HUGE, layerCount=HUGE)
        stream.cmd("ClearColorImage", image=image, imageLayout=1, rangeCount=1, pRanges=[part])
        stream.transition(image, 0, 1)
        stream.end()
        stream.submit()
        analysis = Analysis().follow(stream.blocks)
        assert any("layers of" in each for each in analysis.unmodelled) is named


def test_a_mip_level_for_each_halving_is_as_many_as_there_may_be() -> None:
    stream = Stream()
    stream.image((5, 8, 1), mips=4)
    assert not Analysis().follow(stream.blocks).unmodelled


def test_a_new_stream_begins_with_its_own_units() -> None:
    Analysis()
    work_budget.spend(work_budget.AT_FIRST, "steps")
    with pytest.raises(OverBudget):
        work_budget.spend(1, "steps")
    Analysis()
    work_budget.spend(work_budget.AT_FIRST, "steps")


def test_a_binding_number_of_any_size_takes_one_step() -> None:
    stream = Stream()
    kind = VkDescriptorType.STORAGE_BUFFER
    binding = struct("VkDescriptorSetLayoutBinding", binding=HUGE, descriptorType=kind, descriptorCount=1)
    layout = stream.make(
        "vkCreateDescriptorSetLayout", "pSetLayout", struct("VkDescriptorSetLayoutCreateInfo", pBindings=[binding])
    )
    made = stream.id()
    allocation = struct("VkDescriptorSetAllocateInfo", descriptorSetCount=1, pSetLayouts=[layout])
    stream.call("vkAllocateDescriptorSets", device=stream.device, pAllocateInfo=allocation, pDescriptorSets=[made])
    info = struct("VkDescriptorBufferInfo", buffer=stream.buffer(64), range=64)
    write = struct("VkWriteDescriptorSet", dstSet=made, dstBinding=1, descriptorType=kind, pBufferInfo=[info])
    write["descriptorCount"] = 1
    stream.call("vkUpdateDescriptorSets", device=stream.device, pDescriptorWrites=[write])
    assert not Analysis().follow(stream.blocks).unmodelled
