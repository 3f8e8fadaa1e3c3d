"""Submits: what the host did comes first, then batch after batch."""

from __future__ import annotations

from harness.findings import Place
from harness.model.memory import Guard
from harness.model.order import SUBMIT, Node
from harness.model.program import Program
from harness.model.registry import occurrence
from harness.model.rules.host import HOST_WRITE, fence_of
from harness.model.run import Run
from harness.model.stages import EVERY_ACCESS, EVERY_STAGE
from harness.trace.effects import Submitted


@occurrence(Submitted)
def submitted(program: Program, submit: Submitted) -> None:
    """All that the host did or waited for before a submit happens before every command of it and of later submits to
    the queue; host writes are made available, and all that is available is made visible to everything on the device.

    Commands of one queue are in submission order, which by itself orders none of their work.
    Specification: "Host Write Ordering Guarantees", "Implicit Synchronization Guarantees"; appendix "Availability,
    Visibility, and Domain Operations" (vkQueueSubmit).
    """
    queue = program.queue(submit.queue)
    place = Place(submit.call, submit.name, submit.site, queue=submit.queue)
    order = program.order
    node = order.add(
        Node(SUBMIT, f"{submit.name} ({submit.call})", place), (program.host, "a submit is after the host")
    )
    program.guards.add(Guard(node, program.host.direct, 1 << HOST_WRITE, EVERY_ACCESS))
    queue.lane.reach(EVERY_STAGE, order.front(node))
    for batch in submit.batches:
        run = Run(program, submit, queue.lane)
        for position, (id, commands) in enumerate(batch.buffers):
            run.buffer(id, commands, batch.batch, position)
    if submit.fence:
        program.fences[submit.fence] = fence_of(program, queue, place)
