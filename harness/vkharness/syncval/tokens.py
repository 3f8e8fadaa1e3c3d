"""Tokens: numbers that mark accesses in what a viewer may assume (`AccessOrdering`). One that marks nothing any more is
given out again, so that a program that sets events or signals semaphores for ever meets the same states again.

Sets of events
--------------
What is in the first scope of one set of an event is in that of each later set with the same stages, too: nothing takes
an access out of a scope. So an access has the token of the first of such sets alone, and is `covered` by the later
ones. Were it marked by all of them, each set would make a new state of each state.

These tokens are numbered in the order of the sets, in turns: of a ring of numbers those that are in use lie in one
half, so that it is known which of two is earlier, and the same numbers come again. When a half is full, the next sets
use a ring of twice the size. When a token is given up, what it marked gets the next one of its ring.

>>> tokens = SetTokens(Tokens(1))
>>> first, second, other = tokens.take("scope"), tokens.take("scope"), tokens.take("other scope")
>>> [covered(frozenset((second,)), each) for each in (first, second, other)]
[False, True, False]
>>> covered(frozenset((first,)), second), tokens.give(first) == second, tokens.give(second)
(True, True, 0)
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import count

SETS = 1 << 44
"""From here on: the tokens of sets. Those of the host are greater (`late_host_writes`)."""
_END = 1 << 59
_PLACES = 1 << 24
"""Numbers that each ring may have; the first ring of a scope has 16, and there are as many rings as fit."""
_RINGS = 20


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


class SetTokens:
    """The tokens of sets of events for one context, by what says which accesses a set marks. `others` has its tokens of
    other kinds."""

    def __init__(self, others: Tokens) -> None:
        self._others = others
        self._scopes: dict[Hashable, int] = {}
        """The first ring of each scope."""
        self._used: dict[int, list[int]] = {}
        """By ring, the places in use, from the earliest set on."""

    def take(self, scope: Hashable) -> int:
        """A token for a set with this scope that comes after all others."""
        ring = self._scopes.setdefault(scope, _RINGS * len(self._scopes))
        while True:
            used, places = self._used.setdefault(ring, []), _places(ring)
            place = (used[-1] + 1) % places if used else 0
            if not used or (place - used[0]) % places < places // 2:
                used.append(place)
                return SETS + ring * _PLACES + place
            ring += 1

    def give(self, token: int) -> int:
        """A token of any kind was taken off everything: that of the next set that covers what had it, 0 for none."""
        if token < SETS:
            self._others.give(token)
            return 0
        ring, place = divmod(token - SETS, _PLACES)
        used = self._used[ring]
        at = used.index(place)
        del used[at]
        return SETS + ring * _PLACES + used[at] if at < len(used) else 0


def _places(ring: int) -> int:
    return 16 << ring % _RINGS


def covered(tokens: frozenset[int], token: int) -> bool:
    """Whether what has `tokens` has this one, or that of an earlier set with the same scope. Either may be negative."""
    if token in tokens or not SETS <= abs(token) < _END:
        return token in tokens
    ring, place = divmod(abs(token) - SETS, _PLACES)
    first, places = SETS + ring * _PLACES, _places(ring)
    for each in tokens:
        earlier = (each if token > 0 else -each) - first
        if 0 <= earlier < places and (place - earlier) % places < places // 2:
            return True
    return False
