"""What events, secondaries, queries, markers, semaphores, presentation and host image copies do, effect by effect."""

from __future__ import annotations

import pytest

from harness.commands.object_state import CommandBuffer
from harness.commands.resources.presentation import Swapchain
from harness.spec.enums import VK_WHOLE_SIZE, VkAccess2, VkPipelineStage2, VkQueryType, VkResult
from harness.trace.effects import (
    Access,
    Acquired,
    Barrier,
    CommandBufferReset,
    Dependency,
    Destroyed,
    Execute,
    HostAccess,
    HostSetEvent,
    HostSignaled,
    HostWaitedSemaphores,
    Presented,
    RangeBarrier,
    Recorded,
    ResetEvent,
    SemaphoreCreated,
    SetEvent,
    Unmodelled,
    UnmodelledCall,
    WaitEvents,
)
from tests.support.interpreted import InterpretedStream, short
from tests.support.streams import COLOR, DST, R8G8B8A8, extent, layers, struct

COPY, COPY_WRITE = VkPipelineStage2.COPY, VkAccess2.TRANSFER_WRITE
FRAGMENT, SAMPLED = VkPipelineStage2.FRAGMENT_SHADER, VkAccess2.SHADER_SAMPLED_READ
WHOLE = VK_WHOLE_SIZE


@pytest.fixture
def stream() -> InterpretedStream:
    stream = InterpretedStream()
    stream.begin()
    return stream


# Events


def memory_barrier(src: int, src_access: int, dst: int, dst_access: int) -> dict[str, object]:
    return struct(
        "VkMemoryBarrier2", srcStageMask=src, srcAccessMask=src_access, dstStageMask=dst, dstAccessMask=dst_access
    )


def dependency_info(**lists: list[dict[str, object]]) -> dict[str, object]:
    return struct("VkDependencyInfo", **lists)


def test_set_event_says_only_the_stages_before_it(stream: InterpretedStream) -> None:
    (effect,) = stream.effects("SetEvent", event=90, stageMask=0x1000)
    assert effect == SetEvent(90, Barrier((Dependency(0x1000, 0, 0, 0),)), False)


@pytest.mark.parametrize("name", ["SetEvent2", "SetEvent2KHR"])
def test_set_event2_says_the_whole_dependency(stream: InterpretedStream, name: str) -> None:
    buffer = stream.buffer(64)
    one = struct(
        "VkBufferMemoryBarrier2",
        srcStageMask=COPY, srcAccessMask=COPY_WRITE, dstStageMask=FRAGMENT, dstAccessMask=SAMPLED,
        buffer=buffer, offset=16, size=8,
    )  # fmt: skip
    info = dependency_info(pBufferMemoryBarriers=[one])
    (effect,) = stream.effects(name, event=90, pDependencyInfo=info)
    whole = Dependency(COPY, COPY_WRITE, FRAGMENT, SAMPLED)
    ranged = RangeBarrier(whole, buffer + 1, ((16, 24),), buffer)
    assert effect == SetEvent(90, Barrier((Dependency(COPY, 0, FRAGMENT, 0),), (ranged,)), True)


@pytest.mark.parametrize("name", ["ResetEvent", "ResetEvent2", "ResetEvent2KHR"])
def test_reset_event(stream: InterpretedStream, name: str) -> None:
    assert stream.effects(name, event=90, stageMask=0x80) == (ResetEvent(90, 0x80),)


def test_wait_events_has_one_barrier_for_all(stream: InterpretedStream) -> None:
    full = struct("VkMemoryBarrier", srcAccessMask=COPY_WRITE, dstAccessMask=0x800)
    (effect,) = stream.effects(
        "WaitEvents", pEvents=[90, 91], srcStageMask=0x1000, dstStageMask=0x800, pMemoryBarriers=[full]
    )
    execution, memory = Dependency(0x1000, 0, 0x800, 0), Dependency(0x1000, COPY_WRITE, 0x800, 0x800)
    assert effect == WaitEvents((90, 91), (Barrier((memory, execution)),), False)


@pytest.mark.parametrize("name", ["WaitEvents2", "WaitEvents2KHR"])
def test_wait_events2_has_a_barrier_for_each(stream: InterpretedStream, name: str) -> None:
    infos = [
        dependency_info(pMemoryBarriers=[memory_barrier(COPY, COPY_WRITE, FRAGMENT, SAMPLED)]),
        dependency_info(pMemoryBarriers=[memory_barrier(FRAGMENT, 0, COPY, 0)]),
    ]
    (effect,) = stream.effects(name, pEvents=[90, 91], pDependencyInfos=infos)
    one = Barrier((Dependency(COPY, COPY_WRITE, FRAGMENT, SAMPLED),))
    other = Barrier((Dependency(FRAGMENT, 0, COPY, 0),))
    assert effect == WaitEvents((90, 91), (one, other), True)


def test_the_host_sets_and_resets_events(stream: InterpretedStream) -> None:
    stream.did()
    stream.call("vkSetEvent", device=stream.device, event=90)
    stream.call("vkResetEvent", device=stream.device, event=90)
    stream.call("vkDestroyEvent", device=stream.device, event=91)
    stream.call("vkDestroyEvent", device=stream.device, event=0)
    assert stream.did() == [HostSetEvent(90, True), HostSetEvent(90, False), HostSetEvent(91, False)]


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


# Secondaries


def test_a_secondary_runs_with_what_it_holds_now(stream: InterpretedStream) -> None:
    buffer = stream.buffer(64)
    primary = stream.commands
    secondary = stream.begin(level=1)
    stream.did()
    stream.fill(buffer, 1)
    stream.end()
    (recorded,) = stream.did()
    assert isinstance(recorded, Recorded)
    stream.commands = primary
    (effect,) = stream.effects("ExecuteCommands", pCommandBuffers=[secondary])
    assert effect == Execute(((secondary, (recorded.command,)),))
    stream.commands = secondary
    stream.fill(buffer, 2)
    assert effect == Execute(((secondary, (recorded.command,)),))


def test_nothing_stays_bound_after_secondaries(stream: InterpretedStream) -> None:
    buffer = stream.buffer(64)
    dispatch = stream.compute("fill_words_writeonly", [buffer])
    primary = stream.commands
    secondary = stream.begin(level=1)
    stream.commands = primary
    dispatch.run()
    stream.effects("ExecuteCommands", pCommandBuffers=[secondary])
    unbound = stream.effects("Dispatch", groupCountX=1, groupCountY=1, groupCountZ=1)
    assert unbound == (Unmodelled("a pipeline whose shaders were not seen"),)


def test_a_secondary_that_nobody_saw_is_named(stream: InterpretedStream) -> None:
    effects = stream.effects("ExecuteCommands", pCommandBuffers=[77])
    assert effects == (Unmodelled("a secondary command buffer whose recording was not seen"),)


def test_a_secondary_keeps_what_it_inherits_of_a_render_pass(stream: InterpretedStream) -> None:
    secondary = stream.begin(level=1)
    inherited = struct("VkCommandBufferInheritanceInfo", renderPass=80, subpass=1, framebuffer=81)
    for flags, expected in ((2, inherited), (0, None)):
        begin = struct("VkCommandBufferBeginInfo", flags=flags, pInheritanceInfo=inherited)
        stream.call("vkBeginCommandBuffer", commandBuffer=secondary, pBeginInfo=begin)
        assert stream.did()[-1] == CommandBufferReset(secondary)
        held = stream.interpreter.objects.get(CommandBuffer, secondary)
        assert held is not None and held.inheritance == expected


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
    assert short(effects) == [("COPY_TRANSFER_WRITE", buffer, spans)]


def test_many_query_results_are_one_range(stream: InterpretedStream) -> None:
    """However many a trace claims, the work is bounded; the buffer ends the range."""
    buffer, pool = stream.buffer(256), query_pool(stream, OCCLUSION)
    effects = stream.effects(
        "CopyQueryPoolResults", queryPool=pool, queryCount=0xFFFFFFFF, dstBuffer=buffer, dstOffset=8, stride=64
    )
    assert short(effects) == [("COPY_TRANSFER_WRITE", buffer, ((8, 256),))]


def test_queries_touch_no_memory_of_others(stream: InterpretedStream) -> None:
    pool = query_pool(stream, OCCLUSION)
    for name in ("BeginQuery", "EndQuery", "ResetQueryPool", "WriteTimestamp", "WriteTimestamp2", "EndQueryIndexedEXT"):
        assert stream.effects(name, queryPool=pool) == ()
    assert stream.effects("CopyQueryPoolResults", queryPool=pool, dstBuffer=stream.buffer(8)) == ()


@pytest.mark.parametrize("name", ["WriteBufferMarkerAMD", "WriteBufferMarker2AMD"])
def test_a_marker_is_four_bytes(stream: InterpretedStream, name: str) -> None:
    buffer = stream.buffer(64)
    (effect,) = stream.effects(name, dstBuffer=buffer, dstOffset=12, marker=7)
    assert short((effect,)) == [("COPY_TRANSFER_WRITE", buffer, ((12, 16),))]
    assert isinstance(effect, Access) and effect.marker


# Semaphores


def test_semaphores_are_binary_or_begin_at_a_value(stream: InterpretedStream) -> None:
    stream.did()
    binary = stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))
    plain = struct("VkSemaphoreTypeCreateInfo", semaphoreType=0, initialValue=0)
    typed = stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo", pNext=plain))
    chain = struct("VkExportSemaphoreCreateInfo", pNext=struct("VkSemaphoreTypeCreateInfo", semaphoreType=1,
                                                               initialValue=5))  # fmt: skip
    timeline = stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo", pNext=chain))
    assert stream.did() == [
        SemaphoreCreated(binary, None),
        SemaphoreCreated(typed, None),
        SemaphoreCreated(timeline, 5),
    ]
    stream.call("vkDestroySemaphore", device=stream.device, semaphore=binary)
    assert stream.did() == [Destroyed(binary)]


@pytest.mark.parametrize("suffix", ["", "KHR"])
def test_the_host_signals_and_reads_timelines(stream: InterpretedStream, suffix: str) -> None:
    stream.did()
    info = struct("VkSemaphoreSignalInfo", semaphore=90, value=7)
    stream.call(f"vkSignalSemaphore{suffix}", device=stream.device, pSignalInfo=info)
    assert stream.did(0) == [HostSignaled(90, 7)]
    stream.call(f"vkGetSemaphoreCounterValue{suffix}", device=stream.device, semaphore=90, pValue=6)
    assert stream.did(0) == [HostWaitedSemaphores(((90, 6),))]


@pytest.mark.parametrize(
    ("flags", "semaphores", "result", "known"),
    [
        (0, [90, 91], 0, ((90, 3), (91, 4))),
        (1, [90], 0, ((90, 3),)),
        (1, [90, 91], 0, None),
        (0, [90], 2, None),
        (0, [90], -4, None),
    ],
)
def test_only_certain_waits_count(
    stream: InterpretedStream, flags: int, semaphores: list[int], result: int, known: tuple[tuple[int, int], ...] | None
) -> None:
    """Any-of-several is uncertain, VK_TIMEOUT and a lost device say nothing."""
    stream.did()
    info = struct("VkSemaphoreWaitInfo", flags=flags, pSemaphores=semaphores, pValues=[3, 4][: len(semaphores)])
    stream.call("vkWaitSemaphores", device=stream.device, pWaitInfo=info)
    assert stream.did(result) == ([] if known is None else [HostWaitedSemaphores(known)])


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
    stream.call("vkGetSwapchainImagesKHR", device=stream.device, swapchain=made, pSwapchainImageCount=images,
              pSwapchainImages=ids)  # fmt: skip
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
    assert acquire(stream, 77, 0) == [UnmodelledCall(what)]
    assert acquire(stream, swapchain(stream)[0], 9) == [UnmodelledCall(what)]


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
    return HostAccess(len(stream.blocks), name, None, image, spans, image, write)


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
