"""One secondary executed more than once, recorded again, and events across levels."""

from vkharness.suite import Rig, read_after_write, scenario, write_after_write

FILL, COPY, DISPATCH = "vkCmdFillBuffer", "vkCmdCopyBuffer", "vkCmdDispatch"
FILLED, READ, WRITTEN = "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ", "COPY/TRANSFER_WRITE"
STORED, LOADED = "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COMPUTE_SHADER/SHADER_STORAGE_READ"
LATE = [read_after_write(COPY, FILL)]
AGAIN = [read_after_write(COPY, COPY), write_after_write(COPY, COPY)]


@scenario(
    without={"one before the other": AGAIN},
    weakened={"one before the other / for reads": [write_after_write(COPY, COPY)]},
    rule="each-execution-counts",
)
def scenario_secondary_executed_twice_by_one_command(rig: Rig) -> None:
    """A secondary may stand twice in one execute; its second execution meets what its first one left."""
    a, b, c = rig.buffer(data=bytes(range(256))), rig.buffer(), rig.buffer()
    with rig.secondary() as copies:
        copies.barrier(
            "one before the other", WRITTEN, "COPY/TRANSFER_READ|TRANSFER_WRITE", weaker={"for reads": {"dst": READ}}
        )
        copies.copy(b, c)
        copies.barrier("", "COPY", "COPY")
        copies.copy(a, b)
    with rig.submission() as commands:
        commands.execute(copies, copies)


@scenario(without={"one before the other": AGAIN}, rule="each-execution-counts")
def scenario_secondary_executed_by_two_primaries(rig: Rig) -> None:
    """The same when two primaries execute it."""
    a, b, c = rig.buffer(data=bytes(range(256))), rig.buffer(), rig.buffer()
    with rig.secondary() as copies:
        copies.barrier("one before the other", WRITTEN, "COPY/TRANSFER_READ|TRANSFER_WRITE")
        copies.copy(b, c)
        copies.barrier("", "COPY", "COPY")
        copies.copy(a, b)
    made = []
    for _ in range(2):
        with rig.commands() as commands:
            commands.execute(copies)
        made.append(commands)
    for each in made:
        rig.submit(each)


@scenario(
    weakened={"recorded again / copies": [read_after_write(COPY, FILL)]},
    rule="secondaries-stand-where-they-are-executed",
)
def scenario_secondary_recorded_again(rig: Rig) -> None:
    """The contents of a secondary when its primary was recorded count."""
    a, b, c = rig.buffer(), rig.buffer(), rig.buffer()
    copied = rig.choose("recorded again", b, {"copies": a})
    with rig.secondary() as secondary:
        secondary.copy(a, c)
    with rig.submission() as first:
        first.execute(secondary)
    rig.wait()
    with rig.secondary(secondary):
        secondary.copy(copied, c)
    with rig.submission() as second:
        second.fill(a, 0x1B1B1B1B)
        second.execute(secondary)


@scenario(
    without={"fill before copy": LATE},
    weakened={"fill before copy / execution only": LATE},
    rule="barriers-cross-command-buffer-levels",
)
def scenario_event_set_in_a_secondary(rig: Rig) -> None:
    """An event that a secondary sets orders what came before it, also in the primary, for a wait of the primary."""
    a, b = rig.buffer(), rig.buffer()
    filled = rig.event("fill before copy", FILLED, READ, weaker={"execution only": {"src": "CLEAR", "dst": "COPY"}})
    with rig.secondary() as sets:
        sets.set_event(filled)
    with rig.submission() as commands:
        commands.fill(a, 0x2B2B2B2B)
        commands.execute(sets)
        commands.wait_events(filled)
        commands.copy(a, b)


@scenario(without={"fill before copy": LATE}, rule="barriers-cross-command-buffer-levels")
def scenario_event_waited_for_in_a_secondary(rig: Rig) -> None:
    """A wait of a secondary orders what comes after it, also in the primary."""
    a, b = rig.buffer(), rig.buffer()
    filled = rig.event("fill before copy", FILLED, READ)
    with rig.secondary() as fills:
        fills.fill(a, 0x3B3B3B3B)
        fills.set_event(filled)
    with rig.secondary() as waits:
        waits.wait_events(filled)
    with rig.submission() as commands:
        commands.execute(fills, waits)
        commands.copy(a, b)
