"""The names of handles in stream text: a letter, and for all but the first resources a number.

>>> [number(each) for each in ("a", "r0", "q1")], [name(each) for each in (100, 126, 1001)]
([100, 126, 1001], ['a', 'r0', 'q1'])
"""

from __future__ import annotations

import re
from functools import cache

from vkharness.text_form.unreadable import Unreadable

_RESOURCES = 100
_FIRST = {"r": _RESOURCES + 26, "q": 1000, "s": 2000, "t": 3000, "e": 4000, "f": 5000}
MOST = 873
"""The largest number of a name."""
_HANDLES = range(_RESOURCES, _FIRST["f"] + MOST + 1)
_NAME = re.compile(r"(?P<kind>[a-z])(?P<number>[0-9]{1,3})?$")


@cache
def number(name: str) -> int:
    """The handle of a queue, semaphore, event, fence (a letter and a number) or resource (a letter, or `r` and a
    number). Raises `Unreadable` for another text."""
    found = _NAME.match(name)
    if found is not None and found["number"] is None:
        return _RESOURCES + ord(name) - ord("a")
    if found is None or found["kind"] not in _FIRST or int(found["number"]) > MOST:
        raise Unreadable(name, f"{name!r} is no name: `a` to `z`, or one of r q s t e f with a number up to {MOST}")
    return _FIRST[found["kind"]] + int(found["number"])


def name(handle: int) -> str:
    """The inverse of `number`."""
    if handle not in _HANDLES:
        raise ValueError("a handle that has no name there")
    if handle < _FIRST["r"]:
        return chr(ord("a") + handle - _RESOURCES)
    return next(f"{kind}{handle - first}" for kind, first in reversed(_FIRST.items()) if handle >= first)
