"""What a context keeps and hands around: ranges with the slots that they point to, scopes over ranges, hazards."""

from __future__ import annotations

from typing import NamedTuple

from harness.findings import Certainty, Hazard, HostStep, Place
from harness.spans import Span
from harness.syncval.barrier import Scope
from harness.syncval.state import LAYOUT_TRANSITION, State


class Slot:
    """Holds the state of every range that points here. Two slots that came to hold one state are joined."""

    __slots__ = ("joined_to", "state")

    def __init__(self, state: State) -> None:
        self.state = state
        self.joined_to: Slot | None = None

    def find(self) -> Slot:
        """The slot that this one was joined to, itself when it was not."""
        if self.joined_to is None:
            return self
        root = self.joined_to
        while root.joined_to is not None:
            root = root.joined_to
        at = self
        while at.joined_to is not None and at.joined_to is not root:
            at.joined_to, at = root, at.joined_to
        return root


class RangeEntry(NamedTuple):
    """What a range points to: the slot, and who made the accesses that its state holds (reads in the state's order)."""

    slot: Slot
    write: Place | None
    reads: tuple[Place, ...]


class DetectedHazard(NamedTuple):
    """A hazard on some addresses: its kind, the access that conflicts and the earlier one that it conflicts with."""

    hazard: Hazard
    span: Span
    access_kind: int
    prior: Place
    prior_access_kind: int
    state: State
    resource: int
    viewer: int = 0
    host_step: HostStep | None = None
    """What is missing between the device and the host."""
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

    scopes: tuple[Scope, ...]
    moved: bool
    access_kind: int
