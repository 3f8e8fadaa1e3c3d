"""Which cases are run, and which of them share a process."""

from __future__ import annotations

import random
from collections.abc import Sequence


def sample(cases: Sequence[str], number: int, seed: int) -> list[str]:
    """So many of the cases, in an order of their own; all of them where there are fewer. A larger number with the same
    seed begins with the same cases, so that a run can be made longer."""
    drawn = list(cases)
    random.Random(seed).shuffle(drawn)
    return drawn[:number]


def batches(cases: Sequence[str], size: int) -> list[list[str]]:
    """The cases in lists of `size`; the last may be shorter."""
    return [list(cases[start : start + size]) for start in range(0, len(cases), size)]


def halves(cases: Sequence[str]) -> list[list[str]]:
    """The two halves of a batch."""
    middle = (len(cases) + 1) // 2
    return [list(cases[:middle]), list(cases[middle:])]
