"""Availability, visibility and execution in parts: what chains from command to command and what does not."""

from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

FILL, UPDATE, COPY, COPY2 = "vkCmdFillBuffer", "vkCmdUpdateBuffer", "vkCmdCopyBuffer", "vkCmdCopyBuffer2"
BYTES = bytes(range(256))


@scenario(
    without={"made available": [write_after_write(COPY, COPY)], "made visible": [write_after_write(COPY, COPY)]},
    weakened={
        "made available / no first access": [write_after_write(COPY, COPY)],
        "made visible / not chained": [write_after_write(COPY, COPY)],
        "made visible / to reads": [write_after_write(COPY, COPY)],
    },
    rule="availability-and-visibility-may-be-apart",
)
def scenario_availability_and_visibility_may_be_apart(rig: Rig) -> None:
    """One barrier makes a write available, a second one visible; the second needs no first access, but must chain."""
    a, b, c = rig.buffer(data=BYTES), rig.buffer(), rig.buffer()
    with rig.submission() as commands:
        commands.copy(a, c)
        commands.barrier("made available", "COPY/TRANSFER_WRITE", "COPY", weaker={"no first access": {"src": "COPY"}})
        commands.barrier(
            "made visible",
            "COPY",
            "COPY/TRANSFER_WRITE",
            weaker={"not chained": {"src": "BLIT"}, "to reads": {"dst": "COPY/TRANSFER_READ"}},
        )
        commands.copy(b, c)


@scenario(
    without={"fill to compute": [read_after_write(COPY, FILL)], "compute to copy": [read_after_write(COPY, FILL)]},
    weakened={
        "fill to compute / to blit": [read_after_write(COPY, FILL)],
        "compute to copy / from blit": [read_after_write(COPY, FILL)],
    },
    rule="a-chain-needs-stages-that-meet,availability-and-visibility-may-be-apart",
)
def scenario_memory_dependencies_chain_through_a_stage(rig: Rig) -> None:
    """An available write travels through a stage that does nothing, if the stages of the two links meet."""
    a, b = rig.buffer(), rig.buffer()
    with rig.submission() as commands:
        commands.fill(a, 0x13571357)
        commands.barrier(
            "fill to compute", "CLEAR/TRANSFER_WRITE", "COMPUTE_SHADER", weaker={"to blit": {"dst": "BLIT"}}
        )
        commands.barrier(
            "compute to copy", "COMPUTE_SHADER", "COPY/TRANSFER_READ", buffer=a, weaker={"from blit": {"src": "BLIT"}}
        )
        commands.copy(a, b)


@scenario(
    without={"fill before copy": [read_after_write(COPY, FILL)]},
    weakened={"fill before copy / one command": [read_after_write(COPY, FILL)]},
    rule="barriers-of-one-command-are-independent",
)
def scenario_memory_barriers_of_one_command_do_not_chain(rig: Rig) -> None:
    """The two halves of a memory dependency work as two commands and not as two barriers of one."""
    a, b = rig.buffer(), rig.buffer()
    first = {"src": "CLEAR/TRANSFER_WRITE", "dst": "COMPUTE_SHADER"}
    second = {"src": "COMPUTE_SHADER", "dst": "COPY/TRANSFER_READ"}
    with rig.submission() as commands:
        commands.fill(a, 0x24682468)
        commands.barriers("fill before copy", first, weaker={"one command": [first, second]})
        commands.barriers("fill before copy", second, weaker={"one command": []})
        commands.copy(a, b)


@scenario(
    without={"copy before fill": [write_after_read(FILL, COPY)]},
    weakened={"copy before fill / one command": [write_after_read(FILL, COPY)]},
    rule="barriers-of-one-command-are-independent",
)
def scenario_execution_barriers_of_one_command_do_not_chain(rig: Rig) -> None:
    """COPY to COMPUTE and COMPUTE to CLEAR order a fill after a copy as two commands and not as one."""
    a, b = rig.buffer(data=BYTES), rig.buffer()
    first = {"src": "COPY/TRANSFER_READ", "dst": "COMPUTE_SHADER", "buffer": a}
    second = {"src": "COMPUTE_SHADER", "dst": "CLEAR/TRANSFER_WRITE", "buffer": a}
    with rig.submission() as commands:
        commands.copy(a, b)
        commands.barriers("copy before fill", first, weaker={"one command": [first, second]})
        commands.barriers("copy before fill", second, weaker={"one command": []})
        commands.fill(a, 0x0BADCAFE)


@scenario(
    without={"to anything": [read_after_write(COPY2, UPDATE)], "for the buffer": [read_after_write(COPY2, UPDATE)]},
    weakened={
        "to anything / execution only": [read_after_write(COPY2, UPDATE)],
        "for the buffer / other buffer": [read_after_write(COPY2, UPDATE)],
    },
    rule="a-chain-needs-stages-that-meet",
)
def scenario_global_barrier_chains_with_a_buffer_barrier(rig: Rig) -> None:
    """A global barrier makes a write available and a buffer barrier makes it visible for that buffer alone."""
    a, b = rig.buffer(), rig.buffer()
    with rig.submission() as commands:
        commands.update(a, BYTES)
        commands.barrier(
            "to anything",
            "ALL_TRANSFER/MEMORY_WRITE",
            "ALL_TRANSFER",
            sync2=False,
            weaker={"execution only": {"src": "ALL_TRANSFER"}},
        )
        commands.barrier(
            "for the buffer", "ALL_TRANSFER", "COPY/TRANSFER_READ", buffer=a, weaker={"other buffer": {"buffer": b}}
        )
        commands.copy(a, b, v2=True)


@scenario(
    without={
        "clear to copy": [read_after_write("vkCmdBlitImage", "vkCmdClearColorImage")],
        "copy to blit": [read_after_write("vkCmdBlitImage", "vkCmdClearColorImage")],
    },
    weakened={"copy to blit / from clear": [read_after_write("vkCmdBlitImage", "vkCmdClearColorImage")]},
    rule="a-chain-needs-stages-that-meet",
)
def scenario_image_barrier_chains_with_a_global_barrier(rig: Rig) -> None:
    """An image barrier into COPY and a global barrier from COPY to BLIT make one dependency."""
    a, b = rig.image(), rig.image(extent=(8, 8, 1))
    with rig.submission() as commands:
        commands.transition(a, b)
        commands.clear_color(a, 0x5A5A5A5A)
        commands.barrier("clear to copy", "CLEAR/TRANSFER_WRITE", "COPY", image=a)
        commands.barrier("copy to blit", "COPY", "BLIT/TRANSFER_READ", weaker={"from clear": {"src": "CLEAR"}})
        commands.blit(a, b)


@scenario(
    without={
        "copy to compute": [write_after_read(UPDATE, COPY)],
        "compute to blit": [write_after_read(UPDATE, COPY)],
        "blit to clear": [write_after_read(UPDATE, COPY)],
    },
    rule="a-chain-needs-stages-that-meet",
)
def scenario_execution_chain_of_three_links(rig: Rig) -> None:
    """A write after a read is ordered by a chain of any length, and by none of its parts."""
    a, b = rig.buffer(data=BYTES), rig.buffer()
    with rig.submission() as commands:
        commands.copy(a, b)
        commands.barrier("copy to compute", "COPY", "COMPUTE_SHADER")
        commands.barrier("compute to blit", "COMPUTE_SHADER", "BLIT")
        commands.barrier("blit to clear", "BLIT", "CLEAR")
        commands.update(a, bytes(256))


@scenario(
    without={"fill before copy": [read_after_write(COPY, FILL)]},
    weakened={
        "fill before copy / execution only": [read_after_write(COPY, FILL)],
        "fill before copy / to reads of blits": [read_after_write(COPY, FILL)],
    },
    rule="barriers-of-one-command-add-up",
)
def scenario_repeating_a_barrier_adds_nothing(rig: Rig) -> None:
    """A barrier that is recorded three times does what it does once; three weak ones make no strong one."""
    a, b = rig.buffer(), rig.buffer()
    with rig.submission() as commands:
        commands.fill(a, 0x10203040)
        for _ in range(3):
            commands.barrier(
                "fill before copy",
                "CLEAR/TRANSFER_WRITE",
                "COPY/TRANSFER_READ",
                weaker={
                    "execution only": {"src": "CLEAR", "dst": "COPY"},
                    "to reads of blits": {"dst": "BLIT/TRANSFER_READ"},
                },
            )
        commands.copy(a, b)
