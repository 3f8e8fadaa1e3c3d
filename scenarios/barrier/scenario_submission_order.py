"""Barriers between command buffers and submits of one queue: scopes are by submission order, not by command buffer."""

from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

FILL, UPDATE, COPY, COPY2 = "vkCmdFillBuffer", "vkCmdUpdateBuffer", "vkCmdCopyBuffer", "vkCmdCopyBuffer2"


@scenario(
    without={"before the second": [read_after_write(COPY, FILL)]},
    weakened={
        "before the second / execution only": [read_after_write(COPY, FILL)],
        "before the second / other bytes": [read_after_write(COPY, FILL)],
    },
    rule="barriers-reach-over-submits",
)
def scenario_barrier_reaches_back_over_command_buffers(rig: Rig) -> None:
    """A barrier at the start of the second command buffer covers the first one of the same submit."""
    a, b = rig.buffer(), rig.buffer()
    with rig.commands() as first:
        first.fill(a, 0x15151515)
    with rig.commands() as second:
        second.barrier(
            "before the second",
            "CLEAR/TRANSFER_WRITE",
            "COPY/TRANSFER_READ",
            buffer=a,
            weaker={"execution only": {"src": "CLEAR", "dst": "COPY"}, "other bytes": {"offset": 128}},
        )
        second.copy(a, b, (0, 0, 128))
    rig.submit(first, second)


@scenario(
    without={"after the first": [write_after_write(UPDATE, FILL)]},
    weakened={"after the first / execution only": [write_after_write(UPDATE, FILL)]},
    rule="barriers-reach-over-submits",
)
def scenario_barrier_reaches_forward_over_submits(rig: Rig) -> None:
    """A barrier at the end of one submit covers what the next submit does."""
    a = rig.buffer()
    with rig.commands() as first:
        first.fill(a, 0x51515151)
        first.barrier(
            "after the first",
            "CLEAR/TRANSFER_WRITE",
            "CLEAR/TRANSFER_WRITE",
            weaker={"execution only": {"src": "CLEAR", "dst": "CLEAR"}},
        )
    with rig.commands() as second:
        second.update(a, bytes(range(64)), 64)
    rig.submit(first)
    rig.submit(second, sync2=True)


@scenario(
    without={"alone": [write_after_read(FILL, COPY2)]},
    weakened={"alone / from clears": [write_after_read(FILL, COPY2)]},
    rule="barriers-reach-over-submits",
)
def scenario_barrier_alone_in_a_command_buffer(rig: Rig) -> None:
    """A command buffer that holds nothing but a barrier orders the submit before it and the one after it."""
    a, b = rig.buffer(data=bytes(range(256))), rig.buffer()
    with rig.commands() as first:
        first.copy(a, b, v2=True)
    with rig.commands() as middle:
        middle.barrier("alone", "COPY", "CLEAR", weaker={"from clears": {"src": "CLEAR"}})
    with rig.commands() as last:
        last.fill(a, 0x1A2B3C4D)
    rig.submit(first, sync2=True)
    rig.submit(middle, last)


@scenario(
    without={"in the first": [read_after_write(COPY, FILL)], "in the second": [read_after_write(COPY, FILL)]},
    weakened={"in the second / from blits": [read_after_write(COPY, FILL)]},
    rule="barriers-reach-over-submits,a-chain-needs-stages-that-meet,availability-and-visibility-may-be-apart",
)
def scenario_dependency_chain_crosses_a_submit(rig: Rig) -> None:
    """One submit ends by making a write available, the next begins by making it visible."""
    a, b = rig.buffer(), rig.buffer()
    with rig.commands() as first:
        first.fill(a, 0x2D2D2D2D)
        first.barrier("in the first", "CLEAR/TRANSFER_WRITE", "COPY")
    with rig.commands() as second:
        second.barrier("in the second", "COPY", "COPY/TRANSFER_READ", weaker={"from blits": {"src": "BLIT"}})
        second.copy(a, b)
    rig.submit(first)
    rig.submit(second)


@scenario(
    without={"at its end": [write_after_write(FILL, COPY)]},
    weakened={"at its end / over the first half": [write_after_write(FILL, COPY)]},
    rule="each-execution-counts",
)
def scenario_command_buffer_submitted_twice_meets_itself(rig: Rig) -> None:
    """The second execution of a command buffer needs a dependency on the first."""
    a, b = rig.buffer(), rig.buffer(data=bytes(range(256)))
    with rig.submission() as commands:
        commands.fill(a, 0x3E3E3E3E, 64, 64)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_WRITE")
        commands.copy(b, a, (0, 64, 64))
        commands.barrier(
            "at its end",
            "COPY/TRANSFER_WRITE",
            "CLEAR/TRANSFER_WRITE",
            weaker={"over the first half": {"buffer": a, "size": 96}},
        )
    rig.submit(commands)
