"""Size and cost of a trace in each form: as JSON lines, in one file, and as the records of the mirror layer.

    .venv/bin/python bench/packed_traces.py [--commands N]... [--fresh] [--records]

The trace is "frames" of `bench/check_cost.py`: frames of 2,000 commands. "MB" are those of all files of the trace, and
"packed MB" what zstd makes of the lines or the records in pieces of 1 MiB, as the one file does. "read s" is the CPU
time in which they become calls, "judge s" that of `check` without the second judge, which holds the reading. "MiB" is
the most memory that reading, or reading and judging, had, less what the process had before. Each is a process of its
own. The stream of the layer (`--records`) is written by the tests' writer of such streams, without call stacks.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click
import zstandard
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.check_cost import frames
from tests.support.written_streams import MirrorStream
from vkharness.check import Analysis
from vkharness.fuzz.process_memory import peak_bytes, resident_bytes
from vkharness.live.stream_blocks import stream_blocks
from vkharness.rare_collections import rare_collections
from vkharness.report.console import terminal
from vkharness.trace.calls import Block
from vkharness.trace.codec import read_trace
from vkharness.trace.packed import LEVEL, PackedLines

PIECE = 1 << 20
NAMED = re.compile(rb'"([\w-]+\.bin/\w+\.bin)"')
FLUSH = 1 << 16
"""Bytes of lines of a chunk, as `TraceWriter` has them."""


def blocks_of(path: Path) -> Iterator[Block]:
    """The blocks of a trace in any form."""
    return stream_blocks(path, []) if path.is_dir() else read_trace(path)


def run_part(path: Path, part: str) -> None:
    """Reads or judges a trace in this process; prints its seconds and MiB as JSON."""
    before = resident_bytes()
    start = time.process_time()
    with rare_collections():
        if part == "judge":
            Analysis().follow(blocks_of(path))
        else:
            for _ in blocks_of(path):
                pass
    seconds = time.process_time() - start
    print(json.dumps([seconds, (peak_bytes() - before) / (1 << 20)]))


def measured(path: Path, part: str) -> tuple[float, float]:
    """Seconds and MiB of one part in a process of its own."""
    command = [sys.executable, __file__, "--part", part, str(path)]
    seconds, memory = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return seconds, memory


def write_records(folder: Path, blocks: Iterator[Block]) -> None:
    """Writes the stream that the layer would write, in segments of its size."""
    stream = MirrorStream(folder, segment=1 << 24)
    for block in blocks:
        stream.block(block)


def pack(lines: Path, packed: Path) -> None:
    """Makes one file of a trace, line by line."""

    def named(found: re.Match[bytes]) -> bytes:
        return b'"%b"' % writer.store((lines.parent / found[1].decode()).read_bytes()).encode()

    with lines.open("rb") as source, packed.open("wb", buffering=0) as target:
        writer = PackedLines(target.fileno())
        for line in source:
            writer.line(NAMED.sub(named, line) if b".bin/" in line else line, False)
            if writer.waiting > FLUSH:
                writer.flush()
        writer.finish()


def packed_size(files: list[Path]) -> int:
    """Bytes of files that are compressed in pieces."""
    compressor = zstandard.ZstdCompressor(level=LEVEL)
    size = 0
    for path in files:
        with path.open("rb") as file:
            while piece := file.read(PIECE):
                held = piece.rstrip(b"\0")  # the rest of the layer's last segment
                size += len(compressor.compress(held)) if held else 0
    return size


def rows(folder: Path, commands: int, fresh: bool, records: bool) -> Iterator[list[str]]:
    """The rows of one length."""
    lines, packed, stream = folder / "t.jsonl", folder / "t.vkt", folder / "records"
    made = frames(lines, commands, fresh=fresh)
    pack(lines, packed)
    forms = {"JSON lines": [lines], "one file": [packed]}
    if records:
        write_records(stream, read_trace(lines))
        forms["records"] = sorted(stream.glob("segment-*"))
    for name, files in forms.items():
        path = stream if name == "records" else files[0]
        size = sum(each.stat().st_blocks * 512 if path.is_dir() else each.stat().st_size for each in files)
        (read, less), (judge, memory) = measured(path, "read"), measured(path, "judge")
        small = size if name == "one file" else packed_size(files)
        cells = [
            f"{size / 1e6:.2f}",
            f"{small / 1e6:.2f}",
            f"{read:.2f}",
            f"{judge:.2f}",
            f"{less:.0f}",
            f"{memory:.0f}",
        ]
        yield [f"{made:,}", name, *cells]


@click.command()
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("--part", type=click.Choice(["read", "judge"]), hidden=True)
@click.option("--commands", multiple=True, type=int, default=(100_000, 1_000_000), show_default=True)
@click.option("--fresh", is_flag=True, help="Other offsets in each frame.")
@click.option("--records", is_flag=True, help="Write the stream of the layer, too, which takes minutes.")
def main(path: Path | None, part: str | None, commands: tuple[int, ...], fresh: bool, records: bool) -> None:
    """Prints the table."""
    if path is not None and part is not None:
        run_part(path, part)
        return
    table = Table("commands", "form", "MB", "packed MB", "read s", "judge s", "read MiB", "judge MiB", box=None)
    for each in commands:
        with tempfile.TemporaryDirectory() as folder:
            for row in rows(Path(folder), each, fresh, records):
                table.add_row(*row)
    terminal().print(table)


if __name__ == "__main__":
    main()
