"""What contents of memory decide of a command, as far as those ask who only read its effects."""

from __future__ import annotations

from typing import Protocol


class Undecided(Protocol):
    """What contents of memory decide of a command."""

    @property
    def idle(self) -> bool:
        """Whether the command would run nothing with the contents that are foreseen when it is recorded."""

    @property
    def loads_values(self) -> bool:
        """Whether values that its shaders load decide what it accesses."""

    def most(self) -> tuple[object, ...]:
        """The effects that the command may have beside its own."""
