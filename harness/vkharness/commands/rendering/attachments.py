"""Accesses of load, store, resolve and clear operations of an attachment (rules.md#load-and-store-operations).

Layers of an attachment are counted from the first layer of its image view. With multiview they are the views.
Specification: "Render Pass Load Operations", "Render Pass Store Operations", "Render Pass Multisample Resolve
Operations".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from vkharness.commands.object_state import ObjectState
from vkharness.spec.enums import VkAttachmentLoadOp, VkImageAspect
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.trace.attachment_operations import AttachmentOperation, RasterizationOrder
from vkharness.trace.effects import Access
from vkharness.trace.rendering_state import Area, Attachment
from vkharness.trace.resources import ImageView

COLOR_READ = ACCESS_KIND["SYNC_COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_READ"].index
COLOR_WRITE = ACCESS_KIND["SYNC_COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE"].index
EARLY_READ = ACCESS_KIND["SYNC_EARLY_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_READ"].index
EARLY_WRITE = ACCESS_KIND["SYNC_EARLY_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_WRITE"].index
LATE_WRITE = ACCESS_KIND["SYNC_LATE_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_WRITE"].index


def find_attachment(objects: ObjectState, view: int, aspects: int = 0) -> Attachment | None:
    """The attachment for an image view; None for a null or unknown view.

    An attachment of a depth/stencil image has both aspects whatever its view names. `aspects` chooses among them.
    """
    held = objects.get(ImageView, view) if view else None
    image = objects.image(held.image) if held is not None else None
    if held is None or image is None or not held.mips:
        return None
    both = image.format.aspects & (VkImageAspect.DEPTH | VkImageAspect.STENCIL)
    if both:
        chosen = both & aspects if aspects else both
    else:
        chosen = 0 if aspects & (VkImageAspect.DEPTH | VkImageAspect.STENCIL) else held.aspects
    return Attachment(image, held, chosen) if chosen else None


def area_of(rect: dict[str, Any]) -> Area:
    """A VkRect2D without its part at negative coordinates."""
    offset, extent = rect["offset"], rect["extent"]
    x, y = max(0, offset["x"]), max(0, offset["y"])
    return (x, y, max(0, offset["x"] + extent["width"] - x), max(0, offset["y"] + extent["height"] - y))


def access(
    attachment: Attachment,
    access_kind: int,
    layers: Sequence[int],
    area: Area,
    order: RasterizationOrder,
    operation: AttachmentOperation,
) -> Iterator[Access]:
    """One access of an area of some layers, or none when the area is empty."""
    spans = attachment.spans(layers, area)
    if spans:
        image = attachment.image.id
        yield Access(access_kind, image, spans, image, order=order, operation=operation)


def written_by_operation(
    attachment: Attachment,
    access_kind: int,
    layers: Sequence[int],
    area: Area,
    order: RasterizationOrder,
    operation: AttachmentOperation,
) -> Iterator[Access]:
    """The write of a load, store or resolve operation, or none when the area is empty.

    Such a write "may: read and write back any memory locations within the image subresource bound for that attachment".
    Only where feedback loop is enabled does it stay in the render area.
    Rule: rules.md#operations-write-whole-subresources.
    """
    spans = attachment.spans(layers, area)
    if spans:
        spans = spans if attachment.feedback_loop else attachment.subresources(layers)
        image = attachment.image.id
        yield Access(access_kind, image, spans, image, order=order, operation=operation)


def natural_order(attachment: Attachment) -> RasterizationOrder:
    """The rasterization order of the load, store, draw and clear accesses of an attachment."""
    return RasterizationOrder.COLOR if attachment.is_color else RasterizationOrder.DEPTH_STENCIL


def load(attachment: Attachment, operation: int, layers: Sequence[int], area: Area) -> Iterator[Access]:
    """A VkAttachmentLoadOp: LOAD reads, NONE does nothing, CLEAR and DONT_CARE write."""
    if operation == VkAttachmentLoadOp.NONE:
        return
    reads = operation == VkAttachmentLoadOp.LOAD
    read, write = (COLOR_READ, COLOR_WRITE) if attachment.is_color else (EARLY_READ, EARLY_WRITE)
    made = (layers, area, natural_order(attachment), AttachmentOperation.LOAD)
    yield from access(attachment, read, *made) if reads else written_by_operation(attachment, write, *made)


def store(attachment: Attachment, layers: Sequence[int], area: Area) -> Iterator[Access]:
    """The write of a VkAttachmentStoreOp: STORE, DONT_CARE, or NONE where values were written (`store_none`)."""
    access_kind, order = COLOR_WRITE if attachment.is_color else LATE_WRITE, natural_order(attachment)
    yield from written_by_operation(attachment, access_kind, layers, area, order, AttachmentOperation.STORE)


def resolve(source: Attachment, target: Attachment, layers: Sequence[int], area: Area) -> Iterator[Access]:
    """A multisample resolve. It happens in the colour output stage with colour accesses, also for depth and stencil."""
    order = RasterizationOrder.COLOR if source.is_color else RasterizationOrder.RASTER
    yield from access(source, COLOR_READ, layers, area, order, AttachmentOperation.RESOLVE_READ)
    yield from written_by_operation(target, COLOR_WRITE, layers, area, order, AttachmentOperation.RESOLVE_WRITE)


def clear(attachment: Attachment, layers: Sequence[int], area: Area) -> Iterator[Access]:
    """The writes of vkCmdClearAttachments, in rasterization order with draws.

    Depth and stencil are written "by the EARLY_FRAGMENT_TESTS and LATE_FRAGMENT_TESTS stages".
    Rule: rules.md#clears-of-attachments-are-draws.
    """
    for access_kind in (COLOR_WRITE,) if attachment.is_color else (EARLY_WRITE, LATE_WRITE):
        made = (layers, area, natural_order(attachment), AttachmentOperation.ORDINARY)
        yield from access(attachment, access_kind, *made)
