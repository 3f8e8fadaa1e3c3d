"""Events: a dependency in two halves, and what must be ordered for the halves to meet (specification: "Events")."""

from __future__ import annotations

from functools import reduce
from operator import and_

from harness.findings import Place
from harness.model.command_buffer_run import CommandBufferRun
from harness.model.command_streams import CommandStream
from harness.model.opinion import Conflict, ConflictKind, ModelAccess
from harness.model.order import EVENT, IN_ALL_COMMANDS, NOTHING, Node, NodeSet
from harness.model.pairs import HELD_BACK, NARROW_SIGNAL
from harness.model.program import EventHistory, EventOperation, Program
from harness.model.rules.barrier import FirstScope, apply
from harness.model.stages import SYNCHRONIZATION, first_scope
from harness.trace.effects import HostSetEvent, ResetEvent, SetEvent, WaitEvents

SET, RESET, WAIT = "set", "reset", "wait"
MUST_BE_ORDERED = {SET: (SET, RESET, WAIT), RESET: (SET, WAIT), WAIT: ()}
"""For each operation, the earlier operations on the event that it must happen after.

A wait needs no entry: it is after the set that it waits for, which is after any reset before.
"""


def set_event(run: CommandBufferRun, effect: SetEvent) -> None:
    """A set happens after its first scope: earlier commands of the queue, in its stages or logically earlier ones.

    Specification: "vkCmdSetEvent", "vkCmdSetEvent2". Rules: rules.md#a-set-must-come-after-a-reset,
    rules.md#a-set-must-come-after-a-set, rules.md#a-set-must-come-after-a-wait.
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
    """A reset happens after its first scope. It ends earlier sets and waits that are ordered before it.

    Specification: "vkCmdResetEvent", "vkCmdResetEvent2". Rules: rules.md#a-reset-must-come-after-a-set,
    rules.md#a-reset-must-come-after-a-wait.
    """
    node = _operation(run, RESET, effect.event, first_scope(effect.stages, run.queue_flags))
    made = EventOperation(RESET, ModelAccess(run.place, "", True, node))
    _keep(run, effect.event, made)


def _operation(run: CommandBufferRun, kind: str, event: int, stages: int) -> int:
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
    run.program.conflict(Conflict(ConflictKind.EVENT_UNORDERED, prior, current, event, (), noted, run.program.order))


def wait_events(run: CommandBufferRun, effect: WaitEvents) -> None:
    """A wait happens after the last set of each event.

    The first scopes of its dependencies hold what was before that set. The second scopes hold the commands after the
    wait. With vkCmdWaitEvents each first scope holds what happened before the signals of all events. With
    vkCmdWaitEvents2 each dependency stands for itself. Specification: "vkCmdWaitEvents", "vkCmdWaitEvents2";
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
    """The nodes that a wait comes after: the set of the event and, without `sync2`, all that happened before the set.

    With `sync2` the scopes of each dependency say what happened before. If several sets have no order, the result is
    what all of them have in common.
    """
    sets = [program.order.set_of(each.use.node) for each in _sets(event)]
    if not sets:
        return event.host
    if not sync2:
        return event.host | reduce(and_, sets)
    alone = sets[0].direct if len(sets) == 1 else 0
    return event.host | NodeSet(alone, alone, alone)


def _sets(event: EventHistory) -> list[EventOperation]:
    """The sets that a wait may meet: the last set, and those that are not ordered before it."""
    return [each for each in event.operations if each.kind == SET]


def _first_scope(
    program: Program, events: tuple[int, ...], after: NodeSet, waited: NodeSet, begins: CommandStream | None = None
) -> FirstScope:
    """The first scopes of a wait: what was in the first scope of each event's set.

    Transitions of vkCmdWaitEvents happen at the wait. Those of vkCmdWaitEvents2 may happen as soon as the event is set.
    """
    sets = tuple(
        tuple((each.stream, each.stages) for each in _sets(program.event(event)) if each.stream is not None)
        for event in events
    )
    known = tuple(each for each in sets if each)
    return FirstScope(known, after, begins or (None if known else CommandStream(0)), waited)


def _judge_sets(run: CommandBufferRun, event: int, node: int) -> None:
    """The last set must be ordered after every earlier set and reset. Otherwise the wait may meet any of them.

    Rule: rules.md#a-wait-needs-sets-in-order.
    """
    held = run.program.event(event)
    sets = _sets(held)
    if not sets:
        return
    last = sets[-1]
    earlier = [each for each in held.operations if each.kind != WAIT and each is not last]
    if not all(run.program.order.precedes(each.use.node, last.use.node) for each in earlier):
        _report(run, event, last.use, ModelAccess(run.place, "", False, node))


def host_set_event(program: Program, effect: HostSetEvent) -> None:
    """vkSetEvent comes after all that the host did and waited for. After vkResetEvent no earlier operation counts.

    Specification: "vkSetEvent", "vkResetEvent".
    """
    held = program.event(effect.event)
    held.operations.clear()
    held.host = NOTHING
    if effect.signaled:
        node = program.host_node("vkSetEvent", Place(0, "vkSetEvent", None))
        held.host = program.order.set_of(node)
