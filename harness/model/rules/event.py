"""Events: a dependency in two halves, and what must be ordered for the halves to meet (specification: "Events")."""

from __future__ import annotations

from functools import reduce
from operator import and_

from harness.findings import Place
from harness.model.command_buffer_run import CommandBufferRun
from harness.model.command_streams import CommandStream
from harness.model.explain import EVENT_UNORDERED
from harness.model.opinion import Conflict, ModelAccess
from harness.model.order import EVENT, IN_ALL_COMMANDS, NOTHING, Node, NodeSet
from harness.model.pairs import HELD_BACK, NARROW_SIGNAL
from harness.model.program import EventHistory, EventOperation, Program
from harness.model.rules.barrier import FirstScope, apply
from harness.model.stages import SYNCHRONIZATION, first_scope
from harness.trace.effects import HostSetEvent, ResetEvent, SetEvent, WaitEvents

SET, RESET, WAIT = "set", "reset", "wait"
MUST_BE_ORDERED = {SET: (SET, RESET, WAIT), RESET: (SET, WAIT), WAIT: ()}
"""By operation: the earlier ones that it must happen after. A wait is after the set that it waits for by itself, which
is after any reset before it."""


def set_event(run: CommandBufferRun, effect: SetEvent) -> None:
    """A set happens after its first scope: earlier commands of the queue, in its stages or logically earlier ones.

    Specification: "vkCmdSetEvent", "vkCmdSetEvent2".
    """
    barrier = effect.barrier
    stages = 0
    for each in (*barrier.globals, *(each.dependency for each in barrier.ranges)):
        stages |= first_scope(each.src_stages, run.queue_flags)
    before = run.stream.snapshot()
    node = _operation(run, SET, effect.event, stages)
    made = EventOperation(SET, ModelAccess(run.place, "", True, node), before, stages)
    _keep(run, effect.event, made)


def reset_event(run: CommandBufferRun, effect: ResetEvent) -> None:
    """A reset happens after its first scope. Earlier sets and waits, if ordered before it, are over.

    Specification: "vkCmdResetEvent", "vkCmdResetEvent2".
    """
    node = _operation(run, RESET, effect.event, first_scope(effect.stages, run.queue_flags))
    made = EventOperation(RESET, ModelAccess(run.place, "", True, node))
    _keep(run, effect.event, made)


def _operation(run: CommandBufferRun, kind: str, event: int, stages: int) -> int:
    """No pipeline stage performs an operation on an event: of other dependencies, only those of ALL_COMMANDS have it in
    a scope; it has a first scope of its own.

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
    """Operations on one event that depend on their order must have one: a set after a set, reset or wait; a reset after
    a set or wait.

    Specification: "vkCmdSetEvent2", "vkCmdResetEvent2", "vkCmdWaitEvents2" (valid usage, notes on race conditions);
    rules.md#operations-on-events-have-no-stage.
    """
    program = run.program
    held = program.event(event)
    for prior in held.operations:
        ordered = program.order.precedes(prior.use.node, made.use.node)
        if prior.kind in MUST_BE_ORDERED[made.kind] and not ordered:
            _report(run, event, prior.use, made.use)
    if made.kind != WAIT:  # what is ordered before it is over
        order = program.order
        held.operations = [
            each for each in held.operations if each.kind != WAIT and not order.precedes(each.use.node, made.use.node)
        ]
    held.operations.append(made)


def _report(run: CommandBufferRun, event: int, prior: ModelAccess, current: ModelAccess) -> None:
    masks = ((NARROW_SIGNAL, run.program.assumed), (HELD_BACK, run.learned))
    noted = frozenset(fact for fact, nodes in masks if nodes >> prior.node & 1)
    run.program.conflict(Conflict(EVENT_UNORDERED, prior, current, event, (), noted, run.program.order))


def wait_events(run: CommandBufferRun, effect: WaitEvents) -> None:
    """A wait happens after the last set of each event. Its dependencies have in their first scopes what was before that
    set, and none of what came between; their second scopes are later commands, after the wait.

    In the first form everything that happened before the signals of all events is in each first scope; in the second
    form each dependency stands for itself. Specification: "vkCmdWaitEvents", "vkCmdWaitEvents2";
    rules.md#a-set-fixes-the-first-scope, rules.md#each-event-of-a-wait-stands-for-itself.
    """
    program = run.program
    signaled = NOTHING
    for event in effect.events:
        signaled |= _signal_of(program, program.event(event), effect.sync2)
    node = program.order.add(
        Node(EVENT, f"{run.command.name} ({run.command.call})", run.place), (signaled, "a wait is after its signals")
    )
    for event in effect.events:
        _judge_sets(run, event, node)
        _keep(run, event, EventOperation(WAIT, ModelAccess(run.place, "", False, node)))
    waited = program.order.set_of(node)
    if not effect.sync2:
        scope = _first_scope(program, effect.events, waited, waited, run.stream)
        scopes = [(each, scope) for each in effect.barriers]
    else:
        pairs = zip(effect.events, effect.barriers, strict=False)
        scopes = [(each, _first_scope(program, (event,), program.event(event).host, waited)) for event, each in pairs]
    apply(run, scopes, "first scope of the set")


def _signal_of(program: Program, event: EventHistory, sync2: bool) -> NodeSet:
    """What a wait comes after: the set, and in the first form with it all that happened before it. In the second form
    that is left to the scopes of each dependency. Of sets that are not ordered, what all have in common."""
    sets = [program.order.set_of(each.use.node) for each in _sets(event)]
    if not sets:
        return event.host
    if not sync2:
        return event.host | reduce(and_, sets)
    alone = sets[0].direct if len(sets) == 1 else 0
    return event.host | NodeSet(alone, alone, alone)


def _sets(event: EventHistory) -> list[EventOperation]:
    """The sets that a wait may meet: the last one, and those that are not ordered before it."""
    return [each for each in event.operations if each.kind == SET]


def _first_scope(
    program: Program, events: tuple[int, ...], after: NodeSet, waited: NodeSet, begins: CommandStream | None = None
) -> FirstScope:
    """What the first scopes of a wait look back at: what was before the set of each event, in its first scope.

    Transitions are given with the wait in the first form, and happen there; in the second form they may happen as soon
    as the event is set.
    """
    sets = tuple(
        tuple((each.stream, each.stages) for each in _sets(program.event(event)) if each.stream is not None)
        for event in events
    )
    known = tuple(each for each in sets if each)
    return FirstScope(known, after, begins or (None if known else CommandStream(0)), waited)


def _judge_sets(run: CommandBufferRun, event: int, node: int) -> None:
    """The set that a wait waits for must be ordered after every earlier set and reset, or any may be met."""
    held = run.program.event(event)
    sets = _sets(held)
    if not sets:
        return
    last = sets[-1]
    earlier = [each for each in held.operations if each.kind != WAIT and each is not last]
    if not all(run.program.order.precedes(each.use.node, last.use.node) for each in earlier):
        _report(run, event, last.use, ModelAccess(run.place, "", False, node))


def host_set_event(program: Program, effect: HostSetEvent) -> None:
    """The host sets an event after all that it did and waited for; reset by the host, nothing before counts.

    Specification: "vkSetEvent", "vkResetEvent".
    """
    held = program.event(effect.event)
    held.operations.clear()
    held.host = NOTHING
    if effect.signaled:
        node = program.host_node("vkSetEvent", Place(0, "vkSetEvent", None))
        held.host = program.order.set_of(node)
