"""Whether the validator and the model agree on a trace.

They agree when both call it clean or neither does; when every finding of syncval is a conflict of the model, of the
same two accesses; and when the first command that offends is the same.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from vkharness.check import Analysis
from vkharness.findings import Certainty, Finding, Hazard, stronger
from vkharness.model import Conflict, ConflictKind, Opinion, judge_stream_events
from vkharness.report.conflicts import conflict_text
from vkharness.report.sentences import pair_text
from vkharness.trace.calls import Block
from vkharness.trace.effects import Recorded, StreamEvent, Submitted
from vkharness.trace.work_budget import A_BLOCK, A_COMMAND, SHARED, UNITS, OverBudget
from vkharness.verdicts import ModelAnswer

Key = tuple[int, int, str, str]
"""The calls and the accesses of two commands, the earlier one first."""


MODEL_UNITS = 500_000
"""Units of work that the model may take whatever syncval took: about half a second (`vkharness.trace.work_budget`)."""
FEW_COMMANDS = 1_000
"""A stream that executes fewer commands is judged by both, as far as units are left."""
MOST_EVENTS = 20_000
"""Stream events up to which those are kept that the model may be asked about: more cost more than `model_units`."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How two opinions of one trace compare."""

    disagreements: tuple[str, ...]
    """One line each; empty when they agree."""


def agreement(blocks: Sequence[Block]) -> Agreement:
    """Asks both about a trace."""
    analysis = Analysis(keep_events=True).follow(blocks)
    return compare([*analysis.findings, *analysis.possible], judge_stream_events(analysis.events))


def compare(findings: Iterable[Finding], opinion: Opinion) -> Agreement:
    """Compares what they said. `findings` may have those that follow from unknown contents of memory alone."""
    findings = list(findings)
    sure = [each for each in findings if each.certainty is not Certainty.BOUND]
    known = _pairs(opinion)
    lines = []
    for finding in findings:
        if key_of(finding) not in known:
            if _follows_a_race(finding, known):
                continue
            lines.append(f"syncval only: {pair_text(finding)}")
        elif known[key_of(finding)] is not finding.certainty:
            lines.append(
                f"{finding.certainty} for syncval, {known[key_of(finding)]} for the model: {pair_text(finding)}"
            )
        elif finding.hazard.is_ownership and not _is_lost_alike(finding, opinion):
            lines.append(f"one judge alone knows of contents that are lost: {pair_text(finding)}")
    conflicts, known_to_syncval = (opinion.conflicts, sure) if opinion.conflicts else (opinion.possible, findings)
    if conflicts:
        first = conflicts[0]
        if not known_to_syncval:
            lines.append(f"model only: {conflict_text(first)}")
        elif not {key[1] for key in keys_of_conflict(first)} & {each.place.call for each in known_to_syncval}:
            lines.append(f"the model's first conflict is not one of syncval's commands: {conflict_text(first)}")
    return Agreement(tuple(lines))


def model_units(events: Sequence[StreamEvent]) -> int:
    """Units that the model may take: what the interpreter and syncval take, or `MODEL_UNITS`; those of a whole command
    for a stream of few commands."""
    blocks = executed = 0
    for each in events:
        blocks += 1
        if isinstance(each, Submitted):
            executed += sum(len(commands) for batch in each.batches for _, commands in batch.buffers)
    executed = max(executed, sum(isinstance(each, Recorded) for each in events))
    if executed < FEW_COMMANDS:
        return SHARED
    return max(MODEL_UNITS, A_BLOCK * blocks + A_COMMAND * executed)


def ask_model(analysis: Analysis, units: int | None = None) -> ModelAnswer:
    """Asks the model about what `analysis` (with `keep_events`) has judged, and notes in each finding who finds it.

    What only the model finds is added to `analysis.findings`. The model gives no answer where that takes more than
    `units` of work, by default `model_units` or half of what there is. Raises OverBudget where it takes more than there
    are.
    """
    opinion = ask_opinion(analysis, units)
    return ModelAnswer.LEFT_OUT if opinion is None else note_opinion(analysis, opinion)


def ask_opinion(analysis: Analysis, units: int | None = None) -> Opinion | None:
    """The model's opinion of what `analysis` has judged; None where it is not asked, as `ask_model` says.

    A live program has no file by whose size a command's units go: that the first judge follows what is executed again
    at next to no cost is not counted, so that the model has at most `SHARED`.
    """
    if not analysis.keeps_events or analysis.stopped:
        return None
    left = UNITS.left
    if units is None:
        units = min(model_units(analysis.events), left // 2, sys.maxsize if UNITS.shared else SHARED)
    try:
        return judge_stream_events(analysis.events, units)
    except OverBudget:
        if left <= units:
            raise
        return None


def note_opinion(analysis: Analysis, opinion: Opinion) -> ModelAnswer:
    """Notes in each finding of `analysis` who finds it, and adds what only the model finds, its remarks last."""
    known = _pairs(opinion)
    for finding in analysis.findings:
        agreed = key_of(finding) in known or _follows_a_race(finding, known)
        finding.judges = ("syncval", "model") if agreed else ("syncval",)
    for conflict in beyond(analysis.findings, opinion):
        analysis.findings.append(_finding(conflict, analysis))
    differ = any(len(each.judges) == 1 for each in analysis.findings)
    for remark in opinion.remarks:
        if remark.certainty is not Certainty.BOUND:
            analysis.findings.append(_finding(remark, analysis))
    return ModelAnswer.DIFFERS if differ else ModelAnswer.AGREES


def keys_in_conflict(opinion: Opinion) -> set[Key]:
    """Every pair of accesses that the model has something against."""
    return set(_pairs(opinion))


def conflicts_of(findings: Iterable[Finding], opinion: Opinion) -> list[int]:
    """The numbers, from 1, of the conflicts and remarks that are about the same as findings."""
    return [*numbers_by_conflict([(0, findings)], opinion)]


def numbers_by_conflict(several: Iterable[tuple[int, Iterable[Finding]]], opinion: Opinion) -> dict[int, int]:
    """By the number of a conflict (`conflicts_of`) the least number of `several` findings about the same."""
    known: dict[Hashable, int] = {}
    for number, findings in several:
        for each in findings:
            known[key_of(each)] = min(number, known.get(key_of(each), number))
    told = (
        (at, [known[key] for key in keys_of_conflict(each) if key in known])
        for at, each in enumerate(opinion.everything, 1)
    )
    return {at: min(numbers) for at, numbers in told if numbers}


def finding_of(conflict: Conflict, findings: Iterable[Finding]) -> Finding | None:
    """The first finding that is about the same as a conflict."""
    keys = {*keys_of_conflict(conflict)}
    return next((each for each in findings if key_of(each) in keys), None)


def beyond(findings: Iterable[Finding], opinion: Opinion) -> list[Conflict]:
    """The conflicts of the model that syncval's findings do not speak of, each pair of calls once.

    syncval compares an access with the most recent ones only. What the model says of the same access, or later of the
    same resource, may follow from a finding, and is left out until that is mended.
    """
    said = {key_of(each) for each in findings}
    offending = {
        (conflict.resource, key[1])
        for conflict in opinion.conflicts
        for key in keys_of_conflict(conflict)
        if key in said
    }
    spoiled = set[int]()
    left = []
    for conflict in opinion.conflicts:
        keys = set(keys_of_conflict(conflict))
        if keys & said:
            spoiled.add(conflict.resource)
        elif conflict.resource not in spoiled and not {(conflict.resource, key[1]) for key in keys} & offending:
            said |= keys
            left.append(conflict)
    return left


def _finding(conflict: Conflict, analysis: Analysis) -> Finding:
    """A conflict of the model as a finding."""
    prior, current = conflict.prior, conflict.current
    resource = -conflict.resource if conflict.kind is ConflictKind.BINDING else conflict.resource
    type, ranges, boxes = analysis.describe(resource, list(conflict.spans))
    finding = Finding(
        hazard=hazard_of(conflict),
        access=current.access,
        prior_access=prior.access,
        place=current.place,
        prior=prior.place,
        resource=conflict.resource,
        resource_type=conflict.resource_type or type,
        ranges=ranges,
        boxes=boxes,
        certainty=conflict.certainty,
        judges=("model",),
    )
    analysis.annotate(finding)
    return finding


_HAZARD_OF_KIND = {
    ConflictKind.QUERY_UNORDERED: Hazard.QUERY_UNORDERED,
    ConflictKind.QUERY_NOT_RESET: Hazard.QUERY_NOT_RESET,
    ConflictKind.QUERY_NOT_AWAITED: Hazard.QUERY_NOT_AWAITED,
    ConflictKind.QUERY_WITHOUT_RESULT: Hazard.QUERY_WITHOUT_RESULT,
    ConflictKind.BINDING: Hazard.SPARSE_BINDING_RACE,
    ConflictKind.LOST: Hazard.UNFLUSHED_WRITE,
    ConflictKind.DIRTY: Hazard.VISIBLE_BEFORE_AVAILABLE,
    ConflictKind.RACING: Hazard.BARRIER_RACING_WRITE,
    ConflictKind.OWNERSHIP: Hazard.OWNERSHIP_NOT_TRANSFERRED,
    ConflictKind.OWNERSHIP_WITHOUT_CONTENTS: Hazard.OWNERSHIP_WITHOUT_CONTENTS,
}


def hazard_of(conflict: Conflict) -> Hazard:
    """The name under which syncval would report a conflict."""
    prior, current = conflict.prior, conflict.current
    if conflict.kind is ConflictKind.EVENT_UNORDERED:
        before = "set" if "SetEvent" in prior.command else "reset" if "ResetEvent" in prior.command else "wait"
        suffix = before if before == "wait" and "SetEvent" in current.command else f"{before}-race"
        names = (f"{current.command}-{suffix}", f"{current.command.rstrip('2KHR')}-{suffix}")
        return next((Hazard(name) for name in names if name in set(Hazard)), Hazard.WAIT_FOR_UNORDERED_SET)
    if conflict.kind is ConflictKind.USAGE:
        return Hazard(conflict.order.nodes[current.node].label)
    if conflict.kind in _HAZARD_OF_KIND:
        return _HAZARD_OF_KIND[conflict.kind]
    racing = conflict.kind is ConflictKind.UNORDERED and prior.queue != current.queue
    words = ("WRITE" if current.write else "READ", "RACING" if racing else "AFTER", "WRITE" if prior.write else "READ")
    return Hazard("_".join(words))


def _pairs(opinion: Opinion) -> dict[Key, Certainty]:
    """Every pair in conflict, with how sure it is that the two meet."""
    found: dict[Key, Certainty] = {}
    for each in opinion.of_any_certainty:
        for key in keys_of_conflict(each):
            found[key] = stronger(found.get(key, each.certainty), each.certainty)
    return found


def _follows_a_race(finding: Finding, known: Iterable[Key]) -> bool:
    """Whether it depends on which of two racing commands a judge takes first: whose contents a transfer of ownership
    loses. Both judges report the race."""
    calls = (finding.place.call, finding.prior.call)
    return finding.hazard.is_ownership and any(key[:2] == calls for key in known)


def _is_lost_alike(finding: Finding, opinion: Opinion) -> bool:
    """Whether the model, too, finds that contents are lost, or that there were none. syncval speaks once of several
    parts of a range that a command takes, where any of them had contents; the model of each."""
    conflicts = opinion.of_any_certainty
    if finding.hazard is Hazard.OWNERSHIP_WITHOUT_CONTENTS:
        kind, key = ConflictKind.OWNERSHIP_WITHOUT_CONTENTS, key_of(finding)
        return any(key in keys_of_conflict(each) for each in conflicts if each.kind is kind)
    lost = (each for each in conflicts if each.kind is ConflictKind.OWNERSHIP)
    return any((each.resource, each.current.call) == (finding.resource, finding.place.call) for each in lost)


def keys_of_conflict(conflict: Conflict) -> Iterator[Key]:
    """The pairs that a conflict is about: its accesses, the other way round as well when they are of two queues and
    nothing orders them, or when one is a change of sparse memory."""
    prior, current = conflict.prior, conflict.current
    yield (prior.call, current.call, prior.access, current.access)
    across = conflict.kind is ConflictKind.UNORDERED and prior.queue != current.queue
    if across or conflict.kind is ConflictKind.BINDING:
        yield (current.call, prior.call, current.access, prior.access)


def key_of(finding: Finding) -> Key:
    """The pair of accesses of a finding."""
    return (finding.prior.call, finding.place.call, finding.prior_access, finding.access)
