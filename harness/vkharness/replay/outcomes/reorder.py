"""Reorder: each unit runs once, in a legal order that a strategy picks (`vkharness.replay.strategies`)."""

from __future__ import annotations

from vkharness.replay import strategies
from vkharness.replay.outcomes.executor import Plan
from vkharness.replay.schedule.legal_orders import LegalOrders
from vkharness.replay.schedule.steps import Step


class Reorder:
    """One legal order. Equal strategies, seeds and traces give equal orders."""

    def __init__(self, legal: LegalOrders, strategy: str, seed: int = 0) -> None:
        made = strategies.load(strategy)
        self.outcome = f"reorder {strategy}" + (f" seed={seed}" if made.seeded else "")
        self._legal = legal
        self._order = legal.extension(made(seed, len(legal.units)).pick)

    @property
    def order(self) -> tuple[int, ...]:
        """The units of the order that reach memory. Two orders are equal if these are."""
        return tuple(number for number in self._order if self._legal.acts(number))

    @property
    def moved(self) -> int:
        """The number of units that run after a unit that was submitted later."""
        moved, last = 0, -1
        for number in self.order:
            moved += number < last
            last = max(last, number)
        return moved

    def plan(self, steps: list[Step]) -> Plan:
        """The steps in that order, each unit with the state that it needs."""
        units = [self._legal.units[number] for number in self._order]
        return [step for unit in units for step in (*unit.before, *unit.steps)]
