"""Strategies: how a replay picks the next of several units that may come next. Each is one module of this package.

The module's name is the strategy's name on the command line. Its `STRATEGY` makes a `Picker` from a seed and the number
of units, and says whether the seed matters. Nothing else has to know the module.

>>> names()
('priority', 'random', 'reverse')
>>> load("reverse")(0, 3).pick([0, 2])
2
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from typing import Protocol, cast

from vkharness.findings import UserError


class Picker(Protocol):
    """Picks the next of several units. A picker is made for one order."""

    def pick(self, ready: Sequence[int]) -> int:
        """One of the units that may come next; they are named by their place in submission order, ascending."""


class Strategy(Protocol):
    """Makes pickers."""

    seeded: bool
    """Whether different seeds give different orders."""

    def __call__(self, seed: int, count: int, /) -> Picker:
        """A picker for one order of `count` units."""


def names() -> tuple[str, ...]:
    """The names of all strategies. No module of a strategy is imported."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def load(name: str) -> Strategy:
    """The strategy of that name. `UserError` when there is none."""
    if name not in names():
        raise UserError(f"unknown strategy {name!r}: use one of {', '.join(names())}")
    return cast(Strategy, importlib.import_module(f"{__name__}.{name}").STRATEGY)
