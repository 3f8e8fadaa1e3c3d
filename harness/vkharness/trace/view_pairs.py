"""Which views of multiview subpasses depend on each other, as data."""

from __future__ import annotations

from typing import NamedTuple


class ViewPairs(NamedTuple):
    """The views that a view-local dependency is between."""

    src: int
    """The view mask of the source subpass."""
    dst: int
    """The view mask of the destination subpass."""
    offset: int = 0
    """A view of the destination depends on that of the source with this number more."""
