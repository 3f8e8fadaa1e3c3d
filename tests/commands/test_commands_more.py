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
from tests.support.streams import COLOR, DST, R8G8B8A8, extent, layers, struct
from tests.support.told import Told, short

COPY, COPY_WRITE = VkPipelineStage2.COPY, VkAccess2.TRANSFER_WRITE
FRAGMENT, SAMPLED = VkPipelineStage2.FRAGMENT_SHADER, VkAccess2.SHADER_SAMPLED_READ
WHOLE = VK_WHOLE_SIZE


@pytest.fixture
def told() -> Told:
    told = Told()
    told.begin()
    return told


# Events


def memory_barrier(src: int, src_access: int, dst: int, dst_access: int) -> dict[str, object]:
    return struct(
        "VkMemoryBarrier2", srcStageMask=src, srcAccessMask=src_access, dstStageMask=dst, dstAccessMask=dst_access
    )


def dependency_info(**lists: list[dict[str, object]]) -> dict[str, object]:
    return struct("VkDependencyInfo", **lists)


def test_set_event_says_only_the_stages_before_it(told: Told) -> None:
    (effect,) = told.effects("SetEvent", event=90, stageMask=0x1000)
    assert effect == SetEvent(90, Barrier((Dependency(0x1000, 0, 0, 0),)), False)


@pytest.mark.parametrize("name", ["SetEvent2", "SetEvent2KHR"])
def test_set_event2_says_the_whole_dependency(told: Told, name: str) -> None:
    buffer = told.buffer(64)
    one = struct(
        "VkBufferMemoryBarrier2",
        srcStageMask=COPY, srcAccessMask=COPY_WRITE, dstStageMask=FRAGMENT, dstAccessMask=SAMPLED,
        buffer=buffer, offset=16, size=8,
    )  # fmt: skip
    info = dependency_info(pBufferMemoryBarriers=[one])
    (effect,) = told.effects(name, event=90, pDependencyInfo=info)
    whole = Dependency(COPY, COPY_WRITE, FRAGMENT, SAMPLED)
    ranged = RangeBarrier(whole, buffer + 1, ((16, 24),), buffer)
    assert effect == SetEvent(90, Barrier((Dependency(COPY, 0, FRAGMENT, 0),), (ranged,)), True)


@pytest.mark.parametrize("name", ["ResetEvent", "ResetEvent2", "ResetEvent2KHR"])
def test_reset_event(told: Told, name: str) -> None:
    assert told.effects(name, event=90, stageMask=0x80) == (ResetEvent(90, 0x80),)


def test_wait_events_has_one_barrier_for_all(told: Told) -> None:
    full = struct("VkMemoryBarrier", srcAccessMask=COPY_WRITE, dstAccessMask=0x800)
    (effect,) = told.effects(
        "WaitEvents", pEvents=[90, 91], srcStageMask=0x1000, dstStageMask=0x800, pMemoryBarriers=[full]
    )
    execution, memory = Dependency(0x1000, 0, 0x800, 0), Dependency(0x1000, COPY_WRITE, 0x800, 0x800)
    assert effect == WaitEvents((90, 91), (Barrier((memory, execution)),), False)


@pytest.mark.parametrize("name", ["WaitEvents2", "WaitEvents2KHR"])
def test_wait_events2_has_a_barrier_for_each(told: Told, name: str) -> None:
    infos = [
        dependency_info(pMemoryBarriers=[memory_barrier(COPY, COPY_WRITE, FRAGMENT, SAMPLED)]),
        dependency_info(pMemoryBarriers=[memory_barrier(FRAGMENT, 0, COPY, 0)]),
    ]
    (effect,) = told.effects(name, pEvents=[90, 91], pDependencyInfos=infos)
    one = Barrier((Dependency(COPY, COPY_WRITE, FRAGMENT, SAMPLED),))
    other = Barrier((Dependency(FRAGMENT, 0, COPY, 0),))
    assert effect == WaitEvents((90, 91), (one, other), True)


def test_the_host_sets_and_resets_events(told: Told) -> None:
    told.did()
    told.call("vkSetEvent", device=told.device, event=90)
    told.call("vkResetEvent", device=told.device, event=90)
    told.call("vkDestroyEvent", device=told.device, event=91)
    told.call("vkDestroyEvent", device=told.device, event=0)
    assert told.did() == [HostSetEvent(90, True), HostSetEvent(90, False), HostSetEvent(91, False)]


# Binding by stages (VK_KHR_maintenance6)


def compute_writes(told: Told) -> list[tuple[str, int, tuple[tuple[int, int], ...]]]:
    return short(told.effects("Dispatch", groupCountX=1, groupCountY=1, groupCountZ=1))


def test_sets_are_bound_to_every_bind_point_that_runs_the_stages(told: Told) -> None:
    buffer = told.buffer(64)
    dispatch = told.compute("fill_words_writeonly", [buffer])
    written = [("COMPUTE_SHADER_SHADER_STORAGE_WRITE", buffer, ((0, 64),))]
    told.cmd("BindPipeline", pipelineBindPoint=1, pipeline=dispatch.pipeline)
    for stages, expected in ((0x10, []), (0x30, written)):
        sets = struct("VkBindDescriptorSetsInfoKHR", stageFlags=stages, pDescriptorSets=[dispatch.set])
        assert told.effects("BindDescriptorSets2KHR", pBindDescriptorSetsInfo=sets) == ()
        assert compute_writes(told) == expected


def test_descriptors_are_pushed_to_every_bind_point_that_runs_the_stages(told: Told) -> None:
    one, other = told.buffer(64), told.buffer(32)
    dispatch = told.compute("fill_words_writeonly", [one])
    dispatch.run()
    write = struct(
        "VkWriteDescriptorSet",
        descriptorCount=1, descriptorType=7, pBufferInfo=[struct("VkDescriptorBufferInfo", buffer=other, range=WHOLE)],
    )  # fmt: skip
    for stages, buffer, size in ((0x10, one, 64), (0x20, other, 32)):
        info = struct(
            "VkPushDescriptorSetInfoKHR", stageFlags=stages, layout=dispatch.layout, pDescriptorWrites=[write]
        )
        assert told.effects("PushDescriptorSet2KHR", pPushDescriptorSetInfo=info) == ()
        assert compute_writes(told) == [("COMPUTE_SHADER_SHADER_STORAGE_WRITE", buffer, ((0, size),))]
    assert told.effects("PushConstants2KHR") == ()


# Secondaries


def test_a_secondary_runs_with_what_it_holds_now(told: Told) -> None:
    buffer = told.buffer(64)
    primary = told.commands
    secondary = told.begin(level=1)
    told.did()
    told.fill(buffer, 1)
    told.end()
    (recorded,) = told.did()
    assert isinstance(recorded, Recorded)
    told.commands = primary
    (effect,) = told.effects("ExecuteCommands", pCommandBuffers=[secondary])
    assert effect == Execute(((secondary, (recorded.command,)),))
    told.commands = secondary
    told.fill(buffer, 2)
    assert effect == Execute(((secondary, (recorded.command,)),))


def test_nothing_stays_bound_after_secondaries(told: Told) -> None:
    buffer = told.buffer(64)
    dispatch = told.compute("fill_words_writeonly", [buffer])
    primary = told.commands
    secondary = told.begin(level=1)
    told.commands = primary
    dispatch.run()
    told.effects("ExecuteCommands", pCommandBuffers=[secondary])
    unbound = told.effects("Dispatch", groupCountX=1, groupCountY=1, groupCountZ=1)
    assert unbound == (Unmodelled("a pipeline whose shaders were not seen"),)


def test_a_secondary_that_nobody_saw_is_named(told: Told) -> None:
    effects = told.effects("ExecuteCommands", pCommandBuffers=[77])
    assert effects == (Unmodelled("a secondary command buffer whose recording was not seen"),)


def test_a_secondary_keeps_what_it_inherits_of_a_render_pass(told: Told) -> None:
    secondary = told.begin(level=1)
    inherited = struct("VkCommandBufferInheritanceInfo", renderPass=80, subpass=1, framebuffer=81)
    for flags, expected in ((2, inherited), (0, None)):
        begin = struct("VkCommandBufferBeginInfo", flags=flags, pInheritanceInfo=inherited)
        told.call("vkBeginCommandBuffer", commandBuffer=secondary, pBeginInfo=begin)
        assert told.did()[-1] == CommandBufferReset(secondary)
        held = told.interpreter.objects.get(CommandBuffer, secondary)
        assert held is not None and held.inheritance == expected


# Queries and markers

OCCLUSION = VkQueryType.OCCLUSION
STATISTICS = VkQueryType.PIPELINE_STATISTICS
TIMESTAMP = VkQueryType.TIMESTAMP
STREAM = VkQueryType.TRANSFORM_FEEDBACK_STREAM_EXT


def query_pool(told: Told, kind: int, statistics: int = 0) -> int:
    info = struct("VkQueryPoolCreateInfo", queryType=kind, queryCount=8, pipelineStatistics=statistics)
    return told.make("vkCreateQueryPool", "pQueryPool", info)


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
    told: Told, kind: int, statistics: int, count: int, stride: int, flags: int, spans: tuple[tuple[int, int], ...]
) -> None:
    buffer, pool = told.buffer(256), query_pool(told, kind, statistics)
    effects = told.effects(
        "CopyQueryPoolResults",
        queryPool=pool, queryCount=count, dstBuffer=buffer, dstOffset=8, stride=stride, flags=flags,
    )  # fmt: skip
    assert short(effects) == [("COPY_TRANSFER_WRITE", buffer, spans)]


def test_many_query_results_are_one_range(told: Told) -> None:
    """However many a trace claims, the work is bounded; the buffer ends the range."""
    buffer, pool = told.buffer(256), query_pool(told, OCCLUSION)
    effects = told.effects(
        "CopyQueryPoolResults", queryPool=pool, queryCount=0xFFFFFFFF, dstBuffer=buffer, dstOffset=8, stride=64
    )
    assert short(effects) == [("COPY_TRANSFER_WRITE", buffer, ((8, 256),))]


def test_queries_touch_no_memory_of_others(told: Told) -> None:
    pool = query_pool(told, OCCLUSION)
    for name in ("BeginQuery", "EndQuery", "ResetQueryPool", "WriteTimestamp", "WriteTimestamp2", "EndQueryIndexedEXT"):
        assert told.effects(name, queryPool=pool) == ()
    assert told.effects("CopyQueryPoolResults", queryPool=pool, dstBuffer=told.buffer(8)) == ()


@pytest.mark.parametrize("name", ["WriteBufferMarkerAMD", "WriteBufferMarker2AMD"])
def test_a_marker_is_four_bytes(told: Told, name: str) -> None:
    buffer = told.buffer(64)
    (effect,) = told.effects(name, dstBuffer=buffer, dstOffset=12, marker=7)
    assert short((effect,)) == [("COPY_TRANSFER_WRITE", buffer, ((12, 16),))]
    assert isinstance(effect, Access) and effect.marker


# Semaphores


def test_semaphores_are_binary_or_begin_at_a_value(told: Told) -> None:
    told.did()
    binary = told.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))
    plain = struct("VkSemaphoreTypeCreateInfo", semaphoreType=0, initialValue=0)
    typed = told.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo", pNext=plain))
    chain = struct("VkExportSemaphoreCreateInfo", pNext=struct("VkSemaphoreTypeCreateInfo", semaphoreType=1,
                                                               initialValue=5))  # fmt: skip
    timeline = told.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo", pNext=chain))
    assert told.did() == [SemaphoreCreated(binary, None), SemaphoreCreated(typed, None), SemaphoreCreated(timeline, 5)]
    told.call("vkDestroySemaphore", device=told.device, semaphore=binary)
    assert told.did() == [Destroyed(binary)]


@pytest.mark.parametrize("suffix", ["", "KHR"])
def test_the_host_signals_and_reads_timelines(told: Told, suffix: str) -> None:
    told.did()
    info = struct("VkSemaphoreSignalInfo", semaphore=90, value=7)
    told.call(f"vkSignalSemaphore{suffix}", device=told.device, pSignalInfo=info)
    assert told.did(0) == [HostSignaled(90, 7)]
    told.call(f"vkGetSemaphoreCounterValue{suffix}", device=told.device, semaphore=90, pValue=6)
    assert told.did(0) == [HostWaitedSemaphores(((90, 6),))]


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
    told: Told, flags: int, semaphores: list[int], result: int, known: tuple[tuple[int, int], ...] | None
) -> None:
    """Any-of-several is uncertain, VK_TIMEOUT and a lost device say nothing."""
    told.did()
    info = struct("VkSemaphoreWaitInfo", flags=flags, pSemaphores=semaphores, pValues=[3, 4][: len(semaphores)])
    told.call("vkWaitSemaphores", device=told.device, pWaitInfo=info)
    assert told.did(result) == ([] if known is None else [HostWaitedSemaphores(known)])


# Presentation

SUBOPTIMAL = VkResult.SUBOPTIMAL_KHR


def swapchain(told: Told, images: int = 2, old: int = 0) -> tuple[int, list[int]]:
    info = struct(
        "VkSwapchainCreateInfoKHR",
        minImageCount=images, imageFormat=R8G8B8A8, imageExtent={"width": 8, "height": 4}, imageArrayLayers=1,
        imageUsage=0x10, oldSwapchain=old,
    )  # fmt: skip
    made = told.make("vkCreateSwapchainKHR", "pSwapchain", info)
    ids = [told.id() for _ in range(images)]
    told.call("vkGetSwapchainImagesKHR", device=told.device, swapchain=made, pSwapchainImageCount=images)
    told.call("vkGetSwapchainImagesKHR", device=told.device, swapchain=made, pSwapchainImageCount=images,
              pSwapchainImages=ids)  # fmt: skip
    told.did()
    return made, ids


def acquire(told: Told, chain: int, index: int, result: int = 0) -> list[object]:
    told.did()
    told.call("vkAcquireNextImageKHR", device=told.device, swapchain=chain, semaphore=90, fence=91, pImageIndex=index)
    return list(told.did(result))


@pytest.mark.parametrize("result", [0, SUBOPTIMAL])
def test_an_acquired_image_is_read_until_its_semaphore_or_fence(told: Told, result: int) -> None:
    chain, images = swapchain(told)
    (found,) = acquire(told, chain, 1, result)
    assert found == Acquired(len(told.blocks), "vkAcquireNextImageKHR", None, chain, images[1], 90, 91)


def test_acquire_has_a_second_form(told: Told) -> None:
    chain, images = swapchain(told)
    info = struct("VkAcquireNextImageInfoKHR", swapchain=chain, semaphore=90)
    index = told.call("vkAcquireNextImage2KHR", device=told.device, pAcquireInfo=info, pImageIndex=0)
    assert told.did(0) == [Acquired(index, "vkAcquireNextImage2KHR", None, chain, images[0], 90, 0)]


@pytest.mark.parametrize("result", [1, 2, -1000001004])
def test_no_image_no_access(told: Told, result: int) -> None:
    """VK_NOT_READY, VK_TIMEOUT, VK_ERROR_OUT_OF_DATE_KHR."""
    assert acquire(told, swapchain(told)[0], 0, result) == []


def test_images_that_nobody_asked_for_are_named(told: Told) -> None:
    what = "vkAcquireNextImageKHR of a swapchain whose images were not seen"
    assert acquire(told, 77, 0) == [UnmodelledCall(what)]
    assert acquire(told, swapchain(told)[0], 9) == [UnmodelledCall(what)]


def test_present_names_the_images_of_every_swapchain(told: Told) -> None:
    one, of_one = swapchain(told)
    other, of_other = swapchain(told, old=one)
    info = struct("VkPresentInfoKHR", pWaitSemaphores=[92], pSwapchains=[one, other], pImageIndices=[1, 0])
    index = told.call("vkQueuePresentKHR", queue=told.queue, pPresentInfo=info)
    pairs = ((one, of_one[1]), (other, of_other[0]))
    assert told.did(SUBOPTIMAL) == [Presented(index, "vkQueuePresentKHR", None, told.queue, (92,), pairs)]


def test_a_retired_swapchain_keeps_its_images(told: Told) -> None:
    objects = told.interpreter.objects
    one, of_one = swapchain(told)
    swapchain(told, old=one)
    assert objects.get(Swapchain, one) is not None
    assert objects.image(of_one[0]) is not None
    told.call("vkDestroySwapchainKHR", device=told.device, swapchain=one)
    assert told.did() == [Destroyed(image, resource=image) for image in of_one]
    assert objects.image(of_one[0]) is None


def test_an_image_on_the_memory_of_a_swapchain_is_named(told: Told) -> None:
    image = told.make("vkCreateImage", "pImage", struct("VkImageCreateInfo", format=R8G8B8A8, mipLevels=1))
    chain = struct("VkBindImageMemorySwapchainInfoKHR", swapchain=swapchain(told)[0], imageIndex=1)
    told.call("vkBindImageMemory2", pBindInfos=[struct("VkBindImageMemoryInfo", image=image, pNext=chain)])
    assert told.did(0) == [UnmodelledCall("an image on the memory of a swapchain")]
    told.call("vkBindImageMemory2", pBindInfos=[struct("VkBindImageMemoryInfo", image=image)])
    assert told.did(0) == []


def test_swapchain_images_are_images(told: Told) -> None:
    _, images = swapchain(told)
    whole = struct("VkImageSubresourceRange", aspectMask=COLOR, levelCount=1, layerCount=1)
    effects = told.effects("ClearColorImage", image=images[0], imageLayout=DST, pRanges=[whole])
    assert short(effects) == [("CLEAR_TRANSFER_WRITE", images[0], ((0, 32),))]


# The host's own image copies


def host(told: Told, name: str, image: int, spans: tuple[tuple[int, int], ...], write: bool) -> HostAccess:
    return HostAccess(len(told.blocks), name, None, image, spans, image, write)


def test_the_host_copies_images(told: Told) -> None:
    source, target = told.image((8, 4, 1)), told.image((8, 4, 1))
    told.did()
    region = struct("VkMemoryToImageCopyEXT", imageSubresource=layers(), imageExtent=extent((8, 1, 1)))
    info = struct("VkCopyMemoryToImageInfoEXT", dstImage=target, pRegions=[region])
    told.call("vkCopyMemoryToImageEXT", device=told.device, pCopyMemoryToImageInfo=info)
    assert told.did(0) == [host(told, "vkCopyMemoryToImageEXT", target, ((0, 8),), True)]
    region = struct("VkImageToMemoryCopyEXT", imageSubresource=layers(), imageExtent=extent((2, 2, 1)))
    info = struct("VkCopyImageToMemoryInfoEXT", srcImage=source, pRegions=[region])
    told.call("vkCopyImageToMemoryEXT", device=told.device, pCopyImageToMemoryInfo=info)
    assert told.did(0) == [host(told, "vkCopyImageToMemoryEXT", source, ((0, 2), (8, 10)), False)]
    both = struct("VkImageCopy2", srcSubresource=layers(), dstSubresource=layers(), extent=extent((8, 2, 1)),
                  dstOffset={"x": 0, "y": 2, "z": 0})  # fmt: skip
    info = struct("VkCopyImageToImageInfoEXT", srcImage=source, dstImage=target, pRegions=[both])
    told.call("vkCopyImageToImageEXT", device=told.device, pCopyImageToImageInfo=info)
    name = "vkCopyImageToImageEXT"
    assert told.did(0) == [host(told, name, source, ((0, 16),), False), host(told, name, target, ((16, 32),), True)]


def test_the_host_transitions_layouts(told: Told) -> None:
    image = told.image((8, 4, 1), mips=2)
    told.did()
    part = struct("VkImageSubresourceRange", aspectMask=COLOR, baseMipLevel=1, levelCount=1, layerCount=1)
    changes = [
        struct("VkHostImageLayoutTransitionInfoEXT", image=image, oldLayout=old, newLayout=1, subresourceRange=part)
        for old in (0, 1)
    ]
    told.call("vkTransitionImageLayoutEXT", device=told.device, pTransitions=changes)
    assert told.did(0) == [host(told, "vkTransitionImageLayoutEXT", image, ((32, 40),), True)]
