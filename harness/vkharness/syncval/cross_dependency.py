"""Dependencies from one viewer to another: semaphores between queues, dependencies between subpasses.

Nothing that happened changes. The receiver's view of each access is united with what the giver may assume of it,
carried through the dependency's scopes (rules.md#a-wait-carries-only-its-own-scopes-to-another-queue).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from vkharness.spec.scopes import BOTTOM, TOP
from vkharness.syncval.barrier import Ordered, Scope, read_reach, view_after, write_gains
from vkharness.syncval.state import NO_ORDERING, AccessOrdering, Change, Read, State, View, Write, intern, union


class CrossDependency(NamedTuple):
    """One dependency from another viewer, the giver.

    With `keeps` the receiver may assume all that the giver may assume: a subpass knows what was known before its render
    pass instance. Without it only what is in the scopes is carried over. That is so for semaphores, and for subpasses,
    because the second scope of a dependency into a subpass ends with the subpass.
    """

    giver: int
    scopes: tuple[Scope, ...]
    keeps: bool


def importing(dependencies: tuple[CrossDependency, ...], receiver: int) -> Change:
    """Lets a viewer receive dependencies from others in every state."""
    return Change((dependencies, receiver), lambda state: import_dependencies(state, dependencies, receiver))


def import_dependencies(state: State, dependencies: tuple[CrossDependency, ...], receiver: int) -> State:
    """A state after a viewer received dependencies from others (memoised)."""
    return state.after(("dependencies", dependencies, receiver), lambda state: _received(state, dependencies, receiver))


def _received(state: State, dependencies: tuple[CrossDependency, ...], receiver: int) -> State:
    views = [state.view(receiver)]
    for dependency in dependencies:
        given = state.view(dependency.giver)
        views.append(
            _inside(view_after(state, _without_barriers(given), dependency.scopes))
            if dependency.keeps
            else _carried(state, given, dependency.scopes)
        )
    return state.with_view(_united(receiver, views))


def before_operations(state: State, dependencies: tuple[CrossDependency, ...], receiver: int, stages: int) -> State:
    """A state after `receiver`, which makes operations of an attachment in these stages alone, received dependencies
    (memoised)."""
    key = ("operations", dependencies, receiver, stages)
    return state.after(key, lambda state: _before_operations(state, dependencies, receiver, stages))


def _before_operations(state: State, dependencies: tuple[CrossDependency, ...], receiver: int, stages: int) -> State:
    nothing = View(receiver, NO_ORDERING, (NO_ORDERING,) * len(state.reads))
    view = _received(state.with_view(nothing), dependencies, receiver).view(receiver)
    write = view.write._replace(chain=view.write.chain & stages, near_chain=view.write.near_chain & stages)
    reads = tuple(
        each._replace(barriers=each.barriers & stages, near_barriers=each.near_barriers & stages) for each in view.reads
    )
    return state.with_view(_united(receiver, [state.view(receiver), View(receiver, write, reads)]))


def _without_barriers(view: View) -> View:
    """A view from before a render pass instance, for a subpass. Barriers before the instance are themselves in no
    first scope inside it, even if that holds everything (rules.md#all-commands-is-everything)."""
    return view._replace(
        write=view.write._replace(chain=view.write.chain & ~BOTTOM, near_chain=view.write.near_chain & ~BOTTOM),
        reads=tuple(
            each._replace(barriers=each.barriers & ~BOTTOM, near_barriers=each.near_barriers & ~BOTTOM)
            for each in view.reads
        ),
    )


def _inside(view: View) -> View:
    """A view from before the render pass instance, as a subpass has it. Dependencies of the subpass itself do not reach
    back to earlier subpasses (rules.md#subpass-dependencies-chain-along-a-path)."""
    return view._replace(
        write=view.write._replace(ordered_subpass_stages=0, near_subpass_stages=0),
        reads=tuple(each._replace(ordered_subpass_stages=0, near_subpass_stages=0) for each in view.reads),
    )


def _carried(state: State, view: View, scopes: tuple[Scope, ...]) -> View:
    """The view that a receiver gains without `keeps`: accesses in the first scope are ordered before the second scope.

    Rule: rules.md#a-wait-carries-only-its-own-scopes-to-another-queue.
    """
    write = NO_ORDERING
    gained, near = [0] * len(state.reads), [0] * len(state.reads)
    for scope in scopes:
        if state.write is not None:
            write = write_gains(state.write, view.write, scope, view.viewer, write)
        for at, (read, ordering) in enumerate(zip(state.reads, view.reads, strict=True)):
            match read_reach(read, ordering, scope, view.viewer):
                case Ordered.EVERYWHERE:
                    gained[at] |= scope.dst_stages
                case Ordered.REGION:
                    near[at] |= scope.dst_stages
    reads = tuple(AccessOrdering(each, near_barriers=more) for each, more in zip(gained, near, strict=True))
    return View(view.viewer, write, reads)


def _united(viewer: int, views: Iterable[View]) -> View:
    several = list(views)
    return View(
        viewer,
        joined(view.write for view in several),
        tuple(joined(orderings) for orderings in zip(*(view.reads for view in several), strict=True)),
    )


def joined(orderings: Iterable[AccessOrdering]) -> AccessOrdering:
    """Returns the union of several orderings of one access."""
    several = list(orderings)
    tokens = frozenset().union(*(ordering.tokens for ordering in several))
    return AccessOrdering(
        union(g.barriers for g in several),
        union(g.chain for g in several),
        tokens,
        union(g.ordered_subpass_stages for g in several),
        union(g.near_barriers for g in several),
        union(g.near_chain for g in several),
        union(g.near_subpass_stages for g in several),
    )


def withheld(before: State, after: State, viewer: int, write: bool, reads: frozenset[int]) -> State:
    """The state `after` a dependency, with what the viewer had `before` for the write or for these reads.

    They came after the signal with which the dependency begins, so that it does not cover them.
    """
    old, new = before.view(viewer), after.view(viewer)
    orderings = tuple(old.reads[at] if at in reads else ordering for at, ordering in enumerate(new.reads))
    return after.with_view(View(viewer, old.write if write else new.write, orderings))


def after_render_pass(state: State, dependencies: tuple[CrossDependency, ...], outer: int) -> State:
    """A state after a render pass instance: its subpasses' accesses become the outer viewer's own (memoised)."""
    return state.after(("return", dependencies, outer), lambda state: _returned(state, dependencies, outer))


def _returned(state: State, dependencies: tuple[CrossDependency, ...], outer: int) -> State:
    state = _received(state, dependencies, outer)
    passed = [_after_subpass(view) for view in state.views if view.viewer < 0]
    if passed:
        state = state.with_view(_united(outer, [state.view(outer), *passed]))

    def home(access: Write | Read | None) -> Write | Read | None:
        return access._replace(viewer=outer, open=False) if access is not None and access.viewer < 0 else access

    write, reads = home(state.write), tuple(home(read) for read in state.reads)
    views = tuple(view for view in state.views if view.viewer >= 0)
    return intern(write, reads, views)  # type: ignore[arg-type]


def _after_subpass(view: View) -> View:
    """Returns a view as it is when its subpass is over.

    No later access is in the second scopes of dependencies into the subpass and of barriers inside it, and no later
    transition either, even if such a scope holds everything. Dependencies that begin with the subpass still chain with
    them. Rule: rules.md#all-commands-is-everything.
    """
    reads = tuple(
        AccessOrdering(
            ordered_subpass_stages=ordering.barriers & ~TOP | ordering.ordered_subpass_stages,
            near_subpass_stages=ordering.near_barriers & ~TOP | ordering.near_subpass_stages,
        )
        for ordering in view.reads
    )
    write = AccessOrdering(
        ordered_subpass_stages=view.write.chain & ~TOP | view.write.ordered_subpass_stages,
        near_subpass_stages=view.write.near_chain & ~TOP | view.write.near_subpass_stages,
    )
    return View(view.viewer, write, reads)
