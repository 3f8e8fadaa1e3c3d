"""Rules for two accesses side by side: which pairs need no dependency."""

from __future__ import annotations

from enum import StrEnum

from vkharness.model.past_access import ENGINE_STREAM, HOST_STREAM, LAYOUT_TRANSITION, PastAccess
from vkharness.model.stages import ACCESS_KIND, ACCESS_KINDS
from vkharness.trace.attachment_operations import AttachmentOperation, RasterizationOrder
from vkharness.trace.effects import Access

_COLOR = ACCESS_KIND["SYNC_COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_READ"].stage
_EARLY = ACCESS_KIND["SYNC_EARLY_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_READ"].stage
_LATE = ACCESS_KIND["SYNC_LATE_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_READ"].stage
_INPUT = ACCESS_KIND["SYNC_FRAGMENT_SHADER_INPUT_ATTACHMENT_READ"].index
_STAGES = {
    RasterizationOrder.NONE: 0,
    RasterizationOrder.COLOR: _COLOR,
    RasterizationOrder.DEPTH_STENCIL: _EARLY | _LATE,
    RasterizationOrder.RASTER: _COLOR | _EARLY | _LATE,
    RasterizationOrder.FEEDBACK: 0,
}
_AFTER_SHADERS = (AttachmentOperation.STORE, AttachmentOperation.RESOLVE_READ, AttachmentOperation.RESOLVE_WRITE)


class Exemption(StrEnum):
    """Why two accesses need no dependency between them."""

    ONE_COMMAND = "one-command"
    HOST = "host"
    ENGINE = "engine"
    ATOMICS = "atomics"
    MARKERS = "markers"
    TRANSITIONS = "transitions"
    RASTERIZATION = "rasterization"


def exempt(prior: PastAccess, current: PastAccess) -> Exemption | None:
    """Why two accesses need no dependency between them; None if they need one. They need none for:

    * accesses of one command in one stream, of the host, and of the presentation engine, which order themselves;
    * two atomics, and two markers, which may come in any order;
    * layout transitions on one queue, which execute in submission order ("Image Layout Transitions"). The automatic
      transitions of one render pass instance have no such order ("Implicit Synchronization Guarantees");
    * attachment accesses in rasterization order.
    Rules: rules.md#transitions-of-one-queue-are-in-order, rules.md#atomics-do-not-conflict-with-one-another.
    """
    same_stream = prior.stream == current.stream and not (prior.automatic or current.automatic)
    if same_stream and prior.command == current.command:
        return Exemption.ONE_COMMAND
    if same_stream and current.stream == HOST_STREAM:
        return Exemption.HOST
    if prior.stream == current.stream == ENGINE_STREAM:
        return Exemption.ENGINE
    if prior.access.atomic and current.access.atomic:
        return Exemption.ATOMICS
    if prior.access.marker and current.access.marker:
        return Exemption.MARKERS
    if prior.access.access_kind == current.access.access_kind == LAYOUT_TRANSITION:
        one_instance = prior.instance != 0 and prior.instance == current.instance
        return Exemption.TRANSITIONS if prior.use.queue == current.use.queue and not one_instance else None
    return Exemption.RASTERIZATION if raster_ordered(prior, current) else None


def in_raster_order(prior: Access, current: Access) -> bool:
    """Whether two attachment accesses of one subpass happen in the order in which they were recorded.

    Operations of the attachments' stages do. A shader reads input attachments, and shader accesses have no such order,
    unless the pipeline of the second draw was created with rasterization order attachment access. Specification:
    "Rasterization Order", "VkPipelineColorBlendStateCreateFlagBits";
    rules.md#input-attachments-are-read-by-the-shader, rules.md#rasterization-order-attachment-access.
    Rule: rules.md#attachment-accesses-are-in-rasterization-order.
    """
    if prior.order == RasterizationOrder.NONE or current.order == RasterizationOrder.NONE:
        return False
    if current.order == RasterizationOrder.FEEDBACK:
        return feedback_ends(prior, current)
    in_order = current.operation == AttachmentOperation.RASTER_ORDERED
    if current.access_kind == _INPUT:
        return in_order and ACCESS_KINDS[prior.access_kind].write
    if prior.access_kind == _INPUT:
        return in_order or current.operation in _AFTER_SHADERS
    return bool(ACCESS_KINDS[prior.access_kind].stage & _STAGES[current.order])


def feedback_ends(prior: Access, current: Access) -> bool:
    """Whether transform feedback ends which the earlier access of the counter began: it "must" be ended, and no barrier
    is asked for but one from an end to the next begin.

    Specification: "vkCmdBeginTransformFeedbackEXT". Rule: rules.md#feedback-ends-after-it-began.
    """
    one_class = prior.order == current.order == RasterizationOrder.FEEDBACK
    return one_class and ACCESS_KINDS[current.access_kind].write and not ACCESS_KINDS[prior.access_kind].write


def raster_ordered(prior: PastAccess, current: PastAccess) -> bool:
    """Whether rasterization order holds, or the order of load and store operations with all else.

    The first is an order of one subpass, or of one instance of dynamic rendering. A load operation happens before, and
    a store operation after, each access of the attachment in the whole render pass instance ("Render Pass Load
    Operations", "Render Pass Store Operations").
    Rule: rules.md#loads-come-first-and-stores-last.
    """
    if prior.instance != current.instance or not (prior.instance or prior.stream == current.stream):
        return False
    if AttachmentOperation.LOAD is prior.access.operation or current.access.operation is AttachmentOperation.STORE:
        return RasterizationOrder.NONE not in (prior.access.order, current.access.order)
    return prior.stream in (current.stream, current.within) and in_raster_order(prior.access, current.access)


def is_load(past: PastAccess, current: PastAccess) -> bool:
    """Whether a past access is a load operation that comes before the current access in its render pass instance."""
    return past.access.operation is AttachmentOperation.LOAD and raster_ordered(past, current)


def stands_for(current: PastAccess, prior: PastAccess) -> bool:
    """Whether whatever comes after `current` has nothing to do with `prior` any more, however the two are ordered.

    The scopes of one command stream only grow: each that holds the later operation of a stage holds the earlier one,
    too ("Synchronization Scopes": all commands earlier in submission order).
    """
    return (
        prior.stream == current.stream
        and prior.access.access_kind == current.access.access_kind
        and not current.through_alias
        and prior.likeness == current.likeness
    )
