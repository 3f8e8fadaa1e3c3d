"""The known differences between us and a layer, loaded from `known_differences.toml`: what matches, and why.

An entry's globs are tested against the key of the disagreement, its `condition` against the stream. An unknown
condition, a wrong side or an empty reason in the file is an error when it is loaded, not when it is needed.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
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

_KEYS: dict[str, type | tuple[type, ...]] = {
    "rule": str,
    "reason": str,
    "rename": list,
    "match": dict,
    "when": (str, dict),
}
_SIDES = (OURS, LAYER, "both")
_MARKS = ("commands", "prior_commands", "either_commands", "accesses", "prior_accesses", "either_accesses")
_GLOBS = ("kinds", "hazards", *_MARKS)


@dataclass(frozen=True, slots=True)
class LayerDifference:
    """One known difference, for layers from version `since` on and before version `before`."""

    id: str
    since: Version | None
    before: Version | None
    side: str
    """Whose reports it explains: `ours-only`, `layer-only` or `both`."""
    rule: str
    """The rule or the change of the layer that decides."""
    reason: str
    globs: dict[str, list[str]]
    """By name of what they are tested against (`_GLOBS`)."""
    condition: str
    arguments: dict[str, Any]
    """Of the condition."""
    renamed: tuple[str, ...]
    """Our name of an access and the layer's; empty for a difference of another kind."""

    def holds_for(self, version: Version) -> bool:
        """True when layers of that version differ so."""
        return (self.since is None or version >= self.since) and (self.before is None or version < self.before)

    def rename(self, command: str, access: str) -> str:
        """That layer's name for our access of that command."""
        applies = access in self.renamed[:1] and matches(command, self.globs["either_commands"])
        return self.renamed[1] if applies else access

    def explains(self, subject: Subject) -> bool:
        """True when this entry accounts for that disagreement."""
        hazard, command, prior_command, access, prior_access = subject.key
        marks = ([command], [prior_command], [command, prior_command], [access], [prior_access], [access, prior_access])
        names = {"kinds": [subject.kind], "hazards": [hazard], **dict(zip(_MARKS, marks, strict=True))}
        return (
            bool(self.condition or not self.renamed)
            and self.side in ("both", subject.side)
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
        several = [
            (versions, side, *entry)
            for versions, sides in document.items()
            for side, entries in sides.items()
            for entry in entries.items()
        ]
    except AttributeError:
        raise UserError(f"{path.name}: each difference must be a table [versions.side.name]") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path.name}: {error}") from None
    return [_difference(f"{path.name}: difference {each[2]!r}", *each) for each in several]


def _difference(where: str, versions: str, side: str, id: str, entry: Any) -> LayerDifference:
    if side not in _SIDES:
        raise UserError(f"{where}: unknown side {side!r}, known are {', '.join(_SIDES)}")
    found = re.fullmatch(r"all|(<|>=)(\d+\.\d+\.\d+)", versions)
    if found is None:
        raise UserError(f"{where}: {versions!r} is neither all nor < or >= of a version")
    _check(where, entry)
    when = entry.get("when", "")
    condition, arguments = next(iter(when.items())) if isinstance(when, dict) else (when, {})
    if condition:
        _check_condition(where, condition, arguments)
    limit = parse_version(found[2]) if found[2] else None
    since, before = (limit, None) if found[1] == ">=" else (None, limit)
    rule, reason, globs = entry["rule"], entry["reason"], entry.get("match", {})
    renamed = tuple(entry.get("rename", ()))
    return LayerDifference(id, since, before, side, rule, reason, globs, condition, arguments, renamed)


def _check(where: str, entry: Any) -> None:
    """Raises `UserError` for a key that is unknown, missing or of the wrong type."""
    if not isinstance(entry, dict):
        raise UserError(f"{where}: it must be a table")
    for key, value in entry.items():
        if key not in _KEYS or not isinstance(value, _KEYS[key]):
            raise UserError(f"{where}: {key!r} is unknown or of the wrong type")
    for key in ("rule", "reason"):
        if not entry.get(key):
            raise UserError(f"{where}: {key!r} is missing")
    for key, globs in entry.get("match", {}).items():
        if key not in _GLOBS or not isinstance(globs, list) or not all(isinstance(each, str) for each in globs):
            raise UserError(f"{where}: {key!r} must be one of {', '.join(_GLOBS)}, with a list of strings")
    if "rename" in entry and (len(entry["rename"]) != 2 or "either_commands" not in entry.get("match", {})):
        raise UserError(f"{where}: `rename` needs two names, and `either_commands` in `match`")


def _check_condition(where: str, name: str, arguments: dict[str, Any]) -> None:
    if name not in CONDITIONS:
        raise UserError(f"{where}: unknown condition {name!r}, known are {', '.join(sorted(CONDITIONS))}")
    try:
        signature(CONDITIONS[name]).bind(None, **arguments)
    except TypeError as error:
        raise UserError(f"{where}: condition {name!r}: {error}") from None
