"""Which kind of stream a file is, by how it begins."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path

from vkharness.trace.gfxr.blocks import MAGIC
from vkharness.trace.packed_chunks import is_packed
from vkharness.trace.utf16 import open_printed

LOOKED_AT = 1 << 20
"""Bytes at the beginning of a file that say what it is. A program may have written something before its first call."""
_SHORT = 4096


class FileKind(StrEnum):
    """The kinds of streams."""

    TRACE = "trace"
    """Ours, or what `gfxrecon-convert` wrote."""
    PACKED = "trace in one file"
    """Ours (`vkharness.trace.packed`)."""
    CAPTURE = "capture"
    """Of GFXReconstruct, as it is."""
    API_DUMP_TEXT = "api_dump text"
    API_DUMP_JSON = "api_dump JSON"
    API_DUMP_HTML = "api_dump HTML"
    RENDERDOC_XML = "RenderDoc XML"
    """As `renderdoccmd convert` writes it."""
    RENDERDOC = "RenderDoc"
    """Of RenderDoc, as it is."""
    TEXT = "stream text"
    """Effects as text (`vkharness.text_form`)."""


_HEADER = re.compile(rb'\[?\s*\{\s*"header"')
JSON_CALL = re.compile(rb'\{\s*"name"\s*:\s*"(vk[A-Z]\w{1,120})"\s*,\s*"(?:thread"\s*:\s*"Thread|time"|returnType")')
"""How a call begins in the JSON of api_dump."""
TEXT_CALL = r"\b(?P<name>vk[A-Z]\w{1,120})\([\w ,]*\) returns \w+?\*?(?=[ :\r]|$|Thread \d)"
"""The head of a call in its text: its name, the names of its parameters, the type that it returns."""
HTML_CALL = re.compile(
    rb"(?:<div class='thd'>Thread: \d+</div>)?(?:<div class='time'>[^<]{1,60}</div>)?"
    rb"<details class='fn'><summary><div class='var'>vk[A-Z]"
)
"""How a call begins in its HTML."""
_RENDERDOC = b"RDOC"
_RENDERDOC_XML = re.compile(rb"(?:\xef\xbb\xbf)?\s*<\?xml[^<>]{0,200}\?>\s*<rdc>")
_COMMENTS = rb"(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*"
_SURE_TEXT = re.compile(_COMMENTS + rb"(?:(?:submit|bind) q\d+\s|semaphore t\d+ = |queue q\d+ family )")
"""What no program writes before its first call. Other text may be a line of one, such as "present mode: fifo"."""
_TEXT = re.compile(
    _COMMENTS
    + rb"(?:semaphore t|(?:submit|bind|acquire|present) [a-z]|host [a-z]+s\b|(?:un)?shared [stf]|kept [a-z]"
    + rb"|copy s|queue q)"
)
_HOLDS = (
    (HTML_CALL, FileKind.API_DUMP_HTML),
    (JSON_CALL, FileKind.API_DUMP_JSON),
    (re.compile(TEXT_CALL.encode(), re.MULTILINE), FileKind.API_DUMP_TEXT),
)


def kind_of(head: bytes) -> FileKind | None:
    """The kind of a file that begins with these bytes; None for what is no stream that is known."""
    if is_packed(head):
        return FileKind.PACKED
    if head.startswith(MAGIC):
        return FileKind.CAPTURE
    if head.startswith(_RENDERDOC):
        return FileKind.RENDERDOC
    if _RENDERDOC_XML.match(head):
        return FileKind.RENDERDOC_XML
    if _HEADER.match(head):
        return FileKind.TRACE
    if _SURE_TEXT.match(head):
        return FileKind.TEXT
    found = ((match.start(), kind) for pattern, kind in _HOLDS if (match := pattern.search(head)) is not None)
    return min(found, default=(0, FileKind.TEXT if _TEXT.match(head) else None))[1]


def file_kind(path: Path) -> FileKind | None:
    """The kind of a file. Raises UserError when it cannot be read."""
    with open_printed(path) as file:
        head = file.read(_SHORT)
        kind = kind_of(head)
        return kind_of(head + file.read(LOOKED_AT)) if kind in (None, FileKind.TEXT) else kind
