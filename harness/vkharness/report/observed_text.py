"""Words and the table of an observation: what commands did beyond what is declared, and what is declared in vain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from vkharness.spans import Span
from vkharness.trace.observations import Observation, Spans

if TYPE_CHECKING:
    from rich.table import Table

MOST_SHOWN = 4
"""The most ranges of one resource that are printed."""


def violation_lines(piece: Observation) -> Iterator[str]:
    """One line for each resource that a command reaches though nothing declares it."""
    for what, spans in (("writes", piece.undeclared_writes), ("reads", piece.undeclared_reads)):
        for resource, each in spans.items():
            call = f" (call {piece.commands[0].call})" if piece.commands else ""
            yield f"{piece.name}{call} {what} {_ranges(each)} of resource {resource}, which is not declared"


def _ranges(spans: tuple[Span, ...]) -> str:
    shown = ", ".join(f"[{begin}, {end})" for begin, end in spans[:MOST_SHOWN])
    return shown + (f" and {len(spans) - MOST_SHOWN} more" if len(spans) > MOST_SHOWN else "")


def figures(pieces: Iterable[Observation]) -> dict[str, list[int]]:
    """For each command: executions, addresses declared as written, written, declared as read, read, and executions
    with something undeclared."""
    found: dict[str, list[int]] = {}
    for piece in pieces:
        bad = bool(piece.undeclared_writes or piece.undeclared_reads)
        for name, *counts in piece.figures:
            row = found.setdefault(name, [0, 0, 0, 0, 0, 0])
            for at, value in enumerate((1, *counts, int(bad))):
                row[at] += value
    return found


def figures_table(rows: dict[str, list[int]], title: str = "") -> Table:
    """The figures as a table: what is declared, and what of it was never observed."""
    from rich.table import Table

    table = Table(title=title or None, box=None, pad_edge=False)
    table.add_column("command", no_wrap=True)
    for name in ("runs", "declared written", "never seen", "declared read", "never seen", "undeclared"):
        table.add_column(name, justify="right", no_wrap=True)
    for command, (runs, writes, written, reads, read, bad) in sorted(rows.items()):
        vain = (_share(writes - written, writes), _share(reads - read, reads))
        table.add_row(command, f"{runs}", f"{writes}", vain[0], f"{reads}", vain[1], f"{bad}")
    return table


def _share(part: int, whole: int) -> str:
    return f"{part} ({100 * part // whole}%)" if whole else "-"


def spans_lines(word: str, spans: Spans) -> Iterator[str]:
    """One line for each resource of an observation."""
    for resource, each in spans.items():
        yield f"  {word} {resource}: {_ranges(each)}"
