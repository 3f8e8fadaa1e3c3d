"""Host waits: what the host knows to be complete conflicts with nothing that is submitted or written later."""

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer
from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

WAW = write_after_write("vkCmdFillBuffer", "vkCmdFillBuffer")
WAR = write_after_read("vkCmdFillBuffer", "vkCmdCopyBuffer")
RAW = read_after_write("vkCmdCopyBuffer", "vkCmdFillBuffer")
COPIED = write_after_read("host write", "vkCmdCopyBuffer")
NEW = bytes(range(1, 129))


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
    without={"the wait": [WAW]},
    weakened={
        "the wait / any of two": [WAW],
        "the wait / another fence": [WAW],
        "the wait / status": [],
        "the wait / queue": [],
        "the wait / device": [],
    },
    rule="a-fence-covers-everything-before-it,an-unsignaled-fence-says-nothing",
)
def scenario_next_submit_after_a_fence(rig: Rig) -> None:
    """After a wait for a submit's fence, the next submit needs no barrier; any of several fences tells nothing."""
    a, c = rig.buffer(), rig.buffer()
    other, fence = rig.fence(), rig.fence()
    rig.submit(_fill(rig, c, 1), fence=other)
    rig.submit(_fill(rig, a, 0x11111111), fence=fence)
    rig.host_wait(
        "the wait",
        "all",
        fence,
        weaker={
            "any of two": {"how": "any", "fences": (other, fence)},
            "another fence": {"fences": (other,)},
            "status": {"how": "status"},
            "queue": {"how": "queue"},
            "device": {"how": "device"},
        },
    )
    rig.submit(_fill(rig, a, 0x22222222))


@scenario(
    without={"the wait": [COPIED]},
    weakened={
        "the wait / any of two": [COPIED],
        "the wait / earlier fence": [COPIED],
        "the wait / later fence": [],
        "the wait / all three": [],
        "the wait / status": [],
        "the wait / queue": [],
        "the wait / device": [],
    },
    rule="a-fence-covers-everything-before-it,a-host-write-waits-for-the-device",
)
def scenario_host_write_after_a_fence(rig: Rig) -> None:
    """The host may write what a submit reads once its fence, or a later one of the queue, is signaled."""
    a, b, c = rig.buffer(), rig.buffer(), rig.buffer()
    earlier, fence, later = rig.fence(), rig.fence(), rig.fence()
    rig.submit(_fill(rig, c, 2), fence=earlier)
    rig.submit(_copy(rig, a, b), fence=fence, sync2=True)
    rig.submit_batches(fence=later)
    rig.host_wait(
        "the wait",
        "all",
        fence,
        weaker={
            "any of two": {"how": "any", "fences": (earlier, fence)},
            "earlier fence": {"fences": (earlier,)},
            "later fence": {"fences": (later,)},
            "all three": {"fences": (earlier, fence, later)},
            "status": {"how": "status"},
            "queue": {"how": "queue"},
            "device": {"how": "device"},
        },
    )
    rig.host_write(a, NEW)


@scenario(
    without={"the wait": [WAR]},
    weakened={"the wait / any of two": [WAR], "the wait / device": []},
    rule="a-fence-covers-everything-before-it",
)
def scenario_write_after_a_read_that_was_waited_for(rig: Rig) -> None:
    """A wait clears reads: what they read may be written with no barrier."""
    a, b = rig.buffer(), rig.buffer()
    first, second = rig.fence(), rig.fence()
    rig.submit(_copy(rig, a, b), fence=first)
    rig.submit_batches(fence=second)
    rig.host_wait("the wait", "all", first, second, weaker={"any of two": {"how": "any"}, "device": {"how": "device"}})
    rig.submit(_fill(rig, a, 0x33333333))


@scenario(
    without={"the wait": [RAW]},
    weakened={"the wait / earlier fence": [RAW]},
    rule="a-fence-covers-everything-before-it",
)
def scenario_fence_of_a_later_submit(rig: Rig) -> None:
    """A fence covers everything submitted before it, nothing after."""
    a, b, c = rig.buffer(), rig.buffer(), rig.buffer()
    earlier, later = rig.fence(), rig.fence()
    rig.submit_batches(fence=earlier)
    rig.submit(_fill(rig, a, 0x44444444))
    rig.submit(_fill(rig, c, 0x55555555), fence=later, sync2=True)
    rig.host_wait("the wait", "all", later, weaker={"earlier fence": {"fences": (earlier,)}})
    rig.submit(_copy(rig, a, b))


@scenario(without={"second before third": [WAW]}, rule="a-fence-covers-everything-before-it")
def scenario_wait_between_submits(rig: Rig) -> None:
    """A wait after the first submit does nothing for the second."""
    a = rig.buffer()
    rig.submit(_fill(rig, a, 0x01010101))
    rig.wait()
    rig.submit(_fill(rig, a, 0x02020202))
    with rig.submission() as third:
        third.barrier("second before third", "ALL_TRANSFER/TRANSFER_WRITE", "ALL_TRANSFER/TRANSFER_WRITE", sync2=False)
        third.fill(a, 0x03030303)


@scenario(
    without={"second wait": [WAW]},
    weakened={"second wait / any of two": [WAW], "second wait / status": []},
    rule="an-unsignaled-fence-says-nothing",
)
def scenario_fence_reset_and_used_again(rig: Rig) -> None:
    """A fence that is reset stands for its next submit only."""
    a = rig.buffer()
    fence, other = rig.fence(), rig.fence()
    rig.submit_batches(fence=other)
    rig.submit(_fill(rig, a, 0x10101010), fence=fence)
    rig.host_wait("first wait", "all", fence)
    rig.reset_fence(fence)
    rig.submit(_fill(rig, a, 0x20202020), fence=fence)
    rig.host_wait(
        "second wait",
        "all",
        fence,
        weaker={"any of two": {"how": "any", "fences": (other, fence)}, "status": {"how": "status"}},
    )
    rig.submit(_fill(rig, a, 0x30303030))


@scenario(without={"between": [WAW]}, rule="an-unsignaled-fence-says-nothing")
def scenario_status_of_an_unsignaled_fence(rig: Rig) -> None:
    """Asking for a fence that is not signaled is no wait."""
    a = rig.buffer()
    fence = rig.fence()
    rig.submit(_fill(rig, a, 0x40404040))
    rig.signaled(fence)
    with rig.submission() as second:
        second.barrier("between", "ALL_TRANSFER/TRANSFER_WRITE", "ALL_TRANSFER/TRANSFER_WRITE")
        second.fill(a, 0x50505050)


@scenario(
    without={"the wait": [write_after_write("vkCmdDispatch", "vkCmdDispatch")]},
    weakened={"the wait / device": [], "the wait / any of two": [write_after_write("vkCmdDispatch", "vkCmdDispatch")]},
    rule="a-fence-covers-everything-before-it",
)
def scenario_dispatches_apart_by_a_wait(rig: Rig) -> None:
    """A wait is as good for shaders as for transfers."""
    a = rig.buffer()
    pipeline = rig.compute("fill_words")
    descriptors = rig.descriptors(pipeline, b0=a)
    first, second = rig.fence(), rig.fence()
    for fence, value in ((first, 0x100), (second, 0x900)):
        with rig.commands() as commands:
            commands.bind(pipeline, descriptors)
            commands.push_constants(pipeline, value)
            commands.dispatch()
        rig.submit(commands, fence=fence, sync2=True)
        if fence is first:
            unused = rig.fence()
            rig.submit_batches(fence=unused)
            rig.host_wait(
                "the wait",
                "all",
                first,
                weaker={"device": {"how": "device"}, "any of two": {"how": "any", "fences": (first, unused)}},
            )
