"""The expected differences between us and a layer, loaded from `differences.toml`: what matches, and why.

An entry's globs are tested against the key of the disagreement, its `condition` against the stream. An unknown
condition, a wrong side or an empty reason in the file is an error when it is loaded, not when it is needed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from harness.findings import UserError
from harness.layer import (  # they register their conditions
    event_conditions,  # noqa: F401
    query_conditions,  # noqa: F401
    render_area_conditions,  # noqa: F401
    rendering_conditions,  # noqa: F401
    secondary_conditions,  # noqa: F401
    subpass_conditions,  # noqa: F401
    version_conditions,  # noqa: F401
)
from harness.layer.conditions import CONDITIONS
from harness.layer.manifest import Version, parse_version
from harness.layer.stream import LAYER, OURS, Stream, Subject

FILE = Path(__file__).with_name("differences.toml")

RENAME = "access-rename"
SIDES = (OURS, LAYER, RENAME)
ANY = ("*",)

_TEXTS = ("id", "rule", "reason", "condition", "since", "before", "from", "to")
_LISTS = ("sides", "hazards", "commands", "prior_commands", "accesses", "prior_accesses", "kinds")


@dataclass(frozen=True, slots=True)
class Difference:
    """One expected difference, for layers from version `since` on and before version `before`."""

    id: str
    rule: str
    """The row of the rules or the upstream change that decides."""
    reason: str
    sides: tuple[str, ...]
    since: Version | None
    before: Version | None
    hazards: tuple[str, ...] = ANY
    commands: tuple[str, ...] = ANY
    prior_commands: tuple[str, ...] = ANY
    accesses: tuple[str, ...] = ANY
    prior_accesses: tuple[str, ...] = ANY
    kinds: tuple[str, ...] = ANY
    condition: str = ""
    renamed_from: str = ""
    renamed_to: str = ""

    def holds_for(self, version: Version) -> bool:
        """True when layers of that version differ so."""
        return (self.since is None or version >= self.since) and (self.before is None or version < self.before)

    def rename(self, command: str, access: str) -> str:
        """That layer's name for our access of that command."""
        applies = RENAME in self.sides and access == self.renamed_from and _matches(command, self.commands)
        return self.renamed_to if applies else access

    def explains(self, subject: Subject, stream: Stream, version: Version) -> bool:
        """True when this entry accounts for that disagreement."""
        hazard, command, prior_command, access, prior_access = subject.key
        return (
            subject.side in self.sides
            and _matches(subject.kind, self.kinds)
            and _matches(hazard, self.hazards)
            and _matches(command, self.commands)
            and _matches(prior_command, self.prior_commands)
            and _matches(access, self.accesses)
            and _matches(prior_access, self.prior_accesses)
            and (not self.condition or CONDITIONS[self.condition](subject, stream, version))
        )


def _matches(name: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)


@cache
def expected_differences(version: Version) -> tuple[Difference, ...]:
    """The differences of a layer of that version, in the file's order."""
    return tuple(each for each in load(FILE) if each.holds_for(version))


def load(path: Path) -> list[Difference]:
    """Every entry of a differences file. Raises `UserError` naming the entry that is wrong."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path.name}: {error}") from None
    entries = document.get("difference", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UserError(f"{path.name}: `difference` must be an array of tables")
    differences = [_difference(path.name, entry) for entry in entries]
    names = [each.id for each in differences]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{path.name}: two differences have the id {name!r}")
    return differences


def _difference(file: str, entry: dict[str, Any]) -> Difference:
    where = f"{file}: difference {entry.get('id', '?')!r}"
    for key, value in entry.items():
        if key not in _TEXTS + _LISTS:
            raise UserError(f"{where}: unknown key {key!r}")
        texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
        if (key in _TEXTS and not isinstance(value, str)) or (key in _LISTS and not texts):
            raise UserError(f"{where}: {key!r} must be {'a string' if key in _TEXTS else 'a list of strings'}")
    for key in ("id", "rule", "reason", "sides"):
        if not entry.get(key):
            raise UserError(f"{where}: {key!r} is missing")
    if unknown := [side for side in entry["sides"] if side not in SIDES]:
        raise UserError(f"{where}: unknown side {unknown[0]!r}, known are {', '.join(SIDES)}")
    name = entry.get("condition", "")
    if name and name not in CONDITIONS:
        raise UserError(f"{where}: unknown condition {name!r}, known are {', '.join(sorted(CONDITIONS))}")
    if RENAME in entry["sides"] and not (entry.get("from") and entry.get("to")):
        raise UserError(f"{where}: an access-rename needs `from` and `to`")
    try:
        since, before = (parse_version(entry[key]) if key in entry else None for key in ("since", "before"))
    except ValueError as error:
        raise UserError(f"{where}: {error}") from None
    globs = {key: tuple(entry[key]) for key in _LISTS if key in entry and key != "sides"}
    return Difference(
        id=entry["id"],
        rule=entry["rule"],
        reason=entry["reason"],
        sides=tuple(entry["sides"]),
        since=since,
        before=before,
        condition=name,
        renamed_from=entry.get("from", ""),
        renamed_to=entry.get("to", ""),
        **globs,
    )
