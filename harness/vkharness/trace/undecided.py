"""Effects of a command that contents of memory decide: the interface for readers of effects."""

from __future__ import annotations

from typing import Protocol


class Undecided(Protocol):
    """Effects of one command that contents of memory decide."""

    @property
    def idle(self) -> bool:
        """Whether the command would run nothing with the contents that are foreseen when it is recorded."""

    @property
    def loads_values(self) -> bool:
        """Whether values that its shaders load decide what it accesses."""

    def most(self) -> tuple[object, ...]:
        """The effects that the command may have beside its own."""
