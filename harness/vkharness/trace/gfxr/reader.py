"""A capture as the blocks of `vkharness.trace.calls`, in order, one at a time in memory.

What cannot be understood costs the call or block that it is in: the call comes with `Call.unread`, and judges name it
as not modelled. What a query returned is neither judged nor needed to go on, so a query that cannot be read is left
out. Only a file without a readable header is refused.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

from vkharness.trace.call_shapes import check_call
from vkharness.trace.calls import Block, Call
from vkharness.trace.expanded_room import ExpandedRoom
from vkharness.trace.found_writes import FoundWrites
from vkharness.trace.gfxr import blocks as file
from vkharness.trace.gfxr.blocks import CaptureFile, RawBlock
from vkharness.trace.gfxr.call_ids import VULKAN, call_names
from vkharness.trace.gfxr.parameters import command_decoder
from vkharness.trace.gfxr.template_values import UpdateTemplates, first_form
from vkharness.trace.initial_contents import ImageStart, InitialContents, LaidOut, Texels
from vkharness.trace.lines import MAX_BLOCK, Corrupt
from vkharness.trace.unread_calls import UnreadCalls
from vkharness.trace.work_budget import spend_reading

_CALL = struct.Struct("<IQ")
_META = struct.Struct("<IQ")
_SIZE = struct.Struct("<Q")
_FILL = struct.Struct("<QQQ")
_FIRST_HANDLE = struct.Struct("<Q")
BUFFER_HEAD, IMAGE_HEAD = struct.Struct("<QQQ"), struct.Struct("<QQQIII")
"""Of the command for a buffer: device, buffer, size. For an image: device, image, size, aspect, layout, levels; then
the size of each level follows."""
MOST_LEVELS = 32

FILL_MEMORY, INIT_BUFFER, INIT_IMAGE = 2, 7, 8
WITHOUT_EFFECT = ("vkFrameBoundaryANDROID",)
"""Commands of layers, which Vulkan's headers do not have."""
MOST_EXPANDED = 256 << 20
"""Bytes of compressed contents of one block."""
BYTES_A_UNIT = 32
"""Bytes of a compressed call that are one unit of work to decode (`vkharness.trace.work_budget`)."""
MOST_SAID = 120
"""Characters of a remark."""
WITHOUT_CONTENTS = {9, 10, 11, 12, 13, 14, 15, 18, 20, 22, 24, 32, 35, 37, 3, 4, 5, 6, 1}
"""Meta commands that put no contents anywhere: messages, window sizes, properties of the device, addresses."""


class Reader:
    """Reads one capture. `notes` gets one line for each thing that the reader should know and that is no error."""

    def __init__(self, path: Path, notes: list[str]) -> None:
        self.path = path
        self._notes = notes
        self._memory = FoundWrites()
        self._initial = InitialContents(self._memory)
        self._templates = UpdateTemplates()
        self._names = call_names()
        self._skipped: Counter[str] = Counter()
        self._unread = UnreadCalls()
        self._room = ExpandedRoom(path, 0)

    def read(self) -> Iterator[Block]:
        """The blocks. Raises UserError when the file is no capture or cannot be read."""
        with CaptureFile(self.path) as capture:
            self._room = ExpandedRoom(self.path, capture.size)
            for raw in capture.blocks(self._notes):
                if raw.type == file.FUNCTION:
                    call = self._call(capture, raw)
                    if call is not None:
                        yield call
                elif raw.type == file.META:
                    yield from self._meta(capture, raw)
                elif raw.type not in (file.FRAME, file.STATE, file.ANNOTATION):
                    self._skipped[f"of the type {raw.type}"] += 1
        passed_over = (f"{count} blocks passed over: {what}" for what, count in sorted(self._skipped.items()))
        self._notes.extend(f"{self.path}: {remark}" for remark in (*self._unread.remarks(), *passed_over))

    def _call(self, capture: CaptureFile, raw: RawBlock) -> Call | None:
        """The call of a block; None for one that is left out."""
        index = raw.number
        try:
            number, thread = _CALL.unpack_from(raw.content)
        except struct.error:
            return self._cannot_read(index, "vkUnknown", 0, b"", Corrupt("it ends before the number of its command"))
        if number >> 16 != VULKAN:
            self._skipped[f"calls of another API than Vulkan (family {number >> 16})"] += 1
            return None
        name = self._names.get(number)
        if name in WITHOUT_EFFECT:
            return None
        if name is None:
            name = f"vkUnknown{number & 0xFFFF:#06x}"
            return self._cannot_read(index, name, thread, b"", Corrupt("a command that this vkharness has no name of"))
        content = raw.content
        try:
            content = self._content(capture, raw, _CALL.size)
            args, result = self._decoded(name, content)
            call = Call(index, *first_form(name, args), result, None, thread)
            self._follow(call)
            check_call(call.name, call.args, call.result)
        except (Corrupt, struct.error, RecursionError, ValueError) as error:
            return self._cannot_read(index, name, thread, content, error)
        return call

    def _content(self, capture: CaptureFile, raw: RawBlock, head: int) -> bytes:
        """Returns the bytes behind a call's number and thread, decompressed."""
        if len(raw.content) < raw.size:
            raise Corrupt(f"a block of {raw.size} bytes")
        if not raw.compressed:
            return raw.content[head:]
        size = _SIZE.unpack_from(raw.content, head)[0]
        if size <= MAX_BLOCK:
            self._room.take(raw.number, size, len(raw.content))
            spend_reading(size // BYTES_A_UNIT, "bytes of compressed calls")
        return capture.expand(raw.content[head + _SIZE.size :], size)

    def _decoded(self, name: str, content: bytes) -> tuple[dict[str, Any], int | None]:
        made = command_decoder(name)
        if made is None:
            raise Corrupt("a command that the tables do not have")
        args, at = made.parameters(content, 0)
        result = None
        if made.returns:
            result = struct.unpack_from("<" + made.returns, content, at)[0]
            at += struct.calcsize("<" + made.returns)
        if at != len(content):
            raise Corrupt(f"{len(content) - at} bytes more than its parameters")
        if made.outputs and result is not None and result < 0:
            args.update(dict.fromkeys(made.outputs))
        return args, result if made.kept else None

    def _cannot_read(self, index: int, name: str, thread: int, content: bytes, error: Exception) -> Call | None:
        """A call of which only the first parameter is known, which is the object that it is about."""
        why = str(error) if isinstance(error, Corrupt) else "it ends in the middle of a value"
        first = _FIRST_HANDLE.unpack_from(content)[0] if len(content) >= _FIRST_HANDLE.size else None
        return self._unread.call(index, name, first, why, thread)

    def _follow(self, call: Call) -> None:
        """Keeps what later blocks need to be understood."""
        name, args = call.name, call.args
        self._memory.follow(call)
        self._initial.follow(call)
        if "Template" in name and (call.result is None or call.result >= 0):
            if name.startswith("vkCreateDescriptorUpdateTemplate"):
                self._templates.created(args)
            elif name.startswith("vkDestroyDescriptorUpdateTemplate"):
                self._templates.destroyed(args)
            else:
                self._templates.applied(args)

    def _meta(self, capture: CaptureFile, raw: RawBlock) -> Iterator[Block]:
        """The contents that a meta command holds; nothing for one without."""
        try:
            kind = _META.unpack_from(raw.content)[0] & 0xFFFF
            if kind == FILL_MEMORY:
                (memory, offset, size), data = self._contents(capture, raw, _FILL)
                if offset + size >= 1 << 63:
                    raise Corrupt(f"{size} bytes from byte {offset} of a memory object")
                yield from self._memory.found(raw.number, memory, offset, data)
            elif kind == INIT_BUFFER:
                (_device, buffer, _size), data = self._contents(capture, raw, BUFFER_HEAD)
                yield from self._initial.buffer(raw.number, buffer, data)
            elif kind == INIT_IMAGE:
                levels = min(IMAGE_HEAD.unpack_from(raw.content, _META.size)[-1], MOST_LEVELS)
                head, data = self._contents(capture, raw, IMAGE_HEAD, 8 * levels)
                sizes = struct.unpack_from(f"<{levels}Q", raw.content, _META.size + IMAGE_HEAD.size)
                device, image, _size, aspect, layout, _levels = head
                start = ImageStart([LaidOut(layout, aspect)])
                in_memory = list(self._initial.linear(raw.number, image, data))
                yield from in_memory
                texels = _levels_of(aspect, sizes) if not in_memory else []
                yield from self._initial.image(raw.number, device, image, start, texels, data)
            elif kind not in WITHOUT_CONTENTS:
                self._skipped[f"meta commands with the number {kind}"] += 1
        except (Corrupt, struct.error) as error:
            self._skipped[f"contents that could not be read ({error})"[:MOST_SAID]] += 1

    def _contents(
        self, capture: CaptureFile, raw: RawBlock, head: struct.Struct, more: int = 0
    ) -> tuple[tuple[int, ...], bytes]:
        """The numbers before the contents of a meta command, the third of which is their size, and the contents."""
        if len(raw.content) < raw.size:
            raise Corrupt(f"{raw.size} bytes")
        numbers = head.unpack_from(raw.content, _META.size)
        data = raw.content[_META.size + head.size + more :]
        if raw.compressed and numbers[2]:
            self._room.take(raw.number, min(numbers[2], MOST_EXPANDED), len(raw.content))
            data = capture.expand(data, numbers[2], MOST_EXPANDED)
        if len(data) < numbers[2]:
            raise Corrupt(f"{len(data)} bytes where the block says {numbers[2]}")
        return numbers, data[: numbers[2]]


def _levels_of(aspect: int, sizes: tuple[int, ...]) -> list[Texels]:
    """The levels of an image of which the bytes lie one after the other, those of all layers in each."""
    offsets = accumulate(sizes, initial=0)
    return [Texels(offset, aspect, level) for level, offset in zip(range(len(sizes)), offsets, strict=False)]


def read_capture(path: Path, notes: list[str]) -> Iterator[Block]:
    """The blocks of a `.gfxr` file. See `vkharness.trace.codec.read_trace`."""
    return Reader(path, notes).read()
