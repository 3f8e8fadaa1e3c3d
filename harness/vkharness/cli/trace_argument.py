"""The argument TRACE of commands: a file, or the folder of a stream of the mirror layer, which becomes a file first."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vkharness.cli.last_resort import echo
from vkharness.findings import UserError

if TYPE_CHECKING:
    from vkharness.trace.calls import Block

_FOLDER = "vkharness.cli.trace_argument"
"""The key under which a command's context keeps the folders that were given, by the files that were made of them."""


class TracePath(click.Path):
    """A file with a trace. Of a folder of the mirror layer a packed trace is made, which goes with the command."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path of the file."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if ctx is None or ctx.resilient_parsing or not path.is_dir():
            return path
        made = ctx.with_resource(_as_file(stream_in(path)))
        ctx.meta.setdefault(_FOLDER, {})[made] = path
        return made


def given_as(ctx: click.Context, trace: Path) -> Path:
    """The path that the user gave for a trace."""
    folder: Path = ctx.meta.get(_FOLDER, {}).get(trace, trace)
    return folder


def stream_in(folder: Path) -> Path:
    """The one stream in a folder. Raises UserError."""
    from vkharness.live.records import streams_in

    found = streams_in(folder)
    if len(found) > 1:
        names = ", ".join(each.name for each in found[:5])
        raise UserError(f"{folder}: the streams of {len(found)} processes: name the folder of one ({names})")
    return found[0]


@contextmanager
def _as_file(folder: Path) -> Iterator[Path]:
    from vkharness.temporary import temporary_folder
    from vkharness.trace.codec import save
    from vkharness.trace.packed_chunks import SUFFIX

    with temporary_folder() as made:
        path = made / f"{folder.absolute().name}{SUFFIX}"
        save(path, noted_blocks(folder))
        yield path


def noted_blocks(folder: Path) -> Iterator[Block]:
    """The blocks of a stream. Says on stderr what was not seen."""
    from vkharness.live.stream_blocks import stream_blocks

    notes: list[str] = []
    yield from stream_blocks(folder, notes)
    for note in notes:
        echo(f"vkharness: note: {note}", err=True)
