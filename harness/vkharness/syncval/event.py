"""Events: what was in scope when one was set, and whether its operations race (rules.md#event).

Setting an event visits no range: it marks, in each state, the accesses that are in its first scope. A wait orders what
is still marked; an access after the set has no mark. Which sets a wait may see is in `event_state`, and which of them
it includes in `event_usage`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, count
from typing import NamedTuple

from vkharness.findings import Finding, Hazard, Place
from vkharness.spec.scopes import TOP, execution_scope_src, expand_stages, stage_accesses
from vkharness.syncval.barrier import Scope, expand, forgetting, meeting, setting, to_the_host
from vkharness.syncval.context import Context
from vkharness.syncval.entries import DetectedHazard, RangeScope
from vkharness.syncval.event_order import OperationOrder
from vkharness.syncval.event_state import EventState, ExecutedOperation, Mark, OperationKind, common, union_of
from vkharness.syncval.event_usage import HOST, dependencies_of, fault, has_other_stages, is_included
from vkharness.syncval.host_knowledge import HostKnowledge
from vkharness.syncval.late_host_writes import host_marking, host_setting
from vkharness.syncval.ownership import of_half, written_by
from vkharness.syncval.tokens import SetTokens
from vkharness.trace.effects import Barrier, Command, Dependency, Effect, Execute, ResetEvent, SetEvent, WaitEvents
from vkharness.trace.host_effects import HostSawEvent, HostSetEvent
from vkharness.trace.work_budget import spend

A_KEPT_OPERATION = 60
"""Units of the work budget that an operation on an event costs."""
SET, RESET, WAIT = OperationKind.SET, OperationKind.RESET, OperationKind.WAIT


class WaitingCommand(NamedTuple):
    """A command that waits for an event, and where it is executed."""

    command: Command
    place: Place


class Events:
    """The events of a device, or of one recording."""

    def __init__(self, context: Context, recording: bool = False) -> None:
        self._context = context
        self._recording = recording
        """While recording it is not known what other command buffers do to an event."""
        self._histories: dict[int, EventState] = {}
        self.order = OperationOrder(context)
        self.waiting: dict[int, WaitingCommand] = {}
        """By queue, the command that waits for events which nothing has signaled so far."""
        self.released: set[int] = set()
        """Queues whose waits end whatever signals the events."""
        self._numbers = count(1)
        self._tokens = SetTokens(context.tokens)
        self.hear_of: Callable[[int, HostKnowledge, int], None] = lambda queue, known, stages: None
        """Is told when stages of a queue come after what the host knew."""

    # -- operations ---------------------------------------------------------------------------------------------------

    def set(self, effect: SetEvent, place: Place, queue_flags: int) -> list[Finding]:
        """Marks what is in the first scopes now. It has no effect on an event that is signaled.

        Rules: rules.md#a-set-must-come-after-a-reset, rules.md#a-set-must-come-after-a-set,
        rules.md#a-set-must-come-after-a-wait, rules.md#a-set-of-a-signaled-event-has-no-effect.
        """
        masks = {each.src_stages for each in dependencies_of(effect.barrier)}
        made = self._operation(SET, effect.event, place, self.order.reached(union_of(masks), place, queue_flags))
        made.sync2, made.barrier = effect.sync2, effect.barrier
        for mask in sorted(masks):
            made.marks[mask] = Mark(self._mark(mask, queue_flags), self.order.reached(mask, place, queue_flags))
        spelling = 0 if not effect.sync2 else 2 if place.command.endswith("KHR") else 1
        return self._keep(made, {kind: names[spelling] for kind, names in _SET_AFTER.items()})

    def reset(self, effect: ResetEvent, place: Place, queue_flags: int) -> list[Finding]:
        """Ends the sets that it comes after. Rules: rules.md#a-reset-must-come-after-a-set,
        rules.md#a-reset-must-come-after-a-wait."""
        before = self.order.reached(effect.stages, place, queue_flags)
        return self._keep(self._operation(RESET, effect.event, place, before), _RESET_AFTER)

    def host(self, effect: HostSetEvent) -> list[Finding]:
        """The host sets or resets an event. That comes after what the host knows to be complete.

        Rules: rules.md#the-host-may-set-and-reset-events, rules.md#the-host-sets-an-event-before-the-submit.
        """
        if not effect.call:
            self._forget(effect.event)
            return []
        place = Place(effect.call, "vkSetEvent" if effect.signaled else "vkResetEvent", effect.site)
        before = self.order.known_to_host()
        made = self._operation(SET if effect.signaled else RESET, effect.event, place, before)
        found = [] if effect.signaled else _unfinished_waits(self.order, self._histories.get(effect.event), place)
        if effect.signaled:
            token = self._context.tokens.take()
            self._context.map_slots(host_setting(token))
            made.marks[HOST], made.known = Mark(token, before), self._context.at_host_signal()
            found = list(self._pending_waits(effect.event, place))
        self._keep(made, {})
        return found

    def host_saw(self, effect: HostSawEvent) -> None:
        """The host knows that a set is complete. Rule: rules.md#the-host-may-read-that-an-event-is-set."""
        _learn(self.order, self._histories.get(effect.event, EventState()))

    def _pending_waits(self, event: int, place: Place) -> Iterator[Finding]:
        """The host must not set an event for which a pending command buffer waits.

        Rule: rules.md#the-host-sets-an-event-before-the-submit.
        """
        waits = [each for queue, each in self.waiting.items() if event in self._unsignaled(each.command, each.place)]
        history = self._histories.get(event)
        done = history.of(WAIT) if history is not None else []
        prior = [each.place for each in waits] or [each.place for each in done if not self.order.is_complete(each)][-1:]
        for each in prior:
            yield _finding(Hazard.LATE_HOST_SET, event, place, each)

    def _operation(self, kind: OperationKind, event: int, place: Place, before: frozenset[int]) -> ExecutedOperation:
        return ExecutedOperation(next(self._numbers), event, kind, place, before)

    def _keep(self, made: ExecutedOperation, hazards: dict[OperationKind, Hazard]) -> list[Finding]:
        """Adds an operation to its event; the finding names the last operation that it has to come after and may not.

        Rule: rules.md#operations-on-events-have-no-stage.
        """
        history = self._histories.setdefault(made.event, EventState())
        found = []
        spend(A_KEPT_OPERATION + 2 * len(history.operations), "operations on events")
        for prior in reversed(history.operations):
            if prior.kind in hazards and prior.number not in made.before:
                found.append(_finding(hazards[prior.kind], made.event, made.place, prior.place))
                if prior.certain:  # it stands for what was before it
                    break
        self.order.add(made)
        self._drop(history.add(made))
        return found

    def _mark(self, mask: int, queue_flags: int) -> int:
        """A token on what is in a first scope of these stages now."""
        viewer = self._context.viewer
        stages = execution_scope_src(mask, queue_flags) | TOP
        accesses = stage_accesses(expand_stages(mask, queue_flags))
        token = self._tokens.take((stages, accesses, viewer))
        self._context.map_slots(setting(token, stages, accesses, viewer))
        return token

    def _drop(self, gone: Iterable[ExecutedOperation]) -> None:
        for operation in gone:
            self.order.drop(operation)
            for mark in operation.marks.values():
                self._take_off(mark.token)

    def _take_off(self, token: int) -> None:
        self._context.map_slots(forgetting(token, self._tokens.give(token)))

    def _forget(self, event: int) -> None:
        """An event is gone."""
        history = self._histories.pop(event, None)
        if history is not None:
            self._drop(history.operations)

    # -- waits that do not end ----------------------------------------------------------------------------------------

    def blocks(self, command: Command, place: Place) -> bool:
        """Whether a command waits for an event that nothing can have signaled so far. Then it is in `waiting`."""
        queue = self._context.queue
        if self._unsignaled(command, place):
            self.waiting[queue] = WaitingCommand(command, place)
        else:
            self.waiting.pop(queue, None)
        return queue in self.waiting

    def can_go_on(self) -> int | None:
        """A queue whose command waits no more; None for none."""
        ready = (queue for queue, (command, place) in self.waiting.items() if not self._unsignaled(command, place))
        return next(ready, None)

    def _unsignaled(self, command: Command, place: Place) -> list[int]:
        """The events that a command waits for and that nothing can have signaled so far."""
        queue = place.queue or 0
        if queue in self.released:
            return []
        over, own, found = self.order.over(place, queue), [], []
        for effect in _effects_of(command):
            if isinstance(effect, SetEvent):
                own.append(effect.event)
            elif isinstance(effect, WaitEvents):
                found += [each for each in effect.events if each not in own and not self._seen(each, over)]
        return found

    # -- waits --------------------------------------------------------------------------------------------------------

    def wait(
        self, effect: WaitEvents, number: int, queue_flags: int, family: int
    ) -> tuple[list[DetectedHazard], list[Finding]]:
        """Orders what was marked before what follows; transitions, and halves of transfers for this queue `family`,
        happen here. `number` is the wait's place number.

        Rules: rules.md#a-wait-must-match-its-set, rules.md#events-stay-on-their-queue.
        """
        queue, place = self._context.queue, self._context.places.place(number)
        over = self.order.over(place, queue)
        seen = [self._seen(event, over) for event in effect.events]
        findings = list(self._faults(effect, seen, place, queue))
        unordered = [list(self._unordered(event, place, over)) for event in effect.events]
        findings += chain.from_iterable(unordered)
        everything, ranges, tokens = self._dependencies(effect, seen, queue_flags, family)
        hazards = list(_transition_hazards(self._context, effect, ranges, family))
        self._context.barrier(everything, ranges, number)
        for token in tokens:
            self._take_off(token)
        self._order_operations(effect, seen, queue_flags)
        for position, event in enumerate(effect.events):
            made = self._operation(WAIT, event, place, over)
            made.certain = bool(seen[position]) and not unordered[position]
            self._keep(made, {})
            self.order.received({made.number}, _stages_after(_barrier_of(effect, position), queue_flags), queue)
        return hazards, findings

    def _seen(self, event: int, over: frozenset[int]) -> list[ExecutedOperation]:
        history = self._histories.get(event)
        return history.seen(lambda reset: reset.number in over) if history is not None else []

    def _faults(
        self, effect: WaitEvents, seen: list[list[ExecutedOperation]], place: Place, queue: int
    ) -> Iterator[Finding]:
        """Where the wait breaks valid usage with what it waits for: one finding for each event."""
        found = False
        for position, (event, signals) in enumerate(zip(effect.events, seen, strict=True)):
            barrier = _barrier_of(effect, position)
            for signal in reversed(signals):
                hazard = fault(signal, barrier, effect.sync2, queue)
                if hazard is not None:
                    found = True
                    yield _finding(hazard, event, place, signal.place)
                    break
        known = [each for signals in seen for each in signals]
        if found or effect.sync2 or self._recording or not known or not all(seen):
            return
        if has_other_stages(known, effect.barriers[0]):
            yield _finding(Hazard.WAIT_STAGES_DIFFER, known[-1].event, place, known[-1].place)

    def _unordered(self, event: int, place: Place, over: frozenset[int]) -> Iterator[Finding]:
        """A wait must know which operation comes last. Rules: rules.md#a-wait-needs-sets-in-order,
        rules.md#a-wait-must-come-after-a-reset."""
        history = self._histories.get(event)
        last = history.last if history is not None else None
        if history is None or last is None:
            return
        if last.kind is SET:
            earlier = (each for each in history.operations if each.kind is not WAIT and each is not last)
            if not all(each.number in last.before for each in earlier):
                yield _finding(Hazard.WAIT_FOR_UNORDERED_SET, event, place, last.place)
        elif last.number not in over and history.of(SET):
            yield _finding(Hazard.WAIT_AFTER_RESET, event, place, last.place)

    def _dependencies(
        self, effect: WaitEvents, seen: list[list[ExecutedOperation]], queue_flags: int, family: int
    ) -> tuple[tuple[Scope, ...], list[RangeScope], list[int]]:
        """Returns the dependencies of the wait over all memory, those over ranges, and the tokens of this wait alone.

        Rules: rules.md#a-set-and-its-wait-are-one-dependency, rules.md#each-event-of-a-wait-stands-for-itself.
        """
        everything: list[Scope] = []
        ranges: list[RangeScope] = []
        own: list[int] = []
        for position, signals in enumerate(seen):
            barrier = _barrier_of(effect, position)
            if not self._are_included(signals, barrier, effect.sync2, queue_flags):
                signals = []
            tokens: dict[int, int] = {}
            for each in dependencies_of(barrier):
                if each.src_stages not in tokens:
                    tokens[each.src_stages] = self._token(signals, each, own)

            def scoped(dependency: Dependency, tokens: dict[int, int] = tokens) -> Scope:
                scope, token = expand(dependency, queue_flags), tokens[dependency.src_stages]
                return scope._replace(event=token) if token else scope._replace(src_stages=TOP, src_accesses=0)

            everything += [*map(scoped, barrier.globals), *to_the_host(scoped(a.dependency) for a in barrier.ranges)]
            for range in barrier.ranges:
                access_kind = written_by(range, family)
                scope = of_half(scoped(range.dependency), range, family)
                if access_kind and effect.sync2:  # it happens as soon as the event is set
                    scope = scope._replace(src_stages=scope.src_stages & ~TOP)
                moved = access_kind is not None
                ranges += [RangeScope(range.space, span, scope, moved, access_kind or 0) for span in range.spans]
                ranges += [RangeScope(a.space, span, scope, False) for a in range.aliases for span in a.spans]
        return tuple(everything), ranges, own

    def _are_included(self, signals: list[ExecutedOperation], barrier: Barrier, sync2: bool, queue_flags: int) -> bool:
        queue = self._context.queue
        return all(is_included(each, barrier, sync2, queue, queue_flags) for each in signals)

    def _token(self, signals: list[ExecutedOperation], dependency: Dependency, own: list[int]) -> int:
        """The token of what all signals cover that a wait may see; 0 for nothing."""
        marks = [_mark_of(each, dependency) for each in signals]
        tokens = tuple(mark.token for mark in marks if mark is not None)
        if len(tokens) != len(signals) or not tokens:
            return 0
        for signal, known in zip(signals, tokens, strict=True):
            if signal.on_host:
                self._learn_from_host(signal, known, dependency)
        if len(tokens) == 1:
            return tokens[0]
        viewer, token = self._context.viewer, self._context.tokens.take()
        self._context.map_slots(meeting(tokens, token, viewer))
        own.append(token)
        return token

    def _learn_from_host(self, signal: ExecutedOperation, token: int, dependency: Dependency) -> None:
        viewer = self._context.viewer
        self._context.map_slots(host_marking(token, viewer))
        if signal.known.era == self._context.era:
            self._context.mark_known(viewer, signal.known, token)
            self.hear_of(viewer, signal.known, dependency.dst_stages)

    def _order_operations(self, effect: WaitEvents, seen: list[list[ExecutedOperation]], queue_flags: int) -> None:
        """Orders operations on events that follow the wait after the signals that it includes, and after the operations
        that came before those."""
        queue = self._context.queue
        for position, signals in enumerate(seen):
            barrier = _barrier_of(effect, position)
            if not self._are_included(signals, barrier, effect.sync2, queue_flags):
                continue
            alone = (
                {each.number} | (each.before if each.on_host or not effect.sync2 else frozenset()) for each in signals
            )
            self.order.received(common(alone), _stages_after(barrier, queue_flags), queue)
            for dependency in dependencies_of(barrier):
                marks = [_mark_of(each, dependency) for each in signals]
                held = common(mark.operations if mark is not None else frozenset() for mark in marks)
                self.order.received(held, expand(dependency, queue_flags).dst_stages, queue)


_SET_AFTER = {
    RESET: (Hazard.SET_EVENT_AFTER_RESET, Hazard.SET_EVENT2_AFTER_RESET, Hazard.SET_EVENT2_KHR_AFTER_RESET),
    SET: (Hazard.SET_EVENT_AFTER_SET, Hazard.SET_EVENT2_AFTER_SET, Hazard.SET_EVENT2_KHR_AFTER_SET),
    WAIT: (Hazard.SET_EVENT_AFTER_WAIT, Hazard.SET_EVENT2_AFTER_WAIT, Hazard.SET_EVENT2_KHR_AFTER_WAIT),
}
"""The hazard of a set, by the last operation: of vkCmdSetEvent, vkCmdSetEvent2 and vkCmdSetEvent2KHR. The Khronos layer
has a name for each."""
_RESET_AFTER = {SET: Hazard.RESET_EVENT_AFTER_SET, WAIT: Hazard.RESET_EVENT_AFTER_WAIT}


def _effects_of(command: Command) -> Iterator[Effect]:
    """The effects of a command, and of the commands that it executes."""
    for effect in command.effects:
        if isinstance(effect, Execute):
            for _, commands in effect.buffers:
                for each in commands:
                    yield from _effects_of(each)
        else:
            yield effect


def _transition_hazards(
    context: Context, effect: WaitEvents, ranges: list[RangeScope], family: int
) -> Iterator[DetectedHazard]:
    """Yields the hazards that the layout transitions and ownership transfers of a wait meet.

    Rules: rules.md#a-transition-at-a-wait-happens-at-the-wait, rules.md#the-halves-of-a-transfer-have-no-stage.
    """
    for each in (each for barrier in effect.barriers for each in barrier.ranges):
        access_kind = written_by(each, family)
        if access_kind is None:
            continue
        scopes = tuple({s.scope for s in ranges if s.space == each.space and s.moved and s.span in each.spans})
        sources = ((context.viewer, scopes),)
        yield from context.check_transition(each.space, each.spans, sources, each.resource, access_kind)
        for alias in each.aliases:
            met = context.check_transition(alias.space, alias.spans, sources, alias.resource, access_kind)
            yield from context.report_alias_hazards(alias, each.resource, list(met))


def _mark_of(signal: ExecutedOperation, dependency: Dependency) -> Mark | None:
    """Returns the mark of a set for the first scope of a dependency of its wait; None where the set has no mark."""
    return signal.marks.get(dependency.src_stages) or next(iter(signal.marks.values()), None)


def _stages_after(barrier: Barrier, queue_flags: int) -> int:
    """The second scopes of a barrier."""
    return union_of(expand(each, queue_flags).dst_stages for each in dependencies_of(barrier))


def _learn(order: OperationOrder, history: EventState) -> None:
    """The host reads that an event is set: where one set alone can have done that, it is complete, and what is before
    it. Rule: rules.md#the-host-may-read-that-an-event-is-set."""
    signaled = history.seen()
    if len(signaled) == 1:
        order.complete({signaled[0].number, *signaled[0].before})


def _unfinished_waits(order: OperationOrder, history: EventState | None, place: Place) -> list[Finding]:
    """The host must reset an event after the waits for it. Rule: rules.md#a-reset-must-come-after-a-wait."""
    late = [each for each in history.of(WAIT) if not order.is_complete(each)] if history else []
    return [_finding(Hazard.HOST_RESET_AFTER_WAIT, each.event, place, each.place) for each in late[-1:]]


def _finding(hazard: Hazard, event: int, place: Place, prior: Place) -> Finding:
    return Finding(hazard, "", "", place, prior, resource=event, resource_type="VkEvent")


def _barrier_of(effect: WaitEvents, position: int) -> Barrier:
    """The barrier of one event: vkCmdWaitEvents has one for all of them."""
    return effect.barriers[position if effect.sync2 else 0]
