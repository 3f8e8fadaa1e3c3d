"""Strategies: one a file. Each turns the steps of a trace into the plan of one run.

A strategy only rearranges steps and puts probes between them; the executor keeps each step apart from the next.
"""

from __future__ import annotations

from typing import Protocol

from harness.explore.executor import Plan
from harness.explore.steps import Step


class Strategy(Protocol):
    """What every strategy offers."""

    @property
    def outcome(self) -> str:
        """A string that reproduces the run."""

    def plan(self, steps: list[Step]) -> Plan:
        """The plan of the run; `steps` is left as it is."""
