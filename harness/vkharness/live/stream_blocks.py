"""The stream of a process under the mirror layer as the blocks of a trace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from vkharness.live.line_tables import LineTables
from vkharness.live.native_sites import NativeSites
from vkharness.live.process_judge import ProcessJudge
from vkharness.trace.calls import Block
from vkharness.trace.work_budget import UNITS, begin_file

AT_ONCE = 1 << 12
"""Records that are read before their blocks are handed on."""


def stream_blocks(folder: Path, notes: list[str]) -> Iterator[Block]:
    """Yields the blocks of a stream that was kept. `notes` get a line for each thing that was not seen. Raises
    UserError."""
    UNITS.source = str(folder)
    begin_file(stream_size(folder))
    blocks: list[Block] = []
    sites = NativeSites(LineTables(), (), at_once=True)
    judge = ProcessJudge(folder, None, sites, live=False, sink=blocks.append)
    while judge.advance(AT_ONCE):
        yield from blocks
        blocks.clear()
    judge.finish()
    yield from blocks
    for name in sorted(judge.session.cut_chains):
        notes.append(f"{name} leads to no memory or in a circle; what is behind was not seen")
    notes += [error.splitlines()[-1] for error in judge.session.internal_errors]


def stream_size(folder: Path) -> int:
    """Bytes of a stream."""
    return sum(each.lstat().st_blocks * 512 for each in folder.glob("segment-*"))
