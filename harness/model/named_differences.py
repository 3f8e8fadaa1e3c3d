"""The named differences between the model and syncval, from `differences.toml`: what only one of them reports, and why.

A malformed entry is an error when it is loaded, not when it is needed.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from harness.findings import UserError
from harness.model.explain import CONFLICT_KINDS
from harness.model.opinion import Conflict
from harness.model.order import OPTIONAL
from harness.model.pairs import FACTS

FILE = Path(__file__).with_name("differences.toml")


@dataclass(frozen=True, slots=True)
class NamedDifference:
    """Conflicts that only the model reports (`fact`), or hazards that only syncval does (`omitted`)."""

    id: str
    fact: str
    """What the model notes of such a conflict; empty for the other sort."""
    kinds: tuple[str, ...]
    omitted: str
    """The rule without which the model would report it too; empty for the other sort."""
    rule: str
    """Where the specification says so."""
    reason: str

    def explains(self, conflict: Conflict) -> bool:
        """Whether this is why syncval says nothing of the conflict."""
        return self.fact in conflict.facts and conflict.kind in self.kinds


@cache
def load(file: Path = FILE) -> tuple[NamedDifference, ...]:
    """Every entry. `UserError` for one that is malformed."""
    try:
        rows = tomllib.loads(file.read_text(encoding="utf-8")).get("difference", [])
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{file.name}: {error}") from None
    return tuple(_entry(f"{file.name}: difference {number}", row) for number, row in enumerate(rows, 1))


def _entry(where: str, row: dict[str, Any]) -> NamedDifference:
    for key in ("id", "rule", "reason"):
        if not isinstance(row.get(key), str) or not row[key].strip():
            raise UserError(f"{where}: needs {key!r}, a text")
    fact, omitted, kinds = row.get("fact", ""), row.get("omitted", ""), tuple(row.get("kinds", ()))
    if bool(fact) == bool(omitted):
        raise UserError(f"{where}: needs either 'fact' or 'omitted'")
    if bool(fact) != bool(kinds):
        raise UserError(f"{where}: needs 'kinds', a list of kinds of conflict, with 'fact' and only then")
    named = (
        ("fact", [fact] * bool(fact), FACTS),
        ("kind", kinds, CONFLICT_KINDS),
        ("rule", [omitted] * bool(omitted), OPTIONAL),
    )
    for what, given, known in named:
        for each in given:
            if each not in known:
                raise UserError(f"{where}: {what} {each!r} is none of {', '.join(sorted(known))}")
    return NamedDifference(row["id"], fact, kinds, omitted, row["rule"], row["reason"])


def explanation(conflict: Conflict) -> NamedDifference | None:
    """The entry that explains why only the model reports it; None for a real disagreement."""
    return next((each for each in load() if each.fact and each.explains(conflict)), None)


def omissions() -> tuple[NamedDifference, ...]:
    """The entries that explain why only syncval reports something."""
    return tuple(each for each in load() if each.omitted)
