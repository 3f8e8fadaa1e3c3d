"""A render pass instance: each subpass is a viewer of its own, and dependencies hand over what it may assume.

(rules.md#subpass.) Subpasses without a path of dependencies between them race.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from copy import copy

from vkharness.spec.enums import VkPipelineStage2
from vkharness.spec.scopes import TOP, WHOLE_FIRST, WHOLE_SECOND
from vkharness.syncval.barrier import Scope, expand
from vkharness.syncval.context import Context
from vkharness.syncval.cross_dependency import CrossDependency, after_render_pass, before_operations, importing
from vkharness.syncval.entries import DetectedHazard, RangeScope
from vkharness.syncval.race import RacingWork
from vkharness.syncval.state import Change, union
from vkharness.trace.effects import (
    EXTERNAL,
    AttachmentUsers,
    AutomaticTransition,
    Dependency,
    PassBegin,
    PassEnd,
    SubpassBegin,
    SubpassDependency,
)
from vkharness.trace.view_pairs import ViewPairs

NOTHING = expand(Dependency(0, 0, 0, 0), 0)
"""The scope of a transition by itself: after earlier barriers over everything, before nothing."""
NO_SCOPE = Scope(0, 0, 0, 0)
"""Of a transition before no dependency: nothing chains with it."""
Givers = list[tuple[int, tuple[Scope, ...]]]
"""Source subpasses (EXTERNAL for what is outside) with the scopes of dependencies."""


def subpass_scope(given: SubpassDependency, queue_flags: int) -> Scope:
    """The scopes of a subpass dependency. What is all commands elsewhere is all graphics stages here.

    Specification: "VkSubpassDependency". Rules: rules.md#all-commands-between-subpasses-is-all-graphics,
    rules.md#view-local-dependencies-order-views.
    """
    src, dst = given.dependency.src_stages, given.dependency.dst_stages
    scope = expand(
        given.dependency._replace(
            src_stages=src & ~WHOLE_FIRST | VkPipelineStage2.ALL_GRAPHICS if src & WHOLE_FIRST else src,
            dst_stages=dst & ~WHOLE_SECOND | VkPipelineStage2.ALL_GRAPHICS if dst & WHOLE_SECOND else dst,
        ),
        queue_flags,
        given.by_region,
    )
    return scope._replace(local=True) if given.views is not None and _between_views(given.views) > 1 else scope


def _between_views(views: ViewPairs) -> int:
    """How many views of both subpasses together a view-local dependency is between: 0 where it orders nothing, and 1
    where each has one view, so that it is a dependency between the two."""
    shifted = views.src >> views.offset if views.offset >= 0 else views.src << min(-views.offset, 64)
    return (views.src | views.dst << 64).bit_count() - 1 if shifted & views.dst else 0


class InstanceExecution:
    """One render pass instance in execution."""

    def __init__(self, context: Context, begin: PassBegin, queue_flags: int) -> None:
        self._context = context
        context.begin_instance(of_render_pass=True)
        self._outer = context.viewer
        self.racing = context.racing
        """Work that races with commands outside of the instance."""
        self._scopes: dict[tuple[int, int], tuple[Scope, ...]] = {}
        for each in begin.dependencies:
            if each.src != each.dst and (each.views is None or _between_views(each.views)):
                key = (each.src, each.dst)
                scope = subpass_scope(each, queue_flags)
                if each.src != EXTERNAL:
                    # The dependency itself is no part of the subpass: no barrier inside holds it in its second scope.
                    scope = scope._replace(src_stages=scope.src_stages & ~TOP)
                self._scopes[key] = (*self._scopes.get(key, ()), context.with_host_token(scope))
        self._subpasses = begin.subpasses
        self._before: dict[int, set[int]] = {EXTERNAL: set()}
        """For each subpass that began, those from which a path of dependencies leads to it."""
        self._shown: list[tuple[AutomaticTransition, set[int], int]] = []
        """The transitions that several subpasses enter, with those that a dependency orders after them, and the number
        of the viewer that makes them: none of the subpasses."""
        self._entered: list[tuple[AutomaticTransition, int, int]] = []
        """The transitions, with the subpasses at whose begin they were made and the numbers of their viewers."""
        self._current = 0
        self._operations: dict[tuple[tuple[int, ...], int], int] = {}
        """The numbers of the viewers that make load, store and resolve operations, by the subpasses that use the
        attachment and the one in which they are made."""
        self._numbers = begin.subpasses
        """The next number for a viewer that is no subpass."""

    def copied(self, context: Context, racing: RacingWork) -> InstanceExecution:
        """The same instance over another context, in which `racing` races with what is outside of it."""
        made = copy(self)
        made._context, made.racing = context, racing
        made._scopes, made._before, made._operations = {**self._scopes}, {**self._before}, {**self._operations}
        made._shown, made._entered = [*self._shown], [*self._entered]
        return made

    @property
    def known(self) -> Hashable:
        """All that is known of it, but for who races with it."""
        return (
            self._outer, tuple(self._scopes.items()), self._subpasses, self._current, self._numbers,
            frozenset((each, frozenset(several)) for each, several in self._before.items()),
            tuple((each, frozenset(after), number) for each, after, number in self._shown),
            tuple(self._entered), tuple(self._operations.items()),
        )  # fmt: skip

    def _next_number(self) -> int:
        self._numbers += 1
        return self._numbers - 1

    def _viewer(self, subpass: int) -> int:
        """Viewers of subpasses are negative; nothing of them outlives the instance, so that numbers are used again."""
        return self._outer if subpass == EXTERNAL else -1 - subpass

    def _racing_with(self, others: int, before: set[int]) -> RacingWork:
        """The subpasses that race with what only those in `before` are ordered before, out of the first `others`.

        Rule: rules.md#subpasses-without-a-path-race.
        """
        strangers = {self._viewer(each) for each in range(others) if each not in before}
        strangers |= {self._viewer(number) for _, after, number in self._shown if not before & {number, *after}}
        strangers |= {
            self._viewer(number) for (users, _), number in self._operations.items() if not before & {number, *users}
        }
        if not strangers:
            return self.racing
        return self.racing._replace(queue=self._context.queue, subpasses=frozenset(strangers))

    def _up_to(self, givers: Givers) -> set[int]:
        """The subpasses that give, and those before them."""
        return {src for src, _ in givers}.union(*(self._before.get(src, set()) for src, _ in givers))

    def _givers(self, subpass: int) -> Givers:
        """(source subpass, scopes) of the dependencies into a subpass, EXTERNAL for its end.

        Each dependency itself comes after what barriers of everything outside the instance hold back.
        Rule: rules.md#all-commands-is-everything.
        """
        given = [(src, scopes) for (src, dst), scopes in self._scopes.items() if dst == subpass]
        inside = [scope for src, scopes in given for scope in scopes if src != EXTERNAL]
        held = tuple(scope._replace(src_stages=TOP, src_accesses=0) for scope in inside)
        return self._with_operations([*given, *([(EXTERNAL, held)] if held else [])])

    def _with_operations(self, givers: Iterable[tuple[int, tuple[Scope, ...]]]) -> Givers:
        """Givers, with the load and store operations of attachments that they use with other subpasses.

        Rule: rules.md#operations-are-in-the-scopes-of-all-who-use-the-attachment.
        """
        several = list(givers)
        return several + [
            (number, scopes)
            for (users, _), number in self._operations.items()
            for src, scopes in several
            if src in users
        ]

    def _before_transition(self, transition: AutomaticTransition) -> Givers:
        """(source subpass, scopes) of the dependencies that make available what a transition comes after.

        These are the dependencies from the subpasses that it leaves, wherever they lead. Away from initialLayout these
        are the dependencies from outside into subpasses that use the attachment.
        Rules: rules.md#dependencies-meet-at-a-transition, rules.md#initial-transitions-wait-for-earlier-accesses,
        rules.md#aliased-attachments-share-their-users.
        """
        leaves = transition.leaves or (EXTERNAL,)
        return self._with_operations(
            (src, scopes)
            for (src, dst), scopes in self._scopes.items()
            if src in leaves and (src != EXTERNAL or dst in transition.users)
        )

    def begin(self, effect: SubpassBegin, place: int) -> list[DetectedHazard]:
        """Enters a subpass: its transitions are checked against what they leave, then it receives the dependencies.

        Rules: rules.md#a-subpass-dependency-orders-two-subpasses, rules.md#external-dependencies-order-what-is-outside.
        """
        context, index = self._context, effect.index
        givers = self._givers(index)
        scopes = tuple(scope for _, several in givers for scope in several)
        before = [self._before_transition(each) for each in effect.transitions]
        hazards = self._transition_hazards(effect.transitions, before)
        met = before + [self._before_transition(each) for each, *_ in self._shown if index in each.later]
        received = givers + [through for each in met if scopes for through in _through(each, scopes)]
        self._before[index] = self._up_to(received)
        context.racing = self._racing_with(index, {index, *self._before[index]})
        viewer = self._viewer(index)
        dependencies = (CrossDependency(self._outer, (), True), *self._handed_over(received))
        context.map_slots(importing(dependencies, viewer))
        context.viewer, self._current = viewer, index
        self._move(effect.transitions, [scopes] * len(effect.transitions), place)
        for each in effect.transitions:
            self._show(each, index)
        return hazards

    def _show(self, transition: AutomaticTransition, index: int) -> None:
        """Orders a transition before what the dependencies into each subpass that enters it make visible."""
        given = {each: [scope for _, scopes in self._givers(each) for scope in scopes] for each in transition.later}
        after = {each for each, scopes in given.items() if scopes}
        number = self._next_number() if transition.later else index
        if transition.later:
            receivers = tuple((self._viewer(each), tuple(given[each])) for each in sorted(after))
            self._context.show_transition(transition.space, transition.spans, self._viewer(number), receivers)
            self._shown.append((transition, {index, *after}, number))
        self._entered.append((transition, index, number))

    def _operator(self, users: tuple[int, ...]) -> int:
        """The number of the viewer that makes the operations of attachments which these subpasses use."""
        made = users, self._current
        if made not in self._operations:
            self._operations[made] = self._next_number()
        return self._operations[made]

    def operate(self, effect: AttachmentUsers) -> None:
        """Load, store and resolve operations follow: they come after the dependencies into every subpass that uses the
        attachment, and are in the first scopes of those from each. Dependencies chain through them in their stages.

        A dependency from the subpass in which they are performed, or from a later one, is not before them: loads come
        first. Rule: rules.md#operations-are-in-the-scopes-of-all-who-use-the-attachment.
        """
        context, index = self._context, self._current
        before = {index, *self._before[index]}
        context.inside = self._viewer(index) if effect.subpasses else 0
        if not effect.subpasses:
            context.viewer, context.racing = self._viewer(index), self._racing_with(index, before)
            return
        number = self._operator(effect.subpasses)
        viewer, stages = self._viewer(number), effect.stages
        received: Givers = []
        for each in effect.subpasses:
            given = [(src, scopes) for (src, dst), scopes in self._scopes.items() if dst == each and src < index]
            scopes = tuple(scope for _, several in given for scope in several)
            if each == index or not scopes:
                continue
            received += self._with_operations(given)
            for transition, at, maker in self._entered:
                if each == at or each in transition.later:
                    received += _through(self._before_transition(transition), scopes)
                    receivers, before = ((viewer, scopes),), before | {maker}
                    by = self._viewer(maker)
                    context.show_transition(transition.space, transition.spans, by, receivers, anew=False)
        self._before[number] = before | self._up_to(received)
        dependencies = (CrossDependency(self._viewer(index), (), True), *self._handed_over(received))
        context.map_slots(
            Change(
                ("operations", dependencies, viewer, stages),
                lambda state: before_operations(state, dependencies, viewer, stages),
            )
        )
        context.viewer, context.racing = viewer, self._racing_with(index, self._before[number])

    def end(self, effect: PassEnd, place: int) -> list[DetectedHazard]:
        """Leaves the last subpass: final transitions, and everything becomes the outer viewer's own.

        Rules: rules.md#final-transitions-wait-for-the-store, rules.md#external-dependencies-order-what-is-outside.
        """
        context, outer = self._context, self._outer
        givers = self._givers(EXTERNAL)
        before = [self._before_transition(each) for each in effect.transitions]
        hazards = self._transition_hazards(effect.transitions, before)
        received, final = list(givers), []
        for transition, several in zip(effect.transitions, before, strict=True):
            scopes = tuple(scope for src, scopes in givers if src in transition.users for scope in scopes)
            received += _through(several, scopes) if scopes else []
            final.append(scopes)
        dependencies = self._handed_over(received, outside=False)
        context.map_slots(
            Change(("return", dependencies, outer), lambda state: after_render_pass(state, dependencies, outer))
        )
        context.viewer, context.racing = outer, self.racing
        self._move(effect.transitions, final, place)
        return hazards

    def _handed_over(self, received: Givers, outside: bool = True) -> tuple[CrossDependency, ...]:
        """Returns the dependencies of a viewer on each giver. `outside` keeps orderings from before the instance."""
        return tuple(
            CrossDependency(self._viewer(src), scopes, outside and src == EXTERNAL)
            for src, scopes in dict.fromkeys(received)
        )

    def _transition_hazards(
        self, transitions: tuple[AutomaticTransition, ...], before: list[Givers]
    ) -> list[DetectedHazard]:
        """Returns the hazards of each transition with accesses that no dependency orders before it: all that other
        subpasses do races with it. Barriers of everything outside the instance hold it back, too.
        Rule: rules.md#all-commands-is-everything."""
        hazards: list[DetectedHazard] = []
        context = self._context
        for each, givers in zip(transitions, before, strict=True):
            context.racing = self._racing_with(self._subpasses, self._up_to(givers))
            sources = tuple((self._viewer(source), scopes) for source, scopes in [*givers, (EXTERNAL, (NOTHING,))])
            hazards += context.check_transition(each.space, each.spans, sources, each.resource)
            for alias in each.aliases:
                met = context.check_transition(alias.space, alias.spans, sources, alias.resource)
                hazards += context.report_alias_hazards(alias, each.resource, list(met))
        return hazards

    def _move(self, transitions: tuple[AutomaticTransition, ...], scopes: list[tuple[Scope, ...]], place: int) -> None:
        ranges = [
            RangeScope(each.space, span, scope, True)
            for each, several in zip(transitions, scopes, strict=True)
            for span in each.spans
            for scope in several or (NO_SCOPE,)
        ]
        if ranges:
            self._context.barrier((), ranges, place)


def _through(before: Givers, after: tuple[Scope, ...]) -> Givers:
    """The scopes around an automatic transition: each first scope before it with the second scopes of all after it.

    The transition happens after what one dependency makes available, and before what any other makes visible.
    Rule: rules.md#dependencies-meet-at-a-transition.
    """
    ends = [several for local in (False, True) if (several := [each for each in after if each.local is local])]
    return [(src, tuple(_joined(scope, several) for scope in scopes for several in ends)) for src, scopes in before]


def _joined(scope: Scope, several: list[Scope]) -> Scope:
    """A first scope with the second scopes of several dependencies, which all hold by region or all hold everywhere."""
    return scope._replace(
        dst_stages=union(each.dst_stages for each in several),
        dst_accesses=union(each.dst_accesses for each in several),
        host=next((each.host for each in several if each.host), 0),
        local=several[0].local,
    )
