"""Reverse: what was submitted last comes as early as is legal."""

from __future__ import annotations

from collections.abc import Sequence


class Reverse:
    """Always the last."""

    def pick(self, ready: Sequence[int]) -> int:
        """The last in submission order."""
        return ready[-1]
