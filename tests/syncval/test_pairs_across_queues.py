"""A pair of recorded commands that met on one queue is a pair of its own where it meets across queues."""

from __future__ import annotations

from tests.support import passes
from tests.support.passes import LOAD, STORE, attached
from tests.support.render_effects import AREA, target
from tests.support.streams import TRANSFER, Stream, struct
from vkharness.check import Analysis


def test_an_instance_submitted_again_on_another_queue_is_told_of() -> None:
    """The first pair counts with `strict` alone; the second one, which a semaphore orders for transfers, always."""
    stream = Stream()
    other = stream.id()
    stream.call("vkGetDeviceQueue", device=stream.device, pQueue=other, queueFamilyIndex=0, queueIndex=1)
    _, view = target(stream)
    commands = stream.begin()
    passes.begin_rendering(stream, AREA, [attached(view, LOAD, STORE)])
    stream.cmd("EndRendering")
    stream.end()
    signal = stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))
    for queue, more in (
        (stream.queue, {}),
        (stream.queue, {"pSignalSemaphores": [signal]}),
        (other, {"pWaitSemaphores": [signal], "pWaitDstStageMask": [TRANSFER]}),
    ):
        stream.call("vkQueueSubmit", queue=queue, pSubmits=[struct("VkSubmitInfo", pCommandBuffers=[commands], **more)])
    analysis = Analysis(strict=False).follow(stream.blocks)
    queues = [(each.prior.queue, each.place.queue) for each in analysis.findings]
    assert queues == [(stream.queue, stream.queue), (stream.queue, other)]
    assert (analysis.verdict, [each.counts for each in analysis.findings]) == ("hazards", [False, True])
