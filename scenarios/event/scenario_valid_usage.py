"""A wait that breaks valid usage with the set of its event still waits, and orders no memory."""

from vkharness.rig.queues import SemaphoreUse
from vkharness.suite import Rig, race, read_after_write, scenario

FILL, COPY = "vkCmdFillBuffer", "vkCmdCopyBuffer"
WRITTEN, READ = "ALL_TRANSFER/TRANSFER_WRITE", "ALL_TRANSFER/TRANSFER_READ"
SET, SET2, WAIT, WAIT2 = "vkCmdSetEvent", "vkCmdSetEvent2", "vkCmdWaitEvents", "vkCmdWaitEvents2"
LATE = read_after_write(COPY, FILL)
STAGES = race("vkCmdWaitEvents-stages-differ", WAIT, SET)
FIRST = race("vkCmdWaitEvents2-first-form-set", WAIT2, SET)
SECOND = race("vkCmdWaitEvents-second-form-set", WAIT, SET2)
DIFFERS = race("vkCmdWaitEvents2-dependency-differs", WAIT2, SET2)


@scenario(
    weakened={"stages / more": [STAGES], "stages / others": [STAGES, LATE], "stages / earlier": [STAGES, LATE]},
    rule="a-wait-must-match-its-set",
)
def scenario_wait_of_the_first_form_names_the_stages_of_the_set(rig: Rig) -> None:
    """A wait whose last source stage is not the set's, or a later one, has nothing of the set in its first scope."""
    a, b = rig.buffer(), rig.buffer()
    others = {
        "more": "ALL_TRANSFER|COMPUTE_SHADER/TRANSFER_WRITE",
        "others": "COMPUTE_SHADER/SHADER_WRITE",
        "earlier": "TOP_OF_PIPE",
    }
    asked = rig.choose("stages", WRITTEN, others)
    event = rig.event("", "ALL_TRANSFER", READ, sync2=False)
    with rig.submission() as commands:
        commands.fill(a, 0x12121212)
        commands.set_event(event)
        commands.wait_otherwise(event, asked, READ, sync2=False)
        commands.copy(a, b)


@scenario(
    weakened={
        "wait / of a set of the first form": [FIRST, LATE],
        "wait / of the first form": [SECOND, LATE],
        "wait / wider first scope": [DIFFERS, LATE],
        "wait / wider second scope": [DIFFERS, LATE],
    },
    rule="a-wait-must-match-its-set",
)
def scenario_wait_has_the_form_and_the_dependency_of_the_set(rig: Rig) -> None:
    """A wait of another form, or with another dependency, than its set orders nothing."""
    a, b = rig.buffer(), rig.buffer()
    choices = {
        "of a set of the first form": (False, WRITTEN, READ, True),
        "of the first form": (True, WRITTEN, READ, False),
        "wider first scope": (True, "ALL_COMMANDS/MEMORY_WRITE", READ, True),
        "wider second scope": (True, WRITTEN, "ALL_COMMANDS/MEMORY_READ", True),
    }
    set2, src, dst, wait2 = rig.choose("wait", (True, WRITTEN, READ, True), choices)
    event = rig.event("", WRITTEN, READ, sync2=set2)
    with rig.submission() as commands:
        commands.fill(a, 0x23232323)
        commands.set_event(event)
        commands.wait_otherwise(event, src, dst, sync2=wait2)
        commands.copy(a, b)


@scenario(
    weakened={"the wait / on another queue": [race("vkCmdWaitEvents-another-queue", WAIT2, SET2), LATE]},
    queues=["TRANSFER"],
    rule="events-stay-on-their-queue",
)
def scenario_wait_on_another_queue(rig: Rig) -> None:
    """A wait for an event that was set on another queue orders nothing. The semaphore alone orders its own stages."""
    a, b, s = rig.buffer(), rig.buffer(), rig.semaphore()
    here, other = rig.queues
    queue = rig.choose("the wait", here, {"on another queue": other})
    event = rig.event("", "CLEAR/TRANSFER_WRITE", READ)
    with rig.commands() as first:
        first.fill(a, 0x34343434)
        first.set_event(event)
    with rig.commands(queue=queue) as second:
        second.wait_events(event)
        second.copy(a, b)
    rig.submit(first, signals=[SemaphoreUse(s)], sync2=True)
    rig.submit(second, waits=[SemaphoreUse(s, "CLEAR")], sync2=True)
