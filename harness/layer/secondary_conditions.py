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


@condition
def drawn_in_secondary(subject: Subject, stream: Stream, _: Version) -> bool:
    """The command buffer of the second access renders, and executed secondaries that draw or clear attachments."""
    own = stream.command(subject)
    if own is None:
        return False
    before = subject.call if subject.call is not None and subject.call > own.index else own.index
    return any(
        call.name.startswith(("vkCmdDraw", "vkCmdClearAttachments"))
        and call.args["commandBuffer"] != own.args.get("commandBuffer")
        for call in stream.recorded(own.args.get("commandBuffer", 0), before)
    )
