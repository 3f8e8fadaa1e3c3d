"""A set and its wait are two halves of one dependency: what came before the set, before what comes after the wait."""

from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

FILL, COPY = "vkCmdFillBuffer", "vkCmdCopyBuffer"
FILLED, READ, WRITTEN = "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ", "COPY/TRANSFER_WRITE"
LATE = [read_after_write(COPY, FILL)]


@scenario(
    without={"fill before copy": LATE},
    weakened={
        "fill before copy / execution only": LATE,
        "fill before copy / after copies": LATE,
        "fill before copy / to compute": LATE,
    },
    rule="a-set-and-its-wait-are-one-dependency",
)
def scenario_copy_waits_for_an_event_of_the_second_form(rig: Rig) -> None:
    """The event carries the whole memory dependency."""
    a, b = rig.buffer(), rig.buffer()
    filled = rig.event(
        "fill before copy",
        FILLED,
        READ,
        weaker={
            "execution only": {"src": "CLEAR", "dst": "COPY"},
            "after copies": {"src": WRITTEN},
            "to compute": {"dst": "COMPUTE_SHADER/SHADER_STORAGE_READ"},
        },
    )
    with rig.submission() as commands:
        commands.fill(a, 0x11111111)
        commands.set_event(filled)
        commands.wait_events(filled)
        commands.copy(a, b)


@scenario(
    without={"fill before copy": LATE},
    weakened={"fill before copy / execution only": LATE, "fill before copy / to compute": LATE},
    rule="a-set-and-its-wait-are-one-dependency",
)
def scenario_copy_waits_for_an_event_of_the_first_form(rig: Rig) -> None:
    """The set gives stages alone; the accesses come with the wait."""
    a, b = rig.buffer(), rig.buffer()
    filled = rig.event(
        "fill before copy",
        "ALL_TRANSFER/TRANSFER_WRITE",
        "ALL_TRANSFER/TRANSFER_READ",
        sync2=False,
        weaker={
            "execution only": {"src": "ALL_TRANSFER", "dst": "ALL_TRANSFER"},
            "to compute": {"dst": "COMPUTE_SHADER/SHADER_READ"},
        },
    )
    with rig.submission() as commands:
        commands.fill(a, 0x22222222)
        commands.set_event(filled)
        commands.wait_events(filled)
        commands.copy(a, b)


@scenario(
    without={"copy before fill": [write_after_read(FILL, COPY)]},
    weakened={"copy before fill / after clears": [write_after_read(FILL, COPY)]},
    rule="write-after-read,a-set-and-its-wait-are-one-dependency",
)
def scenario_event_without_accesses_orders_a_write_after_a_read(rig: Rig) -> None:
    """For a write after a read, execution is enough, through an event too."""
    a, b = rig.buffer(), rig.buffer()
    copied = rig.event("copy before fill", "COPY", "CLEAR", weaker={"after clears": {"src": "CLEAR"}})
    with rig.submission() as commands:
        commands.copy(a, b)
        commands.set_event(copied)
        commands.wait_events(copied)
        commands.fill(a, 0x33333333)


@scenario(weakened={"order / set first": LATE}, rule="a-set-fixes-the-first-scope")
def scenario_set_covers_what_came_before_it(rig: Rig) -> None:
    """A fill between the set and the wait is in no scope of the event."""
    a, b = rig.buffer(), rig.buffer()
    early = rig.choose("order", False, {"set first": True})
    filled = rig.event("", FILLED, READ)
    with rig.submission() as commands:
        if early:
            commands.set_event(filled)
        commands.fill(a, 0x44444444)
        if not early:
            commands.set_event(filled)
        commands.wait_events(filled)
        commands.copy(a, b)


@scenario(without={"second fill before copy": [read_after_write(COPY, FILL)]}, rule="a-set-fixes-the-first-scope")
def scenario_accesses_between_set_and_wait_need_their_own_dependency(rig: Rig) -> None:
    """Writes before the set are covered; writes between the set and the wait are not, though of the same stage."""
    a, b, c = rig.buffer(), rig.buffer(), rig.buffer(512)
    filled = rig.event("", FILLED, READ)
    with rig.submission() as commands:
        commands.fill(a, 0x55555555)
        commands.set_event(filled)
        commands.fill(b, 0x66666666)
        commands.wait_events(filled)
        commands.copy(a, c, (0, 0, 256))
        commands.barrier("second fill before copy", FILLED, READ)
        commands.copy(b, c, (0, 256, 256))


@scenario(
    without={"fill before copies": [read_after_write(COPY, FILL)]},
    weakened={"fill before copies / of the other buffer": [read_after_write(COPY, FILL)]},
    rule="a-ranged-barrier-covers-its-range",
)
def scenario_event_of_one_buffer(rig: Rig) -> None:
    """A memory dependency over one buffer does nothing for the memory of another."""
    a, b, c = rig.buffer(), rig.buffer(), rig.buffer()
    filled = rig.event("fill before copies", FILLED, READ, buffer=a, weaker={"of the other buffer": {"buffer": b}})
    with rig.submission() as commands:
        commands.fill(a, 0x77777777)
        commands.set_event(filled)
        commands.wait_events(filled)
        commands.copy(a, c)


@scenario(
    without={"fill before copy": LATE, "made visible": LATE},
    weakened={"made visible / not chained": LATE},
    rule="waits-and-barriers-chain",
)
def scenario_barrier_chains_with_a_wait(rig: Rig) -> None:
    """A barrier goes on where the second scope of a wait ends."""
    a, b = rig.buffer(), rig.buffer()
    filled = rig.event("fill before copy", FILLED, "COMPUTE_SHADER")
    with rig.submission() as commands:
        commands.fill(a, 0x12121212)
        commands.set_event(filled)
        commands.wait_events(filled)
        commands.barrier("made visible", "COMPUTE_SHADER", READ, weaker={"not chained": {"src": "BLIT"}})
        commands.copy(a, b)


@scenario(
    without={"made available": LATE, "made visible": LATE},
    weakened={"made visible / not chained": LATE},
    rule="waits-and-barriers-chain",
)
def scenario_set_chains_with_a_barrier(rig: Rig) -> None:
    """A set covers what an earlier barrier made available to its stages."""
    a, b = rig.buffer(), rig.buffer()
    computed = rig.event("made visible", "COMPUTE_SHADER", READ, weaker={"not chained": {"src": "BLIT"}})
    with rig.submission() as commands:
        commands.fill(a, 0x13131313)
        commands.barrier("made available", FILLED, "COMPUTE_SHADER")
        commands.set_event(computed)
        commands.wait_events(computed)
        commands.copy(a, b)


@scenario(weakened={"order / barrier after set": [write_after_write(FILL, FILL)]}, rule="waits-and-barriers-chain")
def scenario_barrier_after_a_set_does_not_reach_its_scope(rig: Rig) -> None:
    """A barrier that would chain into an event helps only when it is recorded before the set."""
    a = rig.buffer()
    late = rig.choose("order", False, {"barrier after set": True})
    computed = rig.event("", "COMPUTE_SHADER", FILLED)
    with rig.submission() as commands:
        commands.fill(a, 0x14141414)
        if late:
            commands.set_event(computed)
        commands.barrier("", FILLED, "COMPUTE_SHADER")
        if not late:
            commands.set_event(computed)
        commands.wait_events(computed)
        commands.fill(a, 0x15151515)
