"""Effects of commands and calls of synchronization, one by one: events, secondaries, semaphores."""

from __future__ import annotations

import pytest

from tests.support import passes
from tests.support.interpreted import InterpretedStream, effects_of
from tests.support.streams import R8G8B8A8, struct
from vkharness.commands.object_state import CommandBuffer
from vkharness.findings import Place
from vkharness.spec.enums import (
    VK_REMAINING_ARRAY_LAYERS,
    VkAccess2,
    VkImageCreate,
    VkPipelineStage2,
    VkResult,
    VkStructureType,
)
from vkharness.trace.effects import (
    Barrier,
    CommandBufferReset,
    Dependency,
    Destroyed,
    Execute,
    RangeBarrier,
    Recorded,
    ResetEvent,
    SemaphoreCreated,
    SetEvent,
    SubpassBegin,
    Unmodelled,
    UnmodelledCall,
    WaitEvents,
)
from vkharness.trace.host_effects import DeviceLost, HostSawEvent, HostSetEvent, HostSignaled, HostWaitedSemaphores

COPY, COPY_WRITE = VkPipelineStage2.COPY, VkAccess2.TRANSFER_WRITE
SLICES, REST = VkImageCreate.CREATE_2D_ARRAY_COMPATIBLE, VK_REMAINING_ARRAY_LAYERS
FRAGMENT, SAMPLED = VkPipelineStage2.FRAGMENT_SHADER, VkAccess2.SHADER_SAMPLED_READ


# Events


def memory_barrier(src: int, src_access: int, dst: int, dst_access: int) -> dict[str, object]:
    return struct(
        "VkMemoryBarrier2", srcStageMask=src, srcAccessMask=src_access, dstStageMask=dst, dstAccessMask=dst_access
    )


def dependency_info(**lists: list[dict[str, object]]) -> dict[str, object]:
    return struct("VkDependencyInfo", **lists)


def test_set_event_says_only_the_stages_before_it(stream: InterpretedStream) -> None:
    (effect,) = stream.effects("SetEvent", event=90, stageMask=0x1000)
    assert effect == SetEvent(90, Barrier((Dependency(0x1000, 0, 0, 0),)), sync2=False)


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
    assert effect == SetEvent(90, Barrier((Dependency(COPY, 0, FRAGMENT, 0),), ranges=(ranged,)), sync2=True)


@pytest.mark.parametrize("name", ["ResetEvent", "ResetEvent2", "ResetEvent2KHR"])
def test_reset_event(stream: InterpretedStream, name: str) -> None:
    assert stream.effects(name, event=90, stageMask=0x80) == (ResetEvent(90, 0x80),)


def test_wait_events_has_one_barrier_for_all(stream: InterpretedStream) -> None:
    full = struct("VkMemoryBarrier", srcAccessMask=COPY_WRITE, dstAccessMask=0x800)
    (effect,) = stream.effects(
        "WaitEvents", pEvents=[90, 91], srcStageMask=0x1000, dstStageMask=0x800, pMemoryBarriers=[full]
    )
    execution, memory = Dependency(0x1000, 0, 0x800, 0), Dependency(0x1000, COPY_WRITE, 0x800, 0x800)
    assert effect == WaitEvents((90, 91), (Barrier((memory, execution)),), sync2=False)


@pytest.mark.parametrize("name", ["WaitEvents2", "WaitEvents2KHR"])
def test_wait_events2_has_a_barrier_for_each(stream: InterpretedStream, name: str) -> None:
    infos = [
        dependency_info(pMemoryBarriers=[memory_barrier(COPY, COPY_WRITE, FRAGMENT, SAMPLED)]),
        dependency_info(pMemoryBarriers=[memory_barrier(FRAGMENT, 0, COPY, 0)]),
    ]
    (effect,) = stream.effects(name, pEvents=[90, 91], pDependencyInfos=infos)
    one = Barrier((Dependency(COPY, COPY_WRITE, FRAGMENT, SAMPLED),))
    other = Barrier((Dependency(FRAGMENT, 0, COPY, 0),))
    assert effect == WaitEvents((90, 91), (one, other), sync2=True)


def test_where_a_program_gives_no_dependency_of_an_event_there_is_none(stream: InterpretedStream) -> None:
    (effect,) = stream.effects("WaitEvents2", pEvents=[90, 91], pDependencyInfos=None)
    assert effect == WaitEvents((90, 91), (Barrier(()), Barrier(())), sync2=True)


def test_the_host_sets_and_resets_events(stream: InterpretedStream) -> None:
    stream.did()
    signaled = stream.call("vkSetEvent", device=stream.device, event=90)
    reset = stream.call("vkResetEvent", device=stream.device, event=90)
    stream.call("vkDestroyEvent", device=stream.device, event=91)
    stream.call("vkDestroyEvent", device=stream.device, event=0)
    assert stream.did() == [
        HostSetEvent(90, signaled=True, call=signaled),
        HostSetEvent(90, signaled=False, call=reset),
        HostSetEvent(91, signaled=False),
    ]


# Secondaries


@pytest.mark.parametrize(("result", "known"), [(VkResult.EVENT_SET, True), (VkResult.EVENT_RESET, False), (0, False)])
def test_the_status_of_an_event_tells_that_it_is_set(stream: InterpretedStream, result: int, known: bool) -> None:
    stream.did()
    stream.call("vkGetEventStatus", event=90)
    assert stream.did(result) == [HostSawEvent(90)] * known


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
    assert effects == (
        Unmodelled("vkCmdExecuteCommands (VkCommandBuffer 77, which no call made, or which is destroyed)"),
    )


def test_a_secondary_keeps_what_it_inherits_of_a_render_pass(stream: InterpretedStream) -> None:
    secondary = stream.begin(level=1)
    inherited = struct("VkCommandBufferInheritanceInfo", renderPass=80, subpass=1, framebuffer=81)
    for flags, expected in ((2, inherited), (0, None)):
        begin = struct("VkCommandBufferBeginInfo", flags=flags, pInheritanceInfo=inherited)
        stream.call("vkBeginCommandBuffer", commandBuffer=secondary, pBeginInfo=begin)
        assert stream.did()[-1] == CommandBufferReset(secondary)
        held = stream.interpreter.objects.get(CommandBuffer, secondary)
        assert held is not None and held.inheritance == expected


# Semaphores


def test_semaphores_are_binary_or_begin_at_a_value(stream: InterpretedStream) -> None:
    stream.did()
    binary = stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))
    plain = struct("VkSemaphoreTypeCreateInfo", semaphoreType=0, initialValue=0)
    typed = stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo", pNext=plain))
    chain = struct("VkExportSemaphoreCreateInfo", pNext=struct("VkSemaphoreTypeCreateInfo", semaphoreType=1,
                                                               initialValue=5))  # fmt: skip
    timeline = stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo", pNext=chain))
    by = [Place(number, "vkCreateSemaphore", None) for number in range(len(stream.blocks) - 2, len(stream.blocks) + 1)]
    assert stream.did() == [
        SemaphoreCreated(binary, None, by=by[0]),
        SemaphoreCreated(typed, None, by=by[1]),
        SemaphoreCreated(timeline, 5, by=by[2]),
    ]
    stream.call("vkDestroySemaphore", device=stream.device, semaphore=binary)
    assert stream.did() == [Destroyed(binary, by=Place(len(stream.blocks), "vkDestroySemaphore", None))]


@pytest.mark.parametrize("legacy", [True, False])
def test_a_sleep_for_latency_signals_as_the_host_does(stream: InterpretedStream, legacy: bool) -> None:
    stream.did()
    if legacy:
        stream.call("vkLatencySleepLegacyNV", device=stream.device, signalSemaphore=90, value=7)
    else:
        info = struct("VkLatencySleepInfoNV", signalSemaphore=90, value=7)
        stream.call("vkLatencySleepNV", device=stream.device, pSleepInfo=info)
    assert stream.did(0) == [HostSignaled(90, 7)]


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
    """Any-of-several is uncertain, VK_TIMEOUT says nothing, and a lost device that it is lost."""
    stream.did()
    info = struct("VkSemaphoreWaitInfo", flags=flags, pSemaphores=semaphores, pValues=[3, 4][: len(semaphores)])
    stream.call("vkWaitSemaphores", device=stream.device, pWaitInfo=info)
    lost = [DeviceLost()] if result == -4 else []
    assert stream.did(result) == (lost if known is None else [HostWaitedSemaphores(known)])


# Slices of 3D images


@pytest.mark.parametrize(
    ("enabled", "flags", "layers", "spans"),
    [
        ([{"maintenance9": 1}], SLICES, (1, 2), ((64, 192),)),
        ([{"maintenance9": 1}], SLICES, (3, REST), ((192, 256),)),
        ([{"maintenance9": 1}], SLICES, (0, REST), ((0, 256),)),
        ([{"maintenance9": 1}], 0, (0, 1), ((0, 256),)),
        ([{"maintenance9": 0}], SLICES, (0, 1), ((0, 256),)),
        ([], SLICES, (0, 1), ((0, 256),)),
    ],
)
def test_a_barrier_names_slices_of_a_3d_image_where_maintenance9_is_enabled(
    enabled: list[dict[str, int]], flags: int, layers: tuple[int, int], spans: tuple[tuple[int, int], ...]
) -> None:
    stream = with_features(enabled)
    image = stream.image((8, 8, 4), kind=2, flags=flags)
    stream.begin()
    part = {"aspectMask": 1, "baseMipLevel": 0, "levelCount": 1, "baseArrayLayer": layers[0], "layerCount": layers[1]}
    moved = struct("VkImageMemoryBarrier2", image=image, subresourceRange=part, oldLayout=0, newLayout=1)
    (effect,) = stream.effects("PipelineBarrier2", pDependencyInfo=dependency_info(pImageMemoryBarriers=[moved]))
    assert isinstance(effect, Barrier)
    assert [each.spans for each in effect.ranges] == [spans]


@pytest.mark.parametrize(("slices", "spans"), [(True, ((128, 256),)), (False, ((0, 256),))])
def test_a_transition_by_a_render_pass_moves_the_slices_of_its_view(
    slices: bool, spans: tuple[tuple[int, int], ...]
) -> None:
    stream = with_features([{"maintenance9": 1}] if slices else [])
    image = stream.image((8, 8, 4), kind=2, flags=SLICES)
    view = passes.view(stream, image, R8G8B8A8, kind=5, layers=(2, 2))
    render_pass = passes.render_pass(stream, [passes.described()], [passes.subpass([passes.refer(0)])])
    frame = passes.framebuffer(stream, render_pass, [view], (8, 8))
    stream.begin()
    begun = passes.begin_pass(stream, render_pass, frame, passes.rect((8, 8)))
    subpasses = [effect for effect in effects_of(stream)[begun] if isinstance(effect, SubpassBegin)]
    moved = [each for effect in subpasses for each in effect.transitions]
    assert [each.spans for each in moved] == [spans]


def test_a_trace_without_the_value_of_maintenance9_is_named() -> None:
    stream = with_features([{}])
    stream.image((8, 8, 4), kind=2)
    stream.image((8, 8, 4), kind=2, flags=SLICES)
    named = [each.what for each in stream.did() if isinstance(each, UnmodelledCall)]
    assert len(named) == 1 and "maintenance9" in named[0]


def with_features(chain: list[dict[str, int]]) -> InterpretedStream:
    """A stream on a device with VkPhysicalDeviceMaintenance9FeaturesKHR, or without."""
    stream = InterpretedStream()
    link: dict[str, object] | None = None
    for each in chain:
        link = {"sType": VkStructureType.PHYSICAL_DEVICE_MAINTENANCE_9_FEATURES_KHR, "pNext": link, **each}
    stream.device = stream.id()
    info = struct("VkDeviceCreateInfo", pNext=link)
    stream.call("vkCreateDevice", physicalDevice=0, pCreateInfo=info, pDevice=stream.device)
    return stream
