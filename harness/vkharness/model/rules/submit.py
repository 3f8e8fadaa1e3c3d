"""Submits: the host's operations come first, then batch after batch, each as soon as its semaphores let it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vkharness.findings import Place
from vkharness.model.command_buffer_run import CommandBufferRun
from vkharness.model.memory import HOST_WRITE, MemoryOperation
from vkharness.model.opinion import ModelAccess
from vkharness.model.order import ACTION, NOTHING, SUBMIT, Node, NodeSet
from vkharness.model.program import Program, QueueState, Work
from vkharness.model.rules.event import blocked_by
from vkharness.model.rules.host import fence_of
from vkharness.model.rules.presentation import present
from vkharness.model.rules.semaphore import ready, signal, wait
from vkharness.model.rules.usage import batch_waits, begun, fence_given, given
from vkharness.model.stages import DEVICE_ACCESSES, EVERY_STAGE
from vkharness.trace.effects import Presented, QueueObtained, SemaphoreOperation, Submission, Submitted
from vkharness.trace.host_effects import HostSignaled
from vkharness.trace.ownership_effects import SharedResource
from vkharness.trace.sparse_effects import BIND_SPARSE, SparseBind


def submitted(program: Program, submit: Submitted) -> None:
    """All that the host did or waited for before a submit happens before the commands of it and of later submits.

    Host writes are made available, and all that is available is made visible to everything on the device.
    Specification: "Host Write Ordering Guarantees"; appendix "Availability, Visibility, and Domain Operations"
    (vkQueueSubmit). Rules: rules.md#a-submit-shows-host-writes-to-the-device,
    rules.md#a-waiting-batch-knows-what-its-submit-knew.
    """
    place = Place(submit.call, submit.name, submit.site, queue=submit.queue)
    label = f"{submit.name} ({submit.call})"
    node = program.order.add(Node(SUBMIT, label, place), (program.host, "a submit is after the host"))
    given(program, submit, node)
    if submit.name == BIND_SPARSE:
        _bind_sparse(program, submit, node)
        return
    program.memory.add(MemoryOperation(node, program.host.direct - program.unflushed, 1 << HOST_WRITE, DEVICE_ACCESSES))
    program.queue(submit.queue).work.append(Work(submit, node))
    program.proceed()


def _bind_sparse(program: Program, submit: Submitted, node: int) -> None:
    """Each batch of vkQueueBindSparse goes its own way: in no order with commands of the queue, nor with other batches.

    It comes after the host's call, which makes nothing available: it submits no command buffers. Specification:
    "Binding Resource Memory"; "Host Write Ordering Guarantees"; "Signal Operation Order" (which names submits only).
    Rule: rules.md#a-sparse-bind-is-ordered-by-semaphores-and-fences.
    """
    for batch in submit.batches:
        lane = program.queue(-next(program.numbers))
        lane.binds_for = submit.queue
        lane.work.append(Work(replace(submit, batches=(batch,)), node))
    program.proceed()


def _bind(run: CommandBufferRun, queue: QueueState, batch: Submission, bind: SparseBind) -> NodeSet:
    """A binding operation comes after the waits of its batch, and before its signals. It accesses no memory.

    Specification: "VkBindSparseInfo"; "vkQueueBindSparse". Rule:
    rules.md#a-sparse-bind-is-ordered-by-semaphores-and-fences.
    """
    order, submit = run.program.order, run.submitted
    place = Place(submit.call, submit.name, submit.site, None, submit.call, batch.batch, 0, queue.binds_for)
    node = order.add(
        Node(ACTION, f"{submit.name} ({submit.call})", place, EVERY_STAGE),
        (run.stream.before(EVERY_STAGE), "second synchronization scope"),
    )
    use = ModelAccess(place, "", True, node)
    for conflict in run.program.bindings.add(bind.resource, bind.spans, use, changes=True):
        run.program.conflict(conflict)
    return order.set_of(node)


def next_work(program: Program, queue: QueueState) -> bool:
    """Begins, continues or ends the first work of a queue. Returns False when that work waits for a signal still to
    come.

    Work of one queue begins in the order in which it was submitted, as far as semaphores let it. Specification:
    "Implicit Synchronization Guarantees" (submission order), "Semaphore Waiting".
    """
    work = queue.work[0]
    submit = work.what
    if isinstance(submit, Presented):
        if not all(ready(program, queue, SemaphoreOperation(each, 0)) for each in submit.waits):
            return False
        queue.work.pop(0)
        present(program, submit, work.node)
        return True
    if work.at == 0:
        queue.stream.reach(EVERY_STAGE, program.order.set_of(work.node))
    if work.at < len(submit.batches):
        batch = submit.batches[work.at]
        if work.running is None:
            if not all(ready(program, queue, each) for each in batch.waits):
                return False
            work.running = _execute(program, queue, work, batch)
        known = len(program.order.nodes)
        if next(work.running, ENDED) is not ENDED:
            return len(program.order.nodes) > known
        work.at, work.running = work.at + 1, None
        return True
    if submit.fence:
        if not submit.batches:
            begun(program, submit, None, queue.id, work.node)
        fence_given(program, submit.fence, queue.id)
        place = Place(submit.call, submit.name, submit.site, queue=submit.queue)
        others = program.fences.get(submit.fence, NOTHING) if queue.binds_for else NOTHING
        program.fences[submit.fence] = others | fence_of(program, queue, place)
    queue.work.pop(0)
    return True


ENDED = object()
"""Stands for the end of an iterator."""


def _execute(program: Program, queue: QueueState, work: Work, batch: Submission) -> Iterator[None]:
    """Executes a batch: its waits, its command buffers, its signals. Submission order by itself orders no work of
    commands.

    Yields at each command that waits for an event which nothing has signaled, as long as that is so. What the host does
    meanwhile, it does after the submit. Rule: rules.md#the-host-sets-an-event-before-the-submit.
    """
    submit = work.what
    assert isinstance(submit, Submitted)
    run, use = CommandBufferRun(program, submit, queue.stream), begun(program, submit, batch, queue.id, work.node)
    batch_waits(program, batch, queue.id, use)
    for each in batch.waits:
        wait(run, each)
    for position, (id, commands) in enumerate(batch.buffers):
        for command in run.buffer(id, commands, batch.batch, position):
            while not queue.released and (blocked := blocked_by(run, command)):
                work.waits_at, work.blocked_by = run.place, blocked
                yield
            work.waits_at = None
    bound = NOTHING
    for bind in batch.binds or ():
        bound |= _bind(run, queue, batch, bind)
    run.stream.issue(EVERY_STAGE, bound)
    signal(run, queue, batch.signals, use)


def host_signaled(program: Program, signaled: HostSignaled) -> None:
    """vkSignalSemaphore comes after all that the host did and waited for. It makes nothing available.

    Specification: "Host Operations on Semaphores"; "Signal Operation Order".
    Rule: rules.md#a-host-signal-orders-no-device-work.
    """
    place = Place(0, "vkSignalSemaphore", None)
    node = program.host_node("vkSignalSemaphore", place)
    program.by_host[node] = program.flushed()
    program.uses.at[node] = program.uses.host
    program.semaphore(signaled.semaphore).add(signaled.value, program.order.set_of(node))
    program.proceed()


def queue_obtained(program: Program, effect: QueueObtained) -> None:
    """A queue belongs to one family. Specification: "Queue Family Properties"."""
    program.families[effect.queue] = effect.family


def concurrent(program: Program, effect: SharedResource) -> None:
    """A resource of VK_SHARING_MODE_CONCURRENT belongs to all families. Others may keep their contents without a
    transfer. Specification: "Resource Sharing Mode"."""
    if effect.acquirers is None:
        program.ownership.share(effect.resource)
    else:
        program.ownership.keep(effect.resource, effect.acquirers)
