"""Text that a program or a trace gave, made fit for a terminal. Every such text passes through here before it is shown.

>>> printable("shadow\\x1b[2Jmap")
'shadow\\\\x1b[2Jmap'
>>> quoted(["main pass", "opaque"])
'"main pass / opaque"'
"""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST = 120
"""The most characters of a name or label that are shown."""
_BEYOND_ASCII = re.compile(r"[^\x00-\x7e]")


def printable(text: str) -> str:
    """The text with an escape like `\\x1b` for each character that is no visible one or a space."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escape(each) for each in text)


def printable_lines(text: str) -> str:
    """The same with the ends of lines kept."""
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


def quoted(parts: Iterable[str]) -> str:
    """Names in quotation marks, ` / ` between them; a long text ends in an ellipsis."""
    text = printable(" / ".join(parts))
    return f'"{text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"}"'


def escape_json(text: str) -> str:
    """A JSON text in which no character is one that a terminal may obey. JSON itself escapes those of ASCII."""
    return _BEYOND_ASCII.sub(lambda found: found[0] if found[0].isprintable() else _escape_json(found[0]), text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _escape_json(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
