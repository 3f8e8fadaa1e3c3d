"""What stands for a saying in the states of command buffers (`vkharness.commands.said_states`)."""

from __future__ import annotations

from typing import Any

from vkharness.commands.object_state import CommandBuffer


class KnownSaying:
    """What stands for a saying in states, as long as what is known of it holds."""

    __slots__ = ("args", "buffer", "era", "name")

    def __init__(self, name: str, args: dict[str, Any], buffer: CommandBuffer | None, era: int) -> None:
        self.name, self.args, self.buffer, self.era = name, args, buffer, era
