"""Predicates of `differences.toml` about events (see `conditions`)."""

from __future__ import annotations

from harness.layer.conditions import condition
from harness.layer.manifest import Version
from harness.layer.stream import Stream, Subject
from harness.trace.calls import Call


def _events(call: Call) -> set[int]:
    """The events that a command sets or waits for."""
    if call.name.startswith("vkCmdSetEvent"):
        return {call.args["event"]}
    return set(call.args["pEvents"] or ()) if call.name.startswith("vkCmdWaitEvents") else set()


@condition
def barrier_between_set_and_wait(subject: Subject, stream: Stream, _: Version) -> bool:
    """Before the second access an event was waited for, and between its set and that wait stands a barrier."""
    calls = [step.call for step in stream.steps(subject)]
    for position, wait in enumerate(calls):
        if wait.name.startswith("vkCmdWaitEvents"):
            between = []
            for call in reversed(calls[:position]):
                if call.name.startswith("vkCmdSetEvent") and _events(call) & _events(wait):
                    break
                between.append(call)
            if any(call.name.startswith("vkCmdPipelineBarrier") for call in between):
                return True
    return False
