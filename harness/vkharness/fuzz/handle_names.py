"""The names of handles in stream text: a letter, and for all but resources a number."""

from __future__ import annotations

_FIRST = {"q": 1000, "s": 2000, "t": 3000, "e": 4000, "f": 5000}


def number(name: str) -> int:
    """The handle of a queue, semaphore, event, fence (a letter and a number) or resource (a letter)."""
    return _FIRST[name[0]] + int(name[1:]) if len(name) > 1 else 100 + ord(name) - ord("a")


def name(handle: int) -> str:
    """The inverse of `number`."""
    if handle < 1000:
        return chr(ord("a") + handle - 100)
    return next(f"{kind}{handle - first}" for kind, first in reversed(_FIRST.items()) if handle >= first)
