"""The named differences between the model and syncval, from `differences.toml`.

A named difference says why only one of the two judges reports a conflict. `load` rejects a malformed entry.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from harness.findings import UserError
from harness.model.opinion import Conflict, ConflictKind
from harness.model.order import OPTIONAL
from harness.model.pairs import FACTS

FILE = Path(__file__).with_name("differences.toml")


@dataclass(frozen=True, slots=True)
class NamedDifference:
    """The reason for conflicts that only the model reports (`fact`), or for hazards that only syncval reports
    (`omitted`)."""

    id: str
    fact: str
    """The fact (out of `pairs.FACTS`) that the model notes of such a conflict. It is empty when `omitted` is given."""
    kinds: tuple[str, ...]
    omitted: str
    """The model's rule that excludes the hazard (out of `order.OPTIONAL`). It is empty when `fact` is given."""
    rule: str
    """The place in the specification."""
    reason: str

    def explains(self, conflict: Conflict) -> bool:
        """Whether this difference explains that syncval does not report the conflict."""
        return self.fact in conflict.facts and conflict.kind in self.kinds


@cache
def load(file: Path = FILE) -> tuple[NamedDifference, ...]:
    """Every entry of the file. Raises `UserError` for a malformed entry."""
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
        ("kind", kinds, set(ConflictKind) - {ConflictKind.RACING}),
        ("rule", [omitted] * bool(omitted), OPTIONAL),
    )
    for what, given, known in named:
        for each in given:
            if each not in known:
                raise UserError(f"{where}: {what} {each!r} is none of {', '.join(sorted(known))}")
    return NamedDifference(row["id"], fact, kinds, omitted, row["rule"], row["reason"])


def explanation(conflict: Conflict) -> NamedDifference | None:
    """The entry that explains why only the model reports the conflict; None for a disagreement without a reason."""
    return next((each for each in load() if each.fact and each.explains(conflict)), None)


def omissions() -> tuple[NamedDifference, ...]:
    """The entries that explain why only syncval reports a hazard."""
    return tuple(each for each in load() if each.omitted)
