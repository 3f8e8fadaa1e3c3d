"""Timeline semaphores on one queue: which signal a wait for a value stands for."""

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer
from vkharness.rig.queues import RigBatch, SemaphoreUse
from vkharness.suite import Rig, read_after_write, scenario, write_after_write

COPY, FILL = "vkCmdCopyBuffer", "vkCmdFillBuffer"
RAW = [read_after_write(COPY, FILL)]
WAW = [write_after_write(FILL, FILL)]


def _fill(rig: Rig, target: RigBuffer, value: int) -> Commands:
    """A recorded fill."""
    with rig.commands() as commands:
        commands.fill(target, value)
    return commands


def _copy(rig: Rig, source: RigBuffer, target: RigBuffer) -> Commands:
    """A recorded copy."""
    with rig.commands() as commands:
        commands.copy(source, target)
    return commands


@scenario(
    without={"the wait": RAW},
    weakened={"the wait / for the first value": RAW, "the wait / at blits": RAW},
    rule="a-timeline-wait-meets-the-first-signal-that-reaches-it,the-first-value-waits-for-nothing",
)
def scenario_copy_waits_for_a_value(rig: Rig) -> None:
    """A wait for a value is a dependency on the signal that reaches it; one for the first value is on nothing."""
    a, b, t = rig.buffer(), rig.buffer(), rig.timeline(3)
    rig.submit(_fill(rig, a, 0x11111111), signals=[SemaphoreUse(t, "CLEAR", 4)], sync2=True)
    weaker: dict[str, dict[str, object]] = {"for the first value": {"value": 3}, "at blits": {"stages": "BLIT"}}
    rig.submit(_copy(rig, a, b), waits=rig.operation("the wait", t, "COPY", 4, weaker=weaker), sync2=True)


@scenario(
    without={"the wait": RAW},
    weakened={"the wait / for the first value": RAW},
    rule="both-forms-of-a-command-mean-the-same,a-timeline-wait-meets-the-first-signal-that-reaches-it",
)
def scenario_values_of_the_first_form(rig: Rig) -> None:
    """vkQueueSubmit takes values from a chained struct."""
    a, b, t = rig.buffer(), rig.buffer(), rig.timeline()
    rig.submit(_fill(rig, a, 0x11111111), signals=[SemaphoreUse(t, value=1)], sync2=False)
    waits = rig.operation("the wait", t, "ALL_TRANSFER", 1, weaker={"for the first value": {"value": 0}})
    rig.submit(_copy(rig, a, b), waits=waits, sync2=False)


@scenario(
    without={"the wait": WAW},
    weakened={"the wait / for a value before": WAW},
    rule="a-timeline-wait-meets-the-first-signal-that-reaches-it",
)
def scenario_wait_for_an_earlier_value(rig: Rig) -> None:
    """A wait covers what was submitted up to the signal that it stands for, not what came later."""
    a, b, t = rig.buffer(), rig.buffer(), rig.timeline()
    rig.submit(_fill(rig, b, 0x11111111), signals=[SemaphoreUse(t, value=1)], sync2=True)
    rig.submit(_fill(rig, a, 0x22222222), signals=[SemaphoreUse(t, value=2)], sync2=True)
    waits = rig.operation("the wait", t, "CLEAR", 2, weaker={"for a value before": {"value": 1}})
    rig.submit(_fill(rig, a, 0x33333333), waits=waits, sync2=True)


@scenario(without={"the wait": WAW}, rule="a-timeline-wait-meets-the-first-signal-that-reaches-it")
def scenario_wait_for_a_value_between(rig: Rig) -> None:
    """A value that no signal gives exactly is reached by the next higher one."""
    a, t = rig.buffer(), rig.timeline()
    rig.submit(_fill(rig, a, 0x11111111), signals=[SemaphoreUse(t, value=10)], sync2=True)
    rig.submit(_fill(rig, a, 0x22222222), waits=rig.operation("the wait", t, "CLEAR", 7), sync2=True)


@scenario(without={"the timeline": RAW, "the binary one": RAW}, rule="a-semaphore-is-a-memory-dependency")
def scenario_timeline_and_binary_in_one_batch(rig: Rig) -> None:
    """A batch may wait for semaphores of both kinds: each covers what its signal does."""
    a, b, c, s, t = rig.buffer(), rig.buffer(), rig.buffer(512), rig.semaphore(), rig.timeline()
    with rig.commands() as fills:
        fills.fill(b, 0x22222222)
        fills.barrier("", "CLEAR/TRANSFER_WRITE", "RESOLVE/TRANSFER_READ")
        fills.fill(a, 0x11111111)
        fills.barrier("", "CLEAR/TRANSFER_WRITE", "BLIT/TRANSFER_READ", buffer=a)
    rig.submit(fills, signals=[SemaphoreUse(s, "BLIT"), SemaphoreUse(t, "RESOLVE", 1)], sync2=True)
    with rig.commands() as copies:
        copies.copy(a, c, (0, 0, 256))
        copies.copy(b, c, (0, 256, 256))
    waits = [*rig.operation("the binary one", s, "COPY"), *rig.operation("the timeline", t, "COPY", 1)]
    rig.submit(copies, waits=waits, sync2=True)


@scenario(
    without={"first": WAW, "second": WAW, "third": WAW},
    rule="a-timeline-wait-meets-the-first-signal-that-reaches-it,one-signal-lets-several-waits-go",
)
def scenario_values_between_batches(rig: Rig) -> None:
    """One timeline orders all batches of a submit."""
    a, t = rig.buffer(), rig.timeline()
    batches = [RigBatch([_fill(rig, a, 1)], [], [SemaphoreUse(t, "CLEAR", 1)])]
    for value, name in ((1, "first"), (2, "second"), (3, "third")):
        waits = rig.operation(name, t, "CLEAR", value)
        batches.append(RigBatch([_fill(rig, a, value + 1)], waits, [SemaphoreUse(t, "CLEAR", value + 1)]))
    rig.submit_batches(*batches, sync2=True)
