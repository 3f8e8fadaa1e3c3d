"""One mutant of a scenario: its recording with one dependency changed, and what each judge makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from harness.suite.mutation.operators import Written, mutants


@dataclass(slots=True)
class Mutant:
    """What was changed and who noticed. Plain data: it travels between processes as JSON."""

    scenario: str
    dependency: str
    operator: str
    change: str
    model: list[str] = field(default_factory=list)
    """What the model calls illegal, in short; empty: the mutant is legal."""
    listed: list[str] = field(default_factory=list)
    """Named differences (`harness/model/differences.toml`) that explain all of what the model says, so that nobody else
    need say anything; or all of what syncval says of a mutant that is legal."""
    syncval: list[str] = field(default_factory=list)
    """Hazards that syncval finds and not in the whole scenario."""
    layers: dict[str, list[str]] = field(default_factory=dict)
    """By version of the Khronos layer, the hazards that it reports and not in the whole scenario."""
    problem: str = ""
    """Why it was not judged: the device refused it, or something in it is not modelled."""

    @property
    def legal(self) -> bool:
        """By the model."""
        return not self.model

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return asdict(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Mutant:
        """Inverse of `to_dict`."""
        return cls(**value)

    def __str__(self) -> str:
        return f"{self.scenario}: {self.dependency!r}, {self.operator}, {self.change}"


class DependencyLog:
    """Decides what is recorded for each named dependency: everything as written, while it notes what that is."""

    def __init__(self) -> None:
        self.written: dict[str, Written] = {}

    def amend(self, name: str, written: Written, weaker: Mapping[str, Written]) -> Written | None:
        """As `Rig` asks it."""
        self.written.setdefault(name, written)
        return written


class Changed:
    """Records one mutation, by its number, in place of a dependency. It is made anew of what is written in this
    recording, since that names the resources of this recording."""

    def __init__(self, name: str, position: int) -> None:
        self._name = name
        self._position = position

    def amend(self, name: str, written: Written, weaker: Mapping[str, Written]) -> Written | None:
        """As `Rig` asks it."""
        if name != self._name:
            return written
        _, _, changed = list(mutants(written))[self._position]
        return changed
