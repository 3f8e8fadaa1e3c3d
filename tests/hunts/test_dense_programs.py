"""Random streams of many ranges: more than a leaf of a native tree of ranges holds (native/span_tree.hpp)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from hunts.core_answers import KINDS, kind_of
from hunts.dense_frames import DenseFrames
from hunts.frame_hunt import frames_of, program_of
from vkharness.findings import Finding
from vkharness.syncval.validator import Validator
from vkharness.trace.effects import StreamEvent, Submitted

LEAF = 64
"""Ranges of a leaf at most (`SpanTree::PLACES`)."""


@pytest.mark.parametrize(
    ("kind", "seeds"), [("long", 10), pytest.param("frames", 40, marks=pytest.mark.driver)], ids=["long", "frames"]
)
def test_some_streams_have_more_ranges_than_a_leaf(kind: str, seeds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    most = dict[int, int]()
    consume = Validator.consume

    def counted(self: Validator, event: StreamEvent) -> Iterable[Finding]:
        found = list(consume(self, event))
        if isinstance(event, Submitted):
            store = self._context.store
            most[seed] = max(most[seed], *(len(store.everything(space)) for space in store.spaces()), 0)
        return found

    monkeypatch.setattr(Validator, "consume", counted)
    for seed in range(seeds):
        most[seed] = 0
        list(KINDS[kind].judge(KINDS[kind].make(seed)))
    assert sum(each > LEAF for each in most.values()) >= 3, most


def test_offsets_come_again_and_are_fresh() -> None:
    """Those of vertex buffers."""
    calls: list[dict[str, Any]] = [each for seed in range(5) for each in DenseFrames(seed).calls]
    bound = [str(each["args"]) for each in calls if each["name"] == "vkCmdBindVertexBuffers"]
    assert len(bound) > 400 and len(bound) / 2 < len(set(bound)) < len(bound)


def test_a_hunt_over_all_kinds_has_all_programs_of_frames() -> None:
    seeds = [each for each in range(2000) if kind_of(each, list(KINDS)) == "frames"]
    sizes = [len(frames_of(each)) for each in seeds[:30]]
    share = KINDS["frames"].weight / sum(each.weight for each in KINDS.values())
    assert len(seeds) == int(2000 * share) and min(sizes) < 300 and max(sizes) > 600
    assert program_of(seeds[0]).calls == program_of(seeds[0]).calls
