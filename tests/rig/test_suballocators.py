"""The allocators of bytes against what must hold of any: ranges in the arena, aligned, and none over another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkharness.rig.suballocators import BuddyAllocator, LinearAllocator, aligned

SIZE, SMALLEST = 1024, 32
alignments = st.sampled_from([1, 2, 16, 64, 256, 1024])
requests = st.tuples(st.integers(1, SIZE + 1), alignments)


def overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[0] + other[1] and other[0] < one[0] + one[1]


@given(st.lists(st.one_of(requests, st.none()), max_size=40))
def test_linear_ranges_follow_one_another_until_the_reset(steps: list[tuple[int, int] | None]) -> None:
    linear, given_ranges = LinearAllocator(SIZE), list[tuple[int, int]]()
    for step in steps:
        if step is None:
            linear.reset()
            given_ranges.clear()
        else:
            size, alignment = step
            end = sum(given_ranges[-1]) if given_ranges else 0
            offset = linear.take(size, alignment)
            assert offset == (at if (at := aligned(end, alignment)) + size <= SIZE else None)
            if offset is not None:
                given_ranges.append((offset, size))
        linear._check()


@given(st.lists(st.one_of(requests, st.integers(0, 30)), max_size=60))
def test_buddies_are_disjoint_aligned_and_join_again(steps: list[tuple[int, int] | int]) -> None:
    """A number gives one of the ranges back; a pair asks for one."""
    allocator, held = BuddyAllocator(SIZE, SMALLEST), list[tuple[int, int]]()
    for step in steps:
        if isinstance(step, int):
            if held:
                offset, size = held.pop(step % len(held))
                assert allocator.give_back(offset) >= size
        else:
            size, alignment = step
            found = allocator.take(size, alignment)
            if found is not None:
                assert found % alignment == 0 and found >= 0 and found + size <= SIZE
                assert not any(overlap((found, size), each) for each in held)
                held.append((found, size))
            else:
                assert held or max(size, alignment) > SIZE
        allocator._check()
        assert allocator.empty == (not held)
    for offset, _ in held:
        allocator.give_back(offset)
    assert allocator.empty and allocator.take(SIZE) == 0


def test_the_lowest_of_the_smallest_blocks_that_fit_is_given() -> None:
    allocator = BuddyAllocator(256, 32)
    assert [allocator.take(32), allocator.take(32), allocator.take(100), allocator.take(64)] == [0, 32, 128, 64]
    assert allocator.take(1) is None
    allocator.give_back(32)
    assert allocator.take(5) == 32


def test_what_was_not_given_cannot_be_given_back() -> None:
    allocator = BuddyAllocator(256, 32)
    allocator.take(64)
    for offset in (32, 64):
        with pytest.raises(KeyError):
            allocator.give_back(offset)
    allocator.give_back(0)
    with pytest.raises(KeyError):
        allocator.give_back(0)


@pytest.mark.parametrize(("size", "smallest"), [(100, 4), (64, 128), (64, 0), (64, 3)])
def test_sizes_are_powers_of_two(size: int, smallest: int) -> None:
    with pytest.raises(ValueError, match="not powers of two"):
        BuddyAllocator(size, smallest)


def test_nothing_has_no_range() -> None:
    assert LinearAllocator(8).take(0) is None
    assert BuddyAllocator(8, 8).take(0) is None
