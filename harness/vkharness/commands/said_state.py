"""The state of a command buffer by what the commands said that have set it (`vkharness.commands.said_states`)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from vkharness.trace.rendering_state import RenderingState

Parts = dict[Hashable, Any]
"""By part, the saying that set it last, in the order in which they did; None for a command that is not known."""


class KnownSaying:
    """A command with its arguments (a saying), as a key of states. It holds while `era` is that of `SaidStates`."""

    __slots__ = ("args", "buffer", "era", "name")

    def __init__(self, name: str, args: dict[str, Any], buffer: Any, era: int) -> None:
        self.name, self.args, self.buffer, self.era = name, args, buffer, era


class SaidState(dict[Any, tuple[Any, "SaidState"]]):
    """The state of a command buffer after commands that say certain things. By what the next command says: its plan,
    or its plans by what is bound (`PlansBySets`), None where it has no effects, either with what contents decide of it
    (`KnownDeferred`); and the state after it."""

    __slots__ = ("era", "parts", "rendering")

    def __init__(self, parts: Parts, rendering: RenderingState | None, era: int) -> None:
        super().__init__()
        self.parts, self.rendering, self.era = parts, rendering, era
