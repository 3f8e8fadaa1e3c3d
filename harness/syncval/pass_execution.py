"""A render pass instance: each subpass is a viewer of its own, and dependencies hand over what it may assume.

(rules.md#subpass.) Subpasses without a path of dependencies between them race.
"""

from __future__ import annotations

from harness.findings import Place
from harness.spec.enums import VkPipelineStage2
from harness.spec.scopes import TOP, WHOLE_FIRST, WHOLE_SECOND
from harness.syncval.barrier import Scope, expand
from harness.syncval.context import Context
from harness.syncval.cross_dependency import CrossDependency, after_render_pass, import_dependencies
from harness.syncval.entries import DetectedHazard, RangeScope
from harness.syncval.race import RacingWork
from harness.syncval.state import Change, union
from harness.trace.effects import EXTERNAL, AutomaticTransition, Dependency, PassBegin, PassEnd, SubpassBegin

NOTHING = expand(Dependency(0, 0, 0, 0), 0)
"""The scope of a transition that no dependency is about: after earlier barriers over everything, before nothing."""


def subpass_scope(dependency: Dependency, queue_flags: int, by_region: bool) -> Scope:
    """The scopes of a subpass dependency. What is all commands elsewhere is all graphics stages here.

    Specification: "VkSubpassDependency". Rule: rules.md#all-commands-between-subpasses-is-all-graphics.
    """
    src, dst = dependency.src_stages, dependency.dst_stages
    return expand(
        dependency._replace(
            src_stages=src & ~WHOLE_FIRST | VkPipelineStage2.ALL_GRAPHICS if src & WHOLE_FIRST else src,
            dst_stages=dst & ~WHOLE_SECOND | VkPipelineStage2.ALL_GRAPHICS if dst & WHOLE_SECOND else dst,
        ),
        queue_flags,
        by_region,
    )


class InstanceExecution:
    """One render pass instance in execution."""

    def __init__(self, context: Context, begin: PassBegin, queue_flags: int) -> None:
        self._context = context
        context.begin_instance()
        self._outer, self._racing = context.viewer, context.racing
        self._scopes: dict[tuple[int, int], tuple[Scope, ...]] = {}
        for each in begin.dependencies:
            if each.src != each.dst:
                key = (each.src, each.dst)
                scope = subpass_scope(each.dependency, queue_flags, each.by_region)
                if each.src != EXTERNAL:
                    # The dependency itself is no part of the subpass: no barrier inside holds it in its second scope.
                    scope = scope._replace(src_stages=scope.src_stages & ~TOP)
                self._scopes[key] = (*self._scopes.get(key, ()), context.with_host_token(scope))
        self._subpasses = begin.subpasses
        self._before = self._ancestors()

    def _ancestors(self) -> dict[int, set[int]]:
        """Subpasses with a path of dependencies to each subpass (sources come first, by the specification)."""
        before: dict[int, set[int]] = {}
        for subpass in range(self._subpasses):
            direct = {src for src, dst in self._scopes if dst == subpass and src != EXTERNAL}
            before[subpass] = direct.union(*(before.get(each, set()) for each in direct))
        return before

    def _viewer(self, subpass: int) -> int:
        """Viewers of subpasses are negative; nothing of them outlives the instance, so that numbers are used again."""
        return self._outer if subpass == EXTERNAL else -1 - subpass

    def _racing_with(self, subpass: int) -> RacingWork:
        """The subpasses that race with a subpass: earlier ones in the list on which it does not depend.

        Rule: rules.md#subpasses-without-a-path-race.
        """
        before = self._before.get(subpass, set())
        strangers = frozenset(self._viewer(each) for each in range(subpass) if each not in before)
        return self._racing._replace(queue=self._context.queue, subpasses=strangers) if strangers else self._racing

    def _givers(self, subpass: int) -> list[tuple[int, tuple[Scope, ...]]]:
        """(source subpass, scopes) of the dependencies into a subpass, EXTERNAL for its end."""
        return [(src, scopes) for (src, dst), scopes in self._scopes.items() if dst == subpass]

    def begin(self, effect: SubpassBegin, place: Place) -> list[DetectedHazard]:
        """Enters a subpass: its transitions are checked against each source, then it receives the dependencies."""
        context, index = self._context, effect.index
        context.racing = self._racing_with(index)
        givers = self._givers(index) or [(EXTERNAL, ())]
        hazards = [detected for each in effect.transitions for detected in self._transition_hazards(each, givers)]
        received = _through(givers) if effect.transitions else givers
        dependencies = (
            CrossDependency(self._outer, (), True),
            *(CrossDependency(self._viewer(src), scopes, src == EXTERNAL) for src, scopes in received),
        )
        viewer = self._viewer(index)
        context.map_slots(
            Change((dependencies, viewer), lambda state: import_dependencies(state, dependencies, viewer))
        )
        context.viewer = viewer
        scopes = tuple(scope for _, several in givers for scope in several)
        self._move(effect.transitions, [scopes] * len(effect.transitions), place)
        return hazards

    def end(self, effect: PassEnd, place: Place) -> list[DetectedHazard]:
        """Leaves the last subpass: final transitions, and everything becomes the outer viewer's own."""
        context = self._context
        final = [self._scopes.get((last, EXTERNAL), ()) for last in effect.last]
        hazards: list[DetectedHazard] = []
        for each, last, scopes in zip(effect.transitions, effect.last, final, strict=True):
            context.racing = self._racing_with(last)
            hazards += self._transition_hazards(each, [(last, scopes)])
        leaving = [(src, scopes) for (src, dst), scopes in self._scopes.items() if dst == EXTERNAL]
        dependencies = tuple(
            CrossDependency(self._viewer(src), scopes, False)
            for each in leaving
            for src, scopes in (_through([each]) if each[0] in effect.last else [each])
        )
        outer = self._outer
        context.map_slots(
            Change(("return", dependencies, outer), lambda state: after_render_pass(state, dependencies, outer))
        )
        context.viewer, context.racing = outer, self._racing
        self._move(effect.transitions, final, place)
        return hazards

    def _transition_hazards(
        self, transition: AutomaticTransition, givers: list[tuple[int, tuple[Scope, ...]]]
    ) -> list[DetectedHazard]:
        """What none of the sources orders before a transition."""
        sources = tuple((self._viewer(source), scopes or (NOTHING,)) for source, scopes in givers)
        return list(self._context.check_transition(transition.space, transition.spans, sources, transition.resource))

    def _move(
        self, transitions: tuple[AutomaticTransition, ...], scopes: list[tuple[Scope, ...]], place: Place
    ) -> None:
        ranges = [
            RangeScope(each.space, span, scope, True)
            for each, several in zip(transitions, scopes, strict=True)
            for span in each.spans
            for scope in several or (NOTHING,)
        ]
        if ranges:
            self._context.barrier((), ranges, place)


def _through(givers: list[tuple[int, tuple[Scope, ...]]]) -> list[tuple[int, tuple[Scope, ...]]]:
    """The scopes around an automatic transition: each first scope with the second scopes of all the dependencies.

    The transition happens after what one dependency makes available, and before what any other makes visible.
    Rule: rules.md#dependencies-meet-at-a-transition.
    """
    given = [scope for _, scopes in givers for scope in scopes]
    ends = [[each for each in given if each.local is local] for local in (False, True)]
    return [
        (
            src,
            tuple(
                scope._replace(
                    dst_stages=union(each.dst_stages for each in several),
                    dst_accesses=union(each.dst_accesses for each in several),
                    host=next((each.host for each in several if each.host), 0),
                    local=several[0].local,
                )
                for scope in scopes
                for several in ends
                if several
            ),
        )
        for src, scopes in givers
    ]
