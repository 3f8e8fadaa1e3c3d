"""The stream of a program that was killed below the mirror layer, in a form in which two runs can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from vkharness.check import Analysis
from vkharness.findings import UserError
from vkharness.live.line_tables import LineTables
from vkharness.live.native_sites import NativeSites
from vkharness.live.process_judge import judge_folder
from vkharness.live.records import streams_in
from vkharness.trace.calls import CUT_OFF, Block, Call

OF_A_KILL = re.compile(
    r"the process (?:ended in|did not end by itself)|the stream has no call|segment-\d+: 0 bytes are no size"
)
"""How it is said that a stream ends where its process did, also while it made a segment. All else is damage."""


def lines_of_stream(folder: Path) -> Iterator[str]:
    """Each block of the last process with its number; then how many there are, if the stream says that they are all.

    So the lines of a process that was killed are among those of one that nobody disturbed, and the last one is not.
    A stream that cannot be read is a line that no run writes; only where there is none yet, there are no lines.
    """
    blocks: list[Block] = []
    try:
        last = max(streams_in(folder), key=lambda each: each.stat().st_mtime_ns)
    except (UserError, FileNotFoundError):
        return
    try:
        session = judge_folder(last, Analysis(), NativeSites(LineTables()), blocks.append)
    except Exception as error:
        yield f"it cannot be read: {type(error).__name__}: {error}"
        return
    yield from (f"inside the mirror: {error}" for error in session.internal_errors)
    end = blocks[-1] if blocks else None
    is_cut = isinstance(end, Call) and end.name == CUT_OFF
    if isinstance(end, Call) and is_cut and not OF_A_KILL.match(end.unread):
        yield f"damaged: {end.unread}"
    for number, block in enumerate(blocks[: len(blocks) - is_cut]):
        said = (block.name, block.args, block.result) if isinstance(block, Call) else block
        yield f"{number}: {said}"
    if not is_cut:
        yield f"the whole stream has {len(blocks)} blocks, and is judged as {session.verdict}"
