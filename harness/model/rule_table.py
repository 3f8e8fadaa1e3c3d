"""Which function is the rule for what: every rule registers itself, and nothing else knows it by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.model.command_buffer_run import CommandBufferRun
    from harness.model.program import Program, QueueState

EFFECTS: dict[type, Callable[[CommandBufferRun, Any], None]] = {}
"""By type of effect: what a command does where it is executed."""
STREAM_EVENTS: dict[type, Callable[[Program, Any], None]] = {}
"""By type of stream event: what happens outside command buffers."""
TURN: list[Callable[[Program, QueueState], bool]] = []
"""What begins the next work of a queue, and says whether it could."""


def turn(rule: Callable[[Program, QueueState], bool]) -> Callable[[Program, QueueState], bool]:
    """Registers the one rule by which queues go on."""
    TURN[:] = [rule]
    return rule


def effect(
    *kinds: type,
) -> Callable[[Callable[[CommandBufferRun, Any], None]], Callable[[CommandBufferRun, Any], None]]:
    """Registers the rule for effects of these types."""

    def register(rule: Callable[[CommandBufferRun, Any], None]) -> Callable[[CommandBufferRun, Any], None]:
        EFFECTS.update(dict.fromkeys(kinds, rule))
        return rule

    return register


def stream_event(*kinds: type) -> Callable[[Callable[[Program, Any], None]], Callable[[Program, Any], None]]:
    """Registers the rule for stream events of these types."""

    def register(rule: Callable[[Program, Any], None]) -> Callable[[Program, Any], None]:
        STREAM_EVENTS.update(dict.fromkeys(kinds, rule))
        return rule

    return register
