"""Reorder: each unit once, in a legal order other than submission order. How the next one is picked is a file each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from harness.findings import UserError
from harness.replay.outcomes.executor import Plan
from harness.replay.outcomes.priority_order import Priority
from harness.replay.outcomes.random_order import Random
from harness.replay.outcomes.reverse_order import Reverse
from harness.replay.schedule.legal_orders import LegalOrders
from harness.replay.schedule.steps import Step


class Picker(Protocol):
    """What picks the next of several units. It is made for one order."""

    def pick(self, ready: Sequence[int]) -> int:
        """One of the units that may come next; they are named by their place in submission order, ascending."""


PICKERS: dict[str, Callable[[int, int], Picker]] = {
    "reverse": lambda seed, count: Reverse(),
    "random": lambda seed, count: Random(seed),
    "priority": Priority,
}
"""By name: makes a picker from a seed for so many units."""
SEEDLESS = frozenset({"reverse"})
"""Pickers that know one order only."""


class Reorder:
    """One legal order. Equal strategies, seeds and traces give equal orders."""

    def __init__(self, legal: LegalOrders, strategy: str, seed: int = 0) -> None:
        if strategy not in PICKERS:
            raise UserError(f"unknown strategy {strategy!r}: use one of {', '.join(PICKERS)}")
        self.outcome = f"reorder {strategy}" + ("" if strategy in SEEDLESS else f" seed={seed}")
        self._legal = legal
        picker = PICKERS[strategy](seed, len(legal.units))
        self._order = legal.extension(picker.pick)

    @property
    def order(self) -> tuple[int, ...]:
        """What makes this order differ from others: calls that only make objects are left out, whenever they run."""
        return tuple(number for number in self._order if self._legal.acts(number))

    @property
    def moved(self) -> int:
        """How many units come after one that stands later in submission order."""
        moved, last = 0, -1
        for number in self.order:
            moved += number < last
            last = max(last, number)
        return moved

    def plan(self, steps: list[Step]) -> Plan:
        """The steps in that order, each unit with the state that it needs."""
        units = [self._legal.units[number] for number in self._order]
        return [step for unit in units for step in (*unit.before, *unit.steps)]
