"""Priority: each unit has a random priority for the whole run, so that a late unit stays late.

At a few random points the unit whose turn it is goes behind all others. After probabilistic concurrency testing
(Burckhardt et al., 2010): a bug that needs few units in an unusual order is met with a probability that does not depend
on the number of other units.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

CHANGES = 3
"""The number of points at which a unit goes behind all others."""


class Priority:
    """Picks the unit of highest priority out of those that may come next. `count` is the number of units
    of the trace."""

    seeded = True

    def __init__(self, seed: int, count: int) -> None:
        generator = random.Random(seed)
        self._priority = list(range(count))
        generator.shuffle(self._priority)
        self._changes = set(generator.sample(range(count), min(CHANGES, count)))
        self._step = 0

    def pick(self, ready: Sequence[int]) -> int:
        """The unit of highest priority, after a change of priorities if this is a point for one."""
        if self._step in self._changes:
            late = self._highest(ready)
            self._priority[late] = -1 - self._step
        self._step += 1
        return self._highest(ready)

    def _highest(self, ready: Sequence[int]) -> int:
        return max(ready, key=lambda number: self._priority[number])


STRATEGY = Priority
