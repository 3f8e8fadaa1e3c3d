"""Whether a stream still shows one finding, and how many others that count."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from vkharness.agreement import ask_model
from vkharness.check import Analysis
from vkharness.findings import Finding, UserError, weaker
from vkharness.reduction.history import PastCommand, accessed, executed, layouts_met, screens, used_unacquired
from vkharness.trace.calls import Block
from vkharness.trace.work_budget import OverBudget

Identity = tuple[str, str, str, int, int, int]
"""Identity of a finding that survives a reduction: hazard, both accesses, both calls, the resource."""


def identity(finding: Finding) -> Identity:
    """By what the finding is known again in a smaller stream, whose calls and objects keep their numbers."""
    return (
        finding.hazard,
        finding.access,
        finding.prior_access,
        finding.place.call,
        finding.prior.call,
        finding.resource,
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """The judge's answer for one stream."""

    finding: Finding | None
    """The wanted finding as it is in this stream; None where it is not there."""
    others: frozenset[Identity] = frozenset()
    """Other findings that count for the verdict."""


class StreamUse:
    """Limits of a smaller stream. Only where the whole stream does may it use images in other layouts, use swapchain
    images that are not acquired, have commands that are not modelled, or execute commands by unknown contents."""

    def __init__(self, analysis: Analysis, history: Sequence[PastCommand]) -> None:
        """Of the whole stream: what the judge says, and its commands as they were executed."""
        self._met = layouts_met(history)
        self._unmodelled = frozenset(analysis.unmodelled)
        self._left_out = analysis.unjudged.left_out
        self._screens = screens(analysis.events)
        self._used_unacquired = used_unacquired(analysis.events, self._screens)

    def is_kept(
        self, analysis: Analysis, must_run: Collection[int] = (), accesses: frozenset[tuple[int, int]] | None = None
    ) -> bool:
        """Whether a smaller stream keeps to it. Of the calls `must_run` each must be executed, and commands must access
        these resources where `accesses` says so."""
        if not self._unmodelled >= analysis.unmodelled.keys():
            return False
        left_out = analysis.unjudged.left_out
        if any(times > self._left_out.get(what, 0) for what, times in left_out.items()):
            return False
        history = executed(analysis.events)
        if not set(must_run) <= {each.call for each in history}:
            return False
        if not used_unacquired(analysis.events, self._screens) <= self._used_unacquired:
            return False
        if accesses is not None and accessed(history) != accesses:
            return False
        return all(layouts <= self._met.get(key, layouts) for key, layouts in layouts_met(history).items())


class Oracle:
    """Asks the judge about streams that are made of one whole stream."""

    def __init__(self, finding: Finding, analysis: Analysis, history: Sequence[PastCommand]) -> None:
        """`analysis` is that of the whole stream, `history` its commands as they were executed. What it executes of the
        finding must be executed again, images must be met in the layouts in which it met them, and those of swapchains
        only when they are acquired. Contents that decide accesses stay: the finding is as sure as it was."""
        self.wanted = identity(finding)
        self._certainty = finding.certainty
        self.asked = 0
        """How many streams were judged."""
        self._must_run = {finding.place.call, finding.prior.call} & {each.call for each in history}
        self._use = StreamUse(analysis, history)
        self._by_model = by_model_alone(finding)

    def ask(
        self, blocks: Sequence[Block], *, both: bool = False, accesses: frozenset[tuple[int, int]] | None = None
    ) -> Answer:
        """Judges a stream, with the model's opinion if `both`. A stream in which an image has another layout at a
        command does not show the finding, nor does one in which commands access others than these resources."""
        self.asked += 1
        try:
            analysis = Analysis(keep_events=True).follow(blocks)
        except OverBudget:
            raise
        except UserError:
            return Answer(None)
        if both or self._by_model:
            ask_model(analysis)
        found = next((each for each in analysis.findings if identity(each) == self.wanted), None)
        others = others_of(analysis.findings, self.wanted)
        if found is None or weaker(found.certainty, self._certainty) is not self._certainty:
            return Answer(None, others)
        if not self._use.is_kept(analysis, self._must_run, accesses):
            return Answer(None, others)
        return Answer(found, others)


def by_model_alone(finding: Finding) -> bool:
    """Whether syncval does not have a finding, so that the model has to be asked about each stream."""
    return finding.judges == ("model",)


def brings_others(after: frozenset[Identity], before: frozenset[Identity]) -> bool:
    """Whether a smaller stream has more other findings than before, or one of another hazard at a command."""
    hazards, known = ({(hazard, call) for hazard, _, _, call, *_ in several} for several in (after, before))
    return len(after) > len(before) or not hazards <= known


def others_of(findings: Iterable[Finding], wanted: Identity) -> frozenset[Identity]:
    """The findings that count, without the wanted one."""
    return frozenset(identity(each) for each in findings if each.counts) - {wanted}
