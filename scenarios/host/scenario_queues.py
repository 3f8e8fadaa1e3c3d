"""Host waits and several queues: a fence or an idle queue covers what its queue had waited for, and no more."""

from vkharness.device.headless import DeviceQueue
from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer
from vkharness.rig.queues import SemaphoreUse
from vkharness.suite import Rig, race, scenario, write_after_read

COPY, FILL = "vkCmdCopyBuffer", "vkCmdFillBuffer"
WRITES_RACE = [race("WRITE_RACING_WRITE", FILL, FILL)]
COPIED = [write_after_read("host write", COPY)]


def _fill(rig: Rig, target: RigBuffer, value: int, queue: DeviceQueue | None = None) -> Commands:
    """A recorded fill."""
    with rig.commands(queue=queue) as commands:
        commands.fill(target, value)
    return commands


@scenario(
    without={"the host waits": WRITES_RACE, "between the queues": WRITES_RACE},
    weakened={"the host waits / status": [], "the host waits / device": []},
    queues=["COMPUTE", "TRANSFER"],
    rule="a-fence-covers-what-its-queue-had-waited-for",
)
def scenario_fence_that_covers_another_queue(rig: Rig) -> None:
    """A fence of a queue that waited for another one covers that one's work for a third."""
    a, s, fence = rig.buffer(), rig.semaphore(), rig.fence()
    first, second, third = rig.queues
    rig.submit(_fill(rig, a, 0x11111111, first), signals=[SemaphoreUse(s)])
    rig.submit(queue=second, waits=rig.operation("between the queues", s), fence=fence)
    rig.host_wait("the host waits", "all", fence, weaker={"status": {"how": "status"}, "device": {"how": "device"}})
    rig.submit(_fill(rig, a, 0x22222222, third))


@scenario(
    weakened={"what / the later buffer": WRITES_RACE},
    queues=["COMPUTE", "TRANSFER"],
    rule="a-fence-covers-what-its-queue-had-waited-for",
)
def scenario_fence_that_covers_a_part(rig: Rig) -> None:
    """Work of a queue after its signal is in no wait for the queue that waited for the signal."""
    a, b, s, fence = rig.buffer(), rig.buffer(), rig.semaphore(), rig.fence()
    first, second, third = rig.queues
    rig.submit(_fill(rig, a, 0x11111111, first), signals=[SemaphoreUse(s)])
    rig.submit(_fill(rig, b, 0x11111111, first))
    rig.submit(queue=second, waits=[SemaphoreUse(s)], fence=fence)
    rig.host_wait("", "all", fence)
    earlier = rig.choose("what", True, {"the later buffer": False})
    rig.submit(_fill(rig, a if earlier else b, 0x22222222, third))


@scenario(
    without={"the host waits": WRITES_RACE},
    weakened={"the host waits / for the other fence": WRITES_RACE, "the host waits / for both": []},
    queues=["TRANSFER"],
    rule="a-fence-covers-what-its-queue-had-waited-for",
)
def scenario_fence_of_the_other_queue(rig: Rig) -> None:
    """A fence of one queue says nothing of another that it did not wait for."""
    a, b = rig.buffer(), rig.buffer()
    fence, other_fence = rig.fence(), rig.fence()
    _, other = rig.queues
    rig.submit(_fill(rig, a, 0x11111111), fence=fence)
    rig.submit(_fill(rig, b, 0x11111111, other), fence=other_fence)
    rig.host_wait(
        "the host waits",
        "all",
        fence,
        weaker={"for the other fence": {"fences": (other_fence,)}, "for both": {"fences": (fence, other_fence)}},
    )
    rig.submit(_fill(rig, a, 0x22222222, other))


@scenario(
    without={"the host waits": WRITES_RACE},
    weakened={"the host waits / for one queue": []},
    queues=["TRANSFER"],
    rule="an-idle-queue-is-complete",
)
def scenario_idle_device(rig: Rig) -> None:
    """An idle device orders all queues with what follows; so does the queue alone that did the work."""
    a = rig.buffer()
    _, other = rig.queues
    rig.submit(_fill(rig, a, 0x11111111))
    rig.host_wait("the host waits", "device", weaker={"for one queue": {"how": "queue"}})
    rig.submit(_fill(rig, a, 0x22222222, other))


@scenario(
    expects=WRITES_RACE,
    queues=["TRANSFER"],
    rule="a-fence-covers-what-its-queue-had-waited-for,an-idle-queue-is-complete",
)
def scenario_idle_queue_beside_a_busy_one(rig: Rig) -> None:
    """Waiting for one queue tells nothing of another."""
    a = rig.buffer()
    _, other = rig.queues
    rig.submit(_fill(rig, a, 0x11111111, other))
    rig.host_wait("", "queue")
    rig.submit(_fill(rig, a, 0x22222222))


@scenario(
    without={"the host waits": COPIED, "between the queues": COPIED},
    queues=["TRANSFER"],
    rule="a-fence-covers-what-its-queue-had-waited-for,a-host-write-waits-for-the-device",
)
def scenario_host_write_after_another_queues_fence(rig: Rig) -> None:
    """The host may write what one queue read when a fence of another, which waited for it, is signaled."""
    a, b, s, fence = rig.buffer(), rig.buffer(), rig.semaphore(), rig.fence()
    _, other = rig.queues
    with rig.commands() as copies:
        copies.copy(a, b)
    rig.submit(copies, signals=[SemaphoreUse(s)])
    rig.submit(queue=other, waits=rig.operation("between the queues", s), fence=fence)
    rig.host_wait("the host waits", "all", fence)
    rig.host_write(a, bytes(range(1, 129)))
    rig.submit(queue=other)
