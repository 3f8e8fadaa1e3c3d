"""Events: a dependency in two halves, and what must be ordered for the halves to meet (specification: "Events")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from operator import and_

from vkharness.findings import Place
from vkharness.model.command_buffer_run import CommandBufferRun
from vkharness.model.command_streams import CommandStream
from vkharness.model.event_history import RESET, SET, WAIT, EventHistory, EventOperation
from vkharness.model.node_numbers import EMPTY, NodeNumbers
from vkharness.model.opinion import Conflict, ConflictKind, ModelAccess
from vkharness.model.order import EVENT, IN_ALL_COMMANDS, NOTHING, Node, NodeSet
from vkharness.model.program import Program
from vkharness.model.rules.barrier import FirstScope, apply
from vkharness.model.stages import SYNCHRONIZATION, first_scope
from vkharness.spec.enums import VkPipelineStage2
from vkharness.trace.effects import Barrier, Command, Dependency, Effect, Execute, ResetEvent, SetEvent, WaitEvents
from vkharness.trace.host_effects import HostSawEvent, HostSetEvent

MUST_BE_ORDERED = {SET: (SET, RESET, WAIT), RESET: (SET, WAIT), WAIT: ()}
"""For each operation, the earlier operations on the event that it must happen after.

For a wait, `_judge_order` says more.
"""


def set_event(run: CommandBufferRun, effect: SetEvent) -> None:
    """A set happens after its first scope: earlier commands of the queue, in its stages or logically earlier ones.

    Specification: "vkCmdSetEvent", "vkCmdSetEvent2". Rules: rules.md#a-set-must-come-after-a-reset,
    rules.md#a-set-must-come-after-a-set, rules.md#a-set-must-come-after-a-wait,
    rules.md#a-set-of-a-signaled-event-has-no-effect.
    """
    stages = 0
    for each in _dependencies(effect.barrier):
        stages |= first_scope(each.src_stages, run.queue_flags)
    before = run.stream.snapshot()
    node = _operation(run, SET, stages)
    made = EventOperation(SET, ModelAccess(run.place, "", True, node), effect, before, stages)
    _keep(run, effect.event, made)


def reset_event(run: CommandBufferRun, effect: ResetEvent) -> None:
    """A reset happens after its first scope. It ends earlier sets and waits that are ordered before it.

    Specification: "vkCmdResetEvent", "vkCmdResetEvent2". Rules: rules.md#a-reset-must-come-after-a-set,
    rules.md#a-reset-must-come-after-a-wait.
    """
    node = _operation(run, RESET, first_scope(effect.stages, run.queue_flags))
    made = EventOperation(RESET, ModelAccess(run.place, "", True, node))
    _keep(run, effect.event, made)


def _operation(run: CommandBufferRun, kind: str, stages: int) -> int:
    """The node of an operation on an event, after its own first scope.

    No pipeline stage performs the operation, so that only dependencies with ALL_COMMANDS have it in a scope.
    Specification: "vkCmdSetEvent2" (first and second scope; the note on race conditions).
    """
    order = run.program.order
    node = order.add(
        Node(EVENT, f"{run.command.name} ({run.command.call})", run.place, SYNCHRONIZATION),
        (run.stream.holds(stages), f"first scope of a {kind}"),
        (run.stream.before(SYNCHRONIZATION), IN_ALL_COMMANDS),
    )
    run.stream.issue(SYNCHRONIZATION, order.set_of(node))
    return node


def _keep(run: CommandBufferRun, event: int, made: EventOperation) -> None:
    """Operations on one event whose result depends on their order must be ordered (`MUST_BE_ORDERED`).

    Specification: "vkCmdSetEvent2", "vkCmdResetEvent2", "vkCmdWaitEvents2" (valid usage, notes on race conditions);
    rules.md#operations-on-events-have-no-stage.
    """
    program = run.program
    held = program.event(event)
    for prior in held.operations:
        if prior.kind in MUST_BE_ORDERED[made.kind] and not program.order.precedes(prior.node, made.node):
            _report(run, event, prior.use, made.use)
    held.add(program.order, made)


def _report(
    run: CommandBufferRun,
    event: int,
    prior: ModelAccess,
    current: ModelAccess,
    kind: ConflictKind = ConflictKind.EVENT_UNORDERED,
) -> None:
    run.program.conflict(Conflict(kind, prior, current, event, order=run.program.order))


def wait_events(run: CommandBufferRun, effect: WaitEvents) -> None:
    """A wait happens after the last signal of each event that it includes.

    The first scopes of its dependencies hold what was before that signal. The second scopes hold the commands after the
    wait. With vkCmdWaitEvents each first scope holds what happened before the signals of all events. With
    vkCmdWaitEvents2 each dependency stands for itself. Specification: "vkCmdWaitEvents", "vkCmdWaitEvents2";
    rules.md#a-set-fixes-the-first-scope, rules.md#each-event-of-a-wait-stands-for-itself.
    Rule: rules.md#a-set-and-its-wait-are-one-dependency.
    """
    program = run.program
    order = program.order
    barriers = effect.barriers if effect.sync2 else effect.barriers * len(effect.events)
    earlier = run.stream.before(SYNCHRONIZATION)
    found = [program.event(event).may_signal(order, earlier.closed) for event in effect.events]
    known = [
        sets if all(includes(run, each, barrier, effect.sync2) for each in sets) else []
        for sets, barrier in zip(found, barriers, strict=False)
    ]
    signals = [_signal_of(program, sets, effect.sync2) for sets in known]
    if not effect.sync2:
        signals = [reduce(NodeSet.__or__, signals, NOTHING)] * len(signals)
    uses = [ModelAccess(run.place, "", False, _wait_node(run, each, earlier)) for each in signals]
    _judge_usage(run, effect, barriers, found, uses)
    for event, use in dict(zip(effect.events, uses, strict=False)).items():
        _judge_order(run, program.event(event), event, use)
        _keep(run, event, EventOperation(WAIT, use))
    waited = [order.set_of(each.node) for each in uses]
    if not effect.sync2:
        together = reduce(NodeSet.__or__, waited, NOTHING)
        host = reduce(NodeSet.__or__, map(_by_host, known), together)
        scope = _first_scope(known, host, together)
        scopes = [(each, scope) for each in effect.barriers]
    else:
        scopes = [
            (barrier, _first_scope([sets], _by_host(sets), after))
            for barrier, sets, after in zip(barriers, known, waited, strict=False)
        ]
    apply(run, scopes, "first scope of the set")


def _wait_node(run: CommandBufferRun, signaled: NodeSet, earlier: NodeSet) -> int:
    """The node of a wait for one event, or of vkCmdWaitEvents for all of its events."""
    return run.program.order.add(
        Node(EVENT, f"{run.command.name} ({run.command.call})", run.place),
        (signaled, "a wait is after its signals"),
        (earlier, IN_ALL_COMMANDS),
    )


def includes(run: CommandBufferRun, signal: EventOperation, barrier: Barrier, sync2: bool) -> bool:
    """Whether the first synchronization scope of a wait includes a signal operation.

    Specification: "vkCmdWaitEvents" (the first synchronization scope), "vkCmdWaitEvents2" (the list of signal
    operations that are included), "Events" (not between queues). Rules: rules.md#a-wait-must-match-its-set,
    rules.md#events-stay-on-their-queue, rules.md#the-host-may-set-and-reset-events.
    """
    asked = _source_stages(barrier)
    if signal.effect is None:
        only = {each.src_stages for each in _dependencies(barrier)} == {VkPipelineStage2.HOST}
        return only if sync2 else bool(asked & VkPipelineStage2.HOST)
    if signal.use.queue != run.submitted.queue or signal.effect.sync2 != sync2:
        return False
    if sync2:
        return _same(signal.effect.barrier, barrier)
    # The logically latest stage of the set must be a stage of the wait, or logically earlier than one.
    return not signal.stages & ~first_scope(asked, run.queue_flags)


def _judge_usage(
    run: CommandBufferRun,
    effect: WaitEvents,
    barriers: tuple[Barrier, ...],
    found: list[list[EventOperation]],
    uses: list[ModelAccess],
) -> None:
    """Valid usage of a wait and of the signals that it may find.

    Specification: VUID-vkCmdWaitEvents-srcStageMask-01158, VUID-vkCmdWaitEvents-pEvents-03847,
    VUID-vkCmdWaitEvents2-pEvents-03837, VUID-vkCmdWaitEvents2-pEvents-03839, VUID-vkCmdWaitEvents2-pEvents-10788;
    "Events" (events must not order commands of different queues). Rules: rules.md#a-wait-must-match-its-set,
    rules.md#events-stay-on-their-queue.
    """
    named = 0
    for sets in found:
        for each in sets:
            named |= VkPipelineStage2.HOST if each.effect is None else _source_stages(each.effect.barrier)
    for event, barrier, sets, use in zip(effect.events, barriers, found, uses, strict=False):
        # Another command buffer may set an event, so that a command buffer alone does not show all stages.
        exact = run.submitted.call and all(found)
        asked = _source_stages(barrier)
        for each in sets:
            mine = VkPipelineStage2.HOST if each.effect is None else _source_stages(each.effect.barrier)
            wrong = not includes(run, each, barrier, effect.sync2) or (not effect.sync2 and bool(mine & ~asked))
            if wrong or (not effect.sync2 and exact and asked & ~named):
                _report(run, event, each.use, use, ConflictKind.EVENT_USAGE)


def _judge_order(run: CommandBufferRun, held: EventHistory, event: int, use: ModelAccess) -> None:
    """The last set or reset must be ordered after every earlier one. Otherwise the wait may meet any of them.

    A reset that is the last of them must be ordered before the wait, which may otherwise find a signal from before it.
    Specification: "vkCmdWaitEvents2" (the note on race conditions), "vkCmdSetEvent2".
    Rules: rules.md#a-wait-needs-sets-in-order, rules.md#a-wait-must-come-after-a-reset.
    """
    order = run.program.order
    operations = [each for each in held.operations if each.kind != WAIT]
    if not operations:
        return
    last = operations[-1]
    if last.kind == SET and not all(order.precedes(each.node, last.node) for each in operations[:-1]):
        _report(run, event, last.use, use)
    if last.kind == RESET and held.all(SET) and not order.precedes(last.node, use.node):
        _report(run, event, last.use, use)


def _signal_of(program: Program, sets: list[EventOperation], sync2: bool) -> NodeSet:
    """The nodes that a wait comes after: the signal of the event and, without `sync2`, all that happened before it.

    With `sync2` the scopes of each dependency say what happened before. If a wait may find several signals, the result
    is what all of them have in common.
    """
    if not sets:
        return NOTHING
    if not sync2 or _has_host(sets):
        return _before_all(program, sets)
    alone = NodeNumbers.one(sets[0].node) if len(sets) == 1 else EMPTY
    return NodeSet(alone, alone, alone)


def _before_all(program: Program, sets: list[EventOperation]) -> NodeSet:
    """Returns the nodes before every one of several signals; of a single signal, that signal as well."""
    return reduce(and_, [program.order.set_of(each.node) for each in sets])


def _by_host(sets: list[EventOperation]) -> NodeSet:
    """Returns the nodes of the host's operations before it signaled, if one signal alone may have been met."""
    return sets[0].host if len(sets) == 1 else NOTHING


def _has_host(sets: list[EventOperation]) -> bool:
    return any(each.effect is None for each in sets)


def _first_scope(known: list[list[EventOperation]], after: NodeSet, waited: NodeSet) -> FirstScope:
    """The first scopes of a wait: what was in the first scope of each event's set.

    Transitions of vkCmdWaitEvents happen at the wait, which is in `after`. Those of vkCmdWaitEvents2 may happen as soon
    as the event is set. Rule: rules.md#a-transition-at-a-wait-happens-at-the-wait.
    """
    several = tuple(
        tuple((each.stream, each.stages) for each in sets if each.stream is not None)
        for sets in known
        if sets and not _has_host(sets)
    )
    return FirstScope(several, after, None if several else CommandStream(0), waited)


def _dependencies(barrier: Barrier) -> tuple[Dependency, ...]:
    return (*barrier.globals, *(each.dependency for each in barrier.ranges))


def _source_stages(barrier: Barrier) -> int:
    stages = 0
    for each in _dependencies(barrier):
        stages |= each.src_stages
    return stages


def _same(one: Barrier, other: Barrier) -> bool:
    """Whether two VkDependencyInfo are equal; asymmetric ones need equal source stages only."""
    if one.asymmetric and other.asymmetric:
        return _source_stages(one) == _source_stages(other)
    parts = []
    for barrier in (one, other):
        ranges = [replace(each, aliases=()) for each in barrier.ranges]
        parts.append((set(barrier.globals), ranges, barrier.by_region, barrier.asymmetric))
    return parts[0] == parts[1]


def host_set_event(program: Program, effect: HostSetEvent) -> None:
    """vkSetEvent and vkResetEvent come after all that the host did and waited for. A destroyed event is forgotten.

    Specification: "vkSetEvent", "vkResetEvent". Rule: rules.md#the-host-may-set-and-reset-events.
    """
    if not effect.call:
        program.events.pop(effect.event, None)
        return
    name, kind = ("vkSetEvent", SET) if effect.signaled else ("vkResetEvent", RESET)
    place = Place(effect.call, name, effect.site)
    node = program.host_node(name, place)
    use = ModelAccess(place, "", True, node)
    held = program.event(effect.event)
    if kind == SET:
        _judge_pending(program, effect.event, use)
    else:
        _judge_waits(program, effect.event, use)
    held.add(program.order, EventOperation(kind, use, host=program.flushed()))
    program.proceed()


def host_saw_event(program: Program, effect: HostSawEvent) -> None:
    """The host knows that the set is complete by which the event is signaled, and operations on events before it, where
    no other set can have done that. It learns of no access: the set comes after its first scope, but nothing makes
    reading the state a dependency.

    Specification: "vkGetEventStatus", "vkCmdSetEvent". Rule: rules.md#the-host-may-read-that-an-event-is-set.
    """
    order = program.order
    signaled = program.event(effect.event).may_signal(order)
    if len(signaled) != 1:
        return
    for history in program.events.values():
        for each in history.operations:
            if each is signaled[0] or order.precedes(each.node, signaled[0].node):
                alone = NodeNumbers.one(each.node)
                program.host |= NodeSet(alone, alone, alone)


def _judge_waits(program: Program, event: int, use: ModelAccess) -> None:
    """The host must not reset an event before the waits for it have ended.

    Specification: VUID-vkResetEvent-event-03821, VUID-vkResetEvent-event-03822.
    Rule: rules.md#a-reset-must-come-after-a-wait.
    """
    for each in program.event(event).all(WAIT):
        if not program.order.precedes(each.node, use.node):
            program.conflict(Conflict(ConflictKind.EVENT_UNORDERED, each.use, use, event, order=program.order))


def _judge_pending(program: Program, event: int, use: ModelAccess) -> None:
    """The host must not set an event that a pending command buffer waits for.

    Specification: VUID-vkSetEvent-event-09543; "Queue Forward Progress".
    Rule: rules.md#the-host-sets-an-event-before-the-submit.
    """
    waits = [each.use for each in program.event(event).all(WAIT)]
    waits = [each for each in waits if not program.order.precedes(each.node, use.node)]
    for queue in program.queues.values():
        for work in queue.work[:1]:
            if work.waits_at is not None and event in work.blocked_by:
                node = program.order.add(Node(EVENT, "a wait for the host", work.waits_at))
                waits.append(ModelAccess(work.waits_at, "", False, node))
    for each in waits:
        program.conflict(Conflict(ConflictKind.EVENT_USAGE, each, use, event, order=program.order))


def blocked_by(run: CommandBufferRun, command: Command) -> frozenset[int]:
    """The events that a command waits for and that nothing can have signaled so far.

    Specification: "vkCmdWaitEvents" (a wait ends when its events are signaled).
    """
    order, program, own = run.program.order, run.program, set[int]()
    found = set()
    for effect in _effects_of(command):
        if isinstance(effect, SetEvent):
            own.add(effect.event)
        elif isinstance(effect, WaitEvents):
            before = run.stream.before(SYNCHRONIZATION).closed
            found |= {each for each in effect.events if not program.event(each).may_signal(order, before)} - own
    return frozenset(found)


def _effects_of(command: Command) -> Iterator[Effect]:
    """The effects of a command, and of the commands that it executes."""
    for effect in command.effects:
        if isinstance(effect, Execute):
            for _, commands in effect.buffers:
                for each in commands:
                    yield from _effects_of(each)
        else:
            yield effect
