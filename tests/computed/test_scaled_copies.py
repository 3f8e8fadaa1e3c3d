"""Blits, held against texels worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from vkharness.computed.known_cells import Cells
from vkharness.computed.scaled_copies import blit
from vkharness.spec.enums import VkFilter

LINEAR = VkFilter.LINEAR


def row(*values: int) -> Cells:
    """A row of texels of one byte; a negative one is unknown."""
    data = np.array([max(0, each) for each in values], np.uint8).reshape(1, 1, -1, 1)
    return Cells(data, np.array([each >= 0 for each in values]).reshape(1, 1, -1))


def blitted(source: Cells, bounds: tuple[int, int, int, int], filter_: int = VkFilter.NEAREST) -> list[int]:
    """A row of six texels 9 after a blit of source x to target x; -1 where nothing is known."""
    target = row(*[9] * 6)
    first, last, begin, end = bounds
    corners = {"srcOffsets": (first, last), "dstOffsets": (begin, end)}
    region = {key: [{"x": x, "y": y, "z": y} for y, x in enumerate(pair)] for key, pair in corners.items()}
    blit(source, target, region, filter_)
    values = np.where(target.known, target.data[..., 0].astype(int), -1)
    return [int(each) for each in values.ravel()]


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ((0, 3, 0, 3), [1, 2, 3, 9, 9, 9]),
        ((0, 3, 4, 1), [9, 3, 2, 1, 9, 9]),
        ((3, 0, 1, 4), [9, 3, 2, 1, 9, 9]),
        ((0, 3, 0, 6), [1, 1, 2, 2, 3, 3]),
        ((1, 4, 2, 3), [9, 9, 3, 9, 9, 9]),
    ],
)
def test_the_nearest_texel_is_taken(bounds: tuple[int, int, int, int], expected: list[int]) -> None:
    assert blitted(row(1, 2, 3, 4), bounds) == expected


def test_a_coordinate_between_two_texels_gives_a_value_only_where_both_are_equal() -> None:
    assert blitted(row(1, 2, 5, 5), (0, 4, 0, 2)) == [-1, 5, 9, 9, 9, 9]


def test_unknown_texels_stay_unknown() -> None:
    assert blitted(row(1, -1, 3, 4), (0, 3, 0, 3)) == [1, -1, 3, 9, 9, 9]


def test_linear_filtering_is_known_where_all_that_is_mixed_is_equal() -> None:
    assert blitted(row(5, 5, 5, 7), (0, 4, 0, 6), LINEAR) == [5, 5, 5, 5, -1, 7]
