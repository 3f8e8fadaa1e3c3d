"""Dependencies within one viewer: pipeline barriers and event waits (rules.md#barrier, rules.md#chain)."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from vkharness.spec.enums import VkPipelineStage2
from vkharness.spec.scopes import ACCESS_KIND, BOTTOM, TOP, access_scope, execution_scope_dst, execution_scope_src
from vkharness.syncval.late_host_writes import BY_HOST
from vkharness.syncval.shown_to_host import chained_on, marks_of, shown, signaled
from vkharness.syncval.state import LAYOUT_TRANSITION, NO_TOKENS, AccessOrdering, Change, Read, State, View, Write
from vkharness.syncval.tokens import SETS, covered
from vkharness.trace.effects import Dependency

FRAMEBUFFER_SPACE = (
    VkPipelineStage2.FRAGMENT_SHADER
    | VkPipelineStage2.EARLY_FRAGMENT_TESTS
    | VkPipelineStage2.LATE_FRAGMENT_TESTS
    | VkPipelineStage2.COLOR_ATTACHMENT_OUTPUT
)
"""The framebuffer-space stages (specification: "Framebuffer Region Dependencies")."""


HOST_READ_BIT = 1 << ACCESS_KIND["SYNC_HOST_HOST_READ"].index
HOST_ACCESSES = HOST_READ_BIT | 1 << ACCESS_KIND["SYNC_HOST_HOST_WRITE"].index


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
    local: bool = False
    """Whether it holds by region of the framebuffer only."""


def to_the_host(scopes: Iterable[Scope]) -> Iterator[Scope]:
    """Yields the parts of dependencies of one range that act on all memory: available writes come to the host domain.

    Rule: rules.md#a-dependency-to-the-host-is-about-all-memory.
    """
    for scope in scopes:
        if scope.dst_accesses & HOST_ACCESSES:
            yield scope._replace(src_accesses=0, dst_accesses=scope.dst_accesses & HOST_ACCESSES)


UNNAMED = access_scope(VkPipelineStage2.ALL_COMMANDS, 0, 0)
"""Accesses that ALL_COMMANDS makes available without an access mask. BOTTOM_OF_PIPE is its equal in a first scope."""


@functools.lru_cache(maxsize=1 << 14)
def expand(dependency: Dependency, queue_flags: int, by_region: bool = False) -> Scope:
    """The scopes of a dependency for the queue that executes it. Execution scopes reach to logically earlier and later
    stages; access scopes stay with the stages given (rules.md#scopes-stages-and-accesses). `by_region` makes the
    dependency framebuffer-local if it is one between framebuffer-space stages.

    No stage performs the command's own operations. An earlier second scope holds them if it holds everything
    (TOP_OF_PIPE), a later first scope if it does (BOTTOM_OF_PIPE). Rule: rules.md#all-commands-is-everything.
    """
    src, dst = dependency.src_stages, dependency.dst_stages
    return Scope(
        execution_scope_src(src, queue_flags) | TOP,
        access_scope(src, dependency.src_accesses, queue_flags) | (UNNAMED if src & BOTTOM else 0),
        execution_scope_dst(dst, queue_flags) | BOTTOM,
        access_scope(dst, dependency.dst_accesses, queue_flags),
        local=by_region and _is_of_framebuffer(src & ~TOP) and _is_of_framebuffer(dst & ~BOTTOM),
    )


def _is_of_framebuffer(stages: int) -> bool:
    """Whether one side of a dependency names framebuffer-space stages and no others. The end of the pipe that is
    equivalent to NONE there is left out. Rule: rules.md#by-region-dependencies-order-attachments."""
    return bool(stages) and not stages & ~FRAMEBUFFER_SPACE


def after_barrier(state: State, scopes: tuple[Scope, ...], viewer: int) -> State:
    """A state after the dependencies of one command, which are independent of one another (memoised)."""
    return state.after((scopes, viewer), lambda state: state.with_view(view_after(state, state.view(viewer), scopes)))


def view_after(state: State, view: View, scopes: tuple[Scope, ...]) -> View:
    """A view after several dependencies. Each is applied to the view as it was before; their effects are united.

    Rules: rules.md#barriers-of-one-command-are-independent, rules.md#barriers-of-one-command-add-up.
    """
    write = view.write
    gained = list(view.reads)
    for scope in scopes:
        if state.write is not None:
            write = write_gains(state.write, view.write, scope, view.viewer, write)
        for at, (read, each) in enumerate(zip(state.reads, view.reads, strict=True)):
            match read_reach(read, each, scope, view.viewer):
                case Ordered.EVERYWHERE:
                    gained[at] = gained[at]._replace(barriers=gained[at].barriers | scope.dst_stages)
                case Ordered.REGION:
                    gained[at] = gained[at]._replace(near_barriers=gained[at].near_barriers | scope.dst_stages)
    return View(view.viewer, write, tuple(gained))


def write_gains(
    write: Write, ordering: AccessOrdering, scope: Scope, viewer: int, gained: AccessOrdering
) -> AccessOrdering:
    """Adds to `gained` the ordering that one dependency gives a write in the eyes of a viewer, and returns the sum.

    Rule: rules.md#availability-and-visibility-may-be-apart.
    """
    match write_reach(write, ordering, scope, viewer):
        case Ordered.EVERYWHERE:
            tokens = gained.tokens
            if scope.host:
                tokens |= shown(scope.host, scope.dst_stages, tokens if viewer >= 0 else NO_TOKENS)
            if ordering.tokens:
                tokens |= chained_on(ordering.tokens, scope.src_stages, scope.dst_stages)
            barriers, chain = gained.barriers | scope.dst_accesses, gained.chain | scope.dst_stages
            return gained._replace(barriers=barriers, chain=chain, tokens=tokens)
        case Ordered.REGION:
            near, chain = gained.near_barriers | scope.dst_accesses, gained.near_chain | scope.dst_stages
            return gained._replace(near_barriers=near, near_chain=chain)
    return gained


class Ordered(Enum):
    """Where a dependency orders an access before its second scope."""

    NOWHERE = 0
    REGION = 1
    """In each region of the framebuffer: the access and the second scope are apart by framebuffer-local dependencies
    alone."""
    EVERYWHERE = 2


def write_reach(write: Write, ordering: AccessOrdering, scope: Scope, viewer: int) -> Ordered:
    """Whether a first scope holds the write: directly by its kind of access, or through a chain that made it available.

    A write that the host has waited for is available, and comes before everything that is submitted afterwards.
    Rules: rules.md#by-region-dependencies-order-attachments, rules.md#a-barrier-covers-what-came-before-it,
    rules.md#a-chain-needs-stages-that-meet, rules.md#a-late-host-write-needs-a-dependency-from-the-host.
    """
    access = scope.src_accesses >> write.access_kind & 1
    if scope.event:
        held = covered(ordering.tokens, chained(scope.event)) or (access and covered(ordering.tokens, scope.event))
        return Ordered.EVERYWHERE if held or ordering.chain & scope.src_stages & TOP else Ordered.NOWHERE
    after = ordering.chain | ordering.ordered_subpass_stages
    if (access and after & BY_HOST) or (scope.src_stages if write.done else after & scope.src_stages):
        return Ordered.EVERYWHERE
    near = ordering.near_chain | ordering.near_subpass_stages
    if (access and write.viewer == viewer and not _is_automatic(write)) or near & scope.src_stages:
        return Ordered.REGION if scope.local else Ordered.EVERYWHERE
    return Ordered.NOWHERE


def _is_automatic(write: Write) -> bool:
    """Whether a write is a layout transition into a subpass of the instance that goes on. Only commands of the subpass
    are in the first scope of a barrier there. Rule: rules.md#dependencies-meet-at-a-transition."""
    return write.viewer < 0 and write.access_kind == LAYOUT_TRANSITION


def read_reach(read: Read, ordering: AccessOrdering, scope: Scope, viewer: int) -> Ordered:
    """Whether a first scope holds the read: directly by its stage, or through a chain of earlier barriers.

    Rules: rules.md#a-barrier-covers-what-came-before-it, rules.md#a-chain-needs-stages-that-meet,
    rules.md#by-region-dependencies-order-attachments.
    """
    if scope.event:
        held = covered(ordering.tokens, scope.event) or ordering.barriers & scope.src_stages & TOP
        return Ordered.EVERYWHERE if held else Ordered.NOWHERE
    if (ordering.barriers | ordering.ordered_subpass_stages) & scope.src_stages:
        return Ordered.EVERYWHERE
    near = ordering.near_barriers | ordering.near_subpass_stages
    if (read.stage & scope.src_stages and read.viewer == viewer) or near & scope.src_stages:
        return Ordered.REGION if scope.local else Ordered.EVERYWHERE
    return Ordered.NOWHERE


def write_in_scope(write: Write, ordering: AccessOrdering, scope: Scope, viewer: int) -> bool:
    """Whether a first scope holds a write, at least in each region that a regional write is about."""
    if not write.regional:
        ordering = ordering._replace(near_chain=0, near_subpass_stages=0)
    return write_reach(write, ordering, scope, viewer) is not Ordered.NOWHERE


def read_in_scope(read: Read, ordering: AccessOrdering, scope: Scope, viewer: int) -> bool:
    """Whether a first scope holds a read, at least in each region that a regional read is about."""
    if not read.regional:
        ordering = ordering._replace(near_barriers=0, near_subpass_stages=0)
    return read_reach(read, ordering, scope, viewer) is not Ordered.NOWHERE


def chained(token: int) -> int:
    """The token for accesses that an event covers through a chain. The accesses that its wait names do not matter."""
    return -token


def setting(token: int, stages: int, accesses: int, viewer: int, earlier: int = 0) -> Change:
    """Marks in every state what is in the first scope of an event that is set now."""
    key = ("set", token, stages, accesses, viewer, earlier)
    return Change(key, lambda state: after_set(state, token, stages, accesses, viewer, earlier))


def after_set(state: State, token: int, stages: int, accesses: int, viewer: int, earlier: int = 0) -> State:
    """Marks the accesses in the first scope of an event that is set now. Nothing is ordered yet.

    `accesses` are those that the stages can make, as bits of ACCESS_KINDS indices. A token is positive and used once.
    What has the token `earlier` is in the scope, too. The scope is framebuffer-global, so that a chain with it is:
    rules.md#by-region-dependencies-order-attachments.
    Rules: rules.md#a-set-fixes-the-first-scope, rules.md#waits-and-barriers-chain.
    """
    view = state.view(viewer)
    scope = Scope(stages, accesses, 0, 0)
    ordering = view.write
    if state.write is not None:
        marks = set()
        if accesses >> state.write.access_kind & 1 and state.write.viewer == viewer:
            marks.add(token)
        far = ordering.chain | ordering.ordered_subpass_stages
        near = ordering.near_chain | ordering.near_subpass_stages
        if (far | near) & stages or chained(earlier) in ordering.tokens:
            marks.add(chained(token))
        if token < SETS:
            marks |= signaled(ordering.tokens, token, stages, earlier)
        ordering = marked(ordering, *marks)
    reads = tuple(
        marked(each, token)
        if read_reach(read, each, scope, viewer) is not Ordered.NOWHERE or earlier in each.tokens
        else each
        for read, each in zip(state.reads, view.reads, strict=True)
    )
    return state.with_view(view._replace(write=ordering, reads=reads))


def meeting(tokens: tuple[int, ...], met: int, viewer: int) -> Change:
    """Marks in every state what has the marks of several sets."""
    return Change(("meet", tokens, met, viewer), lambda state: after_meeting(state, tokens, met, viewer))


def after_meeting(state: State, tokens: tuple[int, ...], met: int, viewer: int) -> State:
    """Marks with the token `met` the accesses that have the marks of several sets."""
    view = state.view(viewer)
    held = view.write.tokens
    marks = set()
    if all(covered(held, chained(each)) for each in tokens):
        marks.add(chained(met))
    elif all(covered(held, each) or covered(held, chained(each)) for each in tokens):
        marks.add(met)
    reads = tuple(
        each._replace(tokens=each.tokens | {met}) if all(covered(each.tokens, one) for one in tokens) else each
        for each in view.reads
    )
    return state.with_view(view._replace(write=view.write._replace(tokens=held | marks), reads=reads))


def marked(ordering: AccessOrdering, *tokens: int) -> AccessOrdering:
    """An ordering with tokens, where nothing that it has stands for them."""
    new = [each for each in tokens if not covered(ordering.tokens, each)]
    return ordering._replace(tokens=ordering.tokens.union(new)) if new else ordering


def forgetting(token: int, later: int = 0) -> Change:
    """Takes the marks of an event that was reset or set again off every state. The set with the token `later` covers
    what had them, if there is one."""
    return Change(("forget", token, later), lambda state: after_forgetting(state, token, later))


def after_forgetting(state: State, token: int, later: int = 0) -> State:
    """A state without the marks of an event that was reset or set again."""
    gone = {token, chained(token), *marks_of(token)}

    def without(ordering: AccessOrdering) -> AccessOrdering:
        held = ordering.tokens
        if held.isdisjoint(gone):
            return ordering
        kept = [sign * later for sign in (1, -1) if later and sign * token in held]
        return marked(ordering._replace(tokens=held - gone), *kept)

    for view in state.views:
        changed = view._replace(write=without(view.write), reads=tuple(without(each) for each in view.reads))
        if changed != view:
            state = state.with_view(changed)
    return state
