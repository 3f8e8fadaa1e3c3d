"""Semaphores, binary and timeline (specification: "Semaphores")."""

from __future__ import annotations

from collections.abc import Sequence

from vkharness.model.command_buffer_run import CommandBufferRun
from vkharness.model.memory import MemoryOperation
from vkharness.model.node_numbers import EMPTY
from vkharness.model.object_uses import ObjectUse
from vkharness.model.order import DST, IN_ALL_COMMANDS, IN_ORDER, NOTHING, SIGNAL, SRC, WAIT, Node, NodeSet
from vkharness.model.program import Program, QueueState, SemaphoreHistory
from vkharness.model.rules.usage import given_away, moved, semaphore_made, signaled
from vkharness.model.stages import (
    BESIDE_STAGES,
    EVERY_ACCESS,
    SYNCHRONIZATION,
    access_scope,
    accesses_at,
    first_scope,
    second_scope,
)
from vkharness.spec import names
from vkharness.spec.enums import VkPipelineStage2
from vkharness.trace.effects import PayloadShared, SemaphoreCreated, SemaphoreOperation, Submitted
from vkharness.trace.group_effects import DependencyEnd
from vkharness.trace.host_effects import HostWaitedSemaphores, SignalMoved


def semaphore_created(program: Program, created: SemaphoreCreated) -> None:
    """A timeline semaphore begins with a value that needs no signal. A binary semaphore begins unsignaled."""
    program.semaphores[created.semaphore] = SemaphoreHistory(created.initial is not None, created.initial or 0)
    semaphore_made(program, created)


def signal(run: CommandBufferRun, queue: QueueState, operations: Sequence[SemaphoreOperation], use: ObjectUse) -> None:
    """A signal comes after the operations of its batch, and of earlier submits to the queue, in its stages.

    Logically earlier stages count, too. It makes all memory accesses there available. It comes after signals of earlier
    batches. Specification: "Semaphore Signaling"; "vkQueueSubmit2"; "Signal Operation Order".
    Rules: rules.md#a-signal-covers-its-stages, rules.md#a-signal-covers-what-was-submitted-before,
    rules.md#signals-of-a-queue-are-in-order.
    """
    order, made = run.program.order, NOTHING
    for each in operations:
        if each.end is not None:
            before_barrier(run, each, each.end)
            continue
        stages = first_scope(each.stages, run.queue_flags)
        nodes = run.stream.holds(stages)
        label = f"signal of semaphore {each.semaphore} from {names.stages(each.stages)}"
        rules = (nodes, "first scope of a signal"), (queue.signaled, IN_ORDER)
        node = order.add(Node(SIGNAL, label, run.place, stages), *rules)
        run.program.memory.add(MemoryOperation(node, nodes.direct, EVERY_ACCESS))
        run.program.semaphore(each.semaphore).add(each.value, order.set_of(node))
        made |= order.set_of(node)
        over = run.program.uses.at[node] = run.program.uses.queues.get(queue.id, EMPTY)
        signaled(run.program, each.semaphore, use, over)
    queue.signaled |= made
    queue.stream.everything |= made


def wait(run: CommandBufferRun, operation: SemaphoreOperation) -> None:
    """A wait comes after its signal, and before the operations of its batch, and of later submits to the queue, in its
    stages.

    Logically later stages count, too. What is available is made visible to every access there. Where the host signaled,
    first scopes with HOST hold what the host did before. Specification: "Semaphore Waiting"; "vkQueueSubmit2";
    "vkSignalSemaphore" (first scope); "Host Access Types" (the note on host writes with no submit after them).
    Rules: rules.md#queues-without-a-semaphore-race, rules.md#a-semaphore-orders-the-halves-of-a-transfer,
    rules.md#a-late-host-write-needs-a-dependency-from-the-host, rules.md#a-semaphore-is-a-memory-dependency,
    rules.md#a-wait-orders-its-stages.
    """
    order = run.program.order
    if operation.end is not None:
        behind_barrier(run, operation, operation.end)
        return
    stages = second_scope(operation.stages, run.queue_flags)
    signaled = before_wait(run.program, operation.semaphore, operation.value)
    label = f"wait for semaphore {operation.semaphore} to {names.stages(operation.stages)}"
    node = order.add(Node(WAIT, label, run.place, stages), (signaled, "a wait is after its signal"))
    run.program.memory.add(MemoryOperation(node, invalidates=accesses_at(stages)))
    run.stream.reach(stages, order.set_of(node))
    several = operation.semaphore in run.program.shared
    for made in run.program.by_host if several else signaled.direct:
        if made in signaled.direct and made in run.program.by_host:
            run.stream.reach(VkPipelineStage2.HOST, run.program.by_host[made])


def before_barrier(run: CommandBufferRun, operation: SemaphoreOperation, end: DependencyEnd) -> None:
    """The first scope of a non-device-local dependency, on one of the physical devices: what it holds of the commands
    there is made available, as far as the first access scope says. It is in no order with semaphore signals.

    Specification: "Device-Local Dependencies". Rule:
    rules.md#a-barrier-is-local-to-its-physical-device.
    """
    order, memory = run.program.order, run.program.memory
    stages = first_scope(operation.stages, run.queue_flags)
    nodes, beside = run.stream.holds(stages & ~BESIDE_STAGES), run.stream.holds(stages & BESIDE_STAGES)
    label = f"barrier for other physical devices from {names.stages(operation.stages)}"
    before = beside | run.stream.before(SYNCHRONIZATION)
    node = order.add(
        Node(SRC, label, run.place, stages), (nodes, "first scope of a barrier"), (before, IN_ALL_COMMANDS)
    )
    flushes = access_scope(operation.stages, end.accesses, run.queue_flags)
    for space, spans in end.ranges if end.ranges is not None else ((None, ()),):
        memory.add(MemoryOperation(node, nodes.direct | beside.direct, flushes, 0, space, spans))
    run.program.semaphore(operation.semaphore).add(0, order.set_of(node))


def behind_barrier(run: CommandBufferRun, operation: SemaphoreOperation, end: DependencyEnd) -> None:
    """The second scope of a non-device-local dependency, on another one of the physical devices. Transitions and
    transfers of ownership of the barrier come after it.

    Specification: "Device-Local Dependencies". Rule:
    rules.md#a-barrier-is-local-to-its-physical-device.
    """
    order, flags = run.program.order, run.queue_flags
    stages = second_scope(operation.stages, flags)
    before = take(run.program.semaphore(operation.semaphore), 0)
    label = f"barrier of other physical devices to {names.stages(operation.stages)}"
    node = order.add(Node(DST, label, run.place, stages), (before, "from the first scope to the second"))
    invalidates = access_scope(operation.stages, end.accesses, flags)
    for space, spans in end.ranges if end.ranges is not None else ((None, ()),):
        run.program.memory.add(MemoryOperation(node, invalidates=invalidates, space=space, spans=spans))
    run.stream.reach(stages | BESIDE_STAGES * end.moves, order.set_of(node))
    run.stream.issue(SYNCHRONIZATION, order.set_of(node))


def before_wait(program: Program, id: int, value: int) -> NodeSet:
    """The signals that a wait for a semaphore comes after.

    Somebody outside of the trace may signal a payload that is shared. That signal may come after all that was signaled
    to whoever is there, and nothing in the trace says that it does not. A value that the trace itself signals is no
    concern of theirs, since no value is signaled twice. Specification: "Importing Semaphore Payloads", "Semaphore
    Waiting". Rule: rules.md#a-wait-for-a-signal-from-outside.
    """
    semaphore = program.semaphore(id)
    if id not in program.shared or (semaphore.timeline and _has_own(semaphore, value)):
        return take(semaphore, value)
    return signaled_outside(program)


def _has_own(semaphore: SemaphoreHistory, value: int) -> bool:
    """Whether a timeline begins with a value, or the trace signals it."""
    first = semaphore.first_to_reach(value)
    return value <= semaphore.value or (first is not None and first[0] == value)


def signaled_outside(program: Program) -> NodeSet:
    """All signals so far of payloads that somebody outside of the trace may wait for."""
    nodes = NOTHING
    for payload in program.shared:
        if payload in program.semaphores:
            for _, signaled in program.semaphores[payload].signals:
                nodes |= signaled
        nodes |= program.fences.get(payload, NOTHING)
    return nodes


def payload_shared(program: Program, effect: PayloadShared) -> None:
    """A payload is shared with somebody outside of the trace, or is so no longer. Of a binary semaphore that only the
    trace has, the last signal is pending: nobody waited for it.

    Specification: "Importing Semaphore Payloads", "Importing Fence Payloads".
    """
    if effect.outside:
        given_away(program, effect.payload)
        program.shared.add(effect.payload)
        program.proceed()
        return
    program.shared.discard(effect.payload)
    held = program.semaphores.get(effect.payload)
    if held is not None and not held.timeline:
        held.signals = held.signals[-1:]


def signal_moved(program: Program, effect: SignalMoved) -> None:
    """The signal that a wait or a reset would take away stands for another semaphore or fence from now on.

    Specification: "Importing Semaphore Payloads" (export with copy transference).
    Rule: rules.md#objects-with-one-payload-are-one.
    """
    moved(program, effect.source, effect.target)
    source = program.semaphore(effect.source)
    if not source.timeline and source.signals:
        program.semaphore(effect.target).add(*source.signals.pop(0))
    if effect.source in program.fences:
        program.fences[effect.target] = program.fences.pop(effect.source)


def take(semaphore: SemaphoreHistory, value: int) -> NodeSet:
    """The signal that a wait depends on. It is empty when a timeline was created with the value.

    A wait consumes the signal of a binary semaphore. For a timeline it is the first signal that reaches the value, as
    others that reach it may come later.
    Rules: rules.md#a-wait-takes-a-binary-semaphore-back,
    rules.md#a-timeline-wait-meets-the-first-signal-that-reaches-it, rules.md#the-first-value-waits-for-nothing.
    """
    found = semaphore.taken(value)
    if not semaphore.timeline and semaphore.signals:
        semaphore.signals.pop(0)
    return found


def ready(program: Program, queue: QueueState, operation: SemaphoreOperation) -> bool:
    """Whether a batch with this wait may begin: the signal happened, or nothing in the trace will make it.

    Specification: "Semaphore Waiting" (waits for timelines may be submitted before their signals).
    Rule: rules.md#a-wait-may-be-submitted-before-its-signal.
    """
    semaphore = program.semaphore(operation.semaphore)
    if operation.semaphore in program.shared:
        return True
    if semaphore.timeline:
        return semaphore.value >= operation.value or semaphore.first_to_reach(operation.value) is not None
    return bool(semaphore.signals) or not _coming(program, queue, operation.semaphore)


def _coming(program: Program, waiting: QueueState, semaphore: int) -> bool:
    """Whether work that is held back on another queue signals a binary semaphore."""
    return any(
        each.semaphore == semaphore
        for queue in program.queues.values()
        if queue is not waiting
        for work in queue.work
        if isinstance(work.what, Submitted)
        for batch in work.what.batches[work.at :]
        for each in batch.signals
    )


def host_waited_semaphores(program: Program, waited: HostWaitedSemaphores) -> None:
    """A host that waited for timelines to reach values comes after the signals that reach them.

    Specification: "Host Operations on Semaphores".
    Rule: rules.md#a-host-wait-for-a-value-is-a-fence.
    """
    for semaphore, value in waited.values:
        if semaphore not in program.shared and not take(program.semaphore(semaphore), value):
            program.release(program.queues.values())
        before = program.semaphore(semaphore).taken(value)
        program.uses.host |= program.uses.before(semaphore, before.direct)
        program.host |= before_wait(program, semaphore, value)
