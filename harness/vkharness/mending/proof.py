"""Both judges' verdicts on an edited trace, in the indices of the trace that was read, so that two answers compare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from vkharness.agreement import MOST_EVENTS, ask_opinion, key_of, keys_in_conflict, note_opinion
from vkharness.check import Analysis
from vkharness.findings import Finding
from vkharness.model import Opinion
from vkharness.trace.edits import EditedTrace
from vkharness.trace.work_budget import A_FINDING, spend

Pair = tuple[int, int, str, str]
"""The origins of two calls and their accesses, the earlier one first."""


@dataclass(slots=True)
class JudgedTrace:
    """The findings of a trace that count, and every pair of accesses that a judge has something against."""

    trace: EditedTrace
    findings: list[Finding]
    pairs: set[Pair] = field(default_factory=set)
    unmodelled: dict[str, int] = field(default_factory=dict)
    everything: list[Finding] = field(default_factory=list)
    """All findings, as `check` numbers their groups."""
    by_model: bool = True
    """Whether the model was asked: a long trace is too much for it."""
    strict: bool = True
    """Whether hazards by the letter of the specification alone count."""

    def pair(self, finding: Finding) -> Pair:
        """A finding as the pair of accesses that it is about."""
        return of_origin(self.trace, key_of(finding))


def asked(trace: EditedTrace, strict: bool = True) -> tuple[Analysis, Opinion | None, set[Pair]]:
    """Asks syncval, and the model where the trace is not too long: what each says, and the pairs of accesses that
    either has something against."""
    analysis = Analysis(keep_events=True, keep_at_most=MOST_EVENTS, strict=strict).follow(trace.blocks)
    opinion = ask_opinion(analysis)
    keys = {key_of(each) for each in analysis.findings}
    if opinion is not None:
        note_opinion(analysis, opinion)
        keys |= keys_in_conflict(opinion)
    return analysis, opinion, {of_origin(trace, key) for key in keys}


def judge(trace: EditedTrace, strict: bool = True) -> JudgedTrace:
    """As `asked`, for a mend."""
    return judged_by(trace, *asked(trace, strict))


def judged_by(trace: EditedTrace, analysis: Analysis, opinion: Opinion | None, pairs: set[Pair]) -> JudgedTrace:
    """Returns the answer of `asked` about a trace, in the form that a mend needs."""
    spend(A_FINDING * len(analysis.findings), "findings")
    counting = [each for each in analysis.findings if each.counts]
    by_model, strict = opinion is not None, analysis.is_strict
    return JudgedTrace(trace, counting, pairs, analysis.unmodelled, analysis.findings, by_model, strict)


def is_clean(trace: EditedTrace, but: Iterable[Pair], by_model: bool, everything: bool = False) -> bool:
    """Whether no judge finds anything that counts beyond the pairs `but`; with `everything` nothing that does not count
    either, and no conflict that another one hides. Stops at the first that syncval finds."""
    excused = set(but)

    def offends(findings: Iterable[Finding]) -> bool:
        asked = (each for each in findings if each.counts or everything)
        return any(of_origin(trace, key_of(each)) not in excused for each in asked)

    analysis = Analysis(keep_events=by_model, keep_at_most=MOST_EVENTS)
    if any(offends(analysis.step(block)) for block in trace.blocks) or offends(analysis.finish()):
        return False
    opinion = ask_opinion(analysis) if by_model else None
    if opinion is None:
        return not by_model
    if everything:
        return all(of_origin(trace, key) in excused for key in keys_in_conflict(opinion))
    note_opinion(analysis, opinion)
    return not offends(analysis.findings)


def of_origin(trace: EditedTrace, key: Pair) -> Pair:
    """A pair in the indices of the trace that was read."""
    prior, call, prior_access, access = key
    return (_origin(trace, prior), _origin(trace, call), prior_access, access)


def _origin(trace: EditedTrace, index: int) -> int:
    return trace.origin(index) if 0 < index <= len(trace.origins) else index
