"""Planning memory for another driver: same offsets where they fit, aliases together, everything else apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkharness.findings import UserError
from vkharness.replay.objects.allocations import DIRECT, WantedResource, choose_type, plan
from vkharness.replay.objects.target import MemoryType
from vkharness.spec.enums import VkMemoryProperty


def test_a_layout_that_fits_is_kept() -> None:
    groups = plan([WantedResource(1, 0, 64, 64, 16, 0b11), WantedResource(2, 64, 64, 64, 16, 0b10)])
    assert [(group.offsets, group.size, group.type_bits) for group in groups] == [({1: 0, 2: 64}, 128, 0b10)]


def test_resources_that_grow_into_one_another_move_apart() -> None:
    groups = plan([WantedResource(1, 0, 64, 128, 16, 1), WantedResource(2, 64, 64, 128, 16, 1)])
    assert [group.offsets for group in groups] == [{1: 0}, {2: 0}]


def test_an_offset_that_does_not_suit_moves() -> None:
    assert [group.base for group in plan([WantedResource(1, 4, 64, 64, 256, 1)])] == [4]


def test_aliases_move_together() -> None:
    groups = plan(
        [WantedResource(1, 4, 64, 64, 16, 1), WantedResource(2, 20, 64, 64, 16, 1), WantedResource(3, 1000, 8, 8, 8, 1)]
    )
    assert [(group.base, group.offsets) for group in groups] == [(4, {1: 0, 2: 16}), (1000, {3: 0})]


def test_aliases_that_cannot_be_repeated_are_named() -> None:
    with pytest.raises(UserError, match="resources 1, 2 alias one another"):
        plan([WantedResource(1, 0, 64, 64, 16, 1), WantedResource(2, 4, 64, 64, 16, 1)])
    with pytest.raises(UserError, match="resources 1, 2 alias one another"):
        plan([WantedResource(1, 0, 64, 64, 16, 0b01), WantedResource(2, 0, 64, 64, 16, 0b10)])


def test_images_keep_their_distance_from_buffers() -> None:
    near = [WantedResource(1, 0, 64, 64, 16, 1), WantedResource(2, 64, 64, 64, 16, 1, linear=False)]
    assert len(plan(near, granularity=64)) == 1
    assert len(plan(near, granularity=1024)) == 2


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(1, 20), st.integers(0, 20), st.sampled_from([1, 2, 4, 8])),
        min_size=1,
        max_size=6,
    )
)
def test_what_overlapped_overlaps_alike_and_nothing_else_does(rows: list[tuple[int, int, int, int]]) -> None:
    wanted = [
        WantedResource(index, offset, was, was + more, alignment, 1)
        for index, (offset, was, more, alignment) in enumerate(rows)
    ]
    try:
        groups = plan(wanted)
    except UserError:
        return
    home = {resource: group for group in groups for resource in group.offsets}
    assert home.keys() == {item.resource for item in wanted}
    for item in wanted:
        start = home[item.resource].offsets[item.resource]
        assert start % item.alignment == 0 and start + item.size <= home[item.resource].size
        for other in wanted:
            together = home[item.resource] is home[other.resource]
            if item.offset < other.offset + other.was and other.offset < item.offset + item.was:
                distance = home[other.resource].offsets[other.resource] - start
                assert together and distance == other.offset - item.offset
            elif together:
                theirs = home[other.resource].offsets[other.resource]
                assert start + item.size <= theirs or theirs + other.size <= start


def test_memory_types() -> None:
    types = (
        MemoryType(VkMemoryProperty.DEVICE_LOCAL, 1),
        MemoryType(DIRECT, 1),
        MemoryType(VkMemoryProperty.DEVICE_LOCAL | DIRECT, 1),
    )
    assert choose_type(types, 0b111, mapped=False) == 0
    assert choose_type(types, 0b111, mapped=True) == 1
    assert choose_type(types, 0b101, mapped=True) == 2
    assert choose_type(types, 0b001, mapped=True) == 0
    assert choose_type(types, 0b111, mapped=True, coherent=False) == 1


def test_memory_that_is_not_coherent_is_taken_where_there_is_some() -> None:
    loose = VkMemoryProperty.HOST_VISIBLE
    types = (MemoryType(VkMemoryProperty.DEVICE_LOCAL, 1), MemoryType(loose, 1), MemoryType(DIRECT, 1))
    assert choose_type(types, 0b111, mapped=True, coherent=False) == 1
    assert choose_type(types, 0b101, mapped=True, coherent=False) == 2
    assert choose_type(types, 0b111, mapped=True) == 2
    assert choose_type(types, 0b111, mapped=False, coherent=False) == 0


def test_no_memory_type() -> None:
    types = (MemoryType(DIRECT, 1),)
    with pytest.raises(UserError, match="no memory type"):
        choose_type(types, 0, mapped=False)
