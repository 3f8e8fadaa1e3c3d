"""Traces on disk: JSON Lines in the shape of `gfxrecon-convert`, our additions under keys of our own.

    {"header": {"vulkan-version": "1.3.275", "vkharness": {"version": 1}}}
    {"index": 1, "function": {"name": "vkCmdFillBuffer", "thread": 0, "args": {...}}, "site": "file.py:12"}
    {"index": 2, "meta": {"name": "FillMemoryCommand", "args": {"memory_id": 5, ..., "data": "run.bin/….bin"}}}
    {"index": 3, "vkharness": {"name": "HostRead", "args": {"memory_id": 5, "offset": 0, "size": 256}}}

A capture of GFXReconstruct is a trace too, converted or as it is (`harness.trace.gfxr`). Reading and writing hold one
block at a time. Bad input raises `UserError`: one line, `file:line: what is wrong`.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from harness.findings import UserError
from harness.trace.binaries import BinaryReader, BinaryWriter
from harness.trace.calls import Block
from harness.trace.dialects import LOSSY_META, SILENT, read_blocks, write_block
from harness.trace.lines import Corrupt, is_capture, read_objects
from harness.trace.scalars import Reading

VERSION = 1
"""The version of vkharness's additions to the converter's shape. A reader refuses traces of later versions."""

_VULKAN = "1.3.275"
_FLUSH_AFTER = ("vkEndCommandBuffer", "vkQueue")


class TraceWriter:
    """Writes one trace; a context manager. The target appears, whole, when the writer is closed.

    Until then the blocks are in `<name>.partial-<process>` beside it, complete up to the last vkEndCommandBuffer or
    vkQueue* call, so that a program that dies in a submit leaves what led to it. An exception in the `with` block
    aborts.
    """

    def __init__(self, path: Path, header: dict[str, Any] | None = None) -> None:
        self.path = Path(path)
        self._part = self.path.with_name(f"{self.path.name}.partial-{os.getpid()}")
        self._binaries = BinaryWriter(self.path)
        try:
            self._file = self._part.open("w", encoding="utf-8")
        except OSError as error:
            raise UserError(f"{self.path}: cannot be written: {error.strerror or error}") from None
        self._line({"header": {"vulkan-version": _VULKAN, "vkharness": {"version": VERSION, **(header or {})}}})

    def write(self, block: Block) -> None:
        """Appends a block. Raises UserError when the disk does not take it."""
        try:
            self._line(write_block(block, self._binaries))
            if getattr(block, "name", "").startswith(_FLUSH_AFTER):
                self._file.flush()
        except OSError as error:
            raise UserError(f"{self.path}: cannot be written: {error.strerror or error}") from None

    def close(self) -> None:
        """Finishes the file and puts it in the target's place; does nothing when closed already."""
        if self._file.closed:
            return
        try:
            self._file.close()
            self._part.replace(self.path)
        except OSError as error:
            raise UserError(f"{self.path}: cannot be written: {error.strerror or error}") from None

    def abort(self) -> None:
        """Drops what was written; the target is as it was before."""
        if not self._file.closed:
            self._file.close()
            self._part.unlink(missing_ok=True)
            self._binaries.discard()

    def _line(self, value: dict[str, Any]) -> None:
        self._file.write(json.dumps(value, separators=(",", ":"), allow_nan=False) + "\n")

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


def read_trace(path: Path, notes: list[str] | None = None) -> Iterator[Block]:
    """Yields the blocks of a trace in order, one at a time in memory.

    `notes` gets one line for each thing that the reader should know and that is no error: the file ends in the middle
    of a block, bytes are not in the capture, names are newer than our tables. Raises UserError.
    """
    path = Path(path)
    notes = notes if notes is not None else []
    if is_capture(path):
        from harness.trace.gfxr.reader import read_capture  # most traces need none of it

        yield from read_capture(path, notes)
        return
    objects = read_objects(path, notes)
    _, first = next(objects)
    reading = Reading(BinaryReader(path), "vkharness" in _header_of(path, first))
    skipped: Counter[str] = Counter()
    blocks = 0
    number = 1
    for number, value in objects:
        try:
            made = list(read_blocks(value, reading, skipped))
        except Corrupt as error:
            raise UserError(f"{path}:{number}: {error}") from None
        except RecursionError:
            raise UserError(f"{path}:{number}: nested too deeply") from None
        blocks += 1
        yield from made
    if not blocks and notes:
        raise UserError(f"{path}:{number + 1}: the trace ends in the middle of its first block: nothing to read")
    notes.extend(f"{path}: {note}" for note in _remarks(reading, skipped))


def _remarks(reading: Reading, skipped: Counter[str]) -> Iterator[str]:
    """One line for each kind of thing that the trace lacks, or that the reader passed over with a loss."""
    if reading.without_bytes:
        yield f"{reading.without_bytes} values without their bytes (convert with --include-binaries to have them)"
    if reading.newer_names:
        names = sorted(reading.newer_names)
        yield f"names newer than this vkharness, read as no value: {', '.join(names[:5])}{', …' * (len(names) > 5)}"
    yield from reading.unread.remarks()
    for kind, count in sorted(skipped.items()):
        if kind in SILENT or (kind.startswith("meta ") and kind[5:] not in LOSSY_META):
            continue
        yield f"{count} blocks passed over: {kind}"


def read_header(path: Path) -> dict[str, Any]:
    """The header line: the converter's keys, and those of vkharness under "vkharness"; {} for a capture as it is.
    Raises `UserError`."""
    if is_capture(Path(path)):
        return {}
    _, first = next(read_objects(Path(path), []))
    return _header_of(Path(path), first)


def _header_of(path: Path, first: dict[str, Any]) -> dict[str, Any]:
    header = first.get("header")
    if type(header) is not dict:
        raise UserError(
            f"{path}:1: not a trace: the first line has no header; vkharness run and GFXReconstruct make traces"
        )
    ours = header.get("vkharness")
    if "vkharness" in header:
        version = ours.get("version") if type(ours) is dict else None
        if type(version) is not int or version < 1:
            raise UserError(f"{path}:1: the header's vkharness version is not a number from 1")
        if version > VERSION:
            raise UserError(
                f"{path}:1: trace version {version} of a newer vkharness; this one reads up to {VERSION}: update it"
            )
    return header


def save(path: Path, blocks: Iterable[Block], header: dict[str, Any] | None = None) -> None:
    """Writes a whole trace; the target is replaced only when all of it was written."""
    with TraceWriter(path, header) as writer:
        for block in blocks:
            writer.write(block)


def load(path: Path, notes: list[str] | None = None) -> list[Block]:
    """The blocks of a trace, as read_trace yields them."""
    return list(read_trace(path, notes))
