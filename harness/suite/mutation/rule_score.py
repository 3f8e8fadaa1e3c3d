"""The score of the judges' mutants, as a table: how many rules each way of noticing covers."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from harness.suite.mutation.rule_judging import WAYS, Noticed
from harness.suite.mutation.rule_mutants import EQUIVALENT, JUDGES


def table(noticed: Sequence[Noticed]) -> Table:
    """A row a judge: its rules (functions), its mutants, and how many of both are noticed, by whom."""
    made = Table(box=None, pad_edge=False, header_style="bold", title="rules and mutants noticed", title_justify="left")
    made.add_column("judge")
    for heading in ("rules", "noticed", "mutants", "noticed", *WAYS, "by error"):
        made.add_column(heading, justify="right")
    for judge in JUDGES:
        own = [each for each in noticed if each.mutant.judge == judge]
        rules = {each.mutant.rule for each in own}
        counts = [sum(bool(getattr(each, way)) for each in own) for way in (*WAYS, "error")]
        cells = (len(rules), len(rules) - len(unnoticed_rules(own)), len(own), sum(map(bool, own)), *counts)
        made.add_row(judge, *map(str, cells))
    return made


def unnoticed_rules(noticed: Sequence[Noticed]) -> list[str]:
    """The functions of which no change was noticed by anyone, but for those that `EQUIVALENT` has."""
    found = {each.mutant.rule for each in noticed if each}
    return sorted({each.mutant.rule for each in noticed} - found - EQUIVALENT.keys())


def needless_entries(noticed: Sequence[Noticed]) -> list[str]:
    """The functions that `EQUIVALENT` has, though a change was noticed."""
    return sorted({each.mutant.rule for each in noticed if each} & EQUIVALENT.keys())
