"""The score of the judges' mutants, as tables: how many functions each way of noticing covers, and which rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from rich.table import Table

from vkharness.suite.mutation.rule_judging import WAYS, Noticed
from vkharness.suite.mutation.rule_mutants import EQUIVALENT, JUDGES


def table(noticed: Sequence[Noticed]) -> Table:
    """A row a judge: its functions, its mutants, and how many of both are noticed, by whom."""
    made = _titled("functions and mutants noticed")
    made.add_column("judge")
    for heading in ("functions", "noticed", "mutants", "noticed", *WAYS, "by error"):
        made.add_column(heading, justify="right")
    for judge in JUDGES:
        own = [each for each in noticed if each.mutant.judge == judge]
        functions = {each.mutant.decider for each in own}
        counts = [sum(bool(getattr(each, way)) for each in own) for way in (*WAYS, "error")]
        cells = (len(functions), len(functions) - len(unnoticed_functions(own)), len(own), sum(map(bool, own)), *counts)
        made.add_row(judge, *map(str, cells))
    return made


def unnoticed_functions(noticed: Sequence[Noticed]) -> list[str]:
    """The functions of which no change was noticed by anyone, but for those that `EQUIVALENT` has."""
    found = {each.mutant.decider for each in noticed if each}
    return sorted({each.mutant.decider for each in noticed} - found - EQUIVALENT.keys())


@dataclass(frozen=True, slots=True)
class NoticedRule:
    """Who notices when one judge has a rule of `docs/rules.md` no more."""

    anchor: str
    judge: str
    ways: frozenset[str]
    """Of `WAYS`: those that noticed a mutant of a function that decides the rule. None noticed a mutant that only
    raises: an error shows that the code runs, and not that anybody holds what it decides against something."""


def noticed_rules(
    deciders: Mapping[tuple[str, str], Set[str]], noticed: Mapping[str, Sequence[Noticed]]
) -> list[NoticedRule]:
    """Who notices each rule, by what was noticed of the mutants of each function."""
    return [
        NoticedRule(anchor, judge, frozenset(w for name in functions for each in noticed[name] for w in ways_of(each)))
        for (anchor, judge), functions in sorted(deciders.items())
    ]


def ways_of(noticed: Noticed) -> list[str]:
    """The ways that noticed a mutant."""
    return [way for way in WAYS if getattr(noticed, way)]


def rules_table(rules: Sequence[NoticedRule]) -> Table:
    """A row for each rule and judge, marked where it is noticed; and how many are, for each judge."""
    made = _titled("rules noticed")
    for heading in ("rule", "judge"):
        made.add_column(heading)
    for heading in ("noticed", *WAYS):
        made.add_column(heading, justify="right")
    for each in rules:
        made.add_row(each.anchor, each.judge, "yes" if each.ways else "no", *("x" * (way in each.ways) for way in WAYS))
    for judge in JUDGES:
        own = [each.ways for each in rules if each.judge == judge]
        counts = [sum(way in ways for ways in own) for way in WAYS]
        made.add_row(f"all {len(own)} rules", judge, str(sum(map(bool, own))), *map(str, counts), style="bold")
    return made


def _titled(title: str) -> Table:
    return Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")


def needless_entries(noticed: Sequence[Noticed]) -> list[str]:
    """The functions that `EQUIVALENT` has, though a change was noticed."""
    return sorted({each.mutant.decider for each in noticed if each} & EQUIVALENT.keys())
