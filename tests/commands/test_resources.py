"""Exact effects of commands on descriptors, queries, markers and swapchain images, and of host copies."""

from __future__ import annotations

import pytest

from tests.support.interpreted import InterpretedStream, short
from tests.support.streams import COLOR, DST, R8G8B8A8, Stream, extent, layers, struct
from vkharness.commands.interpret import Interpreter
from vkharness.commands.resources.presentation import Swapchain
from vkharness.spec.enums import VK_WHOLE_SIZE, VkQueryType, VkResult
from vkharness.trace.effects import Access, Acquired, Destroyed, PayloadShared, Presented, StreamEvent, UnmodelledCall
from vkharness.trace.host_effects import HostAccess
from vkharness.trace.query_effects import HostQueries, QueryUse, UseQueries

WHOLE = VK_WHOLE_SIZE


# Binding by stages (VK_KHR_maintenance6)


def compute_writes(stream: InterpretedStream) -> list[tuple[str, int, tuple[tuple[int, int], ...]]]:
    return short(stream.effects("Dispatch", groupCountX=1, groupCountY=1, groupCountZ=1))


def test_sets_are_bound_to_every_bind_point_that_runs_the_stages(stream: InterpretedStream) -> None:
    buffer = stream.buffer(64)
    dispatch = stream.compute("fill_words_writeonly", [buffer])
    written = [("COMPUTE_SHADER_SHADER_STORAGE_WRITE", buffer, ((0, 64),))]
    stream.cmd("BindPipeline", pipelineBindPoint=1, pipeline=dispatch.pipeline)
    for stages, expected in ((0x10, []), (0x30, written)):
        sets = struct("VkBindDescriptorSetsInfoKHR", stageFlags=stages, pDescriptorSets=[dispatch.set])
        assert stream.effects("BindDescriptorSets2KHR", pBindDescriptorSetsInfo=sets) == ()
        assert compute_writes(stream) == expected


def test_descriptors_are_pushed_to_every_bind_point_that_runs_the_stages(stream: InterpretedStream) -> None:
    one, other = stream.buffer(64), stream.buffer(32)
    dispatch = stream.compute("fill_words_writeonly", [one])
    dispatch.run()
    write = struct(
        "VkWriteDescriptorSet",
        descriptorCount=1, descriptorType=7, pBufferInfo=[struct("VkDescriptorBufferInfo", buffer=other, range=WHOLE)],
    )  # fmt: skip
    for stages, buffer, size in ((0x10, one, 64), (0x20, other, 32)):
        info = struct(
            "VkPushDescriptorSetInfoKHR", stageFlags=stages, layout=dispatch.layout, pDescriptorWrites=[write]
        )
        assert stream.effects("PushDescriptorSet2KHR", pPushDescriptorSetInfo=info) == ()
        assert compute_writes(stream) == [("COMPUTE_SHADER_SHADER_STORAGE_WRITE", buffer, ((0, size),))]
    assert stream.effects("PushConstants2KHR") == ()


# Queries and markers

OCCLUSION = VkQueryType.OCCLUSION
STATISTICS = VkQueryType.PIPELINE_STATISTICS
TIMESTAMP = VkQueryType.TIMESTAMP
STREAM = VkQueryType.TRANSFORM_FEEDBACK_STREAM_EXT


def query_pool(stream: InterpretedStream, kind: int, statistics: int = 0) -> int:
    info = struct("VkQueryPoolCreateInfo", queryType=kind, queryCount=8, pipelineStatistics=statistics)
    return stream.make("vkCreateQueryPool", "pQueryPool", info)


@pytest.mark.parametrize(
    ("kind", "statistics", "count", "stride", "flags", "spans"),
    [
        (OCCLUSION, 0, 1, 0, 0, ((8, 12),)),
        (OCCLUSION, 0, 1, 64, 1, ((8, 16),)),
        (OCCLUSION, 0, 3, 4, 0, ((8, 20),)),
        (OCCLUSION, 0, 3, 16, 1, ((8, 16), (24, 32), (40, 48))),
        (OCCLUSION, 0, 2, 16, 1 | 4, ((8, 40),)),
        (TIMESTAMP, 0, 2, 8, 4, ((8, 24),)),
        (STATISTICS, 0x7, 1, 0, 0, ((8, 20),)),
        (STATISTICS, 0x7, 1, 0, 1 | 4, ((8, 40),)),
        (STREAM, 0, 1, 0, 1, ((8, 24),)),
        (TIMESTAMP, 0, 2, 8, 1 | 0x10, ((8, 32),)),
    ],
)
def test_query_results_are_written_exactly(
    stream: InterpretedStream,
    kind: int,
    statistics: int,
    count: int,
    stride: int,
    flags: int,
    spans: tuple[tuple[int, int], ...],
) -> None:
    buffer, pool = stream.buffer(256), query_pool(stream, kind, statistics)
    effects = stream.effects(
        "CopyQueryPoolResults",
        queryPool=pool, queryCount=count, dstBuffer=buffer, dstOffset=8, stride=stride, flags=flags,
    )  # fmt: skip
    assert short(effects[1:]) == [("COPY_TRANSFER_WRITE", buffer, spans)]


def test_many_query_results_are_one_range(stream: InterpretedStream) -> None:
    """However many a trace claims, the work is bounded; the buffer ends the range."""
    buffer, pool = stream.buffer(256), query_pool(stream, OCCLUSION)
    effects = stream.effects(
        "CopyQueryPoolResults", queryPool=pool, queryCount=0xFFFFFFFF, dstBuffer=buffer, dstOffset=8, stride=64
    )
    assert short(effects[1:]) == [("COPY_TRANSFER_WRITE", buffer, ((8, 256),))]


def test_commands_use_queries_and_touch_no_memory_of_others(stream: InterpretedStream) -> None:
    pool = query_pool(stream, OCCLUSION)
    one = {"queryPool": pool, "query": 3}
    assert stream.effects("BeginQuery", **one) == (UseQueries(pool, 3, 1, QueryUse.BEGIN),)
    assert stream.effects("EndQueryIndexedEXT", **one) == (UseQueries(pool, 3, 1, QueryUse.END),)
    stamp = UseQueries(pool, 3, 1, QueryUse.TIMESTAMP, stages=0x1000)
    assert stream.effects("WriteTimestamp", pipelineStage=0x1000, **one) == (stamp,)
    assert stream.effects("WriteTimestamp2", stage=0x1000, **one) == (stamp,)
    some = {"queryPool": pool, "firstQuery": 2, "queryCount": 4}
    assert stream.effects("ResetQueryPool", **some) == (UseQueries(pool, 2, 4, QueryUse.RESET),)
    assert stream.effects("ResetQueryPool", queryPool=pool) == ()
    copied = stream.effects("CopyQueryPoolResults", dstBuffer=stream.buffer(64), flags=2 | 4, stride=8, **some)
    assert copied[0] == UseQueries(pool, 2, 4, QueryUse.COPY, waits=True, tells=True)


@pytest.mark.parametrize("kind", [VkQueryType.PERFORMANCE_QUERY_KHR, VkQueryType.VIDEO_ENCODE_FEEDBACK_KHR])
def test_queries_of_some_types_are_not_followed(stream: InterpretedStream, kind: int) -> None:
    assert stream.effects("BeginQuery", queryPool=query_pool(stream, kind), query=0) == ()


def test_the_host_makes_pools_resets_queries_and_gets_results() -> None:
    stream = Stream()
    seen: list[HostQueries] = []

    def uses() -> list[tuple[QueryUse, int, int, bool]]:
        found = [each for each in stream_events(stream) if isinstance(each, HostQueries)]
        seen[:], new = found, found[len(seen) :]
        return [(each.use, each.first, each.count, each.known) for each in new]

    info = struct("VkQueryPoolCreateInfo", queryType=OCCLUSION, queryCount=8)
    pool = stream.make("vkCreateQueryPool", "pQueryPool", info)
    assert uses() == [(QueryUse.CREATE, 0, 8, False)]
    stream.call("vkResetQueryPool", device=stream.device, queryPool=pool, firstQuery=1, queryCount=2)
    assert uses() == [(QueryUse.RESET, 1, 2, False)]
    for flags, known in ((0, False), (2, True), (4, False), (2 | 4, True)):
        stream.call("vkGetQueryPoolResults", device=stream.device, queryPool=pool, queryCount=1, flags=flags)
        assert uses() == [(QueryUse.GET, 0, 1, known)]
    stream.call("vkDestroyQueryPool", device=stream.device, queryPool=pool)
    assert uses() == [(QueryUse.DESTROY, 0, 0, False)]
    stream.make("vkCreateQueryPool", "pQueryPool", {**info, "flags": 1})
    assert uses() == [(QueryUse.CREATE, 0, 8, False), (QueryUse.RESET, 0, 8, False)]


def stream_events(stream: Stream) -> list[StreamEvent]:
    interpreter = Interpreter()
    return [each for block in stream.blocks for each in interpreter.step(block)]


@pytest.mark.parametrize("name", ["WriteBufferMarkerAMD", "WriteBufferMarker2AMD"])
def test_a_marker_is_four_bytes(stream: InterpretedStream, name: str) -> None:
    buffer = stream.buffer(64)
    (effect,) = stream.effects(name, dstBuffer=buffer, dstOffset=12, marker=7)
    assert short((effect,)) == [("COPY_TRANSFER_WRITE", buffer, ((12, 16),))]
    assert isinstance(effect, Access) and effect.marker


# Presentation

SUBOPTIMAL = VkResult.SUBOPTIMAL_KHR


def swapchain(stream: InterpretedStream, images: int = 2, old: int = 0) -> tuple[int, list[int]]:
    info = struct(
        "VkSwapchainCreateInfoKHR",
        minImageCount=images, imageFormat=R8G8B8A8, imageExtent={"width": 8, "height": 4}, imageArrayLayers=1,
        imageUsage=0x10, oldSwapchain=old,
    )  # fmt: skip
    made = stream.make("vkCreateSwapchainKHR", "pSwapchain", info)
    ids = [stream.id() for _ in range(images)]
    stream.call("vkGetSwapchainImagesKHR", device=stream.device, swapchain=made, pSwapchainImageCount=images)
    stream.call("vkGetSwapchainImagesKHR", device=stream.device, swapchain=made, pSwapchainImages=ids)  # fmt: skip
    stream.did()
    return made, ids


def acquire(stream: InterpretedStream, chain: int, index: int, result: int = 0) -> list[object]:
    stream.did()
    stream.call(
        "vkAcquireNextImageKHR", device=stream.device, swapchain=chain, semaphore=90, fence=91, pImageIndex=index
    )
    return list(stream.did(result))


@pytest.mark.parametrize("result", [0, SUBOPTIMAL])
def test_an_acquired_image_is_read_until_its_semaphore_or_fence(stream: InterpretedStream, result: int) -> None:
    chain, images = swapchain(stream)
    (found,) = acquire(stream, chain, 1, result)
    assert found == Acquired(len(stream.blocks), "vkAcquireNextImageKHR", None, chain, images[1], 90, 91)


def test_acquire_has_a_second_form(stream: InterpretedStream) -> None:
    chain, images = swapchain(stream)
    info = struct("VkAcquireNextImageInfoKHR", swapchain=chain, semaphore=90)
    index = stream.call("vkAcquireNextImage2KHR", device=stream.device, pAcquireInfo=info, pImageIndex=0)
    assert stream.did(0) == [Acquired(index, "vkAcquireNextImage2KHR", None, chain, images[0], 90, 0)]


@pytest.mark.parametrize("result", [1, 2, -1000001004])
def test_no_image_no_access(stream: InterpretedStream, result: int) -> None:
    """VK_NOT_READY, VK_TIMEOUT, VK_ERROR_OUT_OF_DATE_KHR."""
    assert acquire(stream, swapchain(stream)[0], 0, result) == []


def test_images_that_nobody_asked_for_are_named(stream: InterpretedStream) -> None:
    what = "vkAcquireNextImageKHR of a swapchain whose images were not seen"
    for chain, index in (77, 0), (swapchain(stream)[0], 9):
        said, *shared = acquire(stream, chain, index)
        assert said == UnmodelledCall(what)
        assert all(isinstance(each, PayloadShared) and each.outside for each in shared)  # nobody knows who signals


def test_present_names_the_images_of_every_swapchain(stream: InterpretedStream) -> None:
    one, of_one = swapchain(stream)
    other, of_other = swapchain(stream, old=one)
    info = struct("VkPresentInfoKHR", pWaitSemaphores=[92], pSwapchains=[one, other], pImageIndices=[1, 0])
    index = stream.call("vkQueuePresentKHR", queue=stream.queue, pPresentInfo=info)
    pairs = ((one, of_one[1]), (other, of_other[0]))
    assert stream.did(SUBOPTIMAL) == [Presented(index, "vkQueuePresentKHR", None, stream.queue, (92,), pairs)]


def test_a_retired_swapchain_keeps_its_images(stream: InterpretedStream) -> None:
    objects = stream.interpreter.objects
    one, of_one = swapchain(stream)
    swapchain(stream, old=one)
    assert objects.get(Swapchain, one) is not None
    assert objects.image(of_one[0]) is not None
    stream.call("vkDestroySwapchainKHR", device=stream.device, swapchain=one)
    assert stream.did() == [Destroyed(image, resource=image) for image in of_one]
    assert objects.image(of_one[0]) is None


def test_an_image_on_the_memory_of_a_swapchain_is_named(stream: InterpretedStream) -> None:
    image = stream.make("vkCreateImage", "pImage", struct("VkImageCreateInfo", format=R8G8B8A8, mipLevels=1))
    chain = struct("VkBindImageMemorySwapchainInfoKHR", swapchain=swapchain(stream)[0], imageIndex=1)
    stream.call("vkBindImageMemory2", pBindInfos=[struct("VkBindImageMemoryInfo", image=image, pNext=chain)])
    assert stream.did(0) == [UnmodelledCall("an image on the memory of a swapchain")]
    stream.call("vkBindImageMemory2", pBindInfos=[struct("VkBindImageMemoryInfo", image=image)])
    assert stream.did(0) == []


def test_swapchain_images_are_images(stream: InterpretedStream) -> None:
    _, images = swapchain(stream)
    whole = struct("VkImageSubresourceRange", aspectMask=COLOR, levelCount=1, layerCount=1)
    effects = stream.effects("ClearColorImage", image=images[0], imageLayout=DST, pRanges=[whole])
    assert short(effects) == [("CLEAR_TRANSFER_WRITE", images[0], ((0, 32),))]


# The host's own image copies


def host(
    stream: InterpretedStream, name: str, image: int, spans: tuple[tuple[int, int], ...], write: bool
) -> HostAccess:
    return HostAccess(len(stream.blocks), name, None, image, spans, image, write=write)


def test_the_host_copies_images(stream: InterpretedStream) -> None:
    source, target = stream.image((8, 4, 1)), stream.image((8, 4, 1))
    stream.did()
    region = struct("VkMemoryToImageCopyEXT", imageSubresource=layers(), imageExtent=extent((8, 1, 1)))
    info = struct("VkCopyMemoryToImageInfoEXT", dstImage=target, pRegions=[region])
    stream.call("vkCopyMemoryToImageEXT", device=stream.device, pCopyMemoryToImageInfo=info)
    assert stream.did(0) == [host(stream, "vkCopyMemoryToImageEXT", target, ((0, 8),), True)]
    region = struct("VkImageToMemoryCopyEXT", imageSubresource=layers(), imageExtent=extent((2, 2, 1)))
    info = struct("VkCopyImageToMemoryInfoEXT", srcImage=source, pRegions=[region])
    stream.call("vkCopyImageToMemoryEXT", device=stream.device, pCopyImageToMemoryInfo=info)
    assert stream.did(0) == [host(stream, "vkCopyImageToMemoryEXT", source, ((0, 2), (8, 10)), False)]
    both = struct("VkImageCopy2", srcSubresource=layers(), dstSubresource=layers(), extent=extent((8, 2, 1)),
                  dstOffset={"x": 0, "y": 2, "z": 0})  # fmt: skip
    info = struct("VkCopyImageToImageInfoEXT", srcImage=source, dstImage=target, pRegions=[both])
    stream.call("vkCopyImageToImageEXT", device=stream.device, pCopyImageToImageInfo=info)
    name = "vkCopyImageToImageEXT"
    assert stream.did(0) == [
        host(stream, name, source, ((0, 16),), False),
        host(stream, name, target, ((16, 32),), True),
    ]


def test_the_host_transitions_layouts(stream: InterpretedStream) -> None:
    image = stream.image((8, 4, 1), mips=2)
    stream.did()
    part = struct("VkImageSubresourceRange", aspectMask=COLOR, baseMipLevel=1, levelCount=1, layerCount=1)
    changes = [
        struct("VkHostImageLayoutTransitionInfoEXT", image=image, oldLayout=old, newLayout=1, subresourceRange=part)
        for old in (0, 1)
    ]
    stream.call("vkTransitionImageLayoutEXT", device=stream.device, pTransitions=changes)
    assert stream.did(0) == [host(stream, "vkTransitionImageLayoutEXT", image, ((32, 40),), True)]
