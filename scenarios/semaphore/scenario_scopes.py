"""Binary semaphores on one queue: which stages and accesses a signal and a wait order."""

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer
from vkharness.rig.queues import RigBatch, SemaphoreUse
from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

COPY, FILL, DISPATCH = "vkCmdCopyBuffer", "vkCmdFillBuffer", "vkCmdDispatch"
BARRIER, CLEAR = "vkCmdPipelineBarrier2", "vkCmdClearColorImage"
RAW = [read_after_write(COPY, FILL)]
WAR = [write_after_read(FILL, COPY)]
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
    weakened={
        "the wait / at the compute shader": RAW,
        "the wait / at all transfers": [],
        "the wait / at the top": [],
        "the wait / at the bottom": RAW,
    },
    rule="a-semaphore-is-a-memory-dependency,a-wait-orders-its-stages",
)
def scenario_copy_waits_for_a_fill(rig: Rig) -> None:
    """On one queue a signal and a wait at the reading stage are a memory dependency."""
    a, b, s = rig.buffer(), rig.buffer(), rig.semaphore()
    rig.submit(_fill(rig, a, 0x11111111), signals=[SemaphoreUse(s)])
    waits = rig.operation(
        "the wait",
        s,
        "COPY",
        weaker={
            "at the compute shader": {"stages": "COMPUTE_SHADER"},
            "at all transfers": {"stages": "ALL_TRANSFER"},
            "at the top": {"stages": "TOP_OF_PIPE"},
            "at the bottom": {"stages": "BOTTOM_OF_PIPE"},
        },
    )
    rig.submit(_copy(rig, a, b), waits=waits, sync2=True)


@scenario(
    without={"the signal": RAW},
    weakened={
        "the signal / of blits": RAW,
        "the signal / of the compute shader": RAW,
        "the signal / of everything": [],
        "the signal / at the bottom": [],
        "the signal / at the top": RAW,
    },
    rule="a-signal-covers-its-stages",
)
def scenario_stages_of_a_signal(rig: Rig) -> None:
    """A signal of vkQueueSubmit2 covers its stages and what is logically earlier, and nothing else."""
    a, b, s = rig.buffer(), rig.buffer(), rig.semaphore()
    signals = rig.operation(
        "the signal",
        s,
        "CLEAR",
        weaker={
            "of blits": {"stages": "BLIT"},
            "of the compute shader": {"stages": "COMPUTE_SHADER"},
            "of everything": {"stages": "ALL_COMMANDS"},
            "at the bottom": {"stages": "BOTTOM_OF_PIPE"},
            "at the top": {"stages": "TOP_OF_PIPE"},
        },
    )
    rig.submit(_fill(rig, a, 0x11111111), signals=signals, sync2=True)
    rig.submit(_copy(rig, a, b), waits=[SemaphoreUse(s)] if signals else [], sync2=True)


@scenario(
    without={"the wait": WAW},
    weakened={"the wait / of the first form": []},
    rule="both-forms-of-a-command-mean-the-same,a-signal-covers-its-stages",
)
def scenario_signal_of_the_first_form(rig: Rig) -> None:
    """A signal of vkQueueSubmit names no stages: it covers everything."""
    a, s = rig.buffer(), rig.semaphore()
    rig.submit(_fill(rig, a, 0x11111111), signals=[SemaphoreUse(s)], sync2=False)
    waits = rig.operation("the wait", s, "CLEAR", weaker={"of the first form": {"stages": "ALL_TRANSFER"}})
    rig.submit(_fill(rig, a, 0x22222222), waits=waits, sync2=not waits or waits[0].stages != "ALL_TRANSFER")


@scenario(
    without={"the wait": [write_after_read(FILL, "vkCmdDispatchIndirect")]},
    weakened={"the signal / of copies": [write_after_read(FILL, "vkCmdDispatchIndirect")]},
    rule="a-signal-covers-its-stages",
)
def scenario_earlier_stages_are_in_a_signal(rig: Rig) -> None:
    """A signal after the compute shader covers the indirect command that was read before it."""
    counts, a, s = rig.buffer(), rig.buffer(), rig.semaphore()
    pipeline = rig.compute("fill_words_writeonly")
    with rig.commands() as runs:
        runs.bind(pipeline, rig.descriptors(pipeline, b0=a))
        runs.push_constants(pipeline, 7)
        runs.dispatch_indirect(counts)
    signals = rig.operation("the signal", s, "COMPUTE_SHADER", weaker={"of copies": {"stages": "COPY"}})
    rig.submit(runs, signals=signals, sync2=True)
    rig.submit(_fill(rig, counts, 1), waits=rig.operation("the wait", s, "CLEAR"), sync2=True)


@scenario(
    without={"the wait": RAW, "then a barrier": RAW},
    weakened={"then a barrier / from the compute shader": RAW},
    rule="a-chain-needs-stages-that-meet,semaphores-and-barriers-chain",
)
def scenario_barrier_after_a_wait(rig: Rig) -> None:
    """A barrier chains with a wait when its first stages meet those of the wait."""
    a, b, s = rig.buffer(), rig.buffer(), rig.semaphore()
    rig.submit(_fill(rig, a, 0x11111111), signals=[SemaphoreUse(s)])
    with rig.commands() as commands:
        commands.barrier(
            "then a barrier",
            "BLIT",
            "COPY/TRANSFER_READ",
            weaker={"from the compute shader": {"src": "COMPUTE_SHADER"}},
        )
        commands.copy(a, b)
    rig.submit(commands, waits=rig.operation("the wait", s, "BLIT"), sync2=True)


@scenario(
    without={"first a barrier": RAW, "the wait": RAW},
    weakened={"first a barrier / of no write": RAW},
    rule="a-chain-needs-stages-that-meet,semaphores-and-barriers-chain",
)
def scenario_barrier_before_a_signal(rig: Rig) -> None:
    """A barrier before the signal carries a write into its scope."""
    a, b, s = rig.buffer(), rig.buffer(), rig.semaphore()
    with rig.commands() as commands:
        commands.fill(a, 0x11111111)
        commands.barrier(
            "first a barrier",
            "CLEAR/TRANSFER_WRITE",
            "BLIT/TRANSFER_READ",
            weaker={"of no write": {"src": "COMPUTE_SHADER/SHADER_STORAGE_WRITE"}},
        )
    rig.submit(commands, signals=[SemaphoreUse(s, "BLIT")], sync2=True)
    rig.submit(_copy(rig, a, b), waits=rig.operation("the wait", s, "COPY"), sync2=True)


@scenario(without={"first": WAW, "second": WAW, "third": WAW}, rule="a-wait-takes-a-binary-semaphore-back")
def scenario_semaphore_used_again(rig: Rig) -> None:
    """A wait unsignals a binary semaphore, which can then be signaled again."""
    a, s = rig.buffer(), [rig.semaphore() for _ in range(3)]
    rig.submit(_fill(rig, a, 1), signals=[SemaphoreUse(s[0])])
    for value, name in ((2, "first"), (3, "second"), (4, "third")):
        waits = rig.operation(name, s[0])
        if not waits:
            rig.submit(waits=[SemaphoreUse(s[0], "DRAW_INDIRECT")])  # unsignals it, and protects nothing that fills do
        rig.submit(_fill(rig, a, value), waits=waits, signals=[SemaphoreUse(s[0])])


@scenario(
    without={"first": WAW, "second": WAW},
    rule="a-semaphore-is-a-memory-dependency,a-wait-takes-a-binary-semaphore-back",
)
def scenario_semaphore_between_batches(rig: Rig) -> None:
    """Batches of one submit are no more ordered than submits are: semaphores order them."""
    a, s, t = rig.buffer(), rig.semaphore(), rig.semaphore()
    fills = [_fill(rig, a, value) for value in (1, 2, 3)]
    rig.submit_batches(
        RigBatch([fills[0]], [], [SemaphoreUse(s)]),
        RigBatch([fills[1]], rig.operation("first", s), [SemaphoreUse(t)]),
        RigBatch([fills[2]], rig.operation("second", t)),
    )


@scenario(
    without={"the wait": [write_after_write(BARRIER, CLEAR)]},
    weakened={
        "the wait / at copies": [write_after_write(BARRIER, CLEAR)],
        "the wait / at the bottom": [write_after_write(BARRIER, CLEAR)],
    },
    rule="none-before-a-transition-is-the-top-of-the-pipe",
)
def scenario_transition_after_a_wait_of_everything(rig: Rig) -> None:
    """A layout transition with no first stages follows a wait of all commands, and no narrower one."""
    image, s = rig.image(), rig.semaphore()
    with rig.commands() as clears:
        clears.transition(image)
        clears.clear_color(image)
    rig.submit(clears, signals=[SemaphoreUse(s)])
    waits = rig.operation(
        "the wait", s, weaker={"at copies": {"stages": "COPY"}, "at the bottom": {"stages": "BOTTOM_OF_PIPE"}}
    )
    with rig.commands() as turns:
        turns.transition(image, src="NONE", old="GENERAL", new="TRANSFER_SRC_OPTIMAL")
    rig.submit(turns, waits=waits, sync2=True)


@scenario(
    without={"the wait": [write_after_write(CLEAR, BARRIER)]},
    weakened={"the signal / of copies": [write_after_write(CLEAR, BARRIER)]},
    rule="all-commands-is-everything",
)
def scenario_signal_after_a_transition(rig: Rig) -> None:
    """A signal of all commands covers a layout transition that nothing else waits for."""
    image, s = rig.image(), rig.semaphore()
    with rig.commands() as turns:
        turns.transition(image, src="NONE", dst="NONE")
    with rig.commands() as clears:
        clears.clear_color(image)
    signals = rig.operation("the signal", s, weaker={"of copies": {"stages": "COPY"}})
    rig.submit(turns, signals=signals, sync2=True)
    rig.submit(clears, waits=rig.operation("the wait", s, "CLEAR"), sync2=True)


@scenario(
    weakened={"the first signal / of blits": RAW, "the first signal / in the same batch": RAW},
    rule="signals-of-a-queue-are-in-order",
)
def scenario_signals_of_one_queue(rig: Rig) -> None:
    """Whoever waits for a signal comes after what earlier signals of its queue cover, whatever its own stages are."""
    a, b, first, second = rig.buffer(), rig.buffer(), rig.semaphore(), rig.semaphore()
    how = rig.choose("the first signal", "CLEAR", {"of blits": "BLIT", "in the same batch": ""})
    one, other = SemaphoreUse(first, how or "CLEAR"), SemaphoreUse(second, "COMPUTE_SHADER")
    rig.submit(_fill(rig, a, 0x11111111), signals=[one] if how else [one, other], sync2=True)
    if how:
        rig.submit_batches(RigBatch(signals=[other]), sync2=True)
    rig.submit(_copy(rig, a, b), waits=[SemaphoreUse(second)], sync2=True)
    rig.submit_batches(RigBatch(waits=[SemaphoreUse(first)]), sync2=True)
