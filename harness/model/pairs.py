"""Rules for two accesses side by side: which pairs need no dependency, and which facts are noted of those that
conflict."""

from __future__ import annotations

from enum import StrEnum

from harness.model.past_access import ENGINE_STREAM, HOST_STREAM, LAYOUT_TRANSITION, PastAccess
from harness.model.stages import ACCESS_KIND, ACCESS_KINDS
from harness.spans import Span, subtract
from harness.trace.effects import Access, AttachmentOperation, RasterizationOrder

ATTACHMENT_ORDER = "attachment-order"
"""A fact: rasterization order would hold if both accesses were in one subpass."""
SUPERSEDED_READ = "superseded-read"
"""A fact: a later read of these addresses, in the same stage and queue, is ordered before the other access."""
REGION = "region"
"""A fact: the accesses are ordered in each region of the framebuffer, and not everywhere."""
HELD_BACK = "held-back"
"""A fact: a batch waited for a signal, and the host did or learned of one access only after it submitted that batch."""
NARROW_SIGNAL = "narrow-signal"
"""A fact: the host waited for a later signal of the prior access's queue, whose scope does not hold the access."""
FACTS = (ATTACHMENT_ORDER, SUPERSEDED_READ, REGION, HELD_BACK, NARROW_SIGNAL)
"""Every fact that may be noted of a conflict."""


_COLOR = ACCESS_KIND["SYNC_COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_READ"].stage
_EARLY = ACCESS_KIND["SYNC_EARLY_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_READ"].stage
_LATE = ACCESS_KIND["SYNC_LATE_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_READ"].stage
_INPUT = ACCESS_KIND["SYNC_FRAGMENT_SHADER_INPUT_ATTACHMENT_READ"].index
_STAGES = {
    RasterizationOrder.NONE: 0,
    RasterizationOrder.COLOR: _COLOR,
    RasterizationOrder.DEPTH_STENCIL: _EARLY | _LATE,
    RasterizationOrder.RASTER: _COLOR | _EARLY | _LATE,
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

    Operations of the attachments' stages do. Shaders see what a load operation wrote, and store operations come after
    shaders. A shader reads input attachments, and shader accesses have no such order. Specification: "Rasterization
    Order", "Render Pass Load Operations", "Render Pass Store Operations";
    rules.md#input-attachments-are-read-by-the-shader.
    """
    if prior.order == RasterizationOrder.NONE or current.order == RasterizationOrder.NONE:
        return False
    if current.access_kind == _INPUT:
        return prior.operation == AttachmentOperation.LOAD
    if prior.access_kind == _INPUT:
        return current.operation in _AFTER_SHADERS
    return bool(ACCESS_KINDS[prior.access_kind].stage & _STAGES[current.order])


def raster_ordered(prior: PastAccess, current: PastAccess) -> bool:
    """Whether rasterization order holds: it is an order of one subpass, or of one instance of dynamic rendering."""
    same_stream = prior.stream == current.stream and prior.instance == current.instance
    return same_stream and in_raster_order(prior.access, current.access)


def attachment_ordered(prior: PastAccess, current: PastAccess) -> bool:
    """Whether rasterization order would hold if it ordered all attachment accesses of a queue, as syncval takes it."""
    return prior.use.queue == current.use.queue and in_raster_order(prior.access, current.access)


def superseded(prior: PastAccess, current: PastAccess) -> bool:
    """Whether the second read replaces the first for a judge that keeps one read for each stage and queue."""
    same = ACCESS_KINDS[prior.access.access_kind].stage == ACCESS_KINDS[current.access.access_kind].stage
    return same and prior.use.queue == current.use.queue and not (prior.writes or current.writes)


def facts(prior: PastAccess, current: PastAccess) -> frozenset[str]:
    """The facts to note of two accesses that conflict."""
    noted = set()
    if attachment_ordered(prior, current):
        noted.add(ATTACHMENT_ORDER)
    if current.learned >> prior.use.node & 1:
        noted.add(HELD_BACK)
    if current.assumed >> prior.use.node & 1:
        noted.add(NARROW_SIGNAL)
    return frozenset(noted)


def after_load(prior: PastAccess, current: PastAccess, shared: list[Span]) -> bool:
    """Whether load operations that saw the prior write come between the two accesses, at all shared addresses.

    A load operation happens before the later accesses of its subpass ("Render Pass Load Operations").
    """
    left = shared
    for reader, spans in prior.seen_by:
        if raster_ordered(reader, current):
            left = subtract(left, spans)
    return not left
