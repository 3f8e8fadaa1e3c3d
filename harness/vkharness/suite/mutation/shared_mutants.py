"""Mistakes planted in what both judges share: the tables of scopes, the trace, what commands do.

Where the two judges read the same wrong table they agree, so that their agreement is no evidence there. A planted
mistake is a change of one function, as `rule_mutants` makes them, or one bit of a row of a table of scopes: a stage or
an access that is left out, or the host's stage that is added.

Nothing here imports what is changed: `plant` must come first in its process.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from vkharness.suite.mutation.rule_mutants import ROOT, RuleMutant, import_mutated, module_of, mutants_of

SHARED = ("spec", "trace", "commands", "spans.py")
"""Packages and modules that both judges read, below `vkharness`."""
TABLES = "vkharness.spec._generated"
_SCOPES = {"STAGE_EXPANSION": "STAGES", "EARLIER": "STAGES", "LATER": "STAGES", "ACCESS_EXPANSION": "ACCESSES"}
"""The tables that mistakes are planted in, each with the table that names its bits."""
_HOST = "VK_PIPELINE_STAGE_2_HOST_BIT"


def shared_mutants() -> list[RuleMutant]:
    """Every mistake, those of the tables first."""
    files = [file for each in SHARED for file in (sorted((ROOT / each).rglob("*.py")) or [ROOT / each])]
    modules = [module for module in map(module_of, files) if module != TABLES]
    return [*_table_mutants(), *mutants_of(modules)]


def _table_mutants() -> Iterator[RuleMutant]:
    for table in _SCOPES:
        for number, (*_, words) in enumerate(_bits_of(table)):
            yield RuleMutant(TABLES, table, number, 0, words)


def _bits_of(table: str) -> list[tuple[int, int, str]]:
    """Row, bit to turn around, and words, for each mistake of a table."""
    tables = importlib.import_module(TABLES)
    named = {value: name for name, value in getattr(tables, _SCOPES[table]).items()}
    host = tables.STAGES[_HOST]
    found = []
    for row, mask in getattr(tables, table).items():
        left = [1 << at for at in range(mask.bit_length()) if mask >> at & 1]
        added = [host] if _SCOPES[table] == "STAGES" and not mask & host and row != host else []
        for bit in (*left, *added):
            what = "without" if bit in left else "with"
            found.append((row, bit, f"{named.get(row, hex(row))} {what} {named.get(bit, hex(bit))}"))
    return found


def plant(mutant: RuleMutant) -> None:
    """Puts a mistake in its place, in a process that has imported nothing of what is shared and ends after it."""
    if mutant.module != TABLES:
        import_mutated(mutant)
        return
    row, bit, _ = _bits_of(mutant.function)[mutant.number]
    getattr(importlib.import_module(TABLES), mutant.function)[row] ^= bit
