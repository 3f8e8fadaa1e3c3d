"""Reverse: what was submitted last comes as early as is legal."""

from __future__ import annotations

from collections.abc import Sequence


class Reverse:
    """Always the last."""

    seeded = False

    def __init__(self, seed: int, count: int) -> None:
        """There is one such order."""

    def pick(self, ready: Sequence[int]) -> int:
        """The last in submission order."""
        return ready[-1]


STRATEGY = Reverse
