"""Taking away what a mended trace does not need, until dropping any piece of it brings a hazard back."""

from __future__ import annotations

from harness.mending.pieces import pieces
from harness.mending.proof import Pair, is_clean
from harness.trace.edits import EditedTrace


def minimal(trace: EditedTrace, left: set[Pair], by_model: bool) -> EditedTrace:
    """The trace without each piece that is not needed; `left` are pairs that are not mended.

    A piece that is needed stays so when another one is dropped, since less is ordered then: each is tried once.
    """
    needed: set[tuple[int, str]] = set()
    while True:
        for piece in pieces(trace):
            key = (piece.origin, piece.what)
            if key not in needed:
                if is_clean(piece.rest, left, by_model):
                    trace = piece.rest
                    break
                needed.add(key)
        else:
            return trace
