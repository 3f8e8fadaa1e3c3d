"""Events reach over command buffers, batches and submits; the host may set and reset them too."""

from vkharness.rig.queues import SemaphoreUse
from vkharness.suite import Rig, read_after_write, scenario, write_after_write

FILL, COPY = "vkCmdFillBuffer", "vkCmdCopyBuffer"
FILLED, READ = "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ"
LATE = [read_after_write(COPY, FILL)]


@scenario(
    without={"fill before copy": LATE},
    weakened={"fill before copy / execution only": LATE},
    rule="events-cross-command-buffers",
)
def scenario_set_and_wait_in_two_command_buffers(rig: Rig) -> None:
    """An event set by one command buffer orders what came before it for a wait in the next one."""
    a, b = rig.buffer(), rig.buffer()
    filled = rig.event("fill before copy", FILLED, READ, weaker={"execution only": {"src": "CLEAR", "dst": "COPY"}})
    with rig.commands() as first:
        first.fill(a, 0x19191919)
        first.set_event(filled)
    with rig.commands() as second:
        second.wait_events(filled)
        second.copy(a, b)
    rig.submit(first, second)


@scenario(
    without={"fill before copy": LATE},
    weakened={"fill before copy / to compute": LATE},
    rule="events-cross-command-buffers",
)
def scenario_set_and_wait_in_two_submits(rig: Rig) -> None:
    """The same over two submits: submission order alone orders nothing, the event does."""
    a, b = rig.buffer(), rig.buffer()
    filled = rig.event(
        "fill before copy", FILLED, READ, weaker={"to compute": {"dst": "COMPUTE_SHADER/SHADER_STORAGE_READ"}}
    )
    with rig.commands() as first:
        first.fill(a, 0x29292929)
        first.set_event(filled)
    with rig.commands() as second:
        second.wait_events(filled)
        second.copy(a, b)
    rig.submit(first)
    rig.submit(second)


@scenario(without={"fill before copy": LATE}, rule="events-cross-command-buffers")
def scenario_event_over_a_wait_for_a_semaphore(rig: Rig) -> None:
    """A batch that waits for a semaphore keeps what an event covers. The semaphore alone orders its own stages."""
    a, b, filled = rig.buffer(), rig.buffer(), rig.semaphore()
    event = rig.event("fill before copy", FILLED, READ)
    with rig.commands() as first:
        first.fill(a, 0x49494949)
        first.set_event(event)
    with rig.commands() as second:
        second.wait_events(event)
        second.copy(a, b)
    rig.submit(first, signals=[SemaphoreUse(filled)], sync2=True)
    rig.submit(second, waits=[SemaphoreUse(filled, "CLEAR")], sync2=True)


@scenario(weakened={"order / set first": LATE}, rule="a-set-fixes-the-first-scope,events-cross-command-buffers")
def scenario_set_covers_earlier_submits(rig: Rig) -> None:
    """A set in a command buffer of its own covers what was submitted before it, and only that."""
    a, b = rig.buffer(), rig.buffer()
    early = rig.choose("order", False, {"set first": True})
    filled = rig.event("", FILLED, READ)
    with rig.commands() as fills:
        fills.fill(a, 0x39393939)
    with rig.commands() as sets:
        sets.set_event(filled)
    with rig.commands() as copies:
        copies.wait_events(filled)
        copies.copy(a, b)
    for each in (sets, fills) if early else (fills, sets):
        rig.submit(each)
    rig.submit(copies)


@scenario(
    without={"second round": [read_after_write(COPY, COPY), write_after_write(COPY, COPY)]},
    rule="a-wait-leaves-the-event-set,events-cross-command-buffers",
)
def scenario_command_buffer_with_an_event_submitted_twice(rig: Rig) -> None:
    """An event that its command buffer resets works in every execution; what one leaves for the next is not its own."""
    a, b, c = rig.buffer(), rig.buffer(), rig.buffer()
    filled = rig.event("", FILLED, READ)
    with rig.submission() as commands:
        commands.barrier("second round", "COPY/TRANSFER_WRITE", "COPY/TRANSFER_READ|TRANSFER_WRITE")
        commands.copy(b, c)
        commands.barrier("", "COPY", "CLEAR|COPY")
        commands.fill(a, 0x49494949)
        commands.set_event(filled)
        commands.wait_events(filled)
        commands.copy(a, b)
        commands.reset_event(filled, "COPY")
        commands.barrier("", "ALL_COMMANDS", "CLEAR")
    rig.submit(commands)


@scenario(without={"fill before copy": LATE}, rule="the-host-may-set-and-reset-events")
def scenario_event_set_by_the_host(rig: Rig) -> None:
    """A wait for an event that the host set orders nothing that the device did before."""
    a, b = rig.buffer(), rig.buffer()
    ready = rig.event("", "HOST/HOST_WRITE", "ALL_TRANSFER/TRANSFER_READ", sync2=False)
    rig.host_set_event(ready)
    with rig.submission() as commands:
        commands.fill(a, 0x59595959)
        commands.wait_events(ready)
        commands.barrier("fill before copy", FILLED, READ)
        commands.copy(a, b)


@scenario(
    without={"second fill before copy": LATE},
    rule="the-host-may-set-and-reset-events,a-host-wait-ends-operations-on-events",
)
def scenario_event_reset_by_the_host(rig: Rig) -> None:
    """Reset by the host between two submits, an event may be set again with no order to its first use."""
    a, b = rig.buffer(), rig.buffer()
    filled = rig.event("second fill before copy", FILLED, READ)
    with rig.submission() as first:
        first.set_event(filled)
    rig.wait()
    rig.host_reset_event(filled)
    with rig.submission() as second:
        second.fill(a, 0x69696969)
        second.set_event(filled)
        second.wait_events(filled)
        second.copy(a, b)
