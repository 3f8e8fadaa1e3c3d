"""A command that names an object which no call made is never judged clean: nobody knows what it accesses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support import drawing
from tests.support.streams import DST, GENERAL, Stream, struct
from vkharness.check import Analysis
from vkharness.spec.enums import VkDescriptorType

NOBODY = 999


def fill(stream: Stream) -> None:
    stream.fill(NOBODY, 7)


def transition(stream: Stream) -> None:
    stream.transition(NOBODY, GENERAL, DST)


def secondary(stream: Stream) -> None:
    stream.cmd("ExecuteCommands", pCommandBuffers=[NOBODY])


def pipeline(stream: Stream) -> None:
    stream.cmd("BindPipeline", pipelineBindPoint=1, pipeline=NOBODY)
    stream.cmd("Dispatch", groupCountX=1, groupCountY=1, groupCountZ=1)


def sets(stream: Stream) -> None:
    stream.cmd("BindDescriptorSets", pipelineBindPoint=1, pDescriptorSets=[NOBODY])


def vertices(stream: Stream) -> None:
    stream.cmd("BindVertexBuffers", pBuffers=[NOBODY], pOffsets=[0])


def indices(stream: Stream) -> None:
    stream.cmd("BindIndexBuffer", buffer=NOBODY, offset=0, indexType=0)


def feedback(stream: Stream) -> None:
    stream.cmd("BindTransformFeedbackBuffersEXT", pBuffers=[NOBODY], pOffsets=[0])


def descriptor(stream: Stream) -> None:
    for kind in (VkDescriptorType.STORAGE_BUFFER, VkDescriptorType.STORAGE_IMAGE):
        drawing.descriptors(stream, (kind, NOBODY))


def view(stream: Stream) -> None:
    stream.make("vkCreateImageView", "pView", struct("VkImageViewCreateInfo", image=NOBODY))


def submit(stream: Stream) -> None:
    stream.call("vkQueueSubmit", queue=stream.queue, pSubmits=[struct("VkSubmitInfo", pCommandBuffers=[NOBODY])])


def judged(name: Callable[[Stream], object]) -> Analysis:
    stream = Stream()
    stream.begin()
    stream.fill(stream.buffer(64), 1)
    name(stream)
    stream.submit()
    return Analysis().follow(stream.blocks)


NAMING = (fill, transition, secondary, pipeline, sets, vertices, indices, feedback, descriptor, view, submit)


@pytest.mark.parametrize("name", NAMING)
def test_the_object_is_named_and_the_verdict_is_unknown(name: Callable[[Stream], object]) -> None:
    analysis = judged(name)
    assert analysis.verdict == "unknown"
    assert any(f" {NOBODY}, which no call made," in each for each in analysis.unmodelled), analysis.unmodelled


def test_what_is_destroyed_was_made() -> None:
    """Objects that a program no longer uses change nothing, and a call that ends an object needs none."""

    def destroys(stream: Stream) -> None:
        buffer = stream.buffer(64)
        for each in (buffer, NOBODY):
            stream.call("vkDestroyBuffer", device=stream.device, buffer=each)

    assert judged(destroys).verdict == "clean"
