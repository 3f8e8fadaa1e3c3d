"""How far the operations of one command are apart, as data (`vkharness.trace.effects.Effect`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NextOperation:
    """Separates two operations of one command, such as the builds of one call: nothing orders the effects behind it
    with those before."""
