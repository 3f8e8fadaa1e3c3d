"""The smallest stream of which something holds that is no finding of ours, such as what a layer says.

    >>> from vkharness.reduction.whatever_holds import smallest
    >>> small = smallest(blocks, lambda left: wanted in said_of(left), steps=200)  # doctest: +SKIP

The same pieces go as in `reduce`, and blocks and objects keep their numbers. No stream has a finding of ours that
counts and that the whole one lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from vkharness.check import Analysis
from vkharness.findings import UserError
from vkharness.reduction.history import accessed, executed
from vkharness.reduction.levels import LEVELS, Piece, descriptors, left_out
from vkharness.reduction.oracle import StreamUse, identity
from vkharness.reduction.removal import remove
from vkharness.reduction.sizes import SIZES
from vkharness.reduction.structure import Structure
from vkharness.trace.calls import Block

Holds = Callable[[list[Block]], bool]


@dataclass(frozen=True, slots=True)
class SmallStream:
    """A smaller stream, and how it was found."""

    blocks: list[Block]
    asked: int
    """How many streams `holds` was asked about."""
    complete: bool
    """Whether nothing was left to try; False when the limit of steps came first, or nothing could be tried."""


class _OutOfStepsError(Exception):
    """The limit is reached; the best stream so far is the result."""


def smallest(blocks: Sequence[Block], holds: Holds, *, steps: int) -> SmallStream:
    """The smallest stream found of which `holds` is true. It is true of `blocks`, and is asked `steps` times at most.

    A stream whose blocks are not in the order of their numbers stays as it is.
    """
    if not all(one.index < following.index for one, following in pairwise(blocks)):
        return SmallStream(list(blocks), 0, complete=False)
    return _Search(blocks, holds, steps).run()


class _Search:
    """One search. `best` only ever gets smaller."""

    def __init__(self, blocks: Sequence[Block], holds: Holds, steps: int) -> None:
        self.best = list(blocks)
        self.asked = 0
        self._holds, self._steps = holds, steps
        analysis = Analysis(keep_events=True).follow(blocks)
        self._known = {identity(each) for each in analysis.findings if each.counts}
        self._use = StreamUse(analysis, executed(analysis.events))
        self._accesses: frozenset[tuple[int, int]] | None = None

    def run(self) -> SmallStream:
        """Rounds of all levels until one of them changes nothing."""
        try:
            before = -1
            while before != len(self.best):
                before = len(self.best)
                for _, pieces in LEVELS:
                    self._level(pieces)
                self._accesses = None
                for _, edits in SIZES:
                    self._edit(edits)
        except _OutOfStepsError:
            return SmallStream(self.best, self.asked, complete=False)
        return SmallStream(self.best, self.asked, complete=True)

    def _level(self, pieces: Callable[[Structure], list[Piece]]) -> None:
        structure = Structure(self.best)
        self._accesses = None
        if pieces is descriptors:
            self._accesses = accessed(executed(Analysis(keep_events=True).follow(self.best).events))
        left_out(pieces(structure), lambda dropped: self._try(remove(structure, dropped)))

    def _edit(self, edits: Callable[[Sequence[Block]], Iterator[list[Block]]]) -> None:
        """Takes smaller sizes as long as one is accepted."""
        while any(self._try(remove(Structure(edited), ())) for edited in edits(self.best)):
            pass

    def _try(self, left: list[Block] | None) -> bool:
        """Takes a stream if it can stand for the best one."""
        if left is None:
            return False
        if self.asked >= self._steps:
            raise _OutOfStepsError
        self.asked += 1
        try:
            analysis = Analysis(keep_events=True).follow(left)
            found = {identity(each) for each in analysis.findings if each.counts}
            kept = found <= self._known and self._use.is_kept(analysis, (), self._accesses)
            taken = kept and self._holds(left)
        except UserError:
            return False
        if taken:
            self.best = left
        return taken
