"""Tokens: numbers that mark accesses in what a viewer may assume (`AccessOrdering`). One that marks nothing any more is
given out again, so that a program that sets events or signals semaphores for ever meets the same states again."""

from __future__ import annotations

from itertools import count


class Tokens:
    """Tokens of one kind for one context, from `first` on."""

    def __init__(self, first: int) -> None:
        self._new = count(first)
        self._free: list[int] = []

    def take(self) -> int:
        """A token that marks nothing."""
        return self._free.pop() if self._free else next(self._new)

    def give(self, token: int) -> None:
        """The token was taken off everything that it marked."""
        self._free.append(token)
