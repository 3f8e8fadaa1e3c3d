"""The stream of a program that was killed below the mirror layer, in a form in which two runs can be compared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from vkharness.check import Analysis
from vkharness.findings import UserError
from vkharness.live.line_tables import LineTables
from vkharness.live.native_sites import NativeSites
from vkharness.live.process_judge import judge_folder
from vkharness.live.records import streams_in
from vkharness.trace.calls import CUT_OFF, Block, Call


def lines_of_stream(folder: Path) -> Iterator[str]:
    """Each block of the last process with its number; then how many there are, if the stream says that they are all.

    So the lines of a process that was killed are among those of one that nobody disturbed, and the last one is not.
    An error that is none for the user is a line that no run writes.
    """
    blocks: list[Block] = []
    if not folder.is_dir():
        return
    try:
        last = max(streams_in(folder), key=lambda each: each.stat().st_mtime_ns)
        session = judge_folder(last, Analysis(), NativeSites(LineTables()), blocks.append)
    except UserError:
        return
    except Exception as error:
        yield f"it cannot be read: {type(error).__name__}: {error}"
        return
    yield from (f"inside the mirror: {error}" for error in session.internal_errors)
    end = blocks[-1] if blocks else None
    is_cut = isinstance(end, Call) and end.name == CUT_OFF
    for number, block in enumerate(blocks[: len(blocks) - is_cut]):
        said = (block.name, block.args, block.result) if isinstance(block, Call) else block
        yield f"{number}: {said}"
    if not is_cut:
        yield f"the whole stream has {len(blocks)} blocks, and is judged as {session.verdict}"
