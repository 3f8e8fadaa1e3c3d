"""Barriers that name a range: each write of it should be in the first scope, or be available already."""

from vkharness.suite import Rig, read_after_write, scenario

FILL, COPY = "vkCmdFillBuffer", "vkCmdCopyBuffer"
FILLED, READ = "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ"
STALE = [read_after_write(COPY, FILL)]


@scenario(
    without={"fill available": STALE},
    weakened={"fill available / executed only": STALE},
    rule="what-is-made-visible-should-be-available",
)
def scenario_barrier_of_a_range_that_is_available(rig: Rig) -> None:
    """A barrier of a buffer without first access scope makes visible what an earlier barrier made available."""
    a, b = rig.buffer(64, data=b"\x11" * 64), rig.buffer(64)
    with rig.submission() as commands:
        commands.fill(a, 0x22222222)
        commands.barrier("fill available", FILLED, "COPY", weaker={"executed only": {"src": "CLEAR"}})
        commands.barrier("", "COPY", READ, buffer=a)
        commands.copy(a, b)


@scenario(
    weakened={"fill before copy / after copies": STALE, "fill before copy / of the other half": STALE},
    rule="a-write-should-not-race-with-a-barrier",
)
def scenario_barrier_waits_for_all_writes_of_its_range(rig: Rig) -> None:
    """The first scope of a barrier of a buffer has the stage of each write in its range."""
    a, b = rig.buffer(64, data=b"\x33" * 64), rig.buffer(64)
    with rig.submission() as commands:
        commands.fill(a, 0x44444444, 32, 32)
        commands.barrier(
            "fill before copy",
            FILLED,
            READ,
            buffer=a,
            weaker={"after copies": {"src": "COPY/TRANSFER_WRITE"}, "of the other half": {"offset": 0, "size": 32}},
        )
        commands.copy(a, b)
