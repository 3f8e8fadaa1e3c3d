"""The mutation score by operator, as a table.

It counts how many of the mutants that the model calls illegal each judge caught, and on how many of the legal mutants a
judge was not silent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.table import Table

from vkharness.suite.mutation.mutant import Mutant
from vkharness.suite.mutation.operators import OPERATORS

SYNCVAL = "syncval"
TOTAL = "all"


@dataclass(slots=True)
class Score:
    """Counts for one operator. `caught` and `false` are by judge."""

    mutants: int = 0
    legal: int = 0
    caught: dict[str, int] = field(default_factory=dict)
    """Illegal mutants on which the judge reported something, by judge."""
    false: dict[str, int] = field(default_factory=dict)
    """Legal mutants on which the judge reported something, by judge."""
    asked: dict[str, int] = field(default_factory=dict)
    """Illegal mutants about which the judge was asked, by judge."""

    def add(self, mutant: Mutant) -> None:
        """Counts one mutant."""
        self.mutants += 1
        self.legal += mutant.legal
        for judge, said in opinions(mutant).items():
            if mutant.legal:
                self.false[judge] = self.false.get(judge, 0) + bool(said)
            else:
                self.asked[judge] = self.asked.get(judge, 0) + 1
                self.caught[judge] = self.caught.get(judge, 0) + bool(said)


def opinions(mutant: Mutant) -> dict[str, list[str]]:
    """The answers of each judge except the model, which decides whether a mutant is legal."""
    return {SYNCVAL: mutant.syncval, **{f"layer {version}": said for version, said in mutant.layers.items()}}


def scores(mutants: Iterable[Mutant]) -> dict[str, Score]:
    """By operator, in their order, and TOTAL last; mutants with a problem are left out."""
    found = {name: Score() for name in OPERATORS}
    total = Score()
    for mutant in mutants:
        if not mutant.problem:
            found[mutant.operator].add(mutant)
            total.add(mutant)
    return {**{name: score for name, score in found.items() if score.mutants}, TOTAL: total}


def wrong(mutants: Sequence[Mutant]) -> list[Mutant]:
    """Mutants at which syncval and the model disagree: the score that has to be perfect."""
    return [each for each in mutants if not each.problem and bool(each.syncval) is each.legal]


def table(mutants: Sequence[Mutant]) -> Table:
    """A row an operator: illegal ones caught by each judge, legal ones at which it was wrongly not silent."""
    counted = scores(mutants)
    judges = list(dict.fromkeys(judge for score in counted.values() for judge in (*score.asked, *score.false)))
    made = Table(box=None, pad_edge=False, header_style="bold", title="mutation score", title_justify="left")
    made.add_column("operator")
    for heading in ("mutants", "legal", *judges):
        made.add_column(heading, justify="right")
    for name, score in counted.items():
        cells = [_cell(score, judge) for judge in judges]
        made.add_row(name, str(score.mutants), str(score.legal), *cells, style="bold" if name == TOTAL else "")
    return made


def _cell(score: Score, judge: str) -> str:
    asked, false = score.asked.get(judge, 0), score.false.get(judge, 0)
    caught = f"{score.caught.get(judge, 0)}/{asked}" if asked else "-"
    return f"{caught} +{false} false" if false else caught
