"""Several events in one wait, and one event for several things."""

from vkharness.suite import Rig, read_after_write, scenario

FILL, COPY = "vkCmdFillBuffer", "vkCmdCopyBuffer"
FILLED, READ = "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ"
LATE = [read_after_write(COPY, FILL)]


@scenario(
    without={"first": LATE, "second": LATE},
    weakened={"first / to compute": LATE, "second / execution only": LATE},
    rule="each-event-of-a-wait-stands-for-itself",
)
def scenario_each_event_of_a_wait_brings_its_own_dependency(rig: Rig) -> None:
    """In the second form each event orders what came before its own set."""
    a, b, c = rig.buffer(), rig.buffer(), rig.buffer(512)
    first = rig.event("first", FILLED, READ, weaker={"to compute": {"dst": "COMPUTE_SHADER/SHADER_STORAGE_READ"}})
    second = rig.event("second", FILLED, READ, buffer=b, weaker={"execution only": {"src": "CLEAR", "dst": "COPY"}})
    with rig.submission() as commands:
        commands.fill(a, 0x21212121)
        commands.set_event(first)
        # Only the first buffer was filled when the first event was set.
        commands.fill(b, 0x32323232)
        commands.set_event(second)
        commands.wait_events(first, second)
        commands.copy(a, c, (0, 0, 256))
        commands.copy(b, c, (0, 256, 256))


@scenario(
    without={"filled": [read_after_write(COPY, FILL)]},
    weakened={"filled / of one": LATE},
    rule="each-event-of-a-wait-stands-for-itself",
)
def scenario_events_of_the_first_form_share_their_barriers(rig: Rig) -> None:
    """In the first form a wait has one first scope for all events: the union of what came before each set."""
    a, b = rig.buffer(512), rig.buffer(512)
    transfers = ("ALL_TRANSFER/TRANSFER_WRITE", "ALL_TRANSFER/TRANSFER_READ")
    both = rig.event("filled", *transfers, sync2=False, weaker={"of one": {"several": []}})
    other = rig.event("", *transfers, sync2=False)
    with rig.submission() as commands:
        commands.fill(a, 0x43434343, 0, 256)
        commands.set_event(other)
        commands.fill(a, 0x54545454, 256, 256)
        commands.set_event(both)
        commands.wait_events(other, *([both] if both.dependency else []))
        commands.copy(a, b)


@scenario(without={"filled": LATE}, weakened={"filled / half": LATE}, rule="a-ranged-barrier-covers-its-range")
def scenario_event_of_two_ranges(rig: Rig) -> None:
    """One event may carry barriers over several ranges; what lies in none is not covered."""
    a, b = rig.buffer(), rig.buffer()
    low, high = ({"src": FILLED, "dst": READ, "buffer": a, "offset": at, "size": 128} for at in (0, 128))
    filled = rig.event("filled", FILLED, READ, several=[low, high], weaker={"half": {"several": [low]}})
    with rig.submission() as commands:
        commands.fill(a, 0x65656565)
        commands.set_event(filled)
        commands.wait_events(filled)
        commands.copy(a, b)


@scenario(without={"filled": [read_after_write(COPY, FILL)]}, rule="a-wait-leaves-the-event-set")
def scenario_two_waits_for_one_event(rig: Rig) -> None:
    """An event may be waited for again: the same dependency once more."""
    a, b = rig.buffer(), rig.buffer()
    filled = rig.event("filled", FILLED, READ)
    with rig.submission() as commands:
        commands.fill(a, 0x76767676)
        commands.set_event(filled)
        commands.wait_events(filled)
        commands.wait_events(filled)
        commands.copy(a, b)


@scenario(
    without={"second": LATE},
    weakened={"second / set too early": LATE},
    rule="a-wait-leaves-the-event-set,a-set-of-a-signaled-event-has-no-effect,a-wait-must-come-after-a-reset",
)
def scenario_event_used_again_after_a_reset(rig: Rig) -> None:
    """Reset and set again, an event covers what came before its second set."""
    a, b = rig.buffer(), rig.buffer()
    late = rig.choose("second", True, {"set too early": False})
    event = rig.event("", "CLEAR|COPY/TRANSFER_WRITE", READ)
    with rig.submission() as commands:
        commands.set_event(event)
        commands.wait_events(event)
        commands.barrier("", "ALL_COMMANDS", "COPY")
        commands.reset_event(event, "COPY")
        commands.barrier("", "ALL_COMMANDS", "COPY|CLEAR")
        if late:
            commands.fill(a, 0x87878787)
        commands.set_event(event)
        if not late:
            commands.fill(a, 0x87878787)
        commands.wait_events(event)
        commands.copy(a, b)


@scenario(weakened={"reset / none": LATE}, rule="a-set-of-a-signaled-event-has-no-effect")
def scenario_second_set_without_a_reset(rig: Rig) -> None:
    """A set of an event that is still signaled has no effect: the wait orders what came before the first set."""
    a, b, c, d = rig.buffer(), rig.buffer(), rig.buffer(), rig.buffer()
    reset = rig.choose("reset", True, {"none": False})
    event = rig.event("", FILLED, READ)
    with rig.submission() as commands:
        commands.fill(a, 0x98989898)
        commands.set_event(event)
        commands.wait_events(event)
        commands.copy(a, c)
        commands.barrier("", "ALL_COMMANDS", "ALL_COMMANDS")
        if reset:
            commands.reset_event(event, "COPY")
            commands.barrier("", "ALL_COMMANDS", "ALL_COMMANDS")
        commands.fill(b, 0xA9A9A9A9)
        commands.set_event(event)
        commands.wait_events(event)
        commands.copy(b, d)
