"""The HTML of VK_LAYER_LUNARG_api_dump.

    <div class='thd'>Thread: 0</div><details class='fn'><summary><div class='var'>vkQueueWaitIdle(queue)</div>
    <div class='type'>VkResult</div><div class='val'>VK_SUCCESS (0)</div></summary>
    <details class='data'><summary><div class='var'>queue</div><div class='type'>VkQueue</div><div class='val'>0x55...

The layer does not escape texts of programs, so that its own few tags are looked for, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from vkharness.trace.file_kinds import HTML_CALL
from vkharness.trace.printed.call_pieces import CallPiece, call_pieces
from vkharness.trace.printed.printed_values import MOST_DEPTH, PrintedCall, PrintedValue

_THREAD = re.compile(r"<div class='thd'>Thread: (\d{1,9})<")
_TAG = re.compile(r"<details class='(data)'>|</(details)>|<div class='(var|val)'>")
_END = "</div>"


def html_calls(file: BinaryIO) -> Iterator[PrintedCall]:
    """The calls of an open file, in order. Raises Corrupt for a call that is too long."""
    for piece in call_pieces(file, HTML_CALL):
        yield _call(piece)


def _call(piece: CallPiece) -> PrintedCall:
    text = piece.raw.decode("utf-8", "replace")
    thread = _THREAD.match(text)
    made = PrintedCall(piece.line, "", "", int(thread.group(1)) if thread else 0, [], "it has no end", piece.is_last)
    opened: list[PrintedValue] = []
    at = 0
    while (tag := _TAG.search(text, at)) is not None:
        begins, ends, what = tag.groups()
        at = tag.end()
        if what:
            end = text.find(_END, at)
            if end < 0:
                break
            said, at = text[at:end], end + len(_END)
            if opened:
                _say(opened[-1], what, said.strip())
            elif what == "var":
                made.name = said.partition("(")[0]
            else:
                made.result = said
        elif begins:
            value = PrintedValue("", "")
            (opened[-1].parts if opened else made.values).append(value)
            opened.append(value)
            if len(opened) > MOST_DEPTH:
                made.trouble = "values that are nested too deeply"
                break
        elif ends:
            if not opened:
                made.trouble = ""
                break
            opened.pop()
    return made


def _say(value: PrintedValue, what: str, said: str) -> None:
    """Takes the name or the text of a value."""
    if what == "var":
        value.name = said
    else:
        value.text = said.removesuffix(" (Union):")
