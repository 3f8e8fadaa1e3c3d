"""Work that was submitted before the host has done its part: by an event, as once was allowed, and by a timeline."""

from vkharness.rig.queues import SemaphoreUse
from vkharness.suite import Rig, race, read_after_write, scenario, write_after_read

COPY, WRITE, WAIT = "vkCmdCopyBuffer", "host write", "vkCmdWaitEvents"
FROM_HOST, READ, WRITTEN = "HOST/HOST_WRITE", "ALL_TRANSFER/TRANSFER_READ", "ALL_TRANSFER/TRANSFER_WRITE"
PENDING = race("vkSetEvent-pending-wait", "vkSetEvent", WAIT)
PENDING2 = race("vkSetEvent-pending-wait", "vkSetEvent", "vkCmdWaitEvents2")
UNSEEN = read_after_write(COPY, WRITE)
NEW = bytes(range(1, 129))


@scenario(
    expects=[PENDING],
    weakened={
        "the wait / makes nothing available": [PENDING, UNSEEN],
        "the wait / for compute": [PENDING, UNSEEN],
        "the wait / after the copy": [PENDING, write_after_read(WRITE, COPY)],
    },
    rule="the-host-sets-an-event-before-the-submit,a-late-host-write-needs-a-dependency-from-the-host",
)
def scenario_host_sets_an_event_late(rig: Rig) -> None:
    """A submitted wait for an event that the host sets later orders what the host wrote before that."""
    a, b = rig.buffer(), rig.buffer()
    others = {
        "makes nothing available": ("HOST", READ, False),
        "for compute": (FROM_HOST, "COMPUTE_SHADER/SHADER_READ", False),
        "after the copy": (FROM_HOST, READ, True),
    }
    src, dst, first = rig.choose("the wait", (FROM_HOST, READ, False), others)
    event = rig.event("", FROM_HOST, READ, sync2=False)
    with rig.commands() as commands:
        if first:
            commands.copy(a, b)
        commands.wait_otherwise(event, src, dst, sync2=False)
        if not first:
            commands.copy(a, b)
    rig.submit_before(event, commands)
    rig.host_write(a, NEW)
    rig.host_set_event(event)


@scenario(
    expects=[PENDING2],
    weakened={
        "the wait / makes nothing available": [PENDING2, UNSEEN],
        "the wait / makes nothing visible": [PENDING2, UNSEEN],
    },
    rule="the-host-sets-an-event-before-the-submit,a-late-host-write-needs-a-dependency-from-the-host",
)
def scenario_host_sets_an_event_late_in_the_second_form(rig: Rig) -> None:
    """The same with vkCmdWaitEvents2, whose first scope is the host alone: HOST with HOST_WRITE makes the write
    available."""
    a, b = rig.buffer(), rig.buffer()
    others = {"makes nothing available": ("HOST", READ), "makes nothing visible": (FROM_HOST, "ALL_TRANSFER")}
    src, dst = rig.choose("the wait", (FROM_HOST, READ), others)
    event = rig.event("", FROM_HOST, READ)
    with rig.commands() as commands:
        commands.wait_otherwise(event, src, dst, sync2=True)
        commands.copy(a, b)
    rig.submit_before(event, commands)
    rig.host_write(a, NEW)
    rig.host_set_event(event)


@scenario(expects=[PENDING], rule="the-host-sets-an-event-before-the-submit")
def scenario_host_reads_before_it_sets_an_event(rig: Rig) -> None:
    """Device writes after such a wait come after the reads of the host before it set the event."""
    a, b = rig.buffer(), rig.buffer()
    event = rig.event("", "HOST", WRITTEN, sync2=False)
    with rig.commands() as commands:
        commands.wait_events(event)
        commands.copy(b, a)
    rig.submit_before(event, commands)
    rig.host_read(a)
    rig.host_set_event(event)


@scenario(
    without={"from the host": [UNSEEN]},
    weakened={"from the host / execution only": [UNSEEN]},
    rule="a-late-host-write-needs-a-dependency-from-the-host",
)
def scenario_host_writes_before_it_signals_a_timeline(rig: Rig) -> None:
    """A timeline that the host signals orders a late write. A barrier from the host makes it available."""
    a, b, t = rig.buffer(), rig.buffer(), rig.timeline()
    with rig.commands() as commands:
        commands.barrier("from the host", FROM_HOST, READ, weaker={"execution only": {"src": "HOST"}})
        commands.copy(a, b)
    rig.submit(commands, waits=[SemaphoreUse(t, "ALL_TRANSFER", 1)], sync2=True)
    rig.host_write(a, NEW)
    rig.host_signal(t, 1)
