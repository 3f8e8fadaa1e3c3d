"""How often Python looks for cycles is changed for a while, and not where somebody has stopped it."""

from __future__ import annotations

import gc

import pytest

from vkharness.rare_collections import YOUNG, rare_collections


@pytest.mark.parametrize("before", [(700, 10, 10), (0, 10, 10), (10 * YOUNG, 5, 5)])
def test_thresholds_come_back(before: tuple[int, int, int]) -> None:
    held = gc.get_threshold()
    try:
        gc.set_threshold(*before)
        with pytest.raises(ZeroDivisionError), rare_collections():
            during = gc.get_threshold()
            assert during[0] == (max(YOUNG, before[0]) if before[0] else 0)
            raise ZeroDivisionError
        assert gc.get_threshold() == before
    finally:
        gc.set_threshold(*held)
