"""Queries instead of waits: a host that asks until a fence is signaled or a value is reached has waited for it."""

from typing import Any

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer
from vkharness.rig.queues import SemaphoreUse
from vkharness.suite import Rig, read_after_write, scenario, write_after_read

UNSEEN = [read_after_write("host read", "vkCmdFillBuffer")]
COPIED = [write_after_read("host write", "vkCmdCopyBuffer")]


def _filled(rig: Rig, target: RigBuffer, value: int) -> Commands:
    """A recorded fill with the dependency to the host."""
    with rig.commands() as commands:
        commands.fill(target, value)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", "HOST/HOST_READ")
    return commands


@scenario(
    without={"the wait": UNSEEN},
    weakened={"the wait / another fence": UNSEEN, "the wait / in vkWaitForFences": []},
    rule="a-host-read-needs-a-dependency-and-a-wait",
)
def scenario_host_reads_once_a_fence_is_signaled(rig: Rig) -> None:
    """vkGetFenceStatus tells of a signaled fence what a wait for it tells."""
    a, earlier, fence = rig.buffer(), rig.fence(), rig.fence()
    rig.submit_batches(fence=earlier)
    rig.submit(_filled(rig, a, 0x12121212), fence=fence)
    weaker: dict[str, dict[str, Any]] = {"another fence": {"fences": (earlier,)}, "in vkWaitForFences": {"how": "all"}}
    rig.host_wait("the wait", "status", fence, weaker=weaker)
    rig.host_read(a)


@scenario(
    without={"the wait": COPIED},
    weakened={"the wait / another fence": COPIED},
    rule="a-host-write-waits-for-the-device",
)
def scenario_host_writes_once_a_fence_is_signaled(rig: Rig) -> None:
    """The host may write what a copy read once it was told that the fence of the copy is signaled."""
    a, earlier, fence = rig.buffer(), rig.fence(), rig.fence()
    rig.submit_batches(fence=earlier)
    with rig.commands() as commands:
        commands.copy(a, rig.buffer())
    rig.submit(commands, fence=fence)
    rig.host_wait("the wait", "status", fence, weaker={"another fence": {"fences": (earlier,)}})
    rig.host_write(a, bytes(range(1, 129)))


@scenario(
    without={"the wait": UNSEEN},
    weakened={"the wait / for a value before": UNSEEN, "the wait / in vkWaitSemaphores": []},
    rule="a-host-read-needs-a-dependency-and-a-wait,a-host-wait-for-a-value-is-a-fence",
)
def scenario_host_reads_once_a_value_is_reached(rig: Rig) -> None:
    """vkGetSemaphoreCounterValue tells of a value that was reached what a wait for it tells."""
    a, t = rig.buffer(), rig.timeline()
    rig.submit(signals=[SemaphoreUse(t, value=1)], sync2=True)
    rig.submit(_filled(rig, a, 0x13131313), signals=[SemaphoreUse(t, value=2)], sync2=True)
    weaker: dict[str, dict[str, Any]] = {
        "for a value before": {"values": ((t, 1),), "how": "all"},
        "in vkWaitSemaphores": {"how": "all"},
    }
    rig.host_wait_timeline("the wait", (t, 2), how="counter", weaker=weaker)
    rig.host_read(a)


@scenario(without={"the wait": COPIED}, rule="a-host-write-waits-for-the-device,a-host-wait-for-a-value-is-a-fence")
def scenario_host_writes_once_a_value_is_reached(rig: Rig) -> None:
    """The host may write what a copy read once the counter has the value that the copy's batch signals."""
    a, t = rig.buffer(), rig.timeline()
    with rig.commands() as commands:
        commands.copy(a, rig.buffer())
    rig.submit(commands, signals=[SemaphoreUse(t, value=1)], sync2=True)
    rig.host_wait_timeline("the wait", (t, 1), how="counter")
    rig.host_write(a, bytes(range(1, 129)))
