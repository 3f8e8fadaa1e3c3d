"""A trace as a replay runs it: without swapchains, and with one object for each payload."""

from __future__ import annotations

from vkharness.replay.schedule.one_payload import with_one_payload
from vkharness.replay.schedule.screens import without_presentation
from vkharness.trace.calls import Block


def replayable(blocks: list[Block]) -> list[Block]:
    """The trace that is replayed. It is the same list when nothing has to be rewritten. Raises `UserError`."""
    return without_presentation(with_one_payload(blocks))
