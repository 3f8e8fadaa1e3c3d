"""The reads that a state need not keep: what is ordered after another read is ordered after them as well."""

from __future__ import annotations

from vkharness.syncval.state import AccessOrdering, Read, State
from vkharness.syncval.tokens import covered
from vkharness.trace.attachment_operations import AttachmentOperation

READS_KEPT = 16
"""Reads of one stage of one queue that are kept. A range that is read by more subpasses, no two of which are in order,
loses the oldest."""


def superseded_reads(state: State, fresh: Read) -> tuple[int, ...]:
    """The positions of the reads of one stage and queue that a new read makes superfluous.

    Those are earlier reads of its viewer, since each first scope that holds it holds them as well, and reads that are
    ordered before it. Two subpasses are two viewers: commands of different subpasses are in no submission order
    (specification: "Implicit Synchronization Guarantees"). Once they are over, both reads are the outer viewer's own,
    and of two of these the one that is ordered before more can go. Rule: rules.md#most-recent-access.
    """
    same = [
        at
        for at, read in enumerate(state.reads)
        if read.stage == fresh.stage and read.queue == fresh.queue and read.possible >= fresh.possible
    ]
    if not same:
        return ()
    view = state.view(fresh.viewer)
    left = [at for at in same if not _comes_first(state.reads[at], view.reads[at], fresh)]
    for at in list(left) if len(left) > 1 else ():
        if any(other != at and _stands_for(state, other, at) for other in left):
            left.remove(at)
    left = left[-READS_KEPT + 1 :]
    return tuple(at for at in same if at not in left)


def _comes_first(read: Read, ordering: AccessOrdering, fresh: Read) -> bool:
    """Whether what is ordered after the new read is ordered after an earlier one of its stage.

    A load operation also comes before accesses that no dependency orders: rules.md#loads-come-first-and-stores-last.
    """
    if read.open and read.operation == AttachmentOperation.LOAD:
        return False
    if read.viewer == fresh.viewer and _reaches_as_far(fresh, read):
        return True
    by_region = read.regional and fresh.regional
    return bool((ordering.barriers | (ordering.near_barriers if by_region else 0)) & fresh.stage)


def _stands_for(state: State, other: int, at: int) -> bool:
    """Whether whatever is ordered after the read at `other` is ordered after the read at `at`, now and later."""
    read, kept = state.reads[at], state.reads[other]
    is_less = kept.same_command > read.same_command or kept.possible > read.possible
    if read.viewer != kept.viewer or not _reaches_as_far(kept, read) or is_less:
        return False
    return all(_contains(view.reads[at], view.reads[other]) for view in state.views)


def _reaches_as_far(kept: Read, read: Read) -> bool:
    """Whether rasterization order and dependencies by region hold for a read if they hold for the one that is kept."""
    return read.regional >= kept.regional and read.open >= kept.open


def _contains(more: AccessOrdering, less: AccessOrdering) -> bool:
    """Whether all that one ordering says is part of another one."""
    return not (
        less.barriers & ~more.barriers
        or less.chain & ~more.chain
        or less.ordered_subpass_stages & ~more.ordered_subpass_stages
        or less.near_barriers & ~(more.near_barriers | more.barriers)
        or less.near_chain & ~(more.near_chain | more.chain)
        or less.near_subpass_stages & ~(more.near_subpass_stages | more.ordered_subpass_stages)
        or not all(covered(more.tokens, each) for each in less.tokens)
    )
