"""Parts of a trace that are judged for a change: the whole trace, or windows of a long trace.

A window is judged as it is and with what is advised. It has the calls of the trace, so that one set of edits is for
all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace

from vkharness.advising.written import Written
from vkharness.agreement import ask_model, ask_opinion, key_of
from vkharness.check import Analysis
from vkharness.findings import Finding
from vkharness.mending.proof import Pair, asked, is_clean, of_origin
from vkharness.model.order import ExecutionOrder
from vkharness.reduction.windows import LONG, MOST_FRAMES, Windows, part_of
from vkharness.trace.calls import Call
from vkharness.trace.edits import EditedTrace

Edits = Mapping[int, Call | None]
"""Changed calls, by their index in the trace that was read; None for one that is left out."""


class JudgedPart:
    """A stream made of the calls of a trace, and what the judges have against it without any edit."""

    def __init__(self, trace: EditedTrace) -> None:
        source = {block.index: block for block in trace.source}
        self._trace = trace
        self._own = {
            origin
            for origin, block in zip(trace.origins, trace.blocks, strict=True)
            if isinstance(block, Call) and block.args is getattr(source[origin], "args", None)
        }
        analysis, opinion, pairs = asked(trace)
        self.order: ExecutionOrder | None = None if opinion is None else opinion.order
        self.pairs: set[Pair] = pairs
        self.unmodelled = tuple(sorted({*analysis.unmodelled, *analysis.unjudged.left_out}))

    def has(self, origin: int) -> bool:
        """Whether a call of the trace is here, with all its arguments."""
        return origin in self._own

    def origin(self, index: int) -> int:
        """The index that a call of this stream without edits has in the trace."""
        return self._trace.origin(index) if index else 0

    def with_edits(self, edits: Edits) -> EditedTrace:
        """The stream after edits of a trace."""
        return self._trace.with_calls({origin: call for origin, call in edits.items() if origin in self._own})

    def allows(self, edits: Edits) -> bool:
        """Whether neither judge finds anything after these edits that it does not find without any."""
        return is_clean(self.with_edits(edits), self.pairs, self.order is not None, everything=True)

    def order_after(self, edits: Edits) -> ExecutionOrder | None:
        """The model's order after edits; None where the model is not asked."""
        if self.order is None:
            return None
        opinion = ask_opinion(Analysis(keep_events=True).follow(self.with_edits(edits).blocks), sys.maxsize)
        return None if opinion is None else opinion.order

    def new_findings(self, edits: Edits) -> list[Finding]:
        """Returns the findings of the judges after edits that are none without any, in the numbers of the trace."""
        trace = self.with_edits(edits)
        analysis = Analysis(keep_events=self.order is not None).follow(trace.blocks)
        ask_model(analysis)
        found = analysis.findings
        return [_as_read(each, trace) for each in found if of_origin(trace, key_of(each)) not in self.pairs]


def _as_read(finding: Finding, trace: EditedTrace) -> Finding:
    prior, place = (
        replace(
            each,
            call=trace.origin(each.call) if each.call else 0,
            submit=None if each.submit is None else trace.origin(each.submit),
        )
        for each in (finding.prior, finding.place)
    )
    return replace(finding, prior=prior, place=place)


class JudgedParts:
    """The whole trace, and windows of it where it is long."""

    def __init__(self, trace: EditedTrace) -> None:
        self.whole = JudgedPart(trace)
        self._trace = trace
        windows = Windows(trace.blocks)
        self.structure = windows.structure
        """The parts of the trace that belong together; blocks are numbered from 1."""
        long = self.whole.order is None or windows.count > LONG
        self._windows = windows if long and windows.count else None
        self._made: dict[tuple[int, ...], JudgedPart | None] = {}

    @property
    def in_windows(self) -> bool:
        """Whether changes are asked about in windows."""
        return self._windows is not None

    def of(self, written: Written) -> list[JudgedPart]:
        """Where changes of a dependency are asked about: around the first, a middle and the last frame that has it."""
        windows = self._windows
        if windows is None:
            return [self.whole]
        origins = _sample(list(written.origins))
        frames = _sample(sorted({frame for origin in origins for frame in windows.frames_of(origin)}))
        found = dict.fromkeys(self._view(windows.first_around(frame)) for frame in frames)
        views = [each for each in found if each is not None and any(map(each.has, written.origins))]
        return views or [self.whole]

    def between(self, finding: Finding) -> JudgedPart | None:
        """The window that has both sides of a finding; None where they are too far apart."""
        windows = self._windows
        if windows is None:
            return None
        first, last = sorted(windows.frame_of(each.submit or each.call) for each in (finding.prior, finding.place))
        return self._view(first, last) if last - first < MOST_FRAMES else None

    def _view(self, first: int, last: int | None = None) -> JudgedPart | None:
        assert self._windows is not None
        key = (first,) if last is None else (first, last)
        if key not in self._made:
            cut = self._windows.around(first) if last is None else self._windows.cut(first, last)
            self._made[key] = None if cut is None else JudgedPart(part_of(self._trace, cut))
        return self._made[key]


def _sample(several: list[int]) -> list[int]:
    """The first, a middle and the last one."""
    return sorted({several[0], several[len(several) // 2], several[-1]}) if several else []
