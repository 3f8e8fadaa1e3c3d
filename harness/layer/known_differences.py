"""The known differences between us and a layer, loaded from `known_differences.toml`: what matches, and why.

An entry's globs are tested against the key of the disagreement, its `condition` against the stream. An unknown
condition, a wrong side or an empty reason in the file is an error when it is loaded, not when it is needed.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any

from harness.findings import UserError
from harness.layer import event_conditions, rendering_conditions, submit_conditions  # noqa: F401 (they register theirs)
from harness.layer.conditions import CONDITIONS, matches
from harness.layer.manifest import Version, parse_version
from harness.layer.subject import LAYER, OURS, Subject

FILE = Path(__file__).with_name("known_differences.toml")

RENAME = "access-rename"
SIDES = (OURS, LAYER, RENAME)

_TEXTS = ("rule", "reason", "condition", "since", "before", "from", "to")
_MARKS = ("commands", "prior_commands", "either_commands", "accesses", "prior_accesses", "either_accesses")
_GLOBS = ("kinds", "hazards", *_MARKS)


@dataclass(frozen=True, slots=True)
class LayerDifference:
    """One known difference, for layers from version `since` on and before version `before`."""

    id: str
    rule: str
    """The rule or the change of the layer that decides."""
    reason: str
    sides: tuple[str, ...]
    since: Version | None
    before: Version | None
    globs: dict[str, list[str]]
    """By name of what they are tested against (`_GLOBS`)."""
    condition: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    """Of the condition."""
    renamed_from: str = ""
    renamed_to: str = ""

    def holds_for(self, version: Version) -> bool:
        """True when layers of that version differ so."""
        return (self.since is None or version >= self.since) and (self.before is None or version < self.before)

    def rename(self, command: str, access: str) -> str:
        """That layer's name for our access of that command."""
        applies = RENAME in self.sides and access == self.renamed_from and matches(command, self.globs["commands"])
        return self.renamed_to if applies else access

    def explains(self, subject: Subject) -> bool:
        """True when this entry accounts for that disagreement."""
        hazard, command, prior_command, access, prior_access = subject.key
        names = {
            "kinds": [subject.kind],
            "hazards": [hazard],
            "commands": [command],
            "prior_commands": [prior_command],
            "either_commands": [command, prior_command],
            "accesses": [access],
            "prior_accesses": [prior_access],
            "either_accesses": [access, prior_access],
        }
        return (
            subject.side in self.sides
            and all(any(matches(name, globs) for name in names[what]) for what, globs in self.globs.items())
            and (not self.condition or CONDITIONS[self.condition](subject, **self.arguments))
        )


@cache
def known_differences(version: Version) -> tuple[LayerDifference, ...]:
    """The differences of a layer of that version, in the file's order."""
    return tuple(each for each in load(FILE) if each.holds_for(version))


def load(path: Path) -> list[LayerDifference]:
    """Every entry of a differences file. Raises `UserError` naming the entry that is wrong."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path.name}: {error}") from None
    if not all(isinstance(entry, dict) for entry in document.values()):
        raise UserError(f"{path.name}: each difference must be a table")
    return [_difference(f"{path.name}: difference {id!r}", id, entry) for id, entry in document.items()]


def _difference(where: str, id: str, entry: dict[str, Any]) -> LayerDifference:
    for key, value in entry.items():
        kind = str if key in _TEXTS else list if key in (*_GLOBS, "sides") else dict if key == "with" else None
        if kind is None:
            raise UserError(f"{where}: unknown key {key!r}")
        if not isinstance(value, kind) or (kind is list and not all(isinstance(each, str) for each in value)):
            raise UserError(f"{where}: {key!r} must be {_KINDS[kind]}")
    for key in ("rule", "reason", "sides"):
        if not entry.get(key):
            raise UserError(f"{where}: {key!r} is missing")
    if unknown := [side for side in entry["sides"] if side not in SIDES]:
        raise UserError(f"{where}: unknown side {unknown[0]!r}, known are {', '.join(SIDES)}")
    if RENAME in entry["sides"] and not (entry.get("from") and entry.get("to") and entry.get("commands")):
        raise UserError(f"{where}: an access-rename needs `commands`, `from` and `to`")
    _check_condition(where, entry.get("condition", ""), entry.get("with", {}))
    try:
        since, before = (parse_version(entry[key]) if key in entry else None for key in ("since", "before"))
    except ValueError as error:
        raise UserError(f"{where}: {error}") from None
    return LayerDifference(
        id,
        entry["rule"],
        entry["reason"],
        tuple(entry["sides"]),
        since,
        before,
        {key: entry[key] for key in _GLOBS if key in entry},
        entry.get("condition", ""),
        entry.get("with", {}),
        entry.get("from", ""),
        entry.get("to", ""),
    )


_KINDS: dict[type, str] = {str: "a string", list: "a list of strings", dict: "a table"}


def _check_condition(where: str, name: str, arguments: dict[str, Any]) -> None:
    if name and name not in CONDITIONS:
        raise UserError(f"{where}: unknown condition {name!r}, known are {', '.join(sorted(CONDITIONS))}")
    try:
        if name or arguments:
            signature(CONDITIONS[name] if name else lambda: False).bind(None, **arguments)
    except TypeError as error:
        raise UserError(f"{where}: condition {name!r}: {error}") from None
