"""Which contents queue families keep without a transfer (maintenance9).

Specification: "Resource Sharing Mode". Rule: rules.md#contents-must-be-transferred-to-another-family.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vkharness.commands.object_state import ObjectState
from vkharness.spec.enums import VkImageTiling, VkImageUsage
from vkharness.trace.effects import StreamEvent, UnmodelledCall
from vkharness.trace.ownership_effects import EVERY_FAMILY, SharedResource

NEVER_KEPT = (
    VkImageUsage.COLOR_ATTACHMENT
    | VkImageUsage.DEPTH_STENCIL_ATTACHMENT
    | VkImageUsage.TRANSIENT_ATTACHMENT
    | VkImageUsage.INPUT_ATTACHMENT
    | VkImageUsage.ATTACHMENT_FEEDBACK_LOOP_EXT
    | VkImageUsage.FRAGMENT_SHADING_RATE_ATTACHMENT_KHR
)
"""Usages of optimal images that need a transfer in any case."""
UNTOLD = "ownership of images with maintenance9, of which the trace has no optimalImageTransferToQueueFamilies"


def of_buffer(objects: ObjectState, device: int, buffer: int) -> Iterable[StreamEvent]:
    """A new buffer of exclusive sharing mode."""
    if objects.barriers_by_slice.get(device):
        yield SharedResource(buffer, acquirers=EVERY_FAMILY)


def of_image(objects: ObjectState, device: int, image: int, info: dict[str, Any]) -> Iterable[StreamEvent]:
    """A new image of exclusive sharing mode. Tilings of DRM format modifiers are neither linear nor optimal."""
    if not objects.barriers_by_slice.get(device):
        return
    tiling, usage = info.get("tiling"), info.get("usage", 0)
    if tiling == VkImageTiling.LINEAR:
        yield SharedResource(image, acquirers=EVERY_FAMILY)
    elif tiling == VkImageTiling.OPTIMAL and not usage & NEVER_KEPT:
        masks = objects.image_acquirers.get(objects.devices.get(device, 0))
        if masks is not None:
            yield SharedResource(image, acquirers=masks)
        elif len({family for own, family in objects.queue_family.values() if own == device}) > 1:
            yield UnmodelledCall(UNTOLD)
