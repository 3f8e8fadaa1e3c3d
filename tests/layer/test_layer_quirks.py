"""What the installed layer does where the rules left it open: the evidence for differences.toml, provoked on lavapipe.

Written for 1.3.239. Each test says what was seen; the ids in brackets are entries of differences.toml.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.layer.manifest import find_layer
from harness.layer.parse import RECORD, SUBMIT, LayerMessage
from harness.spec.enums import VkPipelineStage2
from tests.support.layer_rig import (
    ALL_COMMANDS,
    COMPUTE,
    SHADER_READ,
    TRANSFER,
    TRANSFER_READ,
    TRANSFER_WRITE,
    Rig,
    compile_compute,
    rig,
)

LAYER = find_layer()
VERSION = LAYER.api_version if LAYER else (0, 0, 0)
pytestmark = pytest.mark.skipif(
    VERSION != (1, 3, 239), reason=f"evidence about the layer 1.3.239; installed is {LAYER and LAYER.version_text}"
)

RAW, WAR, WAW = "READ_AFTER_WRITE", "WRITE_AFTER_READ", "WRITE_AFTER_WRITE"
COPY, CLEAR = VkPipelineStage2.COPY, VkPipelineStage2.CLEAR
EXECUTION = (TRANSFER, TRANSFER)
HEAD = "#version 450\nlayout(local_size_x=1) in; layout(binding=1) buffer B{uint b[];};"
SHADERS = {
    "loads": HEAD + "layout(binding=0) buffer A{uint a[];}; void main(){ b[0]=a[0]; }",
    "readonly": HEAD + "layout(binding=0) readonly buffer A{uint a[];}; void main(){ b[0]=a[0]; }",
    "uniform": HEAD + "layout(binding=0) uniform A{uint a;}; void main(){ b[0]=a; }",
    "atomic": HEAD + "layout(binding=0) buffer A{uint a[];}; void main(){ b[0]=1; atomicAdd(a[0],1); }",
    "both": HEAD + "layout(binding=0) buffer A{uint a[];}; void main(){ b[0]=1; a[0]=a[1]+1; }",
    "unused": HEAD + "layout(binding=0) buffer A{uint a[];}; void main(){ b[0]=1; }",
    "length": HEAD + "layout(binding=0) buffer A{uint a[];}; void main(){ b[0]=a.length(); }",
}


@pytest.fixture
def device() -> Iterator[Rig]:
    with rig() as made:
        yield made


@pytest.fixture(scope="module")
def spirv(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return {name: compile_compute(source, tmp_path_factory.mktemp(name)) for name, source in SHADERS.items()}


def hazards(messages: list[LayerMessage]) -> list[tuple[str, str, str]]:
    return [(message.hazard, message.command, message.prior_command) for message in messages]


def record(device: Rig, *steps: Any) -> Any:
    with device.recording() as buffer:
        for step in steps:
            step(buffer)
    return buffer


def barrier2(device: Rig, recording: Any, what: str, *masks: int, **members: Any) -> None:
    vk = device.vk
    kind = {"memory": vk.VkMemoryBarrier2, "buffer": vk.VkBufferMemoryBarrier2, "image": vk.VkImageMemoryBarrier2}[what]
    stages = dict(zip(("srcStageMask", "srcAccessMask", "dstStageMask", "dstAccessMask"), masks, strict=True))
    if what != "memory":
        members |= {"srcQueueFamilyIndex": 0xFFFFFFFF, "dstQueueFamilyIndex": 0xFFFFFFFF}
    if what == "buffer":
        members["size"] = 2**64 - 1
    if what == "image":
        members["subresourceRange"] = vk.VkImageSubresourceRange(1, 0, 1, 0, 1)
    name = {"memory": "pMemoryBarriers", "buffer": "pBufferMemoryBarriers", "image": "pImageMemoryBarriers"}[what]
    vk.vkCmdPipelineBarrier2(recording, vk.VkDependencyInfo(**{name: [kind(**stages, **members)]}))


def test_a_hazardous_command_updates_the_state(device: Rig) -> None:
    a, b = device.buffer(), device.buffer()
    with device.recording() as buffer:
        device.fill(buffer, a)
        device.copy(buffer, a, b)
        assert hazards(device.said()) == [(RAW, "vkCmdCopyBuffer", "vkCmdFillBuffer")]
        device.fill(buffer, a)
        assert hazards(device.said()) == [(WAR, "vkCmdFillBuffer", "vkCmdCopyBuffer")]


def test_a_message_for_each_region(device: Rig) -> None:
    a, b, later = device.buffer(), device.buffer(), device.buffer()
    with device.recording() as buffer:
        device.fill(buffer, later)
        device.copy(buffer, a, b, (0, 0, 64), (64, 32, 64))
        assert device.said() == [], "regions of one command do not conflict"
        device.copy(buffer, b, a, (0, 0, 64), (64, 64, 64))
        said = device.said()
    assert [(m.hazard, m.region) for m in said] == [(RAW, 0), (WAR, 0), (RAW, 1), (WAR, 1)]
    assert len({m.key for m in said}) == 2


def test_lowest_address_of_a_region(device: Rig) -> None:
    """[one-hazard-a-region]"""
    a, b = device.buffer(), device.buffer()
    with device.recording() as buffer:
        device.copy(buffer, b, a, (0, 64, 64))
        device.fill(buffer, a, 0, 64)
        device.fill(buffer, a, 0, 256)
        said = device.said()
    assert hazards(said) == [(WAW, "vkCmdFillBuffer", "vkCmdFillBuffer")]


def test_accesses_past_the_last_tracked_address_are_lost(device: Rig) -> None:
    """[beyond-tracked-memory]"""
    for touch_later, expected in ((False, []), (True, [WAW])):
        target, later = device.buffer(), device.buffer()
        with device.recording() as buffer:
            if touch_later:
                device.fill(buffer, later)
            device.fill(buffer, target, 0, 64)
            device.fill(buffer, target, 0, 128)
            device.said()
            device.fill(buffer, target, 64, 64)
            assert [m.hazard for m in device.said()] == expected


def test_the_untracked_tail_of_a_transition_is_lost(device: Rig) -> None:
    """[beyond-tracked-memory]"""
    image = device.image(layers=2)
    barrier = device.image_barrier(image, 1, 7, TRANSFER_WRITE, 0)
    with device.recording() as buffer:
        device.clear(buffer, image, layer=0)
        device.barrier(buffer, (TRANSFER, 0x2000), images=[barrier])
        device.clear(buffer, image, 7, layer=0)
        assert [m.prior_access for m in device.said()] == ["SYNC_IMAGE_LAYOUT_TRANSITION"]
        device.clear(buffer, image, 7, layer=1)
        assert device.said() == []


def test_first_reading_stage_is_named(device: Rig, spirv: dict[str, bytes]) -> None:
    a, b, c = device.buffer(), device.buffer(), device.buffer()
    kernel = device.compute(spirv["readonly"], (7, a), (7, b))
    with device.recording() as buffer:
        device.dispatch(buffer, kernel)
        device.copy(buffer, a, c)
        device.dispatch(buffer, kernel)
        assert device.said() == []
        device.fill(buffer, a)
        assert [m.prior_access for m in device.said()] == ["SYNC_COMPUTE_SHADER_SHADER_STORAGE_READ"]


@pytest.mark.parametrize(
    ("shader", "access"),
    [
        ("loads", "SYNC_COMPUTE_SHADER_SHADER_STORAGE_READ"),
        ("readonly", "SYNC_COMPUTE_SHADER_SHADER_STORAGE_READ"),
        ("atomic", "SYNC_COMPUTE_SHADER_SHADER_STORAGE_READ"),
        ("both", "SYNC_COMPUTE_SHADER_SHADER_STORAGE_WRITE"),
        ("uniform", "SYNC_COMPUTE_SHADER_UNIFORM_READ"),
        ("unused", None),
        ("length", None),
    ],
)
def test_access_of_a_descriptor(device: Rig, spirv: dict[str, bytes], shader: str, access: str | None) -> None:
    a, b = device.buffer(), device.buffer()
    kernel = device.compute(spirv[shader], (6 if shader == "uniform" else 7, a), (7, b))
    record(device, lambda c: device.fill(c, a), lambda c: device.dispatch(c, kernel))
    assert [m.access for m in device.said()] == ([] if access is None else [access])


def test_same_descriptor_write_twice(device: Rig, spirv: dict[str, bytes]) -> None:
    """[same-descriptor-write-twice] silent while recording, reported at submit."""
    kernel = device.compute(spirv["readonly"], (7, device.buffer()), (7, device.buffer()))
    buffer = record(device, lambda c: device.dispatch(c, kernel), lambda c: device.dispatch(c, kernel))
    assert device.said() == []
    device.submit(buffer)
    assert device.said() == []
    device.submit(buffer)
    assert hazards(device.said()) == [(WAW, "vkCmdDispatch", "vkCmdDispatch")]


def test_shader_read_covers_uniforms(device: Rig, spirv: dict[str, bytes]) -> None:
    """[shader-read-covers-uniforms]"""
    a = device.buffer()
    kernel = device.compute(spirv["uniform"], (6, a), (7, device.buffer()))
    record(
        device,
        lambda c: device.fill(c, a),
        lambda c: device.barrier(c, (TRANSFER, COMPUTE), (TRANSFER_WRITE, SHADER_READ)),
        lambda c: device.dispatch(c, kernel),
    )
    assert device.said() == []


def test_dispatch_base_is_passed_over(device: Rig, spirv: dict[str, bytes]) -> None:
    """[commands-passed-over]"""
    a = device.buffer()
    pipeline, layout, made = device.compute(spirv["loads"], (7, a), (7, device.buffer()))

    def dispatch_base(buffer: Any) -> None:
        device.vk.vkCmdBindPipeline(buffer, 1, pipeline)
        device.vk.vkCmdBindDescriptorSets(buffer, 1, layout, 0, 1, [made], 0, [])
        device.vk.vkCmdDispatchBase(buffer, 0, 0, 0, 1, 1, 1)

    record(device, lambda c: device.fill(c, a), dispatch_base)
    assert device.said() == []


def test_fill_is_at_the_copy_stage(device: Rig) -> None:
    """[fills-and-updates-are-copies, fills-and-updates-beside-copies]"""
    a, b = device.buffer(), device.buffer()
    for stage, expected in ((CLEAR, [RAW]), (COPY, [])):
        record(
            device,
            lambda c: device.fill(c, a),
            lambda c, stage=stage: barrier2(device, c, "memory", stage, TRANSFER_WRITE, COPY, TRANSFER_READ),
            lambda c: device.copy(c, a, b),
        )
        assert [m.hazard for m in device.said()] == expected


def test_sync2_ranged_barrier_orders_only_its_resource(device: Rig) -> None:
    """[sync2-barriers-order-only-their-resource]; a barrier of synchronization1 orders everything."""
    a, b = device.buffer(), device.buffer()
    record(
        device,
        lambda c: device.copy(c, a, b),
        lambda c: barrier2(device, c, "buffer", TRANSFER, TRANSFER_WRITE, TRANSFER, TRANSFER_READ, buffer=b),
        lambda c: device.copy(c, b, a),
    )
    assert [m.hazard for m in device.said()] == [WAR]
    old = device.vk.VkBufferMemoryBarrier(
        srcAccessMask=TRANSFER_WRITE, dstAccessMask=TRANSFER_READ, buffer=b, size=2**64 - 1,
        srcQueueFamilyIndex=0xFFFFFFFF, dstQueueFamilyIndex=0xFFFFFFFF,
    )  # fmt: skip
    record(
        device,
        lambda c: device.copy(c, a, b),
        lambda c: device.barrier(c, EXECUTION, buffers=[old]),
        lambda c: device.copy(c, b, a),
    )
    assert device.said() == []


@pytest.mark.parametrize(
    ("name", "before", "masks", "hazard"),
    [
        ("transition-of-available-write", (TRANSFER, TRANSFER_WRITE, TRANSFER, 0), (TRANSFER, 0), WAW),
        ("same access again", (TRANSFER, TRANSFER_WRITE, TRANSFER, TRANSFER_WRITE), (TRANSFER, TRANSFER_WRITE), None),
        ("execution only", (TRANSFER, 0, TRANSFER, 0), (TRANSFER, 0), WAW),
    ],
)
def test_transition_after_a_clear(
    device: Rig, name: str, before: tuple[int, ...], masks: tuple[int, int], hazard: str | None
) -> None:
    image = device.image()
    record(
        device,
        lambda c: device.clear(c, image),
        lambda c: barrier2(device, c, "memory", *before),
        lambda c: barrier2(device, c, "image", *masks, TRANSFER, 0, oldLayout=1, newLayout=6, image=image),
    )
    assert [m.hazard for m in device.said()] == ([hazard] if hazard else [])


def test_transition_from_none_does_not_chain(device: Rig) -> None:
    """[transition-from-none-chains-with-top]"""
    image, target = device.image(), device.buffer(1024)
    record(
        device,
        lambda c: device.image_to_buffer(c, image, target),
        lambda c: barrier2(device, c, "memory", TRANSFER, 0, ALL_COMMANDS, 0),
        lambda c: barrier2(device, c, "image", 0, 0, TRANSFER, TRANSFER_READ, oldLayout=1, newLayout=6, image=image),
    )
    assert hazards(device.said()) == [(WAR, "vkCmdPipelineBarrier2", "vkCmdCopyImageToBuffer")]


def test_all_commands_leaves_out_transitions(device: Rig) -> None:
    """[all-commands-leaves-out-transitions]"""
    image = device.image()
    record(
        device,
        lambda c: barrier2(device, c, "image", 0, 0, 0, 0, oldLayout=0, newLayout=7, image=image),
        lambda c: barrier2(device, c, "memory", ALL_COMMANDS, 0x10000, ALL_COMMANDS, 0x18000),
        lambda c: device.clear(c, image, 7),
    )
    assert [m.prior_access for m in device.said()] == ["SYNC_IMAGE_LAYOUT_TRANSITION"]


def test_recorded_hazards_are_not_repeated_at_submit(device: Rig) -> None:
    a, b = device.buffer(), device.buffer()
    buffer = record(device, lambda c: device.fill(c, a), lambda c: device.copy(c, a, b))
    assert [m.kind for m in device.said()] == [RECORD]
    device.submit(buffer)
    assert device.said() == []
    device.submit(buffer)
    assert [(m.kind, m.hazard) for m in device.said()] == [(SUBMIT, WAR)]


def test_one_hazard_a_segment(device: Rig) -> None:
    """[one-hazard-a-segment] the lowest address, not the first command."""
    a, b = device.buffer(), device.buffer()
    first = record(device, lambda c: device.fill(c, a), lambda c: device.fill(c, b))
    together = record(device, lambda c: device.fill(c, b), lambda c: device.fill(c, a))
    apart = record(
        device,
        lambda c: device.fill(c, b),
        lambda c: device.barrier(c, (COMPUTE, COMPUTE)),
        lambda c: device.fill(c, a),
    )
    device.submit(first)
    device.submit(together)
    assert [m.recorded_seq_no for m in device.said()] == [2]
    device.submit(apart)
    assert [m.recorded_seq_no for m in device.said()] == [1, 3]


def test_optimal_images_hide_buffers(device: Rig) -> None:
    """[optimal-images-hide-buffers]"""
    a = device.buffer()
    for linear, expected in ((False, []), (True, [WAW])):
        image = device.image(linear=linear)
        first = record(device, lambda c: device.fill(c, a))
        second = record(device, lambda c: device.fill(c, a), lambda c, image=image: device.clear(c, image))
        device.submit(first, wait=False)
        device.said()
        device.submit(second)
        assert [m.hazard for m in device.said()] == expected


def test_a_write_hides_the_read_of_its_segment(device: Rig) -> None:
    """[write-hides-read-of-its-segment]"""
    a, b = device.buffer(), device.buffer()
    fill = record(device, lambda c: device.fill(c, a))
    both = record(device, lambda c: device.copy(c, a, b), lambda c: device.fill(c, a))
    apart = record(
        device, lambda c: device.copy(c, a, b), lambda c: device.barrier(c, EXECUTION), lambda c: device.fill(c, a)
    )
    device.said()
    device.submit(fill)
    device.submit(both, wait=True)
    assert device.said() == []
    device.submit(fill)
    device.submit(apart)
    assert hazards(device.said()) == [(RAW, "vkCmdCopyBuffer", "vkCmdFillBuffer")]


def test_only_the_first_reading_stage_is_tested_at_submit(device: Rig, spirv: dict[str, bytes]) -> None:
    """[only-the-first-read]"""
    a = device.buffer()
    kernel = device.compute(spirv["readonly"], (7, a), (7, device.buffer()))
    fill = record(device, lambda c: device.fill(c, a))
    reads = record(
        device,
        lambda c: device.barrier(c, EXECUTION, (TRANSFER_WRITE, TRANSFER_READ)),
        lambda c: device.copy(c, a, device.buffer()),
        lambda c: device.dispatch(c, kernel),
    )
    device.submit(fill)
    device.submit(reads)
    assert device.said() == []


def test_reads_are_forgotten_at_submit(device: Rig) -> None:
    """[reads-forgotten-at-submit, older-write-after-forgotten-read]"""
    a, b = device.buffer(), device.buffer()
    fill = record(device, lambda c: device.fill(c, a))
    reads = record(
        device,
        lambda c: device.barrier(c, EXECUTION, (TRANSFER_WRITE, TRANSFER_READ | TRANSFER_WRITE)),
        lambda c: device.copy(c, a, b),
    )
    ordered = record(device, lambda c: device.barrier(c, EXECUTION), lambda c: device.fill(c, a))
    safe = record(
        device,
        lambda c: device.barrier(c, EXECUTION, (TRANSFER_WRITE, TRANSFER_READ)),
        lambda c: device.copy(c, a, device.buffer()),
    )
    device.submit(fill)
    device.submit(reads)
    device.submit(fill)
    assert device.said() == [], "a WAR, had the read been kept"
    device.vk.vkQueueWaitIdle(device.queue)
    device.submit(fill)
    device.submit(safe)
    device.submit(ordered)
    assert hazards(device.said()) == [(WAW, "vkCmdFillBuffer", "vkCmdFillBuffer")], "no hazard: execution is enough"


def test_reads_of_never_written_memory_are_kept(device: Rig) -> None:
    a = device.buffer()
    device.submit(record(device, lambda c: device.copy(c, a, device.buffer())))
    device.submit(record(device, lambda c: device.fill(c, a)))
    assert hazards(device.said()) == [(WAR, "vkCmdFillBuffer", "vkCmdCopyBuffer")]


def test_waits_clear(device: Rig) -> None:
    vk, a = device.vk, device.buffer()
    fill = record(device, lambda c: device.fill(c, a))
    fence = vk.vkCreateFence(device.device, vk.VkFenceCreateInfo(), None)
    waits: list[Callable[[], Any]] = [
        lambda: vk.vkQueueWaitIdle(device.queue),
        lambda: vk.vkDeviceWaitIdle(device.device),
        lambda: vk.vkWaitForFences(device.device, 1, [fence], 1, 10**10),
    ]
    for wait in waits:
        info = vk.VkSubmitInfo(pCommandBuffers=[fill])
        vk.vkQueueSubmit(device.queue, 1, [info], fence)
        wait()
        assert device.said() == []
        vk.vkWaitForFences(device.device, 1, [fence], 1, 10**10)
        vk.vkResetFences(device.device, 1, [fence])
    vk.vkDestroyFence(device.device, fence, None)


def test_texels_are_told_apart_within_a_row(device: Rig) -> None:
    vk = device.vk
    for linear in (False, True):
        source, target = device.image(), device.image(linear=linear)

        def copy(buffer: Any, x: int, y: int, source: Any = source, target: Any = target) -> None:
            part = vk.VkImageSubresourceLayers(1, 0, 0, 1)
            region = vk.VkImageCopy(
                srcSubresource=part, dstSubresource=part, dstOffset=vk.VkOffset3D(x, y, 0),
                extent=vk.VkExtent3D(4, 4, 1),
            )  # fmt: skip
            vk.vkCmdCopyImage(buffer, source, 1, target, 1, 1, [region])

        with device.recording() as buffer:
            for x, y in ((0, 0), (4, 0), (0, 4)):
                copy(buffer, x, y)
            assert device.said() == []
            copy(buffer, 3, 3)
            assert [m.hazard for m in device.said()] == [WAW]


def test_layer_library_is_the_one_of_the_manifest() -> None:
    assert LAYER is not None and Path(LAYER.library).is_file()
