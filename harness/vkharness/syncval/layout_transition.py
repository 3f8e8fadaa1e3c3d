"""Image layout transitions: a read and write of whole subresources between two scopes (rules.md#layout-transition)."""

from __future__ import annotations

from collections.abc import Sequence

from vkharness.findings import Hazard
from vkharness.syncval.barrier import Scope, read_in_scope, write_in_scope
from vkharness.syncval.cross_dependency import joined
from vkharness.syncval.shown_to_host import shown
from vkharness.syncval.state import LAYOUT_TRANSITION, AccessOrdering, State, View, Write, intern, union

Sources = tuple[tuple[int, tuple[Scope, ...]], ...]
"""Who gives dependencies to a transition: viewers with their dependencies."""


def after_transition(scopes: tuple[Scope, ...], queue: int, viewer: int, access_kind: int = LAYOUT_TRANSITION) -> State:
    """The state of a range after a layout transition ordered by these dependencies; or, by `access_kind`, after half of
    an ownership transfer without one. Later accesses see it as a write: rules.md#accesses-wait-for-the-transition."""
    return intern(Write(access_kind, queue, viewer, regional=True), (), (_after(scopes, viewer),))


def shown_to(state: State, maker: int, receivers: tuple[tuple[int, tuple[Scope, ...]], ...]) -> State:
    """The state of a range after a transition, as one that `maker` made, with what other viewers may assume of it
    (memoised). Rule: rules.md#dependencies-meet-at-a-transition."""
    return state.after(("shown", maker, receivers), lambda state: _shown(state, maker, receivers))


def _shown(state: State, maker: int, receivers: tuple[tuple[int, tuple[Scope, ...]], ...]) -> State:
    assert state.write is not None
    state = intern(state.write._replace(viewer=maker), state.reads, state.views)
    for viewer, scopes in receivers:
        state = state.with_view(_after(scopes, viewer))
    return state


def shown_as_well(state: State, maker: int, receivers: tuple[tuple[int, tuple[Scope, ...]], ...]) -> State:
    """The state of a range with what more viewers may assume of the transition that `maker` made of it, where this is
    still the last write (memoised). Rule: rules.md#operations-are-in-the-scopes-of-all-who-use-the-attachment."""
    if state.write is None or (state.write.access_kind, state.write.viewer) != (LAYOUT_TRANSITION, maker):
        return state
    return state.after(("shown as well", maker, receivers), lambda state: _shown_as_well(state, receivers))


def _shown_as_well(state: State, receivers: tuple[tuple[int, tuple[Scope, ...]], ...]) -> State:
    for viewer, scopes in receivers:
        known = state.view(viewer)
        state = state.with_view(known._replace(write=joined((known.write, _after(scopes, viewer).write))))
    return state


def _after(scopes: tuple[Scope, ...], viewer: int) -> View:
    """Returns the view that a viewer has of a layout transition that comes before these dependencies."""
    far, near = ([each for each in scopes if each.local is local] for local in (False, True))
    ordering = AccessOrdering(
        union(scope.dst_accesses for scope in far),
        union(scope.dst_stages for scope in far),
        frozenset(token for scope in scopes if scope.host for token in shown(scope.host, scope.dst_stages)),
        near_barriers=union(scope.dst_accesses for scope in near),
        near_chain=union(scope.dst_stages for scope in near),
    )
    return View(viewer, ordering, ())


def transition_hazard(
    state: State, sources: Sources, queue: int, access_kind: int = LAYOUT_TRANSITION
) -> tuple[Hazard | None, int]:
    """The first access that no source orders before a transition: (hazard, -1 for the write or the read's position).

    No stage performs it: it comes after earlier dependencies into ALL_COMMANDS whatever its first scope is. Rules:
    rules.md#a-transition-is-a-write, rules.md#none-before-a-transition-is-the-top-of-the-pipe; with `access_kind`
    rules.md#a-semaphore-orders-the-halves-of-a-transfer. Of what it need not wait for:
    rules.md#available-writes-are-visible-to-a-transition, rules.md#transitions-of-one-queue-are-in-order. (Memoised.)
    """
    key = ("transition", sources, queue, access_kind)
    return state.after(key, lambda state: _hazard(state, sources, queue, access_kind))


def _hazard(state: State, sources: Sources, queue: int, access_kind: int) -> tuple[Hazard | None, int]:
    views = [(state.view(viewer), scopes) for viewer, scopes in sources]
    late = next((at for at in state.by_certainty if not _read_is_before(state, at, views)), -1)
    if late >= 0 and not state.reads[late].possible:
        return Hazard.WRITE_AFTER_READ, late
    write, hazard = state.write, None if late < 0 else Hazard.WRITE_AFTER_READ
    if state.read_since_write or write is None or write.done:
        return hazard, late
    if write.access_kind == access_kind == LAYOUT_TRANSITION and write.queue == queue and write.viewer >= 0:
        return hazard, late  # in submission order; those of one render pass instance are not
    if any(write_in_scope(write, view.write, scope, view.viewer) for view, scopes in views for scope in scopes):
        return hazard, late
    return Hazard.WRITE_AFTER_WRITE, -1


def _read_is_before(state: State, at: int, views: Sequence[tuple[View, tuple[Scope, ...]]]) -> bool:
    """Whether any source orders the read at a position before the transition."""
    read = state.reads[at]
    return any(read_in_scope(read, view.reads[at], scope, view.viewer) for view, scopes in views for scope in scopes)
