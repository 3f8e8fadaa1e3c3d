"""Events: what was in scope when one was set, and whether its operations race (rules.md#event).

Setting an event visits no range: it marks, in each state, the accesses that are in its first scope. A wait orders what
is still marked; an access after the set has no mark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from harness.findings import Finding, Hazard, Place
from harness.spec.enums import VkPipelineStage2
from harness.spec.scopes import execution_scope_src, expand_stages, stage_accesses
from harness.syncval.barrier import Scope, after_forgetting, after_set, expand
from harness.syncval.context import Context
from harness.syncval.entries import DetectedHazard, RangeScope
from harness.syncval.race import NEVER, BatchIndex, batch_index_of
from harness.trace.effects import Barrier, Dependency, ResetEvent, SetEvent, WaitEvents

SET, RESET, WAIT = "set", "reset", "wait"
EVERYTHING = VkPipelineStage2.ALL_COMMANDS | VkPipelineStage2.BOTTOM_OF_PIPE
"""Each of the two, in a first scope, stands for all earlier commands."""


@dataclass(slots=True)
class EventState:
    """One event as the stream left it. `tokens` are the marks of its last set, by source stage mask."""

    last: str = ""
    place: Place | None = None
    tokens: dict[int, int] = field(default_factory=dict)
    barriers: int = 0
    """Stages ordered after its last operation, which happens in no stage: only ALL_COMMANDS covers it."""
    unordered: bool = False
    """Its last operation was a set, and nothing ordered that after the operation before."""

    @property
    def is_certain(self) -> bool:
        """Whether a wait comes after the last operation. It may see another set than an unordered one, or one from
        before a reset that nothing orders before the wait: what follows the wait is then still to be ordered after it.
        """
        return not self.unordered and (self.last != RESET or bool(self.barriers & VkPipelineStage2.TOP_OF_PIPE))


class Events:
    """The events of one stream of commands."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._events: dict[int, EventState] = {}

    def set(self, effect: SetEvent, place: Place, queue_flags: int) -> list[Finding]:
        """Marks what is in the first scopes now.

        Rules: rules.md#a-set-must-come-after-a-reset, rules.md#a-set-must-come-after-a-set,
        rules.md#a-set-must-come-after-a-wait.
        """
        event = self._events.setdefault(effect.event, EventState())
        masks = {each.src_stages for each in _dependencies(effect.barrier)}
        spelling = 0 if not effect.sync2 else 2 if place.command.endswith("KHR") else 1
        hazard = _SET_AFTER[event.last][spelling] if event.last else None
        problems = self._race(event, effect.event, place, union_of(masks), queue_flags, hazard)
        if problems and event.last == SET:
            # A wait may see either set: certain is what both cover, and the earlier one covers less.
            self._forget(event, kept=masks)
        else:
            self._forget(event)
            self._mark(event, masks, queue_flags)
        event.unordered = bool(problems)
        event.last, event.place, event.barriers = SET, place, 0
        return problems

    def _mark(self, event: EventState, masks: Collection[int], queue_flags: int) -> None:
        """Marks what is in first scopes of these stages now."""
        viewer = self._context.viewer
        for mask in sorted(masks):
            token = self._context.tokens.take()
            stages = execution_scope_src(mask, queue_flags)
            accesses = stage_accesses(expand_stages(mask, queue_flags))
            self._context.map_slots(
                lambda state, token=token, stages=stages, accesses=accesses: after_set(  # type: ignore[misc]
                    state, token, stages, accesses, viewer
                )
            )
            event.tokens[mask] = token

    def reset(self, effect: ResetEvent, place: Place, queue_flags: int) -> list[Finding]:
        """Forgets the last set. Rules: rules.md#a-reset-must-come-after-a-set,
        rules.md#a-reset-must-come-after-a-wait."""
        event = self._events.setdefault(effect.event, EventState())
        hazard = _RESET_AFTER.get(event.last)
        problems = self._race(event, effect.event, place, effect.stages, queue_flags, hazard)
        self._forget(event)
        event.last, event.place, event.barriers, event.unordered = RESET, place, 0, False
        return problems

    def host(self, id: int) -> None:
        """The host set or reset an event: what the device knew of it no longer holds."""
        event = self._events.pop(id, None)
        if event is not None:
            self._forget(event)

    def wait(self, effect: WaitEvents, place: Place, queue_flags: int) -> tuple[list[DetectedHazard], list[Finding]]:
        """Orders what was marked before what follows; transitions happen here."""
        everything, ranges = self._dependencies(effect, queue_flags)
        hazards = list(self._transition_hazards(effect, ranges))
        self._context.barrier(everything, ranges, place)
        return hazards, list(self._waited(effect, place, queue_flags))

    def _dependencies(self, effect: WaitEvents, queue_flags: int) -> tuple[tuple[Scope, ...], list[RangeScope]]:
        """What the wait orders: over everything, and over ranges."""
        everything: list[Scope] = []
        ranges: list[RangeScope] = []
        for position, id in enumerate(effect.events):
            barrier = _barrier_of(effect, position)
            event = self._events.get(id, EventState())
            everything += [s for each in barrier.globals for s in self._scopes(event, each, effect.sync2, queue_flags)]
            for each in barrier.ranges:
                for scope in self._scopes(event, each.dependency, effect.sync2, queue_flags):
                    ranges += [RangeScope(each.space, span, scope, each.transition) for span in each.spans]
                    ranges += [RangeScope(a.space, span, scope, False) for a in each.aliases for span in a.spans]
        return tuple(everything), ranges

    def _transition_hazards(self, effect: WaitEvents, ranges: list[RangeScope]) -> Iterator[DetectedHazard]:
        for each in (each for barrier in effect.barriers for each in barrier.ranges if each.transition):
            scopes = tuple({s.scope for s in ranges if s.space == each.space and s.moved and s.span in each.spans})
            yield from self._context.check_transition(each.space, each.spans, scopes, each.resource)
            for alias in each.aliases:
                met = self._context.check_transition(alias.space, alias.spans, scopes, alias.resource)
                yield from self._context.report_alias_hazards(alias, each.resource, list(met))

    def _waited(self, effect: WaitEvents, place: Place, queue_flags: int) -> Iterator[Finding]:
        """Events are waited for: what they carry from now on. A set that nothing orders with another is reported.

        Rule: rules.md#a-wait-needs-sets-in-order.
        """
        for position, id in enumerate(effect.events):
            event = self._events.setdefault(id, EventState())
            if event.unordered and event.place is not None:
                yield _finding(Hazard.WAIT_FOR_UNORDERED_SET, id, place, event.place)
            if event.is_certain:
                event.last, event.place = WAIT, place
                dependencies = _dependencies(_barrier_of(effect, position))
                event.barriers = union_of({expand(each, queue_flags).dst_stages for each in dependencies})

    def _scopes(self, event: EventState, dependency: Dependency, sync2: bool, queue_flags: int) -> list[Scope]:
        """The dependency, limited to what the event's last set marked; none when it was not set on this stream."""
        scope = expand(dependency, queue_flags)
        if sync2:
            tokens = [event.tokens[dependency.src_stages]] if dependency.src_stages in event.tokens else []
        else:
            tokens = list(event.tokens.values())
        return [scope._replace(event=token) for token in tokens] or [replace_source(scope)]

    def after_barrier(self, barrier: Barrier, queue_flags: int) -> None:
        """A barrier orders what follows it after event operations in its first scope."""
        for event in self._events.values():
            reached = event.barriers
            for each in barrier.globals:
                scope = expand(each, queue_flags)
                if each.src_stages & EVERYTHING or scope.src_stages & reached:
                    event.barriers |= scope.dst_stages

    def after_signal(self, tag: BatchIndex, stages: int) -> None:
        """What was submitted up to a tag comes before these stages, by a semaphore."""
        for event in self._events.values():
            if event.place is not None and batch_index_of(event.place) <= tag:
                event.barriers |= stages

    def _forget(self, event: EventState, kept: Collection[int] = ()) -> None:
        """Takes back the marks of the last set, but for those of the masks in `kept`."""
        for mask in [each for each in event.tokens if each not in kept]:
            token = event.tokens.pop(mask)
            self._context.map_slots(lambda state, token=token: after_forgetting(state, token))  # type: ignore[misc]
            self._context.tokens.give(token)

    def _race(
        self, event: EventState, id: int, place: Place, stages: int, queue_flags: int, hazard: Hazard | None
    ) -> list[Finding]:
        """`hazard`, if nothing orders an operation after the last one of its event."""
        # An expanded second scope holds TOP_OF_PIPE only when it is all later commands, operations on events included.
        reached = event.barriers & (VkPipelineStage2.TOP_OF_PIPE | execution_scope_src(stages, queue_flags))
        covered = stages & EVERYTHING or reached
        if covered or hazard is None or event.place is None or self._is_complete(event.place):
            return []
        return [_finding(hazard, id, place, event.place)]

    def _is_complete(self, place: Place) -> bool:
        """Whether the host knows that an operation is complete."""
        return batch_index_of(place) <= self._context.retired.get(place.queue or 0, NEVER)


_SET_AFTER = {
    RESET: (Hazard.SET_EVENT_AFTER_RESET, Hazard.SET_EVENT2_AFTER_RESET, Hazard.SET_EVENT2_KHR_AFTER_RESET),
    SET: (Hazard.SET_EVENT_AFTER_SET, Hazard.SET_EVENT2_AFTER_SET, Hazard.SET_EVENT2_KHR_AFTER_SET),
    WAIT: (Hazard.SET_EVENT_AFTER_WAIT, Hazard.SET_EVENT2_AFTER_WAIT, Hazard.SET_EVENT2_KHR_AFTER_WAIT),
}
"""The hazard of a set, by the last operation: of vkCmdSetEvent, vkCmdSetEvent2 and vkCmdSetEvent2KHR. The Khronos layer
has a name for each."""
_RESET_AFTER = {SET: Hazard.RESET_EVENT_AFTER_SET, WAIT: Hazard.RESET_EVENT_AFTER_WAIT}


def _finding(hazard: Hazard, id: int, place: Place, prior: Place) -> Finding:
    return Finding(hazard, "", "", place, prior, resource=id, resource_type="VkEvent")


def replace_source(scope: Scope) -> Scope:
    """A dependency whose first scope is empty: its event was not set on this stream."""
    return scope._replace(src_stages=0, src_accesses=0)


def union_of(masks: set[int]) -> int:
    """All bits of a set of masks."""
    total = 0
    for mask in masks:
        total |= mask
    return total


def _barrier_of(effect: WaitEvents, position: int) -> Barrier:
    """The barrier of one event: vkCmdWaitEvents has one for all of them."""
    return effect.barriers[position if effect.sync2 else 0]


def _dependencies(barrier: Barrier) -> list[Dependency]:
    return [*barrier.globals, *(each.dependency for each in barrier.ranges)]
