"""Wait before signal: batches that are submitted before what they wait for."""

from vkharness.device.headless import DeviceQueue
from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer
from vkharness.rig.queues import SemaphoreUse
from vkharness.suite import Rig, race, scenario, write_after_write

COPY, FILL = "vkCmdCopyBuffer", "vkCmdFillBuffer"
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


@scenario(without={"the wait": WRITE_RACES_READ}, queues=["TRANSFER"], rule="a-wait-may-be-submitted-before-its-signal")
def scenario_copy_submitted_before_the_fill(rig: Rig) -> None:
    """The wait may be submitted before the signal, and orders as well."""
    a, b, t = rig.buffer(), rig.buffer(), rig.timeline()
    _, other = rig.queues
    rig.submit(_copy(rig, a, b, other), waits=rig.operation("the wait", t, "COPY", 1), sync2=True)
    rig.submit(_fill(rig, a, 0x11111111), signals=[SemaphoreUse(t, value=1)], sync2=True)


@scenario(
    without={"the second wait": WRITES_RACE},
    queues=["TRANSFER"],
    rule="a-wait-may-be-submitted-before-its-signal,queues-without-a-semaphore-race",
)
def scenario_third_submit_after_a_wait_before_signal(rig: Rig) -> None:
    """Work that a queue was given after its signal races with the batch that the signal let go."""
    a, t = rig.buffer(), rig.timeline()
    main, other = rig.queues
    rig.submit(
        _fill(rig, a, 0x11111111, other),
        waits=[SemaphoreUse(t, value=1)],
        signals=[SemaphoreUse(t, value=2)],
        sync2=True,
    )
    rig.submit(queue=main, signals=[SemaphoreUse(t, value=1)], sync2=True)
    rig.submit(_fill(rig, a, 0x22222222), waits=rig.operation("the second wait", t, "CLEAR", 2), sync2=True)


@scenario(
    weakened={"the wait / at the vertex shader": [write_after_write(FILL, FILL)]},
    queues=["GRAPHICS"],
    rule="a-wait-may-be-submitted-before-its-signal",
)
def scenario_stages_of_an_early_wait(rig: Rig) -> None:
    """An early wait protects its stages alone, like any other."""
    a, t = rig.buffer(), rig.timeline()
    _, other = rig.queues
    weaker = {"at the vertex shader": {"stages": "VERTEX_SHADER"}}
    rig.submit(
        _fill(rig, a, 0x11111111, other), waits=rig.operation("the wait", t, "CLEAR", 1, weaker=weaker), sync2=True
    )
    rig.submit(_fill(rig, a, 0x22222222), signals=[SemaphoreUse(t, value=1)], sync2=True)


@scenario(without={"the wait": WRITE_RACES_READ}, queues=["TRANSFER"], rule="a-wait-may-be-submitted-before-its-signal")
def scenario_later_batches_are_held_too(rig: Rig) -> None:
    """A batch that waits holds back the later ones of its queue when they are ordered behind it."""
    a, b, c, t = rig.buffer(), rig.buffer(), rig.buffer(), rig.timeline()
    _, other = rig.queues
    rig.submit(queue=other, waits=rig.operation("the wait", t, "COPY", 1), sync2=True)
    rig.submit(_copy(rig, a, b, other), sync2=True)
    rig.submit(_copy(rig, a, c, other), sync2=True)
    rig.submit(_fill(rig, a, 0x11111111), signals=[SemaphoreUse(t, value=1)], sync2=True)


@scenario(
    without={"in the one": WRITE_RACES_READ, "in the other": WRITE_RACES_READ},
    queues=["TRANSFER", "COMPUTE"],
    rule="one-signal-lets-several-waits-go",
)
def scenario_one_signal_for_two_waits(rig: Rig) -> None:
    """One signal lets go all batches that wait for its value or a lower one."""
    a, b, c, t = rig.buffer(), rig.buffer(), rig.buffer(), rig.timeline()
    _, one, other = rig.queues
    rig.submit(_copy(rig, a, b, one), waits=rig.operation("in the one", t, "COPY", 1), sync2=True)
    rig.submit(_copy(rig, a, c, other), waits=rig.operation("in the other", t, "COPY", 2), sync2=True)
    rig.submit(_fill(rig, a, 0x11111111), signals=[SemaphoreUse(t, value=2)], sync2=True)


@scenario(
    without={"second": WRITES_RACE, "third": READ_RACES},
    queues=["TRANSFER", "COMPUTE"],
    rule="semaphores-chain-through-queues,a-wait-may-be-submitted-before-its-signal",
)
def scenario_chain_submitted_backwards(rig: Rig) -> None:
    """Three queues, each waiting for the next one's value, submitted in reverse."""
    a, b, t = rig.buffer(), rig.buffer(), rig.timeline()
    first, second, third = rig.queues
    last = rig.operation("third", t, "COPY", 2)
    middle = rig.operation("second", t, "CLEAR", 1)
    if last:
        rig.submit(_copy(rig, a, b, third), waits=last, sync2=True)
    rig.submit(_fill(rig, a, 2, second), waits=middle, signals=[SemaphoreUse(t, value=2)] if middle else [], sync2=True)
    rig.submit(_fill(rig, a, 1, first), signals=[SemaphoreUse(t, value=1 if middle else 2)], sync2=True)
    if not last:
        rig.submit(_copy(rig, a, b, third), sync2=True)


@scenario(
    without={"the second wait": WRITE_RACES_READ}, queues=["TRANSFER"], rule="a-host-signal-orders-no-device-work"
)
def scenario_host_signal_orders_no_device_work(rig: Rig) -> None:
    """A signal by the host lets a batch go; the work of other queues stays unordered with it."""
    a, b, t = rig.buffer(), rig.buffer(), rig.timeline()
    _, other = rig.queues
    rig.submit(
        _copy(rig, a, b, other), waits=[SemaphoreUse(t, "COPY", 1)], signals=[SemaphoreUse(t, "COPY", 2)], sync2=True
    )
    rig.host_signal(t, 1)
    rig.submit(_fill(rig, a, 0x11111111), waits=rig.operation("the second wait", t, "CLEAR", 2), sync2=True)


@scenario(
    weakened={"who signals / the host": READ_RACES}, queues=["TRANSFER"], rule="a-host-signal-orders-no-device-work"
)
def scenario_who_signals(rig: Rig) -> None:
    """The value must come from the queue whose work is waited for: from the host it says nothing of that."""
    a, b, t = rig.buffer(), rig.buffer(), rig.timeline()
    _, other = rig.queues
    device = rig.choose("who signals", True, {"the host": False})
    rig.submit(_fill(rig, a, 0x11111111), signals=[SemaphoreUse(t, value=1)] if device else [], sync2=True)
    if not device:
        rig.host_signal(t, 1)
    rig.submit(_copy(rig, a, b, other), waits=[SemaphoreUse(t, "COPY", 1)], sync2=True)


@scenario(
    without={"there": WRITES_RACE, "back": WRITES_RACE, "there again": WRITES_RACE},
    queues=["TRANSFER"],
    rule="one-signal-lets-several-waits-go",
)
def scenario_two_queues_take_turns(rig: Rig) -> None:
    """One timeline lets two queues write one buffer in turn."""
    a, t = rig.buffer(), rig.timeline()
    main, other = rig.queues
    rig.submit(_fill(rig, a, 1, main), signals=[SemaphoreUse(t, value=1)], sync2=True)
    for value, name, queue in ((1, "there", other), (2, "back", main), (3, "there again", other)):
        waits = rig.operation(name, t, "CLEAR", value)
        rig.submit(_fill(rig, a, value + 1, queue), waits=waits, signals=[SemaphoreUse(t, value=value + 1)], sync2=True)


@scenario(
    without={"the wait": WRITES_RACE},
    weakened={"the wait / for the first value": WRITES_RACE},
    queues=["TRANSFER"],
    rule="the-first-value-waits-for-nothing",
)
def scenario_first_value_between_two_queues(rig: Rig) -> None:
    """A wait for the value that a timeline began with waits for no queue."""
    a, t = rig.buffer(), rig.timeline(5)
    _, other = rig.queues
    rig.submit(_fill(rig, a, 0x11111111), signals=[SemaphoreUse(t, value=6)], sync2=True)
    waits = rig.operation("the wait", t, "CLEAR", 6, weaker={"for the first value": {"value": 5}})
    rig.submit(_fill(rig, a, 0x22222222, other), waits=waits, sync2=True)
