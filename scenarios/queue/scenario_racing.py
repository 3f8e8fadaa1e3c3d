"""Two queues and no semaphore between them: whatever touches one range on both races."""

from vkharness.device.headless import DeviceQueue
from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer
from vkharness.rig.queues import SemaphoreUse
from vkharness.suite import Rig, race, scenario

COPY, FILL, CLEAR, DISPATCH = "vkCmdCopyBuffer", "vkCmdFillBuffer", "vkCmdClearColorImage", "vkCmdDispatch"
BARRIER = "vkCmdPipelineBarrier2"
WRITES_RACE = [race("WRITE_RACING_WRITE", FILL, FILL)]
READ_RACES = [race("READ_RACING_WRITE", COPY, FILL)]
WRITE_RACES_READ = [race("WRITE_RACING_READ", FILL, COPY)]


def _fill(rig: Rig, target: RigBuffer, value: int, queue: DeviceQueue | None = None) -> Commands:
    """A recorded fill."""
    with rig.commands(queue=queue) as commands:
        commands.fill(target, value)
    return commands


def _copy(rig: Rig, source: RigBuffer, target: RigBuffer, queue: DeviceQueue | None = None) -> Commands:
    """A recorded copy."""
    with rig.commands(queue=queue) as commands:
        commands.copy(source, target)
    return commands


@scenario(without={"the semaphore": WRITES_RACE}, queues=["TRANSFER"], rule="queues-without-a-semaphore-race")
def scenario_fills_on_two_queues(rig: Rig) -> None:
    """Two queues that write one buffer need a semaphore."""
    a, s = rig.buffer(), rig.semaphore()
    _, other = rig.queues
    rig.submit(_fill(rig, a, 0x11111111), signals=[SemaphoreUse(s)])
    rig.submit(_fill(rig, a, 0x22222222, other), waits=rig.operation("the semaphore", s))


@scenario(without={"the semaphore": READ_RACES}, queues=["TRANSFER"], rule="queues-without-a-semaphore-race")
def scenario_copy_of_what_another_queue_fills(rig: Rig) -> None:
    """A queue that reads what another wrote needs a semaphore."""
    a, b, s = rig.buffer(), rig.buffer(), rig.semaphore()
    _, other = rig.queues
    rig.submit(_fill(rig, a, 0x11111111), signals=[SemaphoreUse(s)], sync2=True)
    rig.submit(_copy(rig, a, b, other), waits=rig.operation("the semaphore", s, "COPY"), sync2=True)


@scenario(without={"the semaphore": WRITE_RACES_READ}, queues=["TRANSFER"], rule="queues-without-a-semaphore-race")
def scenario_fill_over_what_another_queue_copies(rig: Rig) -> None:
    """A queue that writes what another reads needs a semaphore, too."""
    a, b, s = rig.buffer(), rig.buffer(), rig.semaphore()
    _, other = rig.queues
    rig.submit(_copy(rig, a, b), signals=[SemaphoreUse(s)], sync2=True)
    rig.submit(_fill(rig, a, 0x22222222, other), waits=rig.operation("the semaphore", s, "CLEAR"), sync2=True)


@scenario(without={"the semaphore": WRITES_RACE}, queues=["GRAPHICS"], rule="queues-without-a-semaphore-race")
def scenario_two_queues_of_one_family(rig: Rig) -> None:
    """Queues of one family race like those of two: submission order holds along one queue."""
    a, s = rig.buffer(), rig.semaphore()
    _, other = rig.queues
    rig.submit(_fill(rig, a, 0x11111111), signals=[SemaphoreUse(s)])
    rig.submit(_fill(rig, a, 0x22222222, other), waits=rig.operation("the semaphore", s))


@scenario(
    without={"first to second": READ_RACES, "second to third": READ_RACES},
    queues=["COMPUTE", "TRANSFER"],
    rule="semaphores-chain-through-queues",
)
def scenario_semaphores_through_a_third_queue(rig: Rig) -> None:
    """Semaphores chain: a queue that waits for one that waited for the writer is behind the writer."""
    a, b, first, second = rig.buffer(), rig.buffer(), rig.semaphore(), rig.semaphore()
    main, middle, last = rig.queues
    rig.submit(_fill(rig, a, 0x11111111, main), signals=[SemaphoreUse(first)])
    rig.submit(queue=middle, waits=rig.operation("first to second", first), signals=[SemaphoreUse(second)])
    rig.submit(_copy(rig, a, b, last), waits=rig.operation("second to third", second))


@scenario(
    without={"the wait": WRITE_RACES_READ},
    weakened={"the wait / for the first submit": WRITE_RACES_READ},
    queues=["TRANSFER"],
    rule="a-signal-covers-what-was-submitted-before,queues-without-a-semaphore-race",
)
def scenario_read_after_the_signal(rig: Rig) -> None:
    """A semaphore covers what its queue was given up to the signal, and nothing that came after it."""
    a, b, c, early, late = rig.buffer(), rig.buffer(), rig.buffer(), rig.semaphore(), rig.semaphore()
    _, other = rig.queues
    rig.submit(_copy(rig, a, b), signals=[SemaphoreUse(early)])
    rig.submit(_copy(rig, a, c), signals=[SemaphoreUse(late)])
    waits = rig.operation("the wait", late, weaker={"for the first submit": {"semaphore": early}})
    rig.submit(_fill(rig, a, 0x22222222, other), waits=waits)


@scenario(without={"the wait": WRITES_RACE}, queues=["TRANSFER"], rule="a-signal-covers-what-was-submitted-before")
def scenario_signal_in_an_empty_batch(rig: Rig) -> None:
    """A signal covers everything that was submitted to its queue before, also when its batch holds nothing."""
    a, s = rig.buffer(), rig.semaphore()
    main, other = rig.queues
    rig.submit(_fill(rig, a, 0x11111111, main))
    rig.submit(queue=main, signals=[SemaphoreUse(s)], sync2=True)
    rig.submit(_fill(rig, a, 0x22222222, other), waits=rig.operation("the wait", s), sync2=True)


@scenario(weakened={"where / in the first half": WRITES_RACE}, queues=["TRANSFER"], rule="only-shared-bytes-conflict")
def scenario_halves_on_two_queues(rig: Rig) -> None:
    """Queues that write different bytes of one buffer do not race."""
    a = rig.buffer()
    _, other = rig.queues
    with rig.commands() as first:
        first.fill(a, 0x11111111, 0, 128)
    with rig.commands(queue=other) as second:
        second.fill(a, 0x22222222, rig.choose("where", 128, {"in the first half": 64}), 128)
    rig.submit(first)
    rig.submit(second)


@scenario(weakened={"what / a fill": WRITE_RACES_READ}, queues=["TRANSFER"], rule="reads-do-not-conflict")
def scenario_reads_on_two_queues(rig: Rig) -> None:
    """Two queues may read one buffer at once."""
    a, b, c = rig.buffer(), rig.buffer(), rig.buffer()
    _, other = rig.queues
    rig.submit(_copy(rig, a, b))
    copies = rig.choose("what", True, {"a fill": False})
    rig.submit(_copy(rig, a, c, other) if copies else _fill(rig, a, 0x22222222, other))


@scenario(
    without={
        "there": [race("WRITE_RACING_WRITE", BARRIER, BARRIER)],
        "and back": [race("WRITE_RACING_WRITE", BARRIER, CLEAR)],
    },
    queues=["COMPUTE"],
    rule="a-transition-is-a-write,transitions-of-one-queue-are-in-order",
)
def scenario_transitions_on_two_queues(rig: Rig) -> None:
    """Layout transitions are writes: on two queues they need semaphores both ways."""
    image, there, back = rig.image(), rig.semaphore(), rig.semaphore()
    _, other = rig.queues
    with rig.commands() as first:
        first.transition(image, new="TRANSFER_DST_OPTIMAL")
    with rig.commands(queue=other) as second:
        second.transition(image, src="ALL_COMMANDS", old="TRANSFER_DST_OPTIMAL")
        second.clear_color(image)
    with rig.commands() as third:
        third.transition(image, src="ALL_COMMANDS", old="GENERAL", new="TRANSFER_SRC_OPTIMAL")
    rig.submit(first, signals=[SemaphoreUse(there)], sync2=True)
    rig.submit(second, waits=rig.operation("there", there), signals=[SemaphoreUse(back)], sync2=True)
    rig.submit(third, waits=rig.operation("and back", back), sync2=True)


@scenario(
    without={"the semaphore": [race("READ_RACING_WRITE", COPY, DISPATCH)]},
    queues=["COMPUTE", "TRANSFER"],
    rule="queues-without-a-semaphore-race",
)
def scenario_copy_of_what_a_dispatch_writes_elsewhere(rig: Rig) -> None:
    """A shader's writes on a compute queue race with a copy on a transfer queue."""
    a, b, s = rig.buffer(), rig.buffer(), rig.semaphore()
    _, compute, transfer = rig.queues
    pipeline = rig.compute("fill_words_writeonly")
    with rig.commands(queue=compute) as writes:
        writes.bind(pipeline, rig.descriptors(pipeline, b0=a))
        writes.push_constants(pipeline, 7)
        writes.dispatch(1)
    rig.submit(writes, signals=[SemaphoreUse(s, "COMPUTE_SHADER")], sync2=True)
    rig.submit(_copy(rig, a, b, transfer), waits=rig.operation("the semaphore", s, "COPY"), sync2=True)


@scenario(
    without={"the semaphore": [race("READ_RACING_WRITE", "vkCmdCopyImageToBuffer", CLEAR)]},
    queues=["TRANSFER"],
    rule="queues-without-a-semaphore-race",
)
def scenario_image_read_back_on_another_queue(rig: Rig) -> None:
    """An image that is cleared on one queue and read back on another needs a semaphore."""
    image, b, s = rig.image(), rig.buffer(16 * 16 * 4), rig.semaphore()
    _, other = rig.queues
    with rig.submission() as before:
        before.transition(image)
    rig.host_wait("", "queue")
    with rig.commands() as clears:
        clears.clear_color(image)
    with rig.commands(queue=other) as reads:
        reads.image_to_buffer(image, b)
    rig.submit(clears, signals=[SemaphoreUse(s)])
    rig.submit(reads, waits=rig.operation("the semaphore", s))
