"""Operations on one event happen in no pipeline stage: without an order among them nobody knows its state."""

from dataclasses import replace

from vkharness.suite import Rig, race, scenario

WRITTEN, READ = "ALL_TRANSFER/TRANSFER_WRITE", "ALL_TRANSFER/TRANSFER_READ"
TRANSFER, COMPUTE = "ALL_TRANSFER", "COMPUTE_SHADER"
SET, SET2, RESET, RESET2 = "vkCmdSetEvent", "vkCmdSetEvent2", "vkCmdResetEvent", "vkCmdResetEvent2"
WAIT, WAIT2 = "vkCmdWaitEvents", "vkCmdWaitEvents2"
RESET_RACE = [race("vkCmdResetEvent-set-race", RESET2, SET2)]
SET_RACE = [race("vkCmdSetEvent2-reset-race", SET2, RESET2)]


@scenario(
    without={"set before reset": RESET_RACE},
    weakened={"set before reset / from the stages of the set": RESET_RACE, "set before reset / to compute": RESET_RACE},
    rule="operations-on-events-have-no-stage,a-reset-must-come-after-a-set",
)
def scenario_reset_after_set(rig: Rig) -> None:
    """A reset must be ordered after a set; a barrier does that from ALL_COMMANDS alone."""
    event = rig.event("", WRITTEN, READ)
    with rig.submission() as commands:
        commands.set_event(event)
        commands.barrier(
            "set before reset",
            "ALL_COMMANDS",
            TRANSFER,
            weaker={"from the stages of the set": {"src": TRANSFER}, "to compute": {"dst": COMPUTE}},
        )
        commands.reset_event(event, TRANSFER)


@scenario(
    without={"set before reset": [race("vkCmdResetEvent-set-race", RESET, SET)]},
    weakened={"set before reset / from the stages of the set": [race("vkCmdResetEvent-set-race", RESET, SET)]},
    rule="both-forms-of-a-command-mean-the-same,a-reset-must-come-after-a-set",
)
def scenario_reset_after_set_of_the_first_form(rig: Rig) -> None:
    """The same for the commands of the first form."""
    event = rig.event("", WRITTEN, READ, sync2=False)
    with rig.submission() as commands:
        commands.set_event(event)
        commands.barrier(
            "set before reset",
            "ALL_COMMANDS",
            TRANSFER,
            sync2=False,
            weaker={"from the stages of the set": {"src": TRANSFER}},
        )
        commands.reset_event(event, TRANSFER)


@scenario(
    weakened={"stages / some": RESET_RACE}, rule="operations-on-events-have-no-stage,a-reset-must-come-after-a-set"
)
def scenario_reset_after_everything(rig: Rig) -> None:
    """A reset whose own stages are ALL_COMMANDS needs no barrier after a set."""
    event = rig.event("", WRITTEN, READ)
    stages = rig.choose("stages", "ALL_COMMANDS", {"some": TRANSFER})
    with rig.submission() as commands:
        commands.set_event(event)
        commands.reset_event(event, stages)


@scenario(
    without={"reset before set": SET_RACE},
    weakened={"reset before set / from the stages of the reset": SET_RACE},
    rule="a-set-must-come-after-a-reset",
)
def scenario_set_after_reset(rig: Rig) -> None:
    """A set must be ordered after a reset."""
    event = rig.event("", WRITTEN, READ)
    with rig.submission() as commands:
        commands.reset_event(event, TRANSFER)
        commands.barrier(
            "reset before set", "ALL_COMMANDS", TRANSFER, weaker={"from the stages of the reset": {"src": TRANSFER}}
        )
        commands.set_event(event)


@scenario(
    without={"one set before the other": [race("vkCmdSetEvent2-set-race", SET2, SET2)]},
    weakened={"one set before the other / to compute": [race("vkCmdSetEvent2-set-race", SET2, SET2)]},
    rule="a-set-must-come-after-a-set",
)
def scenario_set_after_set(rig: Rig) -> None:
    """Nobody knows which of two sets a wait would see, unless one is ordered after the other."""
    event = rig.event("", WRITTEN, READ)
    with rig.submission() as commands:
        commands.set_event(event)
        commands.barrier("one set before the other", "ALL_COMMANDS", TRANSFER, weaker={"to compute": {"dst": COMPUTE}})
        commands.set_event(event)


@scenario(
    without={
        "one set before the other": [
            race("vkCmdSetEvent2-set-race", SET2, SET2),
            race("vkCmdWaitEvents-unsynchronized-setops", WAIT2, SET2),
        ]
    },
    rule="a-wait-needs-sets-in-order",
)
def scenario_wait_after_two_sets(rig: Rig) -> None:
    """A wait after two unordered sets has no first scope that anyone can know."""
    event = rig.event("", WRITTEN, READ)
    with rig.submission() as commands:
        commands.set_event(event)
        commands.barrier("one set before the other", "ALL_COMMANDS", TRANSFER)
        commands.set_event(event)
        commands.wait_events(event)


@scenario(
    expects=[race("vkCmdSetEvent2-set-race", SET2, SET2), race("vkCmdWaitEvents-unsynchronized-setops", WAIT2, SET2)],
    rule="a-wait-needs-sets-in-order",
)
def scenario_what_two_unordered_sets_both_cover(rig: Rig) -> None:
    """Whichever of two sets a wait sees, it orders what came before both."""
    a, b = rig.buffer(), rig.buffer()
    event = rig.event("", WRITTEN, READ)
    with rig.submission() as commands:
        commands.fill(a, 0x5C5C5C5C)
        commands.set_event(event)
        commands.set_event(event)
        commands.wait_events(event)
        commands.copy(a, b)


@scenario(
    expects=[race("vkCmdSetEvent-set-race", SET, SET), race("vkCmdWaitEvents-unsynchronized-setops", WAIT, SET)],
    rule="a-wait-needs-sets-in-order",
)
def scenario_stages_that_two_unordered_sets_share(rig: Rig) -> None:
    """Two sets with different stages cover what came before both in the stages that they share."""
    a, b = rig.buffer(), rig.buffer()
    event = rig.event("", TRANSFER, READ, sync2=False)
    more = replace(event, written=[{"src": f"{TRANSFER}|{COMPUTE}", "dst": READ}], dependency=None)
    with rig.submission() as commands:
        commands.fill(a, 0x6C6C6C6C)
        commands.set_event(event)
        commands.set_event(more)
        commands.wait_otherwise(event, f"{TRANSFER}|{COMPUTE}/TRANSFER_WRITE", READ, sync2=False)
        commands.copy(a, b)


@scenario(
    weakened={"second scope / compute": [race("vkCmdSetEvent2-wait", SET2, WAIT2)]},
    rule="operations-on-events-have-no-stage,a-set-must-come-after-a-wait",
)
def scenario_set_after_wait(rig: Rig) -> None:
    """The work before a set must be in the second scope of an earlier wait for the same event."""
    stages = rig.choose("second scope", TRANSFER, {"compute": COMPUTE})
    event = rig.event("", TRANSFER, stages)
    with rig.submission() as commands:
        commands.set_event(event)
        commands.wait_events(event)
        commands.set_event(event)


@scenario(
    without={"wait before reset": [race("vkCmdResetEvent-wait-race", RESET2, WAIT2)]},
    weakened={"wait before reset / not chained": [race("vkCmdResetEvent-wait-race", RESET2, WAIT2)]},
    rule="a-reset-must-come-after-a-wait",
)
def scenario_reset_after_wait(rig: Rig) -> None:
    """A reset must be ordered after the wait, or the wait might never end."""
    event = rig.event("", TRANSFER, TRANSFER)
    with rig.submission() as commands:
        commands.set_event(event)
        commands.wait_events(event)
        commands.barrier("wait before reset", TRANSFER, COMPUTE, weaker={"not chained": {"src": "FRAGMENT_SHADER"}})
        commands.reset_event(event, COMPUTE)


@scenario(
    without={"idle": [race("vkCmdResetEvent-wait-race", RESET, WAIT)]}, rule="a-host-wait-ends-operations-on-events"
)
def scenario_host_wait_ends_operations_on_events(rig: Rig) -> None:
    """Operations that the host knows to be complete race with nothing that is submitted later."""
    event = rig.event("", WRITTEN, COMPUTE, sync2=False)
    with rig.commands() as first:
        first.set_event(event)
        first.wait_events(event)
    with rig.commands() as second:
        second.reset_event(event, TRANSFER)
        second.barrier("", "ALL_COMMANDS", TRANSFER)
        second.set_event(event)
        second.wait_events(event)
    rig.submit(first)
    rig.host_wait("idle", "queue")
    rig.submit(second)


@scenario(
    without={"the host sees the first set": [race("vkCmdSetEvent-set-race", SET, SET)]},
    rule="the-host-may-read-that-an-event-is-set,a-set-must-come-after-a-set",
)
def scenario_event_that_the_host_polls_and_resets(rig: Rig) -> None:
    """The host sees that a set has happened, resets the event and submits another set: the two sets are in order."""
    event = rig.event("", WRITTEN, READ, sync2=False)
    for again in (False, True):
        with rig.commands() as commands:
            commands.set_event(event)
        rig.submit(commands)
        if not again:
            rig.host_polls_event("the host sees the first set", event)
            rig.host_reset_event(event)
