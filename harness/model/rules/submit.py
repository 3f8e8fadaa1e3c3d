"""Submits: what the host did comes first, then batch after batch, each as soon as its semaphores let it."""

from __future__ import annotations

from harness.findings import Place
from harness.model.memory import Guard
from harness.model.order import SUBMIT, Node
from harness.model.program import Program, Queue, Work
from harness.model.registry import occurrence
from harness.model.rules.host import HOST_WRITE, fence_of
from harness.model.rules.semaphore import ready, signal, wait
from harness.model.run import Run
from harness.model.stages import DEVICE_ACCESSES, EVERY_STAGE
from harness.trace.effects import HostSignaled, Presented, Submission, Submitted


@occurrence(Submitted)
def submitted(program: Program, submit: Submitted) -> None:
    """All that the host did or waited for before a submit happens before every command of it and of later submits to
    the queue; host writes are made available, and all that is available is made visible to everything on the device.

    Specification: "Host Write Ordering Guarantees"; appendix "Availability, Visibility, and Domain Operations"
    (vkQueueSubmit).
    """
    place = Place(submit.call, submit.name, submit.site, queue=submit.queue)
    label = f"{submit.name} ({submit.call})"
    node = program.order.add(Node(SUBMIT, label, place), (program.host, "a submit is after the host"))
    program.guards.add(Guard(node, program.host.direct & ~program.unflushed, 1 << HOST_WRITE, DEVICE_ACCESSES))
    program.queue(submit.queue).work.append(Work(submit, node))
    proceed(program)


def proceed(program: Program) -> None:
    """Queues go on as far as semaphores let them. Work of one queue begins in the order in which it was submitted.

    Specification: "Implicit Synchronization Guarantees" (submission order), "Semaphore Waiting".
    """
    moved = True
    while moved:
        moved = False
        for queue in list(program.queues.values()):
            while queue.work and _next(program, queue):
                moved = True


def _next(program: Program, queue: Queue) -> bool:
    """Begins, continues or ends the first submit of a queue. False when it waits for a signal still to come."""
    work = queue.work[0]
    if isinstance(work.what, Presented):
        return False
    submit = work.what
    if work.at == 0:
        queue.lane.reach(EVERY_STAGE, program.order.front(work.node))
    if work.at < len(submit.batches):
        batch = submit.batches[work.at]
        if not all(ready(program, each) for each in batch.waits):
            return False
        work.at += 1
        _execute(program, queue, submit, batch)
        return True
    if submit.fence:
        place = Place(submit.call, submit.name, submit.site, queue=submit.queue)
        program.fences[submit.fence] = fence_of(program, queue, place)
    queue.work.pop(0)
    return True


def _execute(program: Program, queue: Queue, submit: Submitted, batch: Submission) -> None:
    """Waits, command buffers, signals. Commands are in submission order, which by itself orders none of their work."""
    run = Run(program, submit, queue.lane)
    for each in batch.waits:
        wait(run, each)
    for position, (id, commands) in enumerate(batch.buffers):
        run.buffer(id, commands, batch.batch, position)
    signal(run, queue, batch.signals)


@occurrence(HostSignaled)
def host_signaled(program: Program, signaled: HostSignaled) -> None:
    """The host signals a timeline after all that it did and waited for. It makes nothing available.

    Specification: "Host Operations on Semaphores"; "Signal Operation Order".
    """
    place = Place(0, "vkSignalSemaphore", None)
    node = program.host_node("vkSignalSemaphore", place)
    program.semaphore(signaled.semaphore).signals.append((signaled.value, program.order.front(node)))
    proceed(program)
