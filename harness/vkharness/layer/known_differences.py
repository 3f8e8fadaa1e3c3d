"""The known differences between us and a layer, loaded from `known_differences.toml`: what matches, and why.

An entry's globs are tested against the key of the disagreement, its `when` against the stream. The file is part of the
package: `tests/layer/test_compare.py` checks what it says.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from vkharness.layer import (  # noqa: F401 (they register their conditions)
    chains,
    event_conditions,
    order_conditions,
    queue_conditions,
    rendering_conditions,
    rendering_views,
    submit_conditions,
    view_conditions,
)
from vkharness.layer.conditions import CONDITIONS, matches
from vkharness.layer.manifest import Version, parse_version
from vkharness.layer.subject import Subject
from vkharness.layer.view_conditions import NamedView

FILE = Path(__file__).with_name("known_differences.toml")


@dataclass(frozen=True, slots=True)
class LayerDifference:
    """One known difference. What the file may say of it are these fields."""

    versions: str
    """Of layers that differ so: `all`, `<1.3.279`, `>=1.3.279`, or two of these with a comma."""
    side: str
    """Whose reports it explains: `ours-only`, `layer-only` or `both`."""
    id: str
    rule: str
    """The rule or the change of the layer that decides."""
    reason: str
    seen: Sequence[str]
    """Versions that were asked and differ so. Others of `versions` may: it says where the layer changed."""
    match: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Globs by name of what they are tested against (`marks`)."""
    when: str | Mapping[str, Mapping[str, Any]] = ""
    """A condition, perhaps with its arguments."""
    rename: Sequence[str] = ()
    """Our name of an access and the layer's."""

    @property
    def condition(self) -> tuple[str, Mapping[str, Any]]:
        """The name of the condition and its arguments; no name when there is none."""
        return (self.when, {}) if isinstance(self.when, str) else next(iter(self.when.items()))

    @property
    def views(self) -> list[NamedView]:
        """The views of the stream that the condition asks, each alone."""
        arguments = dict(self.condition[1])
        alone = arguments.pop("view", None)
        return [{alone: arguments}] if alone else list(arguments.get("views", ()))

    def holds_for(self, version: Version) -> bool:
        """True when layers of that version differ so."""
        limits = [(each.startswith("<"), each.lstrip("<>=")) for each in self.versions.split(",") if each != "all"]
        return all((version < parse_version(limit)) == below for below, limit in limits)

    def renamed(self, command: str, access: str) -> str:
        """That layer's name for our access of that command."""
        applies = access in self.rename[:1] and matches(command, self.match["either_commands"])
        return self.rename[1] if applies else access

    def explains(self, subject: Subject) -> bool:
        """True when this entry accounts for that disagreement."""
        condition, arguments = self.condition
        names = marks(subject)
        return (
            bool(condition or not self.rename)
            and self.side in ("both", subject.side)
            and all(any(matches(name, globs) for name in names[what]) for what, globs in self.match.items())
            and (not condition or CONDITIONS[condition](subject, **arguments))
        )


def marks(subject: Subject) -> dict[str, list[str]]:
    """Gives the properties of a disagreement that the globs of `match` are tested against, by name."""
    hazard, command, prior_command, access, prior_access = subject.key
    commands = {"commands": [command], "prior_commands": [prior_command], "either_commands": [command, prior_command]}
    accesses = {"accesses": [access], "prior_accesses": [prior_access], "either_accesses": [access, prior_access]}
    return {"kinds": [subject.kind], "hazards": [hazard], **commands, **accesses}


@cache
def known_differences(version: Version) -> tuple[LayerDifference, ...]:
    """The differences of a layer of that version."""
    return tuple(each for each in load() if each.holds_for(version))


@cache
def asked_versions() -> frozenset[Version]:
    """The versions that this account is about. Of another one nobody knows how it differs, and what it says is
    compared with what they say, but a disagreement with it is no failure."""
    return frozenset(parse_version(version) for each in load() for version in each.seen)


def views_of(differences: Iterable[LayerDifference]) -> list[NamedView]:
    """The views of the stream that their conditions ask, each once."""
    several: list[NamedView] = []
    for each in differences:
        several += [view for view in each.views if view not in several]
    return several


def load() -> list[LayerDifference]:
    """Every entry of the file."""
    return [
        LayerDifference(versions, side, id, **entry)
        for versions, sides in tomllib.loads(FILE.read_text(encoding="utf-8")).items()
        for side, entries in sides.items()
        for id, entry in entries.items()
    ]
