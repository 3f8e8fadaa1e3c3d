"""Printed calls as the blocks of `vkharness.trace.calls`, in order, one at a time in memory.

The number of a call is the line where it begins. What cannot be understood costs the call that it is in. A dump in
which no call has values is refused, and so is one without handles: nothing can be said of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

from vkharness.findings import UserError
from vkharness.spec.enums import VkStructureType
from vkharness.trace.binaries import FolderReader
from vkharness.trace.calls import UNSEEN_WRITES, Block, Call
from vkharness.trace.chain import chained
from vkharness.trace.dialects import read_call, remarks
from vkharness.trace.file_kinds import FileKind
from vkharness.trace.lines import MAX_BLOCK, Corrupt
from vkharness.trace.printed.api_dump_html import html_calls
from vkharness.trace.printed.api_dump_json import json_calls
from vkharness.trace.printed.api_dump_text import TextCalls
from vkharness.trace.printed.printed_shapes import HiddenHandle, PrintedShapes
from vkharness.trace.printed.printed_values import PrintedCall
from vkharness.trace.scalars import Reading
from vkharness.trace.utf16 import open_printed

FORMS = {FileKind.API_DUMP_JSON: json_calls, FileKind.API_DUMP_HTML: html_calls}
"""The forms that are read call by call; text is read line by line."""
LOOKED_AT = 100
"""Calls at the beginning of a dump of which one has values, if any has."""
WITHOUT_VALUES = "no call has parameters (the layer's setting `detailed` is false): nothing can be judged; dump again"
WITHOUT_COLUMNS = "the lines have lost their indentation, which says what is a part of what: dump again, to a file"
WITHOUT_HANDLES = "handles are left out (the layer's setting `no_addr`), so that no object is known: dump again"
BYTES = "a dump has those of shaders alone, with the layer's setting `show_shader`"
HOST = "a dump lacks what the host writes to mapped memory: no hazard of it is found, and what depends on it is unknown"


class PrintedReader:
    """Reads one file. `notes` gets one line for each thing that the reader should know and that is no error."""

    def __init__(self, path: Path, notes: list[str]) -> None:
        self.path = path
        self._notes = notes
        self._shapes = PrintedShapes()
        self._reading = Reading(FolderReader(path), ours=False, with_bytes=BYTES)
        self._text = TextCalls()
        self._index = 0
        self._is_mapped = False
        self._cut: PrintedCall | None = None
        self._line_is_cut = False
        """Whether the file ends within a line of text."""

    def read(self, kind: FileKind) -> Iterator[Block]:
        """The blocks of the file. Raises UserError."""
        with open_printed(self.path) as file:
            calls = FORMS[kind](file) if kind in FORMS else self._text.read(self._lines(file))
            try:
                first = list(islice(calls, LOOKED_AT))
                whole = [call for call in first if not call.is_last]
                if whole and not any(call.values or call.trouble for call in whole):
                    why = WITHOUT_COLUMNS if self._text.in_no_column else WITHOUT_VALUES
                    raise UserError(f"{self.path}:{whole[0].line}: {why}")
                for printed in chain(first, calls):
                    call = self._call(printed)
                    if call is not None:
                        yield call
            except Corrupt as error:
                raise UserError(f"{self.path}: {error}") from None
        if not self._index:
            line = self._cut.line if self._cut is not None else 1
            raise UserError(f"{self.path}:{line}: the dump ends in the middle of its first call: nothing to read")
        self._notes.extend(f"{self.path}{remark}" for remark in self._remarks())

    def _lines(self, file: BinaryIO) -> Iterator[tuple[int, str]]:
        number = 0
        while raw := file.readline(MAX_BLOCK + 1):
            number += 1
            if len(raw) > MAX_BLOCK:
                raise Corrupt(f"line {number} has more than {MAX_BLOCK >> 20} MiB, which the layer does not write")
            self._line_is_cut = not raw.endswith(b"\n")
            yield number, raw.decode("utf-8", "replace").rstrip("\r\n")

    def _call(self, printed: PrintedCall) -> Call | None:
        """The call; None for one that is left out."""
        index = max(printed.line, self._index + 1)
        try:
            if printed.trouble or (printed.is_last and self._line_is_cut):
                raise Corrupt(printed.trouble)
            function = {"name": printed.name, "thread": printed.thread, "args": self._shapes.arguments(printed)}
            if printed.result:
                function["return"] = self._shapes.result(printed)
            call = read_call({"index": index, "function": function}, function, self._reading)
        except HiddenHandle:
            raise UserError(f"{self.path}:{printed.line}: {WITHOUT_HANDLES}") from None
        except (Corrupt, RecursionError, ValueError, OverflowError) as error:
            if printed.is_last:
                self._cut = printed
                return None
            why = str(error) if isinstance(error, Corrupt) else "a value that is none"
            unread = self._reading.unread.call(
                index, printed.name, self._shapes.command_buffer(printed), why.removeprefix(f"{printed.name}: "), 0
            )
            self._index = index
            return unread
        self._index = index
        self._follow(call)
        return call

    def _follow(self, call: Call) -> None:
        if call.name.startswith("vkMapMemory") or (call.name == "vkAllocateMemory" and _is_of_host(call.args)):
            call.args[UNSEEN_WRITES] = 1
            self._is_mapped = True

    def _remarks(self) -> Iterator[str]:
        """What the file lacks, one line each, from behind the file's name on."""
        if self._cut is not None:
            yield f":{self._cut.line}: the dump ends in the middle of this call; what comes before it is read"
        if self._text.passed_over:
            yield f": {self._text.passed_over} lines passed over that are no part of the dump"
        if self._is_mapped:
            yield f": {HOST}"
        yield from (f": {each}" for each in remarks(self._reading, Counter()))


def _is_of_host(args: dict[str, Any]) -> bool:
    """Whether memory that is allocated is the host's own."""
    return chained(args["pAllocateInfo"], VkStructureType.IMPORT_MEMORY_HOST_POINTER_INFO_EXT) is not None


def read_printed(path: Path, kind: FileKind, notes: list[str]) -> Iterator[Block]:
    """The blocks of a file. See `vkharness.trace.codec.read_trace`."""
    return PrintedReader(path, notes).read(kind)
