"""Disagreements that are understood: one entry each, with the reason, in `expectations.toml` beside the scenarios."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from vkharness.findings import UserError
from vkharness.layer.manifest import Version, parse_version
from vkharness.plain_file import read_plain

EXPECTATIONS = "expectations.toml"
JUDGES = ("syncval", "layer", "witness", "native", "bytes", "unmodelled")
OF_DRIVERS = ("witness", "native", "bytes")
"""Judges that say what a driver does."""
KEYS = ("scenario", "variant", "judge", "reason", "devices", "driver", "may", "since", "before")


@dataclass(frozen=True, slots=True)
class KnownDisagreement:
    """A known disagreement of one judge with the expectation of one variant, on these devices (all when empty)."""

    scenario: str
    variant: str
    judge: str
    reason: str
    devices: tuple[str, ...] = ()
    driver: str = ""
    """The text before the version in the driver's own name (`llvmpipe Mesa`), if the entry is about a driver; else
    empty."""
    may: bool = False
    """Whether the specification leaves it to the driver, so that the judge may also agree: never needless."""
    since: Version = (0, 0, 0)
    before: Version | None = None
    """For the judge `layer` and for a `driver`, the first version that agrees again. Versions from `since` on and
    before `before` disagree."""

    def covers(self, scenario: str, variant: str, device: str, driver: str = "") -> bool:
        """Whether the entry is about this row, of a driver that says `driver` of itself."""
        if (scenario, variant) != (self.scenario, self.variant) or (self.devices and device not in self.devices):
            return False
        if not self.driver:
            return True
        found = re.search(rf"(?<!\w){re.escape(self.driver)} (\d+(?:\.\d+){{0,2}})", driver)
        return found is not None and self.holds_for(found[1])

    def holds_for(self, version: str) -> bool:
        """Whether the entry is about that version of the layer or driver."""
        number = parse_version(version)
        return self.since <= number and (self.before is None or number < self.before)


def of_claim(scenario: str, variant: str, known: Mapping[str, str]) -> list[KnownDisagreement]:
    """The entries of a row that its claim itself has (`Claim.known`). Raises `UserError` for a judge that is neither
    `witness` nor `layer VERSION`."""
    found = []
    for name, reason in known.items():
        judge, _, version = name.partition(" ")
        try:
            since = parse_version(version) if judge == "layer" else (0, 0, 0)
        except ValueError:
            judge = ""
        if judge != "layer" and name != "witness":
            raise UserError(f"{scenario}: known[{name!r}]: write 'witness' or 'layer 1.3.239'")
        before = (*since[:2], since[2] + 1) if judge == "layer" else None
        found.append(KnownDisagreement(scenario, variant, judge, reason, may=True, since=since, before=before))
    return found


def beside(file: Path) -> list[KnownDisagreement]:
    """The entries of the nearest `expectations.toml` in the folder of a scenario's file or above it."""
    folder = next((each for each in file.parents if (each / EXPECTATIONS).exists()), file.parent)
    return load(folder / EXPECTATIONS)


def load(path: Path) -> list[KnownDisagreement]:
    """Entries of one file, none when it does not exist; UserError for one that is malformed or gives no reason."""
    try:
        return _entries(path, read_plain(path))
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
    unknown = sorted(set(row) - set(KEYS))
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
    driver, may = row.get("driver", ""), row.get("may", False)
    if not isinstance(driver, str) or (driver and row["judge"] not in OF_DRIVERS):
        raise UserError(f"{where}: 'driver' is a text, for judges {' and '.join(OF_DRIVERS)}")
    if not isinstance(may, bool) or (may and row["judge"] not in OF_DRIVERS):
        raise UserError(f"{where}: 'may' is true or false, for judges {' and '.join(OF_DRIVERS)}")
    versions = {key: _version(where, row, key) for key in ("since", "before") if key in row}
    return KnownDisagreement(
        row["scenario"], row["variant"], row["judge"], row["reason"], tuple(devices), driver, may, **versions
    )


def _version(where: str, row: dict[str, Any], key: str) -> Version:
    if row["judge"] != "layer" and not row.get("driver"):
        raise UserError(f"{where}: {key!r} is for judge 'layer', or for a 'driver'")
    try:
        return parse_version(str(row[key]))
    except ValueError:
        raise UserError(f"{where}: {key!r} must be a version such as '1.3.239'") from None
