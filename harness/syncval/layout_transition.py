"""Image layout transitions: a read and write of whole subresources between two scopes (rules.md#layout-transition)."""

from __future__ import annotations

from harness.findings import Hazard
from harness.spec.enums import VkPipelineStage2
from harness.syncval.barrier import Scope, read_in_scope, write_in_scope
from harness.syncval.state import LAYOUT_TRANSITION, AccessOrdering, AccessOutcome, State, View, Write, intern, union


def after_transition(
    state: State, scopes: tuple[Scope, ...], queue: int, viewer: int, access_kind: int = LAYOUT_TRANSITION
) -> AccessOutcome:
    """What a layout transition ordered by these dependencies meets and makes; or, by `access_kind`, half of an
    ownership transfer without one (memoised)."""
    key = ("transition", scopes, queue, viewer, access_kind)
    return state.after(key, lambda state: _transition(state, scopes, queue, viewer, access_kind))


def _transition(state: State, scopes: tuple[Scope, ...], queue: int, viewer: int, access_kind: int) -> AccessOutcome:
    """Later accesses see the transition as a write. Rule: rules.md#accesses-wait-for-the-transition."""
    hazard, prior = transition_hazard(state, scopes, queue, viewer, access_kind)
    barriers = union(scope.dst_accesses for scope in scopes)
    chain = union(scope.dst_stages for scope in scopes)
    ordering = AccessOrdering(barriers, chain, frozenset(scope.host for scope in scopes if scope.host))
    after = intern(Write(access_kind, queue, viewer), (), (View(viewer, ordering, (), 0),))
    return AccessOutcome(hazard, prior, after, -1)


def transition_hazard(
    state: State, scopes: tuple[Scope, ...], queue: int, viewer: int, access_kind: int = LAYOUT_TRANSITION
) -> tuple[Hazard | None, int]:
    """The first access that a transition is not ordered after: (hazard, -1 for the write or the read's position).

    Rules: rules.md#a-transition-is-a-write; with `access_kind` rules.md#a-semaphore-orders-the-halves-of-a-transfer.
    """
    scopes = tuple(_source(scope) for scope in scopes)
    view = state.view(viewer)
    for position, (read, ordering) in enumerate(zip(state.reads, view.reads, strict=True)):
        if not any(read_in_scope(read, ordering, scope, viewer) for scope in scopes):
            return Hazard.WRITE_AFTER_READ, position
    write = state.write
    if state.read_since_write or write is None or write.done:
        return None, -1
    if write.access_kind == access_kind and write.queue == queue and write.viewer >= 0:
        return None, -1  # in submission order; those of one render pass instance are not
    if any(write_in_scope(write, view.write, scope, viewer) for scope in scopes):
        return None, -1
    return Hazard.WRITE_AFTER_WRITE, -1


def _source(scope: Scope) -> Scope:
    """NONE without accesses means TOP_OF_PIPE (specification, VK_PIPELINE_STAGE_2_NONE).

    Rule: rules.md#none-before-a-transition-is-the-top-of-the-pipe.
    """
    if scope.src_stages or scope.src_accesses or scope.event:
        return scope
    return scope._replace(src_stages=VkPipelineStage2.TOP_OF_PIPE)
