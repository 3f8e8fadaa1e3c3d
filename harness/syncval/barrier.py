"""Dependencies within one viewer: pipeline barriers and event waits (rules.md#barrier, rules.md#chain)."""

from __future__ import annotations

import functools
from typing import NamedTuple

from harness.spec.scopes import BOTTOM, TOP, access_scope, execution_scope_dst, execution_scope_src
from harness.syncval.state import NO_TOKENS, AccessOrdering, Read, State, View, Write
from harness.trace.effects import Dependency


class Scope(NamedTuple):
    """One dependency, expanded: execution scopes as stage masks, access scopes as bits of ACCESS_KINDS indices.

    With an `event` (a token, not 0) the first scope is what was in it when the event was set, and what is before the
    wait in any case. `host` (a token, not 0)
    marks the writes that the dependency makes visible to the host.
    """

    src_stages: int
    src_accesses: int
    dst_stages: int
    dst_accesses: int
    event: int = 0
    host: int = 0


@functools.lru_cache(maxsize=1 << 14)
def expand(dependency: Dependency, queue_flags: int) -> Scope:
    """The scopes of a dependency for the queue that executes it. Execution scopes reach to logically earlier and later
    stages; access scopes stay with the stages given (rules.md#scopes-stages-and-accesses).

    No stage performs the command's own operations. An earlier second scope holds them if it holds everything
    (TOP_OF_PIPE), a later first scope if it does (BOTTOM_OF_PIPE). Rule: rules.md#all-commands-is-everything.
    """
    src, dst = dependency.src_stages, dependency.dst_stages
    return Scope(
        execution_scope_src(src, queue_flags) | TOP,
        access_scope(src, dependency.src_accesses, queue_flags),
        execution_scope_dst(dst, queue_flags) | BOTTOM,
        access_scope(dst, dependency.dst_accesses, queue_flags),
    )


def after_barrier(state: State, scopes: tuple[Scope, ...], viewer: int) -> State:
    """A state after the dependencies of one command, which are independent of one another (memoised)."""
    return state.after((scopes, viewer), lambda state: state.with_view(view_after(state, state.view(viewer), scopes)))


def view_after(state: State, view: View, scopes: tuple[Scope, ...]) -> View:
    """A view after several dependencies. Each is applied to the view as it was before; their effects are united."""
    barriers, chain = view.write.barriers, view.write.chain
    tokens = view.write.tokens
    gained = [ordering.barriers for ordering in view.reads]
    for scope in scopes:
        if state.write is not None and write_in_scope(state.write, view.write, scope, view.viewer):
            barriers |= scope.dst_accesses
            chain |= scope.dst_stages
            if scope.host:
                tokens |= {scope.host}
        stages = 0
        for read, ordering in zip(state.reads, view.reads, strict=True):
            if read_in_scope(read, ordering, scope, view.viewer):
                stages |= read.stage
        for at, (read, ordering) in enumerate(zip(state.reads, view.reads, strict=True)):
            if (read.stage | ordering.chain) & stages:
                gained[at] |= scope.dst_stages
    return View(
        view.viewer,
        AccessOrdering(barriers, chain, tokens, view.write.ordered_subpass_stages),
        tuple(ordering._replace(barriers=more) for ordering, more in zip(view.reads, gained, strict=True)),
    )


def write_in_scope(write: Write, ordering: AccessOrdering, scope: Scope, viewer: int) -> bool:
    """Whether a first scope holds the write: directly by its kind of access, or through a chain that made it available.

    A write that the host has waited for is available, and comes before everything that is submitted afterwards.
    """
    access = scope.src_accesses >> write.access_kind & 1
    if scope.event:
        marked = chained(scope.event) in ordering.tokens or (access and scope.event in ordering.tokens)
        return bool(marked or ordering.chain & scope.src_stages & TOP)
    after = ordering.chain | ordering.ordered_subpass_stages
    chain = scope.src_stages if write.done else after & scope.src_stages
    return bool((access and write.viewer == viewer) or chain)


def read_in_scope(read: Read, ordering: AccessOrdering, scope: Scope, viewer: int) -> bool:
    """Whether a first scope holds the read: directly by its stage, or through a chain of earlier barriers."""
    if scope.event:
        return scope.event in ordering.tokens or bool(ordering.barriers & scope.src_stages & TOP)
    chained = (ordering.barriers | ordering.ordered_subpass_stages) & scope.src_stages
    return bool((read.stage & scope.src_stages and read.viewer == viewer) or chained)


def chained(token: int) -> int:
    """The token for accesses that an event covers through a chain. The accesses that its wait names do not matter."""
    return -token


def after_set(state: State, token: int, stages: int, accesses: int, viewer: int) -> State:
    """Marks the accesses in the first scope of an event that is set now. Nothing is ordered yet (memoised).

    `accesses` are those that the stages can make, as bits of ACCESS_KINDS indices. A token is positive and used once.
    """
    return state.after(
        ("set", token, stages, accesses, viewer), lambda state: _marked(state, token, stages, accesses, viewer)
    )


def _marked(state: State, token: int, stages: int, accesses: int, viewer: int) -> State:
    view = state.view(viewer)
    scope = Scope(stages, accesses, 0, 0)
    ordering = view.write
    if state.write is not None:
        marks = set()
        if accesses >> state.write.access_kind & 1 and state.write.viewer == viewer:
            marks.add(token)
        if (ordering.chain | ordering.ordered_subpass_stages) & stages:
            marks.add(chained(token))
        ordering = ordering._replace(tokens=ordering.tokens | marks)
    reads = tuple(
        each._replace(tokens=each.tokens | {token}) if read_in_scope(read, each, scope, viewer) else each
        for read, each in zip(state.reads, view.reads, strict=True)
    )
    return state.with_view(view._replace(write=ordering, reads=reads))


def after_meeting(state: State, tokens: tuple[int, ...], met: int, viewer: int) -> State:
    """Marks with the token `met` the accesses that have the marks of several sets (memoised)."""
    return state.after(("meet", tokens, met, viewer), lambda state: _met(state, tokens, met, viewer))


def _met(state: State, tokens: tuple[int, ...], met: int, viewer: int) -> State:
    view = state.view(viewer)
    held = view.write.tokens
    marks = set()
    if all(chained(each) in held for each in tokens):
        marks.add(chained(met))
    elif all(each in held or chained(each) in held for each in tokens):
        marks.add(met)
    reads = tuple(
        each._replace(tokens=each.tokens | {met}) if each.tokens.issuperset(tokens) else each for each in view.reads
    )
    return state.with_view(view._replace(write=view.write._replace(tokens=held | marks), reads=reads))


def after_forgetting(state: State, token: int) -> State:
    """A state without the marks of an event that was reset or set again (memoised)."""
    return state.after(("forget", token), lambda state: _forgotten(state, token))


def _forgotten(state: State, token: int) -> State:
    gone = {token, chained(token)}

    def without(ordering: AccessOrdering) -> AccessOrdering:
        return ordering._replace(tokens=ordering.tokens - gone if ordering.tokens else NO_TOKENS)

    for view in state.views:
        changed = view._replace(write=without(view.write), reads=tuple(without(each) for each in view.reads))
        if changed != view:
            state = state.with_view(changed)
    return state
