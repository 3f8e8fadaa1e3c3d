"""Binary semaphores between queues: they replace, for what the wait's stages do, everything that was known before."""

from vkharness.device.headless import DeviceQueue
from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer
from vkharness.rig.queues import RigBatch, SemaphoreUse
from vkharness.suite import Rig, race, read_after_write, scenario, write_after_read, write_after_write

COPY, FILL, DISPATCH = "vkCmdCopyBuffer", "vkCmdFillBuffer", "vkCmdDispatch"
BARRIER, CLEAR, TO_BUFFER = "vkCmdPipelineBarrier2", "vkCmdClearColorImage", "vkCmdCopyImageToBuffer"
WRITES_RACE = [race("WRITE_RACING_WRITE", FILL, FILL)]
READ_RACES = [race("READ_RACING_WRITE", COPY, FILL)]
WRITE_RACES_READ = [race("WRITE_RACING_READ", FILL, COPY)]
WAR = [write_after_read(FILL, COPY)]
WAW = [write_after_write(FILL, FILL)]
RAW = [read_after_write(COPY, FILL)]


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


@scenario(
    without={"the wait": WRITE_RACES_READ},
    weakened={"the wait / at the bottom": WAR, "the wait / at copies": WAR, "the wait / at everything": []},
    queues=["TRANSFER"],
    rule="a-wait-orders-its-stages",
)
def scenario_write_after_a_read_elsewhere(rig: Rig) -> None:
    """A wait orders its stages: a write in any other is after the read, and not ordered with it."""
    a, b, s = rig.buffer(), rig.buffer(), rig.semaphore()
    _, other = rig.queues
    rig.submit(_copy(rig, a, b), signals=[SemaphoreUse(s)], sync2=True)
    weaker = {
        "at the bottom": {"stages": "BOTTOM_OF_PIPE"},
        "at copies": {"stages": "COPY"},
        "at everything": {"stages": "ALL_COMMANDS"},
    }
    waits = rig.operation("the wait", s, "CLEAR", weaker=weaker)
    rig.submit(_fill(rig, a, 0x22222222, other), waits=waits, sync2=True)


@scenario(
    without={"the wait": WRITES_RACE},
    weakened={"the wait / at the vertex shader": WAW},
    queues=["GRAPHICS"],
    rule="a-wait-orders-its-stages,a-wait-carries-only-its-own-scopes-to-another-queue",
)
def scenario_stages_of_a_wait_elsewhere(rig: Rig) -> None:
    """A wait at a stage that writes nothing there leaves the writes unordered, but they do not race."""
    a, s = rig.buffer(), rig.semaphore()
    _, other = rig.queues
    rig.submit(_fill(rig, a, 0x11111111, other), signals=[SemaphoreUse(s, "ALL_TRANSFER")], sync2=True)
    waits = rig.operation("the wait", s, "CLEAR", weaker={"at the vertex shader": {"stages": "VERTEX_SHADER"}})
    rig.submit(_fill(rig, a, 0x22222222), waits=waits, sync2=True)


@scenario(
    without={"the wait": READ_RACES},
    weakened={"the signal / of blits": RAW, "the signal / of everything": []},
    queues=["COMPUTE"],
    rule="a-signal-covers-its-stages,a-wait-carries-only-its-own-scopes-to-another-queue",
)
def scenario_stages_of_a_signal_elsewhere(rig: Rig) -> None:
    """A signal of other stages than the writer's makes nothing of it available to the waiting queue."""
    a, b, s = rig.buffer(), rig.buffer(), rig.semaphore()
    _, other = rig.queues
    weaker = {"of blits": {"stages": "BLIT"}, "of everything": {"stages": "ALL_COMMANDS"}}
    rig.submit(_fill(rig, a, 0x11111111), signals=rig.operation("the signal", s, "CLEAR", weaker=weaker), sync2=True)
    rig.submit(_copy(rig, a, b, other), waits=rig.operation("the wait", s, "COPY"), sync2=True)


@scenario(
    without={"the wait": READ_RACES, "then a barrier": RAW},
    weakened={"then a barrier / from copies": RAW},
    queues=["COMPUTE"],
    rule="a-wait-carries-only-its-own-scopes-to-another-queue,semaphores-and-barriers-chain",
)
def scenario_barrier_after_a_wait_elsewhere(rig: Rig) -> None:
    """A barrier on the waiting queue chains with the wait; by itself it covers nothing of another queue."""
    a, b, s = rig.buffer(), rig.buffer(), rig.semaphore()
    _, other = rig.queues
    rig.submit(_fill(rig, a, 0x11111111), signals=[SemaphoreUse(s)], sync2=True)
    with rig.commands(queue=other) as commands:
        commands.barrier(
            "then a barrier", "COMPUTE_SHADER", "COPY/TRANSFER_READ", weaker={"from copies": {"src": "COPY"}}
        )
        commands.copy(a, b)
    rig.submit(commands, waits=rig.operation("the wait", s, "COMPUTE_SHADER"), sync2=True)


@scenario(
    without={
        "the first": [race("READ_RACING_WRITE", COPY, FILL)],
        "the second": [race("READ_RACING_WRITE", COPY, FILL)],
    },
    queues=["COMPUTE", "TRANSFER"],
    rule="a-semaphore-is-a-memory-dependency",
)
def scenario_two_producers(rig: Rig) -> None:
    """A batch that reads what two queues wrote waits for both."""
    a, b, c = rig.buffer(), rig.buffer(), rig.buffer(512)
    first, second = rig.semaphore(), rig.semaphore()
    main, one, other = rig.queues
    rig.submit(_fill(rig, a, 0x11111111, one), signals=[SemaphoreUse(first)])
    rig.submit(_fill(rig, b, 0x22222222, other), signals=[SemaphoreUse(second)])
    with rig.commands(queue=main) as copies:
        copies.copy(a, c, (0, 0, 256))
        copies.copy(b, c, (0, 256, 256))
    waits = [*rig.operation("the first", first, "ALL_TRANSFER"), *rig.operation("the second", second, "ALL_TRANSFER")]
    rig.submit(copies, waits=waits)


@scenario(
    without={
        "upload": [race("READ_RACING_WRITE", DISPATCH, COPY)],
        "result": [race("READ_RACING_WRITE", COPY, DISPATCH)],
    },
    queues=["TRANSFER", "COMPUTE"],
    rule="a-semaphore-is-a-memory-dependency",
)
def scenario_upload_compute_read_back(rig: Rig) -> None:
    """Upload on a transfer queue, work on a compute queue, read back on the first: a semaphore each."""
    source, words, result, host = rig.buffer(), rig.buffer(), rig.buffer(), rig.buffer()
    uploaded, done = rig.semaphore(), rig.semaphore()
    main, transfer, compute = rig.queues
    rig.host_write(source, bytes(range(256)))
    pipeline = rig.compute("copy_words")
    with rig.commands(queue=compute) as work:
        work.bind(pipeline, rig.descriptors(pipeline, b0=words, b1=result))
        work.dispatch()
    rig.submit(_copy(rig, source, words, transfer), signals=[SemaphoreUse(uploaded, "COPY")], sync2=True)
    waits = rig.operation("upload", uploaded, "COMPUTE_SHADER")
    rig.submit(work, waits=waits, signals=[SemaphoreUse(done, "COMPUTE_SHADER")], sync2=True)
    rig.submit(_copy(rig, result, host, main), waits=rig.operation("result", done, "COPY"), sync2=True)


@scenario(
    without={"first": WRITES_RACE, "second": WRITES_RACE},
    queues=["TRANSFER"],
    rule="a-wait-takes-a-binary-semaphore-back",
)
def scenario_semaphore_there_and_back(rig: Rig) -> None:
    """Batches of one submit take turns with another queue."""
    a, there, back = rig.buffer(), rig.semaphore(), rig.semaphore()
    main, other = rig.queues
    rig.submit(_fill(rig, a, 1, main), signals=[SemaphoreUse(there)])
    rig.submit(_fill(rig, a, 2, other), waits=rig.operation("first", there), signals=[SemaphoreUse(back)])
    rig.submit_batches(RigBatch([_fill(rig, a, 3, main)], rig.operation("second", back)))


@scenario(
    without={"the wait": [race("WRITE_RACING_WRITE", BARRIER, CLEAR)]},
    weakened={"the wait / at attachments": [write_after_write(BARRIER, CLEAR)]},
    queues=["GRAPHICS"],
    rule="none-before-a-transition-is-the-top-of-the-pipe",
)
def scenario_transition_after_a_wait_elsewhere(rig: Rig) -> None:
    """A transition with no first stages follows a wait of all commands on another queue, and no narrower one."""
    image, b, s = rig.image(), rig.buffer(16 * 16 * 4), rig.semaphore()
    _, other = rig.queues
    with rig.commands() as clears:
        clears.transition(image)
        clears.clear_color(image)
    rig.submit(clears, signals=[SemaphoreUse(s)])
    with rig.commands(queue=other) as reads:
        reads.transition(image, src="NONE", dst="COPY/TRANSFER_READ", old="GENERAL", new="TRANSFER_SRC_OPTIMAL")
        reads.image_to_buffer(image, b, at="TRANSFER_SRC_OPTIMAL")
    weaker = {"at attachments": {"stages": "COLOR_ATTACHMENT_OUTPUT"}}
    rig.submit(reads, waits=rig.operation("the wait", s, weaker=weaker), sync2=True)


@scenario(
    without={"the wait": [race("READ_RACING_WRITE", TO_BUFFER, BARRIER)]},
    weakened={"the signal / of blits": [read_after_write(TO_BUFFER, BARRIER)]},
    queues=["TRANSFER"],
    rule="all-commands-is-everything",
)
def scenario_transition_before_a_signal_elsewhere(rig: Rig) -> None:
    """A signal of all commands covers a transition that no stage waits for."""
    image, b, s = rig.image(), rig.buffer(16 * 16 * 4), rig.semaphore()
    _, other = rig.queues
    with rig.commands() as clears:
        clears.transition(image)
        clears.clear_color(image)
        clears.transition(image, src="CLEAR/TRANSFER_WRITE", dst="NONE", old="GENERAL", new="TRANSFER_SRC_OPTIMAL")
    with rig.commands(queue=other) as reads:
        reads.image_to_buffer(image, b, at="TRANSFER_SRC_OPTIMAL")
    rig.submit(clears, signals=rig.operation("the signal", s, weaker={"of blits": {"stages": "BLIT"}}), sync2=True)
    rig.submit(reads, waits=rig.operation("the wait", s, "COPY"), sync2=True)
