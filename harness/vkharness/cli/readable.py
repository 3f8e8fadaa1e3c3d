"""A trace for the commands that change it, or that ask what belongs together in it: only calls that could be read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vkharness.cli.last_resort import echo
from vkharness.findings import UserError

if TYPE_CHECKING:
    from vkharness.trace.calls import Block

MOST_TOLD = 5
"""Calls that are named one by one."""


def load_readable(trace: Path) -> tuple[list[Block], int]:
    """The blocks of a trace without the calls that could not be read, and how many those are. Says so on stderr.

    Nobody knows what such a call did, so that it can neither be moved nor made anew. Raises `UserError` where two calls
    have one number, by which changes name them.
    """
    from vkharness.trace.calls import Call
    from vkharness.trace.codec import read_trace

    notes: list[str] = []
    blocks: list[Block] = []
    left_out = 0
    numbers: set[int] = set()
    for block in read_trace(trace, notes):
        if isinstance(block, Call) and block.unread:
            left_out += 1
            if left_out <= MOST_TOLD:
                notes.append(f"{trace}: left out: {block.name} ({block.unread})")
            continue
        if isinstance(block, Call):
            if block.index in numbers:
                raise UserError(
                    f"{trace}: two calls have the number {block.index}, and no change could tell them apart"
                )
            numbers.add(block.index)
        blocks.append(block)
    if left_out > MOST_TOLD:
        notes.append(f"{trace}: left out: {left_out - MOST_TOLD} more calls that cannot be read")
    for note in notes:
        echo(f"vkharness: note: {note}", err=True)
    return blocks, left_out
