"""Sparse buffers: vkQueueBindSparse is an operation of the queue that only semaphores and fences order."""

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer
from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.sparse import SparseBlock
from vkharness.suite import ExpectedHazard, Rig, race, read_after_write, scenario, write_after_write

BIND, FILL, COPY = "vkQueueBindSparse", "vkCmdFillBuffer", "vkCmdCopyBuffer"
BLOCK = 1 << 16
QUEUE = ["SPARSE_BINDING"]


def unordered(command: str, prior: str) -> list[ExpectedHazard]:
    """A use of memory bindings and a change of them, in no order."""
    return [race("sparse-binding-race", command, prior)]


def _fill(rig: Rig, target: RigBuffer, value: int = 0x11111111, block: int = 0) -> Commands:
    with rig.commands() as commands:
        commands.fill(target, value, offset=block * BLOCK, size=256)
    return commands


def _copy(rig: Rig, source: RigBuffer, target: RigBuffer, block: int = 0) -> Commands:
    with rig.commands() as commands:
        commands.copy(source, target, (block * BLOCK, 0, 256))
    return commands


@scenario(
    without={"the wait": unordered(FILL, BIND)},
    weakened={"the wait / of another stage": unordered(FILL, BIND)},
    queues=QUEUE,
    rule="a-binding-is-in-order-with-accesses-through-it",
)
def scenario_fill_waits_for_its_memory(rig: Rig) -> None:
    """A command that accesses a range waits for the operation that binds memory to it."""
    a, s = rig.sparse_buffer(), rig.semaphore()
    rig.bind_sparse(SparseBlock(a, 0, rig.sparse_memory(a)), signals=[SemaphoreUse(s)])
    weaker = {"of another stage": {"stages": "COPY"}}
    rig.submit(_fill(rig, a), waits=rig.operation("the wait", s, "CLEAR", weaker=weaker), sync2=True)


@scenario(
    without={"the wait of the bind": unordered(BIND, FILL)},
    queues=QUEUE,
    rule="a-binding-is-in-order-with-accesses-through-it,a-sparse-bind-is-ordered-by-semaphores-and-fences",
)
def scenario_rebind_waits_for_the_fill(rig: Rig) -> None:
    """An operation that takes memory away waits for the commands that access it."""
    a, bound, filled = rig.sparse_buffer(), rig.fence(), rig.semaphore()
    first, second = rig.sparse_memory(a), rig.sparse_memory(a)
    rig.bind_sparse(SparseBlock(a, 0, first), fence=bound)
    rig.wait(bound)
    rig.submit(_fill(rig, a), signals=[SemaphoreUse(filled)])
    rig.bind_sparse(SparseBlock(a, 0, second), waits=rig.operation("the wait of the bind", filled))


@scenario(queues=QUEUE, rule="a-binding-is-in-order-with-accesses-through-it")
def scenario_other_ranges_need_no_order(rig: Rig) -> None:
    """A bind of one block and an access of another one need no order."""
    a, s = rig.sparse_buffer(), rig.semaphore()
    memory = rig.sparse_memory(a, 2)
    rig.bind_sparse(SparseBlock(a, 0, memory), signals=[SemaphoreUse(s)])
    rig.submit(_fill(rig, a), waits=[SemaphoreUse(s)])
    rig.bind_sparse(SparseBlock(a, 1, memory, 1))


@scenario(
    without={"the wait of the host": unordered(FILL, BIND)},
    weakened={"the wait of the host / for a later submit": unordered(FILL, BIND)},
    queues=QUEUE,
    rule="a-sparse-bind-is-ordered-by-semaphores-and-fences",
)
def scenario_fence_of_the_bind(rig: Rig) -> None:
    """The host may wait for the fence of a bind. The fence of a later submit says nothing of it."""
    a, b, bound, submitted = rig.sparse_buffer(), rig.buffer(), rig.fence(), rig.fence()
    rig.bind_sparse(SparseBlock(a, 0, rig.sparse_memory(a)), fence=bound)
    rig.submit(_fill(rig, b), fence=submitted)
    weaker = {"for a later submit": {"fences": (submitted,)}}
    rig.host_wait("the wait of the host", "all", bound, weaker=weaker)
    rig.submit(_fill(rig, a))


@scenario(
    without={"the wait of the second bind": [*unordered(BIND, BIND), *unordered(FILL, BIND)]},
    queues=QUEUE,
    rule="a-sparse-bind-is-ordered-by-semaphores-and-fences",
)
def scenario_two_binds_of_one_range(rig: Rig) -> None:
    """Two operations that bind one range need an order, on one queue too."""
    a, first, second = rig.sparse_buffer(), rig.semaphore(), rig.semaphore()
    rig.bind_sparse(SparseBlock(a, 0, rig.sparse_memory(a)), signals=[SemaphoreUse(first)])
    waits = rig.operation("the wait of the second bind", first)
    rig.bind_sparse(SparseBlock(a, 0, rig.sparse_memory(a)), waits=waits, signals=[SemaphoreUse(second)])
    rig.submit(_fill(rig, a), waits=[SemaphoreUse(second)])


@scenario(
    without={"fill before copy": [read_after_write(COPY, FILL)]},
    queues=QUEUE,
    rule="a-sparse-range-is-the-memory-bound-to-it",
)
def scenario_two_ranges_of_one_memory(rig: Rig) -> None:
    """Two ranges of one memory are the same bytes: a copy of one reads what a fill wrote to the other."""
    a, b, s = rig.sparse_buffer(), rig.buffer(), rig.semaphore()
    memory = rig.sparse_memory(a)
    rig.bind_sparse(SparseBlock(a, 0, memory), SparseBlock(a, 1, memory), signals=[SemaphoreUse(s)])
    with rig.commands() as commands:
        commands.fill(a, 0x22222222, offset=0, size=256)
        commands.barrier("fill before copy", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")
        commands.copy(a, b, (BLOCK, 0, 256))
    rig.submit(commands, waits=[SemaphoreUse(s)])


@scenario(
    without={"first before second": [write_after_write(FILL, FILL)]},
    queues=QUEUE,
    rule="a-sparse-range-is-the-memory-bound-to-it",
)
def scenario_two_sparse_buffers_of_one_memory(rig: Rig) -> None:
    """Writes through two sparse buffers on one memory need a dependency."""
    a, b, s = rig.sparse_buffer(1), rig.sparse_buffer(1), rig.semaphore()
    memory = rig.sparse_memory(a)
    rig.bind_sparse(SparseBlock(a, 0, memory), SparseBlock(b, 0, memory), signals=[SemaphoreUse(s)])
    with rig.commands() as commands:
        commands.fill(a, 0x33333333, size=256)
        commands.barrier("first before second", "CLEAR/TRANSFER_WRITE", "CLEAR/TRANSFER_WRITE")
        commands.fill(b, 0x44444444, size=256)
    rig.submit(commands, waits=[SemaphoreUse(s)])


@scenario(
    without={"the wait of the bind": unordered(BIND, FILL)},
    queues=QUEUE,
    rule="a-sparse-range-is-the-memory-bound-to-it,a-sparse-bind-is-ordered-by-semaphores-and-fences",
)
def scenario_memory_moves_to_another_range(rig: Rig) -> None:
    """Contents stay with the memory: they are read at another range after a bind that waits for the write."""
    a, b = rig.sparse_buffer(), rig.buffer()
    memory, bound = rig.sparse_memory(a), rig.fence()
    filled, copied, moved = rig.semaphore(), rig.semaphore(), rig.semaphore()
    rig.bind_sparse(SparseBlock(a, 0, memory), fence=bound)
    rig.wait(bound)
    rig.submit(_fill(rig, a), signals=[SemaphoreUse(filled), SemaphoreUse(copied)])
    waits = rig.operation("the wait of the bind", filled)
    rig.bind_sparse(SparseBlock(a, 0), SparseBlock(a, 1, memory), waits=waits, signals=[SemaphoreUse(moved)])
    rig.submit(_copy(rig, a, b, block=1), waits=[SemaphoreUse(moved), SemaphoreUse(copied)])


@scenario(queues=QUEUE, rule="unbound-ranges-have-no-memory")
def scenario_unbound_ranges_conflict_with_nothing(rig: Rig) -> None:
    """Writes to a range without memory are discarded: two of them need no order."""
    a = rig.sparse_buffer()
    with rig.submission() as commands:
        commands.fill(a, 0x55555555, size=256)
        commands.fill(a, 0x66666666, size=256)
