"""Which function is the rule for what: every rule registers itself, and nothing else knows it by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.model.program import Program, Queue
    from harness.model.run import Run

EFFECTS: dict[type, Callable[[Run, Any], None]] = {}
"""By type of effect: what a command does where it is executed."""
OCCURRENCES: dict[type, Callable[[Program, Any], None]] = {}
"""By type of occurrence: what happens outside command buffers."""
TURN: list[Callable[[Program, Queue], bool]] = []
"""What begins the next work of a queue, and says whether it could."""


def turn(rule: Callable[[Program, Queue], bool]) -> Callable[[Program, Queue], bool]:
    """Registers the one rule by which queues go on."""
    TURN[:] = [rule]
    return rule


def effect(*kinds: type) -> Callable[[Callable[[Run, Any], None]], Callable[[Run, Any], None]]:
    """Registers the rule for effects of these types."""

    def register(rule: Callable[[Run, Any], None]) -> Callable[[Run, Any], None]:
        EFFECTS.update(dict.fromkeys(kinds, rule))
        return rule

    return register


def occurrence(*kinds: type) -> Callable[[Callable[[Program, Any], None]], Callable[[Program, Any], None]]:
    """Registers the rule for occurrences of these types."""

    def register(rule: Callable[[Program, Any], None]) -> Callable[[Program, Any], None]:
        OCCURRENCES.update(dict.fromkeys(kinds, rule))
        return rule

    return register
