"""Bugs of the conformance suite that are proved: which findings of which cases they explain."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

LIST = Path(__file__).with_name("known_bugs.json")


@dataclass(frozen=True, slots=True)
class Said:
    """What the judge says of a case: the kind of a hazard, and its two accesses."""

    hazard: str
    access: str
    prior_access: str
    message: str

    @classmethod
    def of(cls, finding: Mapping[str, Any]) -> Said:
        """The part of a finding of `vkharness run --json` that a bug is known by."""
        return cls(finding["hazard"], finding["access"], finding["prior_access"], finding["message"])


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug of the suite: the cases and the accesses, as patterns of `fnmatch`, and what forbids it."""

    name: str
    cases: tuple[str, ...]
    hazards: tuple[str, ...]
    access: str
    prior_access: str
    sentence: str
    """The rule that it breaks, in our words, with the chapter or the VUID."""
    report: str
    """The page of docs/upstream that tells it."""

    def explains(self, case: str, said: Said) -> bool:
        """Whether a finding of a case comes from this bug."""
        return (
            said.hazard in self.hazards
            and any(fnmatchcase(case, each) for each in self.cases)
            and fnmatchcase(said.access, self.access)
            and fnmatchcase(said.prior_access, self.prior_access)
        )


def known_bugs(path: Path = LIST) -> list[Bug]:
    """The list, each entry once and complete."""
    entries = json.loads(path.read_text(encoding="utf-8"))
    return [Bug(**{**each, "cases": tuple(each["cases"]), "hazards": tuple(each["hazards"])}) for each in entries]


def unexplained(case: str, findings: Iterable[Said], bugs: Iterable[Bug]) -> list[Said]:
    """The findings of a case that no known bug explains."""
    listed = list(bugs)
    return [said for said in findings if not any(bug.explains(case, said) for bug in listed)]


def suspects(case: str, bugs: Iterable[Bug]) -> list[Bug]:
    """The bugs that a case may show."""
    return [bug for bug in bugs if any(fnmatchcase(case, each) for each in bug.cases)]
