"""Data types of a context: states of ranges of memory, scopes over ranges, and hazards."""

from __future__ import annotations

from typing import NamedTuple

from vkharness.findings import Certainty, Hazard, HostStep, Place
from vkharness.spans import Span
from vkharness.syncval.barrier import Scope
from vkharness.syncval.state import LAYOUT_TRANSITION, State


class RangeEntry(NamedTuple):
    """The state of a range of memory, with the place numbers (`places`) of the commands whose accesses it holds; the
    reads are in the state's order."""

    state: State
    write: int | None
    reads: tuple[int, ...]

    @property
    def places(self) -> tuple[int, ...]:
        """The place numbers of all accesses."""
        return self.reads if self.write is None else (self.write, *self.reads)


class DetectedHazard(NamedTuple):
    """A hazard on some addresses: its kind, the access that conflicts and the earlier one that it conflicts with."""

    hazard: Hazard
    span: Span
    access_kind: int
    prior: Place
    prior_number: int
    """The place number of the earlier access, which tells executions of one command apart."""
    prior_access_kind: int
    state: State
    resource: int
    viewer: int = 0
    host_step: HostStep | None = None
    """The step that is missing between the device and the host; None where both accesses are of the device."""
    through: int = 0
    """The resource by which the access came, when it is an alias of `resource`."""
    certainty: Certainty = Certainty.EXACT


class RangeScope(NamedTuple):
    """One dependency over one span of a space; `moved` when it transitions an image's layout there, or does something
    else that counts as a write: `access_kind`."""

    space: int
    span: Span
    scope: Scope
    moved: bool
    access_kind: int = LAYOUT_TRANSITION


class ScopesOnRange(NamedTuple):
    """Every scope of one command that covers some addresses, and whether (and as what) any of them writes them."""

    space: int
    begin: int
    end: int
    scopes: tuple[Scope, ...]
    moved: bool
    access_kind: int
