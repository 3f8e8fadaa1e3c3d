"""Two accesses side by side: which pairs need nothing between them, and what is to be noted of those that conflict."""

from __future__ import annotations

from harness.model.past_access import ENGINE_LANE, HOST_LANE, LAYOUT_TRANSITION, PastAccess
from harness.model.raster import in_raster_order
from harness.model.stages import ACCESS_KINDS
from harness.spans import Span, subtract

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


def exempt(prior: PastAccess, current: PastAccess) -> bool:
    """Pairs that need nothing between them.

    Accesses of one command in one place order themselves, so do those of the host and of the engine; atomics, and
    markers, may come in any order; transitions on one queue execute in submission order ("Image Layout Transitions"),
    but for those of one render pass instance, which have none ("Implicit Synchronization Guarantees"); and
    rasterization order.
    """
    beside = prior.lane == current.lane and not (prior.automatic or current.automatic)
    if beside and (prior.command == current.command or current.lane == HOST_LANE):
        return True
    if prior.lane == current.lane == ENGINE_LANE:
        return True
    if (prior.access.atomic and current.access.atomic) or (prior.access.marker and current.access.marker):
        return True
    if prior.access.access_kind == current.access.access_kind == LAYOUT_TRANSITION:
        one_instance = prior.instance != 0 and prior.instance == current.instance
        return prior.use.queue == current.use.queue and not one_instance
    return raster_ordered(prior, current)


def raster_ordered(prior: PastAccess, current: PastAccess) -> bool:
    """Rasterization order is an order of one subpass, or of one instance of dynamic rendering."""
    beside = prior.lane == current.lane and prior.instance == current.instance
    return beside and in_raster_order(prior.access, current.access)


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
    if current.lane == HOST_LANE and current.writes:
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
