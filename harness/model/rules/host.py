"""The host: its accesses of mapped memory, and what it waits for."""

from __future__ import annotations

from harness.findings import Place
from harness.model.accesses import HOST_LANE
from harness.model.memory import Guard
from harness.model.order import FENCE, Front, Node
from harness.model.program import Program, Queue
from harness.model.registry import occurrence
from harness.model.stages import EVERY_ACCESS, KIND
from harness.trace.effects import Access, Destroyed, FenceReset, HostWaited, HostWrote, Ignored

HOST_READ, HOST_WRITE = KIND["SYNC_HOST_HOST_READ"].index, KIND["SYNC_HOST_HOST_WRITE"].index


@occurrence(HostWrote)
def host_wrote(program: Program, wrote: HostWrote) -> None:
    """A host write happens where the host is: after all that it has waited for, before what it submits from now on.

    Specification: "Host Write Ordering Guarantees", "Fences".
    """
    place = Place(wrote.call, "host write", wrote.site)
    node = program.host_node("host write", place)
    access = Access(HOST_WRITE, wrote.memory, (wrote.span,), wrote.memory)
    program.access(access, node, place, HOST_LANE, next(program.numbers))


@occurrence(HostWaited)
def host_waited(program: Program, waited: HostWaited) -> None:
    """A wait for fences makes the host come after them; waiting for a queue, or for all, is as good as a fence at its
    end. Specification: "Fences", "vkQueueWaitIdle", "vkDeviceWaitIdle".
    """
    for fence in waited.fences:
        if fence in program.fences:
            program.host |= program.fences[fence]
    if not waited.fences:
        queues = [program.queue(waited.queue)] if waited.queue else list(program.queues.values())
        for queue in queues:
            program.host |= fence_of(program, queue, Place(0, "wait for idle", None, queue=queue.id))


def fence_of(program: Program, queue: Queue, place: Place) -> Front:
    """A fence is signaled after everything submitted to the queue before it, of whatever stage, and after what that
    waited for; it makes all of its writes available. Specification: "Fences" (vkQueueSubmit: fence signal operations).
    """
    order = program.order
    done = queue.lane.everything
    node = order.add(Node(FENCE, f"fence of {place.command} ({place.call})", place), (done, "a fence is last"))
    program.guards.add(Guard(node, done.direct, EVERY_ACCESS, 0))
    return order.front(node)


@occurrence(FenceReset)
def fence_reset(program: Program, reset: FenceReset) -> None:
    """A fence that was reset says nothing of earlier submits."""
    for fence in reset.fences:
        program.fences.pop(fence, None)


@occurrence(Destroyed)
def destroyed(program: Program, gone: Destroyed) -> None:
    """What a destroyed resource held concerns nobody any more ("Resource Memory Association": memory that is used again
    starts undefined)."""
    program.accesses.forget(gone.space, gone.span)
    program.semaphores.pop(gone.space, None)


@occurrence(Ignored)
def ignored(program: Program, effect: Ignored) -> None:
    """What has no rule may touch anything."""
    program.unmodelled(effect.what)
