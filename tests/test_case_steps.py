"""The steps of a case: which hazards are mended in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import passes
from tests.support.render_effects import AREA, target
from tests.support.streams import Stream
from vkharness.case.case_steps import MENDED, Case, CaseSource, _prove, _write_mend
from vkharness.check import Analysis
from vkharness.findings import Hazard, UserError
from vkharness.groups import groups_of
from vkharness.trace.codec import load


def case_of(folder: Path, hazard: Hazard, strict: bool) -> Case:
    """Of one of two hazards: two instances on one attachment, which count strictly, and two writes of one buffer."""
    stream = Stream()
    _, view = target(stream)
    buffer = stream.buffer(64)
    stream.begin()
    for _ in range(2):
        passes.begin_rendering(stream, AREA, [passes.attached(view, passes.LOAD)])
        stream.cmd("EndRendering")
        stream.fill(buffer, 1)
    stream.submit()
    groups = groups_of(Analysis(strict=strict).follow(stream.blocks).findings)
    (group,) = (each for each in groups if each.first.hazard == hazard)
    return Case(CaseSource(stream.blocks, "t.jsonl", [], "no driver", 1, strict), group, folder)


@pytest.mark.parametrize(
    ("hazard", "strict", "left"),
    [
        (Hazard.WRITE_AFTER_WRITE, False, [Hazard.READ_AFTER_WRITE]),
        (Hazard.WRITE_AFTER_WRITE, True, []),
        (Hazard.READ_AFTER_WRITE, False, []),
    ],
)
def test_the_mended_trace_orders_what_counts(tmp_path: Path, hazard: Hazard, strict: bool, left: list[Hazard]) -> None:
    case = case_of(tmp_path, hazard, strict)
    assert bool(case.group.first.uncounted) == (hazard == Hazard.READ_AFTER_WRITE)
    with pytest.raises(UserError, match="no driver"):
        _prove(case, lambda _: None)
    assert [each.hazard for each in Analysis().follow(load(tmp_path / MENDED)).findings] == left
    assert _write_mend(case, lambda _: None) == ["1 change, accepted by both judges"]
