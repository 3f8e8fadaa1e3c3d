"""Findings in words for a terminal or a pipe: both call sites, both accesses, and the dependency that is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from harness.findings import ENGINE_QUEUE, Certainty, Finding, Place, Unjudged, UnseenWrite
from harness.report.rules import PAGE, rule_of
from harness.report.sentences import explain, resource_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

NOTHING = Unjudged()
MOST_UNSEEN = 10
"""The most writes that the host cannot see which are named in a text."""
VERDICT_STYLES = {"clean": "bold green", "hazards": "bold red", "unknown": "bold yellow"}

BOUND = "at most: which bytes are read follows from contents that are unknown"
ONE_JUDGE = {"syncval": "syncval alone; the model finds nothing", "model": "the model alone; syncval finds nothing"}


def finding_text(finding: Finding) -> Text:
    """A finding as a few lines, styled; `.plain` is the same without styles."""
    from rich.text import Text

    text = Text()
    text.append("advice: " if finding.advice else "", style="bold yellow")
    text.append(finding.hazard, style="bold yellow" if finding.advice else "bold red")
    text.append(f" on {resource_text(finding)}")
    if finding.certainty is Certainty.BOUND:
        text.append(f" ({BOUND})", style="yellow")
    text.append("\n")
    places = (("", finding.place, finding.access), ("after ", finding.prior, finding.prior_access))
    for word, place, access in places:
        text.append(f"  {word:6}")
        text.append(place.command or "(host)", style="bold")
        if access:  # an operation on an event or an unflushed host write has none
            text.append(f" {access}", style="cyan")
        if place.site:
            text.append(f" at {place.site}", style="underline")
        text.append(f" ({_where(place)})\n", style="dim")
    if len(finding.judges) == 1:
        text.append(f"  found by: {ONE_JUDGE[finding.judges[0]]}\n", style="yellow")
    if finding.refuted:
        text.append(f"  refuted on this run: the two touch no byte in common ({finding.refuted})\n", style="green")
    text.append("  missing: ", style="dim")
    text.append(f"{explain(finding).missing}\n")
    text.append("  rule: ", style="dim")
    text.append(f"{PAGE}#{rule_of(finding)}\n")
    return text


def summary_text(
    verdict: str, findings: Sequence[Finding], unmodelled: Mapping[str, int], unjudged: Unjudged = NOTHING
) -> Text:
    """The verdict as one line; then advice, what is unmodelled, by name, and what the verdict leaves out."""
    from rich.text import Text

    text = Text()
    hazards = [each for each in findings if each.counts]
    refuted = [each for each in findings if each.refuted]
    if hazards:
        what = f"{len(hazards)} {'hazard' if len(hazards) == 1 else 'hazards'}: {_counted(hazards)}"
    elif unmodelled:
        what = "no hazard found, but not every command is modelled"
    else:
        what = "no hazard"
    text.append(verdict, style=VERDICT_STYLES.get(verdict, "bold"))
    text.append(f" - {what}")
    if any(each.advice for each in findings):
        text.append(f"\nadvice: {_counted(each for each in findings if each.advice)}", style="yellow")
    if refuted:
        text.append(f"\nrefuted on this run, and not counted: {_counted(refuted)}", style="green")
    if unmodelled:
        names = ", ".join(f"{name} x{count}" for name, count in sorted(unmodelled.items()))
        text.append(f"\nnot modelled: {names}", style="yellow")
    for line in unjudged_lines(unjudged):
        text.append(f"\n{line}", style="dim")
    return text


def unjudged_lines(unjudged: Unjudged) -> list[str]:
    """What a verdict leaves out: `17 draws read vertices through indices whose contents are unknown`."""
    return [
        *_draws(unjudged),
        *map(_unseen, unjudged.never_visible[:MOST_UNSEEN]),
        *([f"and {more} more of these"] if (more := len(unjudged.never_visible) - MOST_UNSEEN) > 0 else ()),
    ]


def _unseen(write: UnseenWrite) -> str:
    where = write.place.site or f"call {write.place.call}"
    what = f"{size_text(write.size)} of {write.resource_type} {write.resource}"
    return f"mapped and never made visible to the host: {what}, written by {write.place.command} at {where}"


def size_text(size: int) -> str:
    """`4 MiB`, `1.5 KiB`, `12 bytes`."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >> power:
            return f"{size / (1 << power):.4g} {unit}"
    return f"{size} bytes"


def _draws(unjudged: Unjudged) -> list[str]:
    return [
        f"{count} {'draw reads' if count == 1 else 'draws read'} {what}"
        for what, count in sorted(unjudged.left_out.items())
    ]


def print_verdict(
    console: Console,
    verdict: str,
    findings: Sequence[Finding],
    unmodelled: Mapping[str, int],
    unjudged: Unjudged = NOTHING,
) -> None:
    """Prints every finding and the summary. Lines are never wrapped, so that they can be searched and piped."""
    for finding in findings:
        console.print(finding_text(finding), soft_wrap=True, highlight=False)
    console.print(summary_text(verdict, findings, unmodelled, unjudged), soft_wrap=True, highlight=False)


def _counted(findings: Iterable[Finding]) -> str:
    """'2 READ_AFTER_WRITE, 1 WRITE_AFTER_READ': how many there are of each kind."""
    kinds = Counter(str(each.hazard) for each in findings)
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))


def _where(place: Place) -> str:
    """'call 12, command buffer 5, submit 20, queue 3': block indices and handles as far as they are known."""
    parts = [f"call {place.call}"]
    for word, value in (("command buffer", place.command_buffer), ("submit", place.submit), ("queue", _queue(place))):
        if value is not None:
            parts.append(f"{word} {value}")
    return ", ".join(parts)


def _queue(place: Place) -> int | None:
    """The presentation engine is a queue to syncval, but none that the program knows."""
    return None if place.queue is None or place.queue >= ENGINE_QUEUE else place.queue
