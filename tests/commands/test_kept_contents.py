"""maintenance9: which resources need no transfer between families, and where the trace does not say.

Specification: "Resource Sharing Mode". Rule: rules.md#contents-must-be-transferred-to-another-family.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.interpreted import InterpretedStream
from tests.support.streams import struct
from vkharness.spec.enums import VkImageTiling, VkImageUsage, VkStructureType
from vkharness.trace.effects import UnmodelledCall
from vkharness.trace.ownership_effects import EVERY_FAMILY, SharedResource

FEATURES = VkStructureType.PHYSICAL_DEVICE_MAINTENANCE_9_FEATURES_KHR
PROPERTIES = VkStructureType.QUEUE_FAMILY_OWNERSHIP_TRANSFER_PROPERTIES_KHR
COPIED, DRAWN = VkImageUsage.TRANSFER_SRC, VkImageUsage.TRANSFER_SRC | VkImageUsage.COLOR_ATTACHMENT


def on_device(features: dict[str, Any] | None, masks: list[int] | None = None, *extensions: str) -> InterpretedStream:
    """A stream on a device with queues of two families."""
    stream = InterpretedStream()
    chains = [{"sType": PROPERTIES, "pNext": None, "optimalImageTransferToQueueFamilies": each} for each in masks or ()]
    told = [struct("VkQueueFamilyProperties2", queueFamilyProperties={"queueFlags": 7}, pNext=each) for each in chains]
    stream.call("vkGetPhysicalDeviceQueueFamilyProperties2", physicalDevice=5, pQueueFamilyProperties=told)
    link = None if features is None else {"sType": FEATURES, "pNext": None, **features}
    info = struct("VkDeviceCreateInfo", pNext=link, ppEnabledExtensionNames=list(extensions))
    stream.device = stream.id()
    stream.call("vkCreateDevice", physicalDevice=5, pCreateInfo=info, pDevice=stream.device)
    return stream


def queues(stream: InterpretedStream) -> list[str]:
    """Names the things that are not modelled once there are queues of two families."""
    stream.did()
    for family in (0, 1):
        stream.call("vkGetDeviceQueue", device=stream.device, queueFamilyIndex=family, pQueue=stream.id())
    return [each.what for each in stream.did() if isinstance(each, UnmodelledCall)]


def made(stream: InterpretedStream, name: str, **info: Any) -> list[object]:
    """Returns the stream events of the creation of a resource."""
    stream.did()
    stream.call(f"vkCreate{name}", device=stream.device, pCreateInfo=info, **{f"p{name}": 77})
    return [each for each in stream.did() if isinstance(each, SharedResource | UnmodelledCall)]


def image(stream: InterpretedStream, tiling: int, usage: int) -> list[object]:
    size = {"width": 8, "height": 8, "depth": 1}
    counts = {"mipLevels": 1, "arrayLayers": 1, "samples": 1}
    given = {"flags": 0, "imageType": 1, "format": 37, "extent": size, **counts, "tiling": tiling, "usage": usage}
    return made(stream, "Image", **given)


@pytest.mark.parametrize(("value", "kept"), [(1, [SharedResource(77, acquirers=EVERY_FAMILY)]), (0, [])])
def test_buffers_and_linear_images(value: int, kept: list[object]) -> None:
    stream = on_device({"maintenance9": value})
    assert queues(stream) == []
    assert made(stream, "Buffer", size=64, usage=1, sharingMode=0) == kept
    assert image(stream, VkImageTiling.LINEAR, DRAWN) == kept


def test_concurrent_ones_are_of_all_families() -> None:
    stream = on_device({"maintenance9": 1})
    assert made(stream, "Buffer", size=64, usage=1, sharingMode=1) == [SharedResource(77)]


def test_optimal_images_by_the_mask_and_their_usage() -> None:
    stream = on_device({"maintenance9": 1}, [2, 0])
    assert queues(stream) == []
    assert image(stream, VkImageTiling.OPTIMAL, COPIED) == [SharedResource(77, acquirers=(2, 0))]
    assert image(stream, VkImageTiling.OPTIMAL, DRAWN) == []


@pytest.mark.parametrize("masks", [None, [None, None]])
def test_a_trace_without_the_mask_is_unknown_where_it_matters(masks: Any) -> None:
    stream = on_device({"maintenance9": 1}, masks)
    assert image(stream, VkImageTiling.OPTIMAL, COPIED) == []
    queues(stream)
    (unknown,) = image(stream, VkImageTiling.OPTIMAL, COPIED)
    assert isinstance(unknown, UnmodelledCall) and "optimalImageTransferToQueueFamilies" in unknown.what
    assert image(stream, VkImageTiling.OPTIMAL, DRAWN) == []


@pytest.mark.parametrize(("features", "extensions"), [({}, ()), (None, ("VK_KHR_maintenance9",))])
def test_a_trace_without_the_feature_is_unknown(features: dict[str, Any] | None, extensions: tuple[str, ...]) -> None:
    (unknown,) = queues(on_device(features, None, *extensions))
    assert "maintenance9" in unknown


def test_a_device_without_the_extension_is_as_ever() -> None:
    stream = on_device(None)
    assert queues(stream) == []
    assert made(stream, "Buffer", size=64, usage=1, sharingMode=0) == []
