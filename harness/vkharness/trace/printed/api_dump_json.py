"""The JSON of VK_LAYER_LUNARG_api_dump, as the layer writes it and as other tools write it again.

    [{"frameNumber": "0", "apiCalls": [{"name": "vkCreateInstance", "thread": "Thread 0", "returnType": "VkResult",
      "returnValue": "VK_SUCCESS", "args": [{"type": "...", "name": "pCreateInfo", "address": "0x...", "members": [
        {"type": "VkStructureType", "name": "sType", "value": "VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO"}, ...

A call is found by how it begins, and read by itself. So the file may end anywhere, have other output between its calls,
and lack the commas that versions of the layer leave out. The layer does not escape texts of programs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from vkharness.trace.file_kinds import JSON_CALL
from vkharness.trace.lines import Corrupt
from vkharness.trace.printed.call_pieces import CallPiece, call_pieces
from vkharness.trace.printed.printed_values import MOST_DEPTH, PrintedCall, PrintedValue

_DECODER = json.JSONDecoder(strict=False)
_TEXT_LINE = re.compile(r'^([ \t]*"\w+" ?: ?")(.*)("[ \t]*,?)$', re.MULTILINE)
_NO_COMMA = re.compile(r'(["}\]])([ \t]*\n[ \t]*)(["{])')


def json_calls(file: BinaryIO) -> Iterator[PrintedCall]:
    """The calls of an open file, in order. Raises Corrupt for a call that is too long."""
    for piece in call_pieces(file, JSON_CALL):
        yield _call(piece)


def _call(piece: CallPiece) -> PrintedCall:
    """The call that a piece begins with."""
    name = JSON_CALL.match(piece.raw)
    assert name is not None
    call = PrintedCall(piece.line, name.group(1).decode(), "", 0, [], is_last=piece.is_last)
    try:
        value = _decoded(piece.raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        call.trouble = "what stands here is no JSON"
        return call
    thread = re.search(r"\d{1,9}", str(value.get("thread", "")))
    call.thread = int(thread.group()) if thread else 0
    call.result = str(value.get("returnValue", ""))
    call.is_last = False
    try:
        call.values = _values(value.get("args"), 0)
    except Corrupt as error:
        call.trouble = str(error)
    return call


def _decoded(text: str) -> dict[str, Any]:
    """The object that a text begins with, in spite of what the layer does not escape or separate."""
    try:
        value, _ = _DECODER.raw_decode(text)
    except ValueError:
        lines = text.replace("\r\n", "\n")
        escaped = _TEXT_LINE.sub(lambda found: found[1] + json.dumps(found[2])[1:-1] + found[3], lines)
        value, _ = _DECODER.raw_decode(_NO_COMMA.sub(r"\1,\2\3", escaped))
    return value  # type: ignore[no-any-return]  # JSON_CALL begins with a brace


def _values(given: Any, depth: int) -> list[PrintedValue]:
    if given is None:
        return []
    if type(given) is not list or depth > MOST_DEPTH:
        raise Corrupt("members that are no list, or nested too deeply")
    return [_value(each, depth) for each in given]


def _value(given: Any, depth: int) -> PrintedValue:
    if type(given) is not dict:
        raise Corrupt("a value that is no object")
    name, text = str(given.get("name", "")), given.get("value", given.get("address", ""))
    # A pointer that leads nowhere has an address that is none.
    parts = given.get("members", given.get("elements"))
    if type(text) is not str and type(text) is not int:
        raise Corrupt(f"{name[:60]!r} has no text")
    is_null = parts is None and "value" not in given and not str(text).startswith("0x")
    return PrintedValue(name, "NULL" if is_null else str(text), _words(parts) or _values(parts, depth + 1))


def _words(parts: Any) -> list[PrintedValue]:
    """The words of a shader, which are texts."""
    if type(parts) is list and parts and type(parts[0]) is str:
        return [PrintedValue("", each) for each in parts if type(each) is str]
    return []
