"""Predicates of `differences.toml` about secondary command buffers (see `conditions`)."""

from __future__ import annotations

from harness.layer.conditions import condition
from harness.layer.manifest import Version
from harness.layer.stream import Stream, Subject, is_sync_operation


@condition
def barrier_in_secondary(subject: Subject, stream: Stream, _: Version) -> bool:
    """At a submit: a primary of it executes a secondary that holds a synchronization command."""
    submit = stream.at(subject.call)
    if submit is None or not submit.name.startswith("vkQueueSubmit"):
        return False
    primaries = [buffer for batch in stream.executed(submit) for buffer in batch]
    return any(
        is_sync_operation(command) and command.args["commandBuffer"] != primary
        for primary in primaries
        for command in stream.recorded(primary, submit.index)
    )
