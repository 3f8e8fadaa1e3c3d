"""Priority: each unit has a random priority for the whole run, so that what is late stays late; at a few random points
the unit whose turn it is goes behind all others.

After probabilistic concurrency testing (Burckhardt et al., 2010): a bug that needs few units in an unusual order is met
with a probability that does not depend on how many others there are.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

CHANGES = 3
"""Points at which a unit goes behind all others."""


class Priority:
    """For `count` units."""

    seeded = True

    def __init__(self, seed: int, count: int) -> None:
        generator = random.Random(seed)
        self._priority = list(range(count))
        generator.shuffle(self._priority)
        self._changes = set(generator.sample(range(count), min(CHANGES, count)))
        self._step = 0

    def pick(self, ready: Sequence[int]) -> int:
        """The one of highest priority, after a change if this is a point for one."""
        if self._step in self._changes:
            late = self._highest(ready)
            self._priority[late] = -1 - self._step
        self._step += 1
        return self._highest(ready)

    def _highest(self, ready: Sequence[int]) -> int:
        return max(ready, key=lambda number: self._priority[number])


STRATEGY = Priority
