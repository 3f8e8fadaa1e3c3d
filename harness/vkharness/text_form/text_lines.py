"""The lines of a stream text, and where in them something cannot be read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from vkharness.text_form.unreadable import TextError, Unreadable

COMMENT = "#"
LONGEST = 1 << 20
"""Characters of a text."""


class TextLine(NamedTuple):
    """A line that says something."""

    number: int
    """From 1."""
    margin: int
    text: str
    site: str | None


def said_lines(text: str, source: str) -> list[TextLine]:
    """The lines that say something: neither empty nor a comment."""
    if len(text) > LONGEST:
        raise TextError(1, 1, f"a stream text has at most {LONGEST >> 20} MiB")
    lines = []
    for count, line in enumerate(text.split("\n"), 1):
        said = line.strip()
        if said and not said.startswith(COMMENT):
            lines.append(TextLine(count, len(line) - len(line.lstrip()), said, f"{source}:{count}" if source else None))
    return lines


@contextmanager
def at(line: TextLine) -> Iterator[None]:
    """Names the place of what cannot be read."""
    try:
        yield
    except TextError:
        raise
    except Unreadable as error:
        found = re.search(rf"(?<![\w|]){re.escape(error.word)}(?![\w])", line.text)
        column = found.start() if found else max(0, line.text.find(error.word))
        raise TextError(line.number, line.margin + column + 1, str(error)) from None
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise TextError(line.number, line.margin + 1, f"{line.text[:60]!r} is not as the grammar has it") from error
