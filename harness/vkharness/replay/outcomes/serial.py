"""Serial: submission order, the reference with which every other outcome is compared."""

from __future__ import annotations

from vkharness.replay.outcomes.executor import Plan
from vkharness.replay.schedule.steps import Step


class Serial:
    """Every step once, in submission order."""

    outcome = "serial"

    def plan(self, steps: list[Step]) -> Plan:
        """The steps as they are."""
        return list(steps)
