"""`vkharness convert IN OUT`: a trace, a capture, a dump or a stream as a trace in one file, or as JSON lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vkharness.cli.frame_range import FrameRange
from vkharness.cli.last_resort import echo
from vkharness.cli.verdict import WORK_OPTION
from vkharness.findings import UserError

if TYPE_CHECKING:
    from vkharness.trace.calls import Block


@click.command()
@WORK_OPTION
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--frames", type=FrameRange(), help="Only the calls of these frames, which end with presents [all].")
def convert(source: Path, target: Path, frames: tuple[int, int] | None) -> None:
    """Write what SOURCE holds as a trace to TARGET: one file where that ends in .vkt, else JSON lines, with the bytes
    that they name in a folder beside them.

    SOURCE is a trace of either form, a capture, a dump, or the folder of a program under the mirror layer. Calls keep
    their numbers. With --frames the first frame is looked up in the index of a trace in one file. What is cut off at
    the beginning is missed by every judge, so that such a trace is there to be read, and is never clean.
    """
    from vkharness.cli.trace_argument import noted_blocks, stream_in
    from vkharness.trace.chosen_frames import chosen_frames, group_before
    from vkharness.trace.codec import read_header, read_trace, save

    if target.exists() and source.resolve() == target.resolve():
        raise UserError(f"{target} is what is to be converted: choose another file")
    first, last = frames or (1, 0)
    notes: list[str] = []
    if source.is_dir():
        blocks, header, start = noted_blocks(stream_in(source)), {}, None
    else:
        header = dict(read_header(source).get("vkharness", {}))
        start = group_before(source, first)
        blocks = read_trace(source, notes, start)
    header.pop("version", None)
    begun = 1 if start is None else start.frames + 1
    count = _Counted()
    save(target, count.follow(blocks if frames is None else chosen_frames(blocks, begun, first, last, source)), header)
    for note in notes:
        echo(f"vkharness: note: {note}", err=True)
    echo(f"{target}: {count.blocks} blocks")


class _Counted:
    def __init__(self) -> None:
        self.blocks = 0

    def follow(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Counts blocks."""
        for block in blocks:
            self.blocks += 1
            yield block
