"""Reads and writes of buffers by transfer commands."""

from harness.scenario import Rig, read_after_write, scenario


@scenario(
    without={"fill before copy": [read_after_write("vkCmdCopyBuffer", "vkCmdFillBuffer")]},
    weakened={
        "fill before copy / execution only": [read_after_write("vkCmdCopyBuffer", "vkCmdFillBuffer")],
    },
    rule="most recent access",
)
def scenario_copy_reads_a_filled_buffer(rig: Rig) -> None:
    """A copy that reads what a fill wrote needs a memory dependency, not just an execution dependency."""
    a, b = rig.buffer(), rig.buffer()
    with rig.commands() as commands:
        commands.fill(a, 0x11223344)
        commands.barrier(
            "fill before copy",
            "CLEAR/TRANSFER_WRITE",
            "COPY/TRANSFER_READ",
            weaker={"execution only": {"src": "CLEAR", "dst": "COPY"}},
        )
        commands.copy(a, b)
    rig.submit(commands)
