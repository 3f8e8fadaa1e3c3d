"""The text of VK_LAYER_LUNARG_api_dump, with the settings of all its versions.

    Thread 0, Frame 0:
    vkBindBufferMemory(device, buffer, memory, memoryOffset) returns VkResult VK_SUCCESS (0):
        device:                         VkDevice = 0x55934b72f610
        ...

The line of thread and frame may be missing, and so may types. A member stands deeper than what it is a part of, and a
value deeper than its call. Other lines are passed over. What `adb logcat` puts in front of each line is taken away.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from vkharness.trace.file_kinds import TEXT_CALL
from vkharness.trace.printed.printed_values import MOST_DEPTH, PrintedCall, PrintedValue

_CALL = re.compile(TEXT_CALL)
_THREAD = re.compile(r"Thread (\d{1,9})(?:, Frame \d+)?(?:, Time \d+ us)?")
_RESULT = re.compile(r"(?:return \w+\*? )?(VK_\w+ ?\(-?\d+\)|VK_\w+|UNKNOWN \(-?\d+\)|0x[0-9a-fA-F,]+|-?[\d,.]+) ?:?$")
_NAME = re.compile(r"([ \t]*)([A-Za-z_]\w*(?:\[[\d,.]+\])*) ?:[ \t]+")
_PREFIX = 100
"""Characters that a tool may put in front of a line."""
_LOGCAT = re.compile(r"^.{0,80}?\bapi_?dump\s*(?:\(\s*\d+\))?\s*: ")
_AFTER = "<after returning from implementation>"
_SHADER = "[ 0x"
MOST_TEXT = 1 << 20
"""Characters of a text of a program that has several lines."""


class TextCalls:
    """Reads the lines of one dump. `passed_over` counts those that are no part of it, and `in_no_column` those among
    them that would be values if they were indented."""

    def __init__(self) -> None:
        self.passed_over = self.in_no_column = 0
        self._call: PrintedCall | None = None
        self._column = self._thread = 0
        self._open: list[tuple[int, PrintedValue]] = []
        """Columns and values, of those that the next line may be a part of."""
        self._text: PrintedValue | None = None
        """A text of the program that goes on in the next line."""
        self._more: list[str] = []
        """Its lines behind the first one."""
        self._left = 0
        """Characters that it may still have."""
        self._ended = False
        """Whether an empty line stood behind the call."""

    def read(self, lines: Iterable[tuple[int, str]]) -> Iterator[PrintedCall]:
        """The calls of numbered lines, in order."""
        for number, raw in lines:
            line = _LOGCAT.sub("", raw, count=1) if "dump" in raw[:_PREFIX] else raw
            head = _CALL.search(line) if " returns " in line else None
            if head is not None:
                self._end_text()
                if self._call is not None:
                    yield self._call
                self._begin(number, line, head)
            elif self._text is not None:
                self._continue(line)
            elif not line.strip():
                self._ended |= len(line.expandtabs()) <= self._column
            elif not self._take(line):
                self.passed_over += 1
        self._end_text()
        if self._call is not None:
            self._call.is_last = not self._ended
            yield self._call

    def _begin(self, number: int, line: str, head: re.Match[str]) -> None:
        before, rest = _THREAD.search(line[: head.start()]), line[head.end() :].strip()
        if before is not None:
            self._thread = int(before.group(1))
        result = _RESULT.match(rest)
        self._call = PrintedCall(number, head["name"], result.group(1) if result else "", self._thread, [])
        self._column = len(line[: before.start() if before else head.start()].expandtabs())
        self._open, self._ended = [], False
        after = _THREAD.match(rest)
        if after is not None:
            self._call.trouble = "its parameters are mixed with those of another thread"
            self._thread = int(after.group(1))

    def _take(self, line: str) -> bool:
        """A line that is no head. False for one that is no part of a dump."""
        thread = _THREAD.search(line) if "Thread " in line else None
        if thread is not None and line.rstrip().endswith(":"):
            self._thread = int(thread.group(1))
            return True
        call, bare = self._call, line.strip()
        if call is None:
            return False
        named = _NAME.match(line)
        rest = line[named.end() :] if named is not None else ""
        value = rest[2:] if rest[:2] == "= " else rest.partition(" = ")[2]
        if named is not None and value:
            return self._value(call, named[1], named[2], value)
        result = _RESULT.match(bare)
        if bare == _AFTER:  # what was printed before the call was made is printed again
            call.values.clear()
            self._open = []
        elif bare.startswith("return ") and result is not None:
            call.result = result.group(1)
        elif bare.startswith(_SHADER) and self._open:
            self._open[-1][1].text = bare
        else:
            return bare == ":" or (bare[:1] == "<" and bare[-1:] == ">")
        return True

    def _value(self, call: PrintedCall, indent: str, name: str, rest: str) -> bool:
        column = len(indent.expandtabs())
        while self._open and self._open[-1][0] >= column:
            self._open.pop()
        if column <= self._column or len(self._open) >= MOST_DEPTH:
            self.in_no_column += column <= self._column
            return False
        text = rest.rstrip()
        value = PrintedValue(name, text if text[:1] == '"' else text.removesuffix(":").removesuffix(" (Union)"))
        (self._open[-1][1].parts if self._open else call.values).append(value)
        self._open.append((column, value))
        if text[:1] == '"' and (len(text) == 1 or text[-1] != '"'):
            self._text, self._left = value, MOST_TEXT - len(text)
        return True

    def _continue(self, line: str) -> None:
        """One more line of a text of the program."""
        self._more.append(line)
        self._left -= len(line) + 1
        if line.rstrip().endswith('"') or self._left < 0:
            self._end_text()

    def _end_text(self) -> None:
        if self._text is not None:
            self._text.text = "\n".join([self._text.text, *self._more])
        self._text, self._more = None, []
