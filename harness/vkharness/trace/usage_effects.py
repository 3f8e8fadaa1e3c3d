"""Rules of valid usage that commands break, as data."""

from __future__ import annotations

from dataclasses import dataclass

from vkharness.findings import Hazard, Place


@dataclass(frozen=True, slots=True)
class InvalidUsage:
    """A rule of valid usage that a command breaks with an object which `prior` made: a finding that is advice."""

    hazard: Hazard
    resource: int
    resource_type: str
    prior: Place
