"""Which findings are the same, which lack one dependency, and that many of them cost little."""

from __future__ import annotations

import random
from typing import Any

from vkharness.findings import Box, DependencySoFar, Finding, Hazard, HostStep, Place
from vkharness.groups import groups_of


def found(frame: int | None = None, call: int = 20, resource: int = 7, site: str | None = None, **more: Any) -> Finding:
    """vkCmdDraw after the vkCmdDraw ten calls before it."""
    late, early = Place(call, "vkCmdDraw", site), Place(call - 10, "vkCmdDraw", site)
    return Finding(
        Hazard.READ_AFTER_WRITE,
        "read",
        "write",
        late,
        early,
        resource,
        "VkImage",
        frame=frame,
        prior_frame=frame,
        **more,
    )


def shape(*findings: Finding) -> list[list[int]]:
    """For each group, how often each of its findings came."""
    return [[each.count for each in group.recurring] for group in groups_of(findings)]


def test_nothing_has_no_groups() -> None:
    assert groups_of([]) == []


def test_a_finding_in_every_frame_is_one() -> None:
    (group,) = groups_of([found(frame, call=frame * 100) for frame in range(7, 307)])
    assert (group.number, group.count, group.first_frame, group.last_frame) == (1, 300, 7, 306)
    assert [each.count for each in group.recurring] == [300]
    assert group.first is group.findings[0]


def test_images_of_a_swapchain_are_one_resource() -> None:
    assert shape(*(found(frame, call=frame * 100, resource=frame % 3) for frame in range(1, 31))) == [[30]]


def test_new_buffers_of_each_frame_are_one_resource() -> None:
    frames = [found(frame, call=frame * 100, resource=10 * frame + each) for frame in (1, 2, 3) for each in (0, 1)]
    assert shape(*frames) == [[3, 3]]


def test_a_part_of_a_ring_buffer_is_one_range() -> None:
    ring = [found(frame, call=frame * 100, ranges=((frame % 3 * 256, 256),)) for frame in range(1, 10)]
    assert shape(*ring) == [[9]]


def test_two_resources_of_one_frame_are_two_findings_of_one_group() -> None:
    both = [found(frame, call=frame * 100, resource=resource) for frame in (1, 2) for resource in (7, 8)]
    assert shape(*both) == [[2, 2]]
    assert shape(*both[2:], *both[:2]) == [[2, 2]]


def test_two_ranges_of_one_frame_are_two_findings_of_one_group() -> None:
    mips = [Box(1, mip, 0, (0, 0, 0), (4, 4, 1)) for mip in (1, 2)]
    assert shape(*(found(1, boxes=(box,)) for box in mips)) == [[1, 1]]


def test_a_resource_that_has_the_number_of_another_one_gets_its_own() -> None:
    assert shape(found(1, 100, 7), found(2, 200, 8), found(3, 300, 7), found(3, 300, 8)) == [[3, 1]]


def test_two_pairs_of_calls_are_two_groups_where_no_site_is_known() -> None:
    frames = [found(frame, call=frame * 100 + at) for frame in (1, 2, 3) for at in (20, 40)]
    assert shape(*frames) == [[3], [3]]


def test_without_frames_a_submit_stands_for_one() -> None:
    """5, 10, 20 pictures of a stream are one wrong barrier; a second one in each submit is a second group."""
    for pictures in (5, 10, 20):
        submits = [found(call=at * 100, resource=at % 2, period=at) for at in range(1, pictures + 1)]
        (group,) = groups_of(submits)
        assert group.count == pictures and len(group.recurring) == 2
    both = [found(call=at * 100 + pair, period=at) for at in (1, 2, 3) for pair in (20, 40)]
    assert shape(*both) == [[3], [3]]
    assert shape(*(found(call=at * 100 + 20, period=1) for at in (1, 2, 3))) == [[1], [1], [1]]


def test_the_pairs_of_one_line_are_one_group() -> None:
    frames = [found(frame, frame * 100 + at, resource=at, site="app.py:7") for frame in (1, 2, 3) for at in (20, 40)]
    assert shape(*frames) == [[3, 3]]


def test_without_frames_only_the_same_resource_is_the_same() -> None:
    assert shape(*(found(None, 20, resource) for resource in (1, 2, 1, 2))) == [[2, 2]]


def test_what_differs_is_not_one_group() -> None:
    """Each of these differs from the first in one thing that a mended program would need another dependency for."""
    others: list[dict[str, Any]] = [
        {"labels": ("main pass",)},
        {"prior_labels": ("main pass",)},
        {"gap": DependencySoFar(available=True)},
        {"gap": HostStep.INVALIDATE},
        {"site": "app.py:7"},
    ]
    assert shape(found(1), *(found(1, **each) for each in others)) == [[1]] * (1 + len(others))
    other = found(1)
    other.access = "another read"
    assert shape(found(1), other) == [[1], [1]]


def test_numbers_in_labels_and_names_do_not_count() -> None:
    frames = [
        found(frame, frame * 100, 7, labels=(f"frame {frame}",), names={7: f"ring {frame % 2}"}) for frame in (1, 2)
    ]
    assert shape(*frames) == [[2]]


def test_another_name_is_another_resource() -> None:
    named = [found(at, at * 100, at, names={at: name}) for at, name in ((1, "shadow map"), (2, "g-buffer"))]
    assert shape(*named) == [[1, 1]]


def test_groups_are_numbered_in_the_order_of_their_first_findings() -> None:
    second, first = found(1, 40, labels=("b",)), found(1, 20, labels=("a",))
    groups = groups_of([second, first, second])
    assert [(each.number, each.first) for each in groups] == [(1, second), (2, first)]


def test_a_refuted_finding_does_not_stand_for_a_group_that_counts() -> None:
    one, other = found(1, resource=7, refuted="seen.json"), found(1, resource=8)
    (group,) = groups_of([one, other])
    assert group.first is other and group.counts
    (refuted,) = groups_of([one])
    assert refuted.first is one and not refuted.counts


def test_random_findings_keep_what_a_group_promises() -> None:
    """Each finding is in one group and in one recurring finding; two parts of one frame are never the same."""
    seed = 2026
    rng = random.Random(seed)
    for _ in range(200):
        frames = sorted(rng.choices([None, 1, 2, 3, 4], k=rng.randrange(1, 30)), key=lambda each: each or 0)
        found = [
            found_at(frame, rng.randrange(3), rng.randrange(4), rng.choice([None, "app.py:1", "app.py:2"]))
            for frame in frames
        ]
        groups = groups_of(found)
        assert [each.number for each in groups] == list(range(1, len(groups) + 1))
        assert sorted(map(id, found)) == sorted(id(each) for group in groups for each in group.findings)
        firsts = [min(found.index(each) for each in group.findings) for group in groups]
        assert firsts == sorted(firsts), f"seed {seed}"
        for group in groups:
            assert sum(each.count for each in group.recurring) == group.count
            for recurring in group.recurring:
                parts = {(each.frame, each.resource) for each in recurring.findings}
                assert len({frame for frame, _ in parts}) == len(parts), f"seed {seed}"


def found_at(frame: int | None, pair: int, resource: int, site: str | None) -> Finding:
    """One of a few pairs of calls of a frame, on one of a few resources."""
    return found(frame, 1000 * (frame or 0) + 100 + pair, resource, site)
