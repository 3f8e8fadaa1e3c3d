"""Random: any unit that may come next, all equally likely."""

from __future__ import annotations

import random
from collections.abc import Sequence


class Random:
    """Picks with a random generator of its own."""

    seeded = True

    def __init__(self, seed: int, count: int) -> None:
        self._random = random.Random(seed)

    def pick(self, ready: Sequence[int]) -> int:
        """A random unit of those that may come next."""
        return self._random.choice(ready)


STRATEGY = Random
