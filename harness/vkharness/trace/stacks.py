"""The stacks of call sites in a trace: written whole once, and as a number after that.

    "site": "lib.py:3", "stack": {"number": 1, "frames": [{"site": "lib.py:3", "function": "copy"}, ...]}
    "site": "lib.py:3", "stack": 1

A number that no line explains, as in a part of a trace, says nothing.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from vkharness.call_sites import CallSite, CallStacks, Frame
from vkharness.trace.lines import Corrupt

KEY = "stack"
LONGEST = 4096
"""The most characters of a call site, and of the name of a function."""
MOST_FRAMES = 64
"""The most frames of a stack that is read."""


class StackWriter:
    """Numbers the stacks of one trace that is being written."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Frame, ...], int] = {}

    def form(self, site: str | None) -> dict[str, Any]:
        """The member of a block for this call site; none where nothing more is known of it."""
        if not isinstance(site, CallSite):
            return {}
        number = self._numbers.get(site.frames)
        if number is not None:
            return {KEY: number}
        number = self._numbers[site.frames] = len(self._numbers) + 1
        return {KEY: {"number": number, "frames": [each._asdict() for each in site.frames]}}


class StackReader:
    """The call sites of one trace that is being read."""

    def __init__(self) -> None:
        self._stacks = CallStacks()
        self._known: dict[int, str] = {}

    def site(self, value: dict[str, Any]) -> str | None:
        """The call site of a block; None where it has none. Raises Corrupt."""
        site = value.get("site")
        stack = value.get(KEY)
        if site is None:
            self.learn(value)
            return None
        if type(site) is not str or not _is_line(site):
            raise Corrupt("site: expected a text like 'file.py:12'")
        if stack is None:
            return site
        if type(stack) is int:
            return self._known.get(stack, site)
        return self._explained(stack, site)

    def learn(self, value: dict[str, Any]) -> None:
        """Keeps the stack that a block explains which cannot be read, or has no call site: later ones have its
        number."""
        stack, site = value.get(KEY), value.get("site")
        if type(stack) is dict:
            with suppress(Corrupt):
                self._explained(stack, site if type(site) is str else None)

    def is_settled(self, value: dict[str, Any]) -> bool:
        """Whether no later block can say more of the call site of this one."""
        stack = value.get(KEY)
        return type(stack) is not int or stack in self._known

    def _explained(self, stack: Any, site: str | None) -> str:
        listed = stack.get("frames") if type(stack) is dict else None
        number = stack.get("number") if type(stack) is dict else None
        if type(number) is not int or type(listed) is not list or not 0 < len(listed) <= MOST_FRAMES:
            raise Corrupt("stack: expected a number, or an object with a number and frames")
        frames = tuple(map(_frame, listed))
        if site is not None and frames[0].site != site:
            raise Corrupt("stack: expected the site as its first frame")
        made = self._stacks.site(frames)
        if self._known.setdefault(number, made) != made:
            raise Corrupt(f"stack: number {number} is that of another stack")
        return made


def _frame(value: Any) -> Frame:
    site, function = (value.get(key) if type(value) is dict else None for key in Frame._fields)
    if type(site) is str and type(function) is str and _is_line(site) and _is_line(function):
        return Frame(site, function)
    raise Corrupt("stack: expected frames with a site and a function")


def _is_line(text: str) -> bool:
    return len(text) <= LONGEST and "\n" not in text
