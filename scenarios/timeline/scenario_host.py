"""The host and timeline semaphores: what waiting for a value, or reading it, tells."""

from vkharness.device.headless import DeviceQueue
from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer
from vkharness.rig.queues import SemaphoreUse
from vkharness.suite import Rig, race, scenario, write_after_read, write_after_write

COPY, FILL = "vkCmdCopyBuffer", "vkCmdFillBuffer"
WAW = [write_after_write(FILL, FILL)]
COPIED = [write_after_read("host write", COPY)]
WRITES_RACE = [race("WRITE_RACING_WRITE", FILL, FILL)]


def _fill(rig: Rig, target: RigBuffer, value: int, queue: DeviceQueue | None = None) -> Commands:
    """A recorded fill."""
    with rig.commands(queue=queue) as commands:
        commands.fill(target, value)
    return commands


@scenario(
    without={"the wait": WAW},
    weakened={
        "the wait / for a value before": WAW,
        "the wait / any of two": WAW,
        "the wait / all of two": [],
        "the wait / by the counter": [],
    },
    rule="a-host-wait-for-a-value-is-a-fence",
)
def scenario_next_submit_after_a_value(rig: Rig) -> None:
    """After the host waited for a value, what was signaled with it needs no barrier; any of several tells nothing."""
    a, b, t, u = rig.buffer(), rig.buffer(), rig.timeline(), rig.timeline()
    rig.submit(_fill(rig, b, 1), signals=[SemaphoreUse(t, value=1), SemaphoreUse(u, value=1)], sync2=True)
    rig.submit(_fill(rig, a, 0x11111111), signals=[SemaphoreUse(t, value=2)], sync2=True)
    rig.host_wait_timeline(
        "the wait",
        (t, 2),
        weaker={
            "for a value before": {"values": ((t, 1),)},
            "any of two": {"how": "any", "values": ((u, 1), (t, 2))},
            "all of two": {"values": ((u, 1), (t, 2))},
            "by the counter": {"how": "counter"},
        },
    )
    rig.submit(_fill(rig, a, 0x22222222), sync2=True)


@scenario(
    without={"the wait": COPIED},
    weakened={"the wait / for a value before": COPIED, "the wait / by the counter": []},
    rule="a-host-wait-for-a-value-is-a-fence,a-host-write-waits-for-the-device",
)
def scenario_host_write_after_a_value(rig: Rig) -> None:
    """The host may write what a batch read once the batch's value is reached."""
    a, b, c, t = rig.buffer(), rig.buffer(), rig.buffer(), rig.timeline()
    rig.submit(_fill(rig, c, 1), signals=[SemaphoreUse(t, value=1)], sync2=True)
    with rig.commands() as copies:
        copies.copy(a, b)
    rig.submit(copies, signals=[SemaphoreUse(t, value=2)], sync2=True)
    rig.host_wait_timeline(
        "the wait", (t, 2), weaker={"for a value before": {"values": ((t, 1),)}, "by the counter": {"how": "counter"}}
    )
    rig.host_write(a, bytes(range(1, 129)))
    rig.submit()


@scenario(
    weakened={"the signal / of clears": COPIED, "the signal / of everything": []},
    rule="a-value-covers-what-its-signal-covers",
)
def scenario_host_waits_for_a_value_of_some_stages(rig: Rig) -> None:
    """A value tells the host that what is in the scope of its signal is complete, and nothing of other stages."""
    a, b, t = rig.buffer(), rig.buffer(), rig.timeline()
    first = rig.choose("the signal", "COPY", {"of clears": "CLEAR", "of everything": "ALL_COMMANDS"})
    with rig.commands() as copies:
        copies.copy(a, b)
    rig.submit(copies, signals=[SemaphoreUse(t, first, value=1)], sync2=True)
    rig.host_wait_timeline("", (t, 1))
    rig.host_write(a, bytes(range(1, 129)))


@scenario(
    without={"the wait": WRITES_RACE, "between the queues": WRITES_RACE},
    weakened={"the wait / for a value before": WRITES_RACE},
    queues=["COMPUTE", "TRANSFER"],
    rule="a-host-wait-for-a-value-is-a-fence",
)
def scenario_value_that_covers_two_queues(rig: Rig) -> None:
    """A value covers the queues that its own queue had waited for before it signaled, too."""
    a, s, t = rig.buffer(), rig.semaphore(), rig.timeline()
    first, second, third = rig.queues
    rig.submit(queue=second, signals=[SemaphoreUse(t, value=1)], sync2=True)
    rig.submit(_fill(rig, a, 0x11111111, first), signals=[SemaphoreUse(s)], sync2=True)
    rig.submit(
        queue=second, waits=rig.operation("between the queues", s), signals=[SemaphoreUse(t, value=2)], sync2=True
    )
    rig.host_wait_timeline("the wait", (t, 2), weaker={"for a value before": {"values": ((t, 1),)}})
    rig.submit(_fill(rig, a, 0x22222222, third), sync2=True)


@scenario(without={"the wait": WAW}, rule="a-host-signal-orders-no-device-work")
def scenario_device_waits_for_the_host(rig: Rig) -> None:
    """A batch held back by the host is ordered with what the host waited for, and with nothing else."""
    a, t, done = rig.buffer(), rig.timeline(), rig.timeline()
    rig.submit(_fill(rig, a, 0x11111111), signals=[SemaphoreUse(done, value=1)], sync2=True)
    rig.host_wait_timeline("the wait", (done, 1))
    rig.host_signal(t, 1)
    rig.submit(_fill(rig, a, 0x22222222), waits=[SemaphoreUse(t, "CLEAR", 1)], sync2=True)


@scenario(
    without={"the host's wait": WAW, "the batch's wait": WAW},
    weakened={"the batch's wait / at copies": WAW},
    rule="a-waiting-batch-knows-what-its-submit-knew",
)
def scenario_host_learns_while_a_batch_waits(rig: Rig) -> None:
    """The host's knowledge after a submit reaches the batch through the host's signal, in the stages of its wait."""
    a, t, done = rig.buffer(), rig.timeline(), rig.timeline()
    rig.submit(_fill(rig, a, 0x11111111), signals=[SemaphoreUse(done, value=1)], sync2=True)
    waits = rig.operation("the batch's wait", t, "CLEAR", 1, weaker={"at copies": {"stages": "COPY"}})
    rig.submit(_fill(rig, a, 0x22222222), waits=waits, sync2=True)
    rig.host_wait_timeline("the host's wait", (done, 1))
    rig.host_signal(t, 1)
