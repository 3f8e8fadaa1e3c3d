"""Two accesses side by side: which pairs need nothing between them, and what is to be noted of those that conflict."""

from __future__ import annotations

from harness.model.past_access import ENGINE_STREAM, HOST_STREAM, LAYOUT_TRANSITION, PastAccess
from harness.model.stages import ACCESS_KIND, ACCESS_KINDS
from harness.spans import Span, subtract
from harness.trace.effects import Access, AttachmentOperation, RasterizationOrder

GUARDED_READ = "guarded-read"
"""The read is ordered after another read to which the write is visible."""
HOST_OVERWRITE = "host-overwrite"
"""The host writes where the device has written."""
ATTACHMENT_ORDER = "attachment-order"
"""Rasterization order would hold if both were in one subpass."""
STAGES_OF_A_RELEASE = "stages-of-a-release"
"""The first is a release of ownership; the stages given for its second scope are ignored."""
SUPERSEDED_READ = "superseded-read"
"""Something read the same addresses later, in the same stage of the same queue, and was ordered before the other."""
REGION = "region"
"""They are ordered in each region of the framebuffer, and not everywhere."""
HELD_BACK = "held-back"
"""The host did or learned the one after it submitted the other, which waited for a signal."""
NARROW_SIGNAL = "narrow-signal"
"""The host waited for a signal that comes after the prior access in its queue, and does not have it in its scope."""
FACTS = (
    GUARDED_READ,
    HOST_OVERWRITE,
    ATTACHMENT_ORDER,
    STAGES_OF_A_RELEASE,
    SUPERSEDED_READ,
    REGION,
    HELD_BACK,
    NARROW_SIGNAL,
)
"""What may be noted of a conflict beside its kind."""


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


def exempt(prior: PastAccess, current: PastAccess) -> bool:
    """Pairs that need nothing between them.

    Accesses of one command in one place order themselves, so do those of the host and of the engine; atomics, and
    markers, may come in any order; transitions on one queue execute in submission order ("Image Layout Transitions"),
    but for those of one render pass instance, which have none ("Implicit Synchronization Guarantees"); and
    rasterization order.
    """
    same_stream = prior.stream == current.stream and not (prior.automatic or current.automatic)
    if same_stream and (prior.command == current.command or current.stream == HOST_STREAM):
        return True
    if prior.stream == current.stream == ENGINE_STREAM:
        return True
    if (prior.access.atomic and current.access.atomic) or (prior.access.marker and current.access.marker):
        return True
    if prior.access.access_kind == current.access.access_kind == LAYOUT_TRANSITION:
        one_instance = prior.instance != 0 and prior.instance == current.instance
        return prior.use.queue == current.use.queue and not one_instance
    return raster_ordered(prior, current)


def in_raster_order(prior: Access, current: Access) -> bool:
    """Whether two attachment accesses of one subpass happen in the order in which they were recorded.

    Operations of the attachments' stages do; what a load operation wrote is there for shaders too, and stores come
    after shaders. An input attachment is read by a shader, and shader accesses are in no such order. Specification:
    "Rasterization Order", "Render Pass Load Operations", "Render Pass Store Operations".
    """
    if prior.order == RasterizationOrder.NONE or current.order == RasterizationOrder.NONE:
        return False
    if current.access_kind == _INPUT:
        return prior.operation == AttachmentOperation.LOAD
    if prior.access_kind == _INPUT:
        return current.operation in _AFTER_SHADERS
    return bool(ACCESS_KINDS[prior.access_kind].stage & _STAGES[current.order])


def raster_ordered(prior: PastAccess, current: PastAccess) -> bool:
    """Rasterization order is an order of one subpass, or of one instance of dynamic rendering."""
    same_stream = prior.stream == current.stream and prior.instance == current.instance
    return same_stream and in_raster_order(prior.access, current.access)


def attachment_ordered(prior: PastAccess, current: PastAccess) -> bool:
    """Rasterization order as the named difference has it: of all that one queue does to attachments."""
    return prior.use.queue == current.use.queue and in_raster_order(prior.access, current.access)


def superseded(prior: PastAccess, current: PastAccess) -> bool:
    """Whether whoever keeps one read a stage and queue forgets the first of these."""
    same = ACCESS_KINDS[prior.access.access_kind].stage == ACCESS_KINDS[current.access.access_kind].stage
    return same and prior.use.queue == current.use.queue and not (prior.writes or current.writes)


def facts(prior: PastAccess, current: PastAccess, guarded: bool) -> frozenset[str]:
    """What is to be noted of two accesses that conflict."""
    noted = set()
    if guarded:
        noted.add(GUARDED_READ)
    if current.stream == HOST_STREAM and current.writes:
        noted.add(HOST_OVERWRITE)
    if attachment_ordered(prior, current):
        noted.add(ATTACHMENT_ORDER)
    if current.learned >> prior.use.node & 1:
        noted.add(HELD_BACK)
    if current.assumed >> prior.use.node & 1:
        noted.add(NARROW_SIGNAL)
    if prior.release:
        noted.add(STAGES_OF_A_RELEASE)
    return frozenset(noted)


def after_load(prior: PastAccess, current: PastAccess, shared: list[Span]) -> bool:
    """Whether a load operation that saw the prior write is between: it happens before what accesses the attachment
    after it in the subpass ("Render Pass Load Operations")."""
    left = shared
    for reader, spans in prior.seen_by:
        if raster_ordered(reader, current):
            left = subtract(left, spans)
    return not left
