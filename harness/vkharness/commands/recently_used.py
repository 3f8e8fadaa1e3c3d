"""A table of values that were computed, by the inputs from which they follow: it forgets those not asked for lately.

It has two halves. Entries that are made or asked for go into the young one. When that is full it becomes the old one,
and what was in the old one and not asked for since is forgotten. So a look-up costs one look-up in a dictionary,
seldom two, and a program that never says the same twice pays for no order of use.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class RecentlyUsed(Generic[K, V]):
    """At least the last `most` entries, and at most twice as many.

    >>> table = RecentlyUsed[str, int](2)
    >>> for number, name in enumerate(["one", "two", "three", "four", "five"]):
    ...     table[name] = number
    >>> table.get("one"), table.get("three"), table.get("five"), len(table)
    (None, 2, 4, 3)
    """

    __slots__ = ("_most", "_old", "_young")

    def __init__(self, most: int) -> None:
        self._most = most
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def get(self, key: K) -> V | None:
        """The entry of a key; None when there is none."""
        found = self._young.get(key)
        if found is None and self._old:
            found = self._old.pop(key, None)
            if found is not None:
                self[key] = found
        return found

    def __setitem__(self, key: K, value: V) -> None:
        if len(self._young) >= self._most:
            self._young, self._old = {}, self._young
        self._young[key] = value

    def clear(self) -> None:
        """Forgets everything."""
        self._young, self._old = {}, {}
