"""Files of stream text, as streams that every judge follows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vkharness.findings import UserError
from vkharness.text_form.dependency_text import RANGE
from vkharness.text_form.handle_names import number
from vkharness.text_form.stream_text import parse
from vkharness.text_form.text_lines import LONGEST
from vkharness.text_form.unreadable import TextError
from vkharness.trace.calls import TOLD, Block, Call
from vkharness.trace.codec import read_trace
from vkharness.trace.file_kinds import FileKind, file_kind
from vkharness.trace.work_budget import UNITS

WHOLE = 1 << 40
"""The size of the buffers that stand for resources."""
_WORD = re.compile(r"[^\s,;&+~]+")


def read_stream(path: Path, notes: list[str] | None = None) -> Iterator[Block]:
    """The blocks of a file: a text, or what `read_trace` reads. Raises UserError."""
    if file_kind(path) is FileKind.TEXT:
        yield from blocks_of(read_text(path), str(path))
    else:
        yield from read_trace(path, notes)


def read_text(path: Path) -> str:
    """The text of a file. Raises UserError."""
    try:
        with path.open("rb") as file:
            found = file.read(4 * LONGEST)
        return found.decode("utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: no UTF-8 at byte {error.start}") from None


@contextmanager
def telling_where(source: str) -> Iterator[None]:
    """Turns what cannot be read into a `UserError` with source, line and column."""
    try:
        yield
    except TextError as error:
        raise UserError(f"{source}:{error.line}:{error.column}: {error.why}") from None


def blocks_of(text: str, source: str) -> Iterator[Block]:
    """The blocks of a text, whose sites are lines of `source`. Raises `UserError` with source, line and column."""
    UNITS.source = source
    with telling_where(source):
        stream = parse(text, source)
    yield Call(0, TOLD, {"names": resource_names(text), "size": WHOLE})
    for index, event in enumerate(stream, 1):
        yield Call(index, TOLD, {"event": event})


def resource_names(text: str) -> dict[int, str]:
    """What the resources of a text are called, by their handles."""
    found = (RANGE.match(word.partition("[")[0]) for word in _WORD.findall(text))
    return {number(each["resource"]): each["resource"] for each in found if each}
