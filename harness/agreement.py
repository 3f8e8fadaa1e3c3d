"""Whether the validator and the model agree on a trace.

They agree when both call it clean or neither does; when every finding of syncval is a conflict of the model, of the
same two accesses; and when the first command that offends is the same. What only one of them reports, and
`model/differences.toml` explains, is no disagreement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.check import Analysis
from harness.findings import Certainty, Finding, stronger
from harness.model import Conflict, ConflictKind, Opinion, judge_stream_events
from harness.model.named_differences import NamedDifference, explanation, omissions
from harness.report.conflicts import conflict_text
from harness.report.sentences import pair_text
from harness.trace.calls import Block

Key = tuple[int, int, str, str]
"""The calls and the accesses of two commands, the earlier one first."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How two opinions of one trace compare."""

    disagreements: tuple[str, ...]
    """One line each; empty when they agree."""
    explained: tuple[str, ...] = ()
    """Ids of the named differences that were needed."""


def agreement(blocks: Sequence[Block]) -> Agreement:
    """Asks both about a trace."""
    analysis = Analysis(keep_events=True).follow(blocks)
    return compare(analysis.findings, judge_stream_events(analysis.events))


def compare(findings: Iterable[Finding], opinion: Opinion) -> Agreement:
    """Compares what they said."""
    findings = list(findings)
    reported = {_key(each) for each in findings}
    explained: list[str] = []
    open_conflicts: list[Conflict] = []
    for conflict in opinion.conflicts:
        entry = None if reported & set(_directions(conflict)) else explanation(conflict)
        if entry is None:
            open_conflicts.append(conflict)
        else:
            explained.append(entry.id)
    known = _pairs(opinion)
    lines = []
    for finding in findings:
        if _key(finding) not in known:
            entry = _omission(finding, opinion)
            if entry is None:
                lines.append(f"syncval only: {pair_text(finding)}")
            else:
                explained.append(entry.id)
        elif known[_key(finding)] is not finding.certainty:
            lines.append(f"{finding.certainty} for syncval, {known[_key(finding)]} for the model: {pair_text(finding)}")
    if open_conflicts:
        first = open_conflicts[0]
        if not findings:
            lines.append(f"model only: {conflict_text(first)}")
        elif not {key[1] for key in _directions(first)} & {each.place.call for each in findings}:
            lines.append(f"the model's first conflict is not one of syncval's commands: {conflict_text(first)}")
    return Agreement(tuple(lines), tuple(dict.fromkeys(explained)))


def _omission(finding: Finding, opinion: Opinion) -> NamedDifference | None:
    """The rule that syncval does not have, and without which the model would find the same."""
    for entry in omissions():
        if opinion.without is not None and _key(finding) in _pairs(opinion.without(entry.omitted)):
            return entry
    return None


def _pairs(opinion: Opinion) -> dict[Key, Certainty]:
    """Every pair in conflict, with how sure it is that the two meet."""
    found: dict[Key, Certainty] = {}
    for each in opinion.conflicts:
        for key in _directions(each):
            found[key] = stronger(found.get(key, each.certainty), each.certainty)
    return found


def _directions(conflict: Conflict) -> Iterator[Key]:
    """The two accesses, the other way round as well when they are of two queues and nothing orders them."""
    prior, current = conflict.prior, conflict.current
    yield (prior.call, current.call, prior.access, current.access)
    if conflict.kind is ConflictKind.UNORDERED and prior.queue != current.queue:
        yield (current.call, prior.call, current.access, prior.access)


def _key(finding: Finding) -> Key:
    return (finding.prior.call, finding.place.call, finding.prior_access, finding.access)
