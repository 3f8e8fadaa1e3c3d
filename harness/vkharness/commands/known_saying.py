"""A command with its arguments (a saying), in the states of command buffers (`vkharness.commands.said_states`)."""

from __future__ import annotations

from typing import Any

from vkharness.commands.object_state import CommandBuffer, ObjectState


class KnownSaying:
    """A command with its arguments (a saying), as a key of states. It holds while `era` is that of `SaidStates`."""

    __slots__ = ("args", "buffer", "era", "name")

    def __init__(self, name: str, args: dict[str, Any], buffer: CommandBuffer | None, era: int) -> None:
        self.name, self.args, self.buffer, self.era = name, args, buffer, era


class OpenSaying(KnownSaying):
    """Stands for all commands that set the same parts of a state, whatever they set these to: the command buffer has
    that."""

    __slots__ = ()

    def bring(self, objects: ObjectState, buffer: CommandBuffer) -> None:
        """Brings the members of a command buffer up to that."""
        raise NotImplementedError
