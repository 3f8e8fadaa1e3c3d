"""Replays of what real captures hold: features that the driver lacks, contents at the start, calls that are broken."""

from __future__ import annotations

import struct as packing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.capture_files import CAPTURE, INIT_IMAGE, META, put_together, take_apart
from tests.support.capture_files import Block as Raw
from tests.support.drivers_here import on_each_driver
from tests.support.streams import GENERAL, Stream, struct, two_buffers
from vkharness.check import Analysis
from vkharness.findings import UserError
from vkharness.judged_replay import replay_job
from vkharness.replay.contents.observe import compare
from vkharness.replay.objects.device_features import refuse_without_stages
from vkharness.replay.outcomes.jobs import run_native, run_serial
from vkharness.spec.enums import VkImageLayout, VkShaderStage
from vkharness.trace.calls import Block, Call
from vkharness.trace.codec import load


def with_device(blocks: list[Block], **info: object) -> list[Block]:
    """The blocks with other members of VkDeviceCreateInfo."""
    made = []
    for block in blocks:
        if isinstance(block, Call) and block.name == "vkCreateDevice":
            block = replace(block, args={**block.args, "pCreateInfo": {**block.args["pCreateInfo"], **info}})
        made.append(block)
    return made


def everything(name: str) -> dict[str, object]:
    """A struct of features with all of them."""
    return {key: 1 if value == 0 and key not in ("sType", "pNext") else value for key, value in struct(name).items()}


@on_each_driver
def test_what_the_target_lacks_is_left_out_and_said(driver: str) -> None:
    stream, a, b = two_buffers(64)
    stream.begin()
    stream.fill(a, 7)
    stream.barrier()
    stream.copy(a, b, 64)
    stream.submit()
    # No software driver has invocation masks of HUAWEI, or all features of Vulkan 1.0.
    chain = {**everything("VkPhysicalDeviceVulkan13Features"), "pNext": None}
    chain = {**everything("VkPhysicalDeviceInvocationMaskFeaturesHUAWEI"), "pNext": chain}
    blocks = with_device(
        stream.blocks,
        pNext=chain,
        pEnabledFeatures=everything("VkPhysicalDeviceFeatures"),
        ppEnabledExtensionNames=["VK_HUAWEI_invocation_mask", "VK_KHR_swapchain"],
        enabledExtensionCount=2,
    )
    outputs = run_serial(blocks, driver)
    assert bytes(outputs.surfaces[b, None].data)[:4] == b"\7\0\0\0"
    (note,) = outputs.notes
    assert note.startswith(f"{driver} lacks VK_HUAWEI_invocation_mask, ") and "invocationMask" in note
    assert note.endswith("which the trace enables: left out")
    assert "swapchain" not in note


@on_each_driver
def test_a_capture_is_replayed_as_it_is(driver: str, tmp_path: Path) -> None:
    finding = next(each for each in Analysis().follow(load(CAPTURE)).findings if each.hazard == "READ_AFTER_WRITE")
    shown = replay_job(str(CAPTURE), "witness", driver, finding.to_dict())
    assert shown["shown"] is True


@on_each_driver
def test_contents_of_a_snapshot_are_there_when_it_begins(driver: str, tmp_path: Path) -> None:
    raw, whole = take_apart(CAPTURE), load(CAPTURE)
    calls = [each for each in whole if isinstance(each, Call)]
    device = next(each.args["pDevice"] for each in calls if each.name == "vkCreateDevice")
    image = next(each.args["pImage"] for each in calls if each.name == "vkCreateImage")
    first = next(each.index for each in calls if each.name == "vkBeginCommandBuffer")
    last = next(each.index for each in calls if each.name == "vkQueueSubmit")
    texels = bytes(range(256)) + bytes(range(64))
    head = packing.pack("<IQQQQIII", INIT_IMAGE, 1, device, image, len(texels), 1, VkImageLayout.GENERAL, 2)
    held = Raw(META, head + packing.pack("<2Q", 256, 64) + texels)
    # Without the submit nothing else writes the image.
    blocks = load(put_together(tmp_path / "c.gfxr", [*raw[:first], held, *raw[first:last], *raw[last + 1 :]]))
    outputs = run_serial(blocks, driver)
    of_image = [bytes(surface.data) for key, surface in outputs.surfaces.items() if key[0] == image]
    assert of_image == [texels[:256], texels[256:]]


@on_each_driver
def test_an_image_whose_layout_only_a_barrier_tells_is_observed(driver: str) -> None:
    stream = Stream()
    image = stream.image((4, 4, 1))
    stream.begin()
    stream.transition(image, GENERAL, GENERAL)
    stream.clear(image, (1.0, 0.0, 0.0, 1.0), layout=GENERAL)
    stream.submit()
    serial = run_serial(stream.blocks, driver)
    assert serial.unobserved == {}
    assert compare(serial, run_native(stream.blocks, driver)) == []


@on_each_driver
@pytest.mark.parametrize("run", [run_serial, run_native])
def test_a_swapchain_whose_images_nobody_fetched(driver: str, run: object) -> None:
    stream = Stream()
    info = struct("VkSwapchainCreateInfoKHR", imageFormat=37, imageExtent={"width": 4, "height": 4}, imageUsage=16)
    chain, semaphore = stream.id(), stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))
    stream.call("vkCreateSwapchainKHR", device=stream.device, pCreateInfo=info, pSwapchain=chain)
    stream.call("vkGetSwapchainImagesKHR", device=stream.device, swapchain=chain, pSwapchainImageCount=2)
    stream.call("vkAcquireNextImageKHR", device=stream.device, swapchain=chain, semaphore=semaphore, pImageIndex=0)
    waits = struct("VkPresentInfoKHR", pWaitSemaphores=[semaphore], pSwapchains=[chain], pImageIndices=[0])
    stream.call("vkQueuePresentKHR", queue=stream.queue, pPresentInfo=waits)
    blocks = [replace(each, result=0) if isinstance(each, Call) else each for each in stream.blocks]
    assert run in (run_serial, run_native)
    assert (run_serial if run is run_serial else run_native)(blocks, driver).surfaces == {}


def test_a_pipeline_of_a_stage_that_the_target_lacks_is_refused() -> None:
    """lavapipe crashes at a mesh shader that it does not have."""
    stage = struct("VkPipelineShaderStageCreateInfo", stage=VkShaderStage.MESH_EXT)
    call = Call(9, "vkCreateGraphicsPipelines", {"pCreateInfos": [{"pStages": [stage]}]}, 0)
    target: Any = SimpleNamespace(name="lavapipe")
    refuse_without_stages(call, target, ["geometryShader"])
    with pytest.raises(UserError, match=r"block 9: vkCreateGraphicsPipelines .* lavapipe lacks meshShader"):
        refuse_without_stages(call, target, ["geometryShader", "meshShader"])


def test_a_call_that_could_not_be_read_is_not_replayed(tmp_path: Path) -> None:
    raw = take_apart(CAPTURE)
    number = next(each.index for each in load(CAPTURE) if isinstance(each, Call) and each.name == "vkCmdCopyBuffer")
    raw[number] = replace(raw[number], content=raw[number].content[:40])
    path = put_together(tmp_path / "c.gfxr", raw)
    with pytest.raises(UserError, match=f"block {number}: vkCmdCopyBuffer cannot be replayed: it could not be read"):
        replay_job(str(path), "serial", "lavapipe")
