"""Disagreements that are understood: one entry each, with the reason, in `expectations.toml` beside the scenarios."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.findings import UserError

JUDGES = ("syncval", "layer", "witness", "native", "unmodelled")


@dataclass(frozen=True, slots=True)
class Entry:
    """On these devices (all when empty) this judge disagrees with the expectation of one variant, because of this."""

    scenario: str
    variant: str
    judge: str
    reason: str
    devices: tuple[str, ...] = ()

    def covers(self, scenario: str, variant: str, device: str) -> bool:
        """Whether the entry is about this row."""
        return (scenario, variant) == (self.scenario, self.variant) and (not self.devices or device in self.devices)


def load(path: Path) -> list[Entry]:
    """Entries of one file, none when it does not exist; UserError for one that is malformed or gives no reason."""
    if not path.exists():
        return []
    try:
        rows = tomllib.loads(path.read_text()).get("expect", [])
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path.name}: {error}") from None
    return [_entry(path, number, row) for number, row in enumerate(rows, 1)]


def _entry(path: Path, number: int, row: dict[str, Any]) -> Entry:
    where = f"{path.name}: expectation {number}"
    unknown = sorted(set(row) - {"scenario", "variant", "judge", "reason", "devices"})
    if unknown:
        raise UserError(f"{where}: unknown key {unknown[0]!r}")
    for key in ("scenario", "variant", "judge", "reason"):
        if not isinstance(row.get(key), str) or not row[key].strip():
            raise UserError(f"{where}: needs {key!r}, a text")
    if row["judge"] not in JUDGES:
        raise UserError(f"{where}: judge {row['judge']!r} is none of {', '.join(JUDGES)}")
    return Entry(row["scenario"], row["variant"], row["judge"], row["reason"], tuple(row.get("devices", ())))
