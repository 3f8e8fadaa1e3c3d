"""The named differences between the model and syncval, from `differences.toml`: which conflicts only the model reports,
and why.

A malformed entry is an error when it is loaded, not when it is needed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from harness.findings import UserError
from harness.model.accesses import FACTS
from harness.model.explain import KINDS
from harness.model.opinion import Conflict

FILE = Path(__file__).with_name("differences.toml")


@dataclass(frozen=True, slots=True)
class Difference:
    """Conflicts that only the model reports."""

    id: str
    fact: str
    """What the model notes of such a conflict."""
    kinds: tuple[str, ...]
    rule: str
    """Where the specification says so."""
    reason: str

    def explains(self, conflict: Conflict) -> bool:
        """Whether this is why syncval says nothing of the conflict."""
        return self.fact in conflict.facts and conflict.kind in self.kinds


@cache
def load(file: Path = FILE) -> tuple[Difference, ...]:
    """Every entry. `UserError` for one that is malformed."""
    try:
        rows = tomllib.loads(file.read_text(encoding="utf-8")).get("difference", [])
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{file.name}: {error}") from None
    return tuple(_entry(file, number, row) for number, row in enumerate(rows, 1))


def _entry(file: Path, number: int, row: dict[str, Any]) -> Difference:
    where = f"{file.name}: difference {number}"
    for key in ("id", "fact", "rule", "reason"):
        if not isinstance(row.get(key), str) or not row[key].strip():
            raise UserError(f"{where}: needs {key!r}, a text")
    kinds = tuple(row.get("kinds", ()))
    for known, given, what in ((FACTS, (row["fact"],), "fact"), (KINDS, kinds, "kind")):
        for each in given:
            if each not in known:
                raise UserError(f"{where}: {what} {each!r} is none of {', '.join(sorted(known))}")
    if not kinds:
        raise UserError(f"{where}: needs 'kinds', a list of kinds of conflict")
    return Difference(row["id"], row["fact"], kinds, row["rule"], row["reason"])


def explanation(conflict: Conflict, entries: Sequence[Difference] | None = None) -> Difference | None:
    """The entry that explains why only the model reports it; None for a real disagreement."""
    return next((each for each in (load() if entries is None else entries) if each.explains(conflict)), None)
