"""Lines that came before but for the index: programs record the same commands frame after frame.

The line of a command is `{"index":N,` and the rest. Where the same rest was read before as a plain call
(`vkharness.trace.plain_calls`), the line is that call with another index. The arguments are then one object for all of
these calls, which nobody changes.
"""

from __future__ import annotations

from typing import Any

from vkharness.trace.calls import Call
from vkharness.trace.lines import parse

START = b'{"index":'
MOST_DIGITS = 18
"""Digits of an index that surely fits a signed integer of 64 bits."""
MOST_BYTES = 4 << 20
"""The most bytes of lines that are kept. With more, all are forgotten."""


class RepeatedLines:
    """The calls of the lines that came lately, by the bytes behind their index."""

    def __init__(self) -> None:
        self._calls: dict[bytes, Call] = {}
        self._bytes = 0
        self._rest = b""

    def read(self, raw: bytes) -> dict[str, Any] | Call:
        """The call of a line that is known, the JSON object of another one. Raises Corrupt."""
        comma = raw.find(b",", len(START), len(START) + MOST_DIGITS + 1)
        digits = raw[len(START) : comma]
        self._rest = b""
        if comma > 0 and raw.startswith(START) and digits.isdigit() and (digits[0] != ord("0") or len(digits) == 1):
            self._rest = rest = raw[comma:]
            known = self._calls.get(rest)
            if known is not None:
                return Call(int(digits), known.name, known.args, known.result, known.site, known.thread)
        return parse(raw)

    def keep(self, call: Call) -> None:
        """Keeps the call that the last line was."""
        if not self._rest.endswith(b"\n"):
            return
        self._bytes += len(self._rest)
        if self._bytes > MOST_BYTES:
            self._calls.clear()
            self._bytes = len(self._rest)
        self._calls[self._rest] = call
