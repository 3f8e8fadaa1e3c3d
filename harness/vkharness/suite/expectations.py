"""Disagreements that are understood: one entry each, with the reason, in `expectations.toml` beside the scenarios."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from vkharness.findings import UserError
from vkharness.layer.manifest import Version, parse_version

JUDGES = ("syncval", "layer", "witness", "native", "bytes", "unmodelled")


@dataclass(frozen=True, slots=True)
class KnownDisagreement:
    """A known disagreement of one judge with the expectation of one variant, on these devices (all when empty)."""

    scenario: str
    variant: str
    judge: str
    reason: str
    devices: tuple[str, ...] = ()
    may: bool = False
    """Whether the specification leaves it to the driver, so that the judge may also agree: never needless."""
    since: Version = (0, 0, 0)
    before: Version | None = None
    """For the judge `layer`, the first version that agrees again. Versions from `since` on and before `before`
    disagree."""

    def covers(self, scenario: str, variant: str, device: str) -> bool:
        """Whether the entry is about this row."""
        return (scenario, variant) == (self.scenario, self.variant) and (not self.devices or device in self.devices)

    def holds_for(self, version: str) -> bool:
        """Whether the entry is about the layer of that version."""
        number = parse_version(version)
        return self.since <= number and (self.before is None or number < self.before)


def load(path: Path) -> list[KnownDisagreement]:
    """Entries of one file, none when it does not exist; UserError for one that is malformed or gives no reason."""
    try:
        return _entries(path, path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UserError(f"{path.name}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path.name}: not text in UTF-8") from None


@lru_cache(4)  # each row asks, and most rows have the same file
def _entries(path: Path, text: str) -> list[KnownDisagreement]:
    try:
        rows = tomllib.loads(text).get("expect", [])
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path.name}: {error}") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError(f"{path.name}: 'expect' is no list of tables")
    return [_entry(path, number, row) for number, row in enumerate(rows, 1)]


def _entry(path: Path, number: int, row: dict[str, Any]) -> KnownDisagreement:
    where = f"{path.name}: expectation {number}"
    unknown = sorted(set(row) - {"scenario", "variant", "judge", "reason", "devices", "may", "since", "before"})
    if unknown:
        raise UserError(f"{where}: unknown key {unknown[0]!r}")
    for key in ("scenario", "variant", "judge", "reason"):
        if not isinstance(row.get(key), str) or not row[key].strip():
            raise UserError(f"{where}: needs {key!r}, a text")
    if row["judge"] not in JUDGES:
        raise UserError(f"{where}: judge {row['judge']!r} is none of {', '.join(JUDGES)}")
    devices = row.get("devices", [])
    if not isinstance(devices, list) or not all(isinstance(each, str) for each in devices):
        raise UserError(f"{where}: 'devices' is no list of names")
    if not isinstance(row.get("may", False), bool):
        raise UserError(f"{where}: 'may' is neither true nor false")
    versions = {key: _version(where, row, key) for key in ("since", "before") if key in row}
    return KnownDisagreement(
        row["scenario"], row["variant"], row["judge"], row["reason"], tuple(devices), row.get("may", False), **versions
    )


def _version(where: str, row: dict[str, Any], key: str) -> Version:
    if row["judge"] != "layer":
        raise UserError(f"{where}: {key!r} is for judge 'layer'")
    try:
        return parse_version(str(row[key]))
    except ValueError:
        raise UserError(f"{where}: {key!r} must be a version such as '1.3.239'") from None
