"""Semaphores, binary and timeline (specification: "Semaphores")."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.command_buffer_run import CommandBufferRun
from harness.model.memory import MemoryOperation
from harness.model.order import IN_ORDER, NOTHING, SIGNAL, WAIT, Node, NodeSet
from harness.model.program import Program, QueueState, SemaphoreHistory
from harness.model.stages import EVERY_ACCESS, accesses_at, first_scope, second_scope
from harness.spec import names
from harness.trace.effects import HostWaitedSemaphores, SemaphoreCreated, SemaphoreOperation, Submitted


def semaphore_created(program: Program, created: SemaphoreCreated) -> None:
    """A timeline begins with a value that nobody signaled; a binary semaphore begins unsignaled."""
    program.semaphores[created.semaphore] = SemaphoreHistory(created.initial is not None, created.initial or 0)


def signal(run: CommandBufferRun, queue: QueueState, operations: Sequence[SemaphoreOperation]) -> None:
    """A signal happens after everything of its batch, and of what was submitted to the queue before, in its stages or
    logically earlier ones; it makes all memory accesses there available. It happens after signals of earlier batches.

    Specification: "Semaphore Signaling"; "vkQueueSubmit2"; "Signal Operation Order".
    """
    order, made = run.program.order, NOTHING
    for each in operations:
        stages = first_scope(each.stages, run.queue_flags)
        nodes = run.stream.holds(stages)
        label = f"signal of semaphore {each.semaphore} from {names.stages(each.stages)}"
        rules = (nodes, "first scope of a signal"), (queue.signaled, IN_ORDER)
        node = order.add(Node(SIGNAL, label, run.place, stages), *rules)
        run.program.memory.add(MemoryOperation(node, nodes.direct, EVERY_ACCESS))
        run.program.semaphore(each.semaphore).signals.append((each.value, order.set_of(node)))
        run.program.earlier[1 << node] = run.stream.everything.closed
        made |= order.set_of(node)
    queue.signaled |= made
    queue.stream.everything |= made


def wait(run: CommandBufferRun, operation: SemaphoreOperation) -> None:
    """A wait happens after its signal, and before everything of its batch and of what is submitted to the queue later,
    in its stages or logically later ones; what is available is made visible to every access there.

    Specification: "Semaphore Waiting"; "vkQueueSubmit2".
    """
    order = run.program.order
    stages = second_scope(operation.stages, run.queue_flags)
    signaled = take(run.program.semaphore(operation.semaphore), operation.value)
    label = f"wait for semaphore {operation.semaphore} to {names.stages(operation.stages)}"
    node = order.add(Node(WAIT, label, run.place, stages), (signaled, "a wait is after its signal"))
    run.program.memory.add(MemoryOperation(node, 0, 0, accesses_at(stages)))
    run.stream.reach(stages, order.set_of(node))


def take(semaphore: SemaphoreHistory, value: int) -> NodeSet:
    """The signal that a wait depends on. A binary wait consumes it; a timeline's is the first that reaches the value,
    as others that reach it may come later; none when it was created with the value."""
    if not semaphore.timeline:
        return semaphore.signals.pop(0)[1] if semaphore.signals else NOTHING
    if semaphore.value >= value:
        return NOTHING
    reaching = [each for each in semaphore.signals if each[0] >= value]
    return min(reaching, key=lambda each: each[0])[1] if reaching else NOTHING


def ready(program: Program, queue: QueueState, operation: SemaphoreOperation) -> bool:
    """Whether a batch that waits for this may begin: the signal happened, or nobody in the trace will make it.

    Specification: "Semaphore Waiting" (waits for timelines may be submitted before their signals).
    """
    semaphore = program.semaphore(operation.semaphore)
    if semaphore.timeline:
        return semaphore.value >= operation.value or any(value >= operation.value for value, _ in semaphore.signals)
    return bool(semaphore.signals) or not _coming(program, queue, operation.semaphore)


def _coming(program: Program, waiting: QueueState, semaphore: int) -> bool:
    """Whether work that another queue holds back signals a binary semaphore."""
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
    """A host that waited for timelines to reach values comes after the signals that did so.

    Specification: "Host Operations on Semaphores".
    """
    for semaphore, value in waited.values:
        signaled = take(program.semaphore(semaphore), value)
        program.assumed |= program.earlier.get(signaled.direct, 0)
        program.host |= signaled
