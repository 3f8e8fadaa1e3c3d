"""How far the operations of one command are apart, as data (`vkharness.trace.effects.Effect`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NextOperation:
    """What stands behind it in a command is another operation, and nothing orders the two: the builds of one call."""
