"""Windows of a long trace for mending: what is tried is judged there first, since the whole trace takes too long."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from vkharness.findings import Finding
from vkharness.reduction.windows import LONG, MOST_FRAMES, Windows, at_most, part_of
from vkharness.trace.edits import EditedTrace

BESIDE = 1
"""How many frames a window has before and after those that it is about."""


class TraceWindows:
    """The windows of one trace, as it is."""

    def __init__(self, trace: EditedTrace) -> None:
        self._trace = trace

    @cached_property
    def _windows(self) -> Windows:
        return Windows(self._trace.blocks)

    @property
    def is_long(self) -> bool:
        """Whether a trace has so many frames that windows pay."""
        return at_most(self._trace.blocks) > LONG and self._windows.count > LONG

    def of_finding(self, finding: Finding) -> EditedTrace | None:
        """A window with both sides of a finding; None where they are too far apart."""
        return self._around(self._windows.frame_of(each.submit or each.call) for each in (finding.prior, finding.place))

    def of_call(self, position: int) -> EditedTrace | None:
        """A window with the first execution of the call at a position."""
        return self._around(self._windows.frames_of(position + 1)[:1])

    def _around(self, frames: Iterable[int]) -> EditedTrace | None:
        several = sorted(frames)
        if not several or several[-1] - several[0] >= MOST_FRAMES:
            return None
        first, last = max(several[0] - BESIDE, 0), min(several[-1] + BESIDE, self._windows.count - 1)
        cut = self._windows.cut(first, last)
        return None if cut is None else part_of(self._trace, cut)
