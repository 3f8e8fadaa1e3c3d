"""One mutant of a scenario: its recording with one dependency changed, and the answers of all judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from vkharness.suite.mutation.operators import Written, mutants


@dataclass(slots=True)
class Mutant:
    """The change, and the judges that noticed it. It is plain data, since it travels between processes as JSON."""

    scenario: str
    dependency: str
    operator: str
    change: str
    model: list[str] = field(default_factory=list)
    """The conflicts that the model finds, in short. It is empty for a legal mutant."""
    syncval: list[str] = field(default_factory=list)
    """Hazards that syncval finds beyond those of the whole scenario."""
    layers: dict[str, list[str]] = field(default_factory=dict)
    """By version of the Khronos layer, the hazards that it reports beyond those of the whole scenario."""
    problem: str = ""
    """The reason why it was not judged: the device refused it, or something in it is not modelled."""
    lost: bool = False
    """Whether it stands for all mutants of a scenario, of which none was judged: the scenario failed, or the driver."""

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
        return (
            f"{self.scenario}: {self.dependency!r}, {self.operator}, {self.change}" if self.operator else self.scenario
        )


class DependencyLog:
    """Records every named dependency as written, and keeps what was written."""

    def __init__(self) -> None:
        self.written: dict[str, Written] = {}

    def amend(self, name: str, written: Written, weaker: Mapping[str, Written]) -> Written | None:
        """Returns the dependency as written. The signature is that of `Amend` in `vkharness.rig.core`."""
        self.written.setdefault(name, written)
        return written


class Changed:
    """Records one mutation, chosen by its number, in place of a dependency.

    It is made anew from the dependency in this recording, since that names the resources of this recording.
    """

    def __init__(self, name: str, position: int) -> None:
        self._name = name
        self._position = position

    def amend(self, name: str, written: Written, weaker: Mapping[str, Written]) -> Written | None:
        """Returns the mutated dependency. The signature is that of `Amend` in `vkharness.rig.core`."""
        if name != self._name:
            return written
        _, _, changed = list(mutants(written))[self._position]
        return changed
