"""Traces on disk: JSON Lines in the shape of `gfxrecon-convert`, our additions under keys of our own.

    {"header": {"vulkan-version": "1.3.275", "vkharness": {"version": 1}}}
    {"index": 1, "function": {"name": "vkCmdFillBuffer", "thread": 0, "args": {...}}, "site": "file.py:12"}
    {"index": 2, "meta": {"name": "FillMemoryCommand", "args": {"memory_id": 5, ..., "data": "run.bin/….bin"}}}
    {"index": 3, "vkharness": {"name": "HostRead", "args": {"memory_id": 5, "offset": 0, "size": 256}}}
    {"end": {}}

A trace without the last line was cut off: its program was killed, or the disk was full. (Those of version 1 do not have
it.)

A capture of GFXReconstruct is a trace too, converted or as it is (`vkharness.trace.gfxr`), and so is what api_dump
printed (`vkharness.trace.printed`) and a capture of RenderDoc (`vkharness.trace.renderdoc`). Reading and writing hold
one block at a time; a capture of RenderDoc, which is of one frame, is in memory as a whole.
Bad input raises `UserError`: one line, `file:line: what is wrong`.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from vkharness.findings import UnwrittenError, UserError
from vkharness.spec.command_classes import PRESENT
from vkharness.trace.binaries import FolderReader
from vkharness.trace.calls import Block, Call, cut_off
from vkharness.trace.dialects import read_blocks, remarks, write_block
from vkharness.trace.file_kinds import FileKind, file_kind
from vkharness.trace.lines import Corrupt, parse, read_lines
from vkharness.trace.packed import PackedLines, PackedTrace
from vkharness.trace.packed_chunks import SUFFIX, PackedGroup
from vkharness.trace.packed_chunks import VERSION as PACKED_VERSION
from vkharness.trace.plain_lines import PlainLines
from vkharness.trace.repeated_lines import RepeatedLines
from vkharness.trace.scalars import Reading
from vkharness.trace.stacks import StackWriter
from vkharness.trace.work_budget import UNITS, begin_file
from vkharness.whole_file import open_part, remove_left

VERSION = 2
"""The version of vkharness's additions to the converter's shape. A reader refuses traces of later versions. That of a
packed trace is `packed_chunks.VERSION`."""

KNOWS_ITS_END = 2
"""The first version whose traces have a last line."""
END = "end"
"""The key of the last line."""
_VULKAN = "1.3.275"
_FLUSH_AFTER = ("vkEndCommandBuffer", "vkQueue")
_PENDING = 1 << 16
"""Bytes that wait to be written together, at most about."""


class TraceWriter:
    """Writes one trace; a context manager. The target appears, whole, when the writer is closed.

    Until then the blocks are in `<name>.partial-<process>-<random>` beside it, complete up to the last
    vkEndCommandBuffer or vkQueue* call, so that a program that dies in a submit leaves what led to it. That file also
    stays, and the target is as it was, when the disk does not take a block. The next whole trace of that name removes
    it, and of several only the last one stays until then. An exception in the `with` block aborts. In a process that
    was forked from the one that made the writer, nothing is written: the trace is its parent's.
    """

    def __init__(self, path: Path, header: dict[str, Any] | None = None, *, keeps_part: bool = True) -> None:
        """`keeps_part` is False for blocks that can be had again: what the disk takes of them then is of no use."""
        self.path = Path(path)
        self._keeps_part = keeps_part
        self._stacks = StackWriter()
        self._owner = os.getpid()
        self._trouble = ""
        if self.path.exists() and not self.path.is_file():
            raise UserError(f"{self.path}: cannot be written: it is no plain file")
        try:
            remove_left(self.path.parent, self.path.name, keep=1)
            self._handle, self._part = open_part(self.path)
            try:
                self._begin(header or {})
            except BaseException:
                self._close_file()
                self._part.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise UserError(f"{self.path}: cannot be written: {error.strerror or error}") from None

    def _begin(self, header: dict[str, Any]) -> None:
        packed = self.path.suffix == SUFFIX
        self._lines = PackedLines(self._handle) if packed else PlainLines(self._handle, self.path)
        version = PACKED_VERSION if packed else VERSION
        self._line({"header": {"vulkan-version": _VULKAN, "vkharness": {"version": version, **header}}})

    def write(self, block: Block) -> None:
        """Appends a block. Raises UserError when the disk does not take it, and for each block after that."""
        if os.getpid() != self._owner:
            return
        self._require_whole()
        try:
            name = block.name if isinstance(block, Call) else ""
            self._line(write_block(block, self._lines) | self._stacks.form(block.site), name == PRESENT)
            if self._lines.waiting > _PENDING or name.startswith(_FLUSH_AFTER):
                self._lines.flush()
        except OSError as error:
            self._trouble = error.strerror or str(error)
            self._require_whole()

    def keep(self, block: Block) -> None:
        """Appends a block. What the disk does not take is told once, by `close`: who runs a program goes on with it."""
        with suppress(UserError):
            self.write(block)

    def close(self) -> None:
        """Finishes the file and puts it in the target's place; does nothing when closed already.

        Raises UserError when the disk did not take all of it: then the target is as it was, and the line says where
        what was written is."""
        if self._handle < 0 or os.getpid() != self._owner:
            return
        try:
            if not self._trouble:
                self._line({END: {}})
                self._lines.finish()
                self._part.replace(self.path)
                remove_left(self.path.parent, self.path.name)
        except OSError as error:
            self._trouble = error.strerror or str(error)
        finally:
            self._close_file()
        if self._trouble and not self._keeps_part:
            self._part.unlink(missing_ok=True)
        self._require_whole()

    def abort(self) -> None:
        """Drops what was written; the target is as it was before."""
        if self._handle >= 0 and os.getpid() == self._owner:
            self._close_file()
            self._part.unlink(missing_ok=True)
            self._lines.discard()

    def _require_whole(self) -> None:
        if self._trouble:
            part = f"; what came before is in {self._part.name}, cut off" if self._keeps_part else ""
            raise UnwrittenError(f"{self.path}: cannot be written: {self._trouble}{part}")

    def _line(self, value: dict[str, Any], presents: bool = False) -> None:
        raw = json.dumps(value, separators=(",", ":"), allow_nan=False) + "\n"
        self._lines.line(raw.encode(), presents)

    def _close_file(self) -> None:
        os.close(self._handle)
        self._handle = -1

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


def read_trace(path: Path, notes: list[str] | None = None, start: PackedGroup | None = None) -> Iterator[Block]:
    """Yields the blocks of a trace in order, one at a time in memory; of a packed one from the group `start` on.

    `notes` gets one line for each thing that the reader should know and that is no error: the file ends in the middle
    of a block, bytes are not in the capture, names are newer than our tables. Raises UserError.
    """
    path = Path(path)
    UNITS.source = str(path)
    notes = notes if notes is not None else []
    kind = file_kind(path)
    if kind is not FileKind.PACKED:  # that of a packed trace grows with what it expands to
        begin_file(path.stat().st_size)
    if kind not in (None, FileKind.TRACE, FileKind.PACKED):
        yield from _other_stream(path, kind, notes)
        return
    lines = RepeatedLines()
    packed = PackedTrace(path, notes) if kind is FileKind.PACKED else None
    objects = read_lines(path, notes, lines.read, None if packed is None else packed.lines(start))
    header = read_header(path) if start is not None else _header_of(path, next(objects)[1], packed is not None)
    reading = Reading(packed or FolderReader(path), "vkharness" in header)
    skipped: Counter[str] = Counter()
    blocks = last = 0
    knows_its_end = reading.ours and header["vkharness"]["version"] >= KNOWS_ITS_END
    ended = False
    number = 1
    for number, value in objects:
        if ended and knows_its_end:
            raise UserError(f"{path}:{number}: a line behind the last one: two traces in one file")
        if isinstance(value, Call):
            blocks, last = blocks + 1, value.index
            yield value
            continue
        if END in value and knows_its_end:
            ended = True
            continue
        try:
            made = list(read_blocks(value, reading, skipped, lines.keep))
        except Corrupt as error:
            raise UserError(f"{path}:{number}: {error}") from None
        except RecursionError:
            raise UserError(f"{path}:{number}: nested too deeply") from None
        blocks += 1
        last = made[-1].index if made else last
        yield from made
    if not blocks and notes:
        raise UserError(f"{path}:{number + 1}: the trace ends in the middle of its first block: nothing to read")
    if knows_its_end and not ended:
        yield cut_off(last)
    notes.extend(f"{path}: {note}" for note in remarks(reading, skipped))


def _other_stream(path: Path, kind: FileKind, notes: list[str]) -> Iterator[Block]:
    """The blocks of a file that is no trace. Most commands need none of these readers."""
    if kind is FileKind.CAPTURE:
        from vkharness.trace.gfxr.reader import read_capture

        return read_capture(path, notes)
    if kind is FileKind.RENDERDOC:
        from vkharness.trace.renderdoc.conversion import read_rdc

        return read_rdc(path, notes)
    if kind is FileKind.RENDERDOC_XML:
        from vkharness.trace.renderdoc.renderdoc_reader import read_renderdoc

        return read_renderdoc(path, notes)
    if kind is FileKind.TEXT:
        raise UserError(f"{path}: stream text has accesses and no calls: check, explain, graph and fmt read it")
    from vkharness.trace.printed.printed_reader import read_printed

    return read_printed(path, kind, notes)


def read_header(path: Path) -> dict[str, Any]:
    """The header line: the converter's keys, and those of vkharness under "vkharness"; {} for a file of another tool.
    Raises `UserError`."""
    kind = file_kind(Path(path))
    if kind not in (FileKind.TRACE, FileKind.PACKED, None):
        return {}
    packed = PackedTrace(path, []) if kind is FileKind.PACKED else None
    _, first = next(read_lines(Path(path), [], parse, None if packed is None else packed.lines()))
    return _header_of(Path(path), first, packed is not None)


def _header_of(path: Path, first: dict[str, Any] | Call, packed: bool) -> dict[str, Any]:
    header = None if isinstance(first, Call) else first.get("header")
    if type(header) is not dict:
        raise UserError(
            f"{path}:1: not a trace: the first line has no header; vkharness run, GFXReconstruct and api_dump make some"
        )
    ours = header.get("vkharness")
    if "vkharness" in header:
        version = ours.get("version") if type(ours) is dict else None
        if type(version) is not int or version < 1:
            raise UserError(f"{path}:1: the header's vkharness version is not a number from 1")
        newest = PACKED_VERSION if packed else VERSION
        if version > newest:
            raise UserError(
                f"{path}:1: trace version {version} of a newer vkharness; this one reads up to {newest}: update it"
            )
    return header


def save(path: Path, blocks: Iterable[Block], header: dict[str, Any] | None = None) -> None:
    """Writes a whole trace; the target is replaced only when all of it was written."""
    with TraceWriter(path, header, keeps_part=False) as writer:
        for block in blocks:
            writer.write(block)


def load(path: Path, notes: list[str] | None = None) -> list[Block]:
    """The blocks of a trace, as read_trace yields them."""
    return list(read_trace(path, notes))
