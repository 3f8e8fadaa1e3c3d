"""The journal: many accesses that are added at once leave what they leave one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vkharness.syncval.journal import LENGTH, Log, Notes
from vkharness.syncval.race import NEVER

COUNTS = st.one_of(st.integers(1, 40), st.integers(LENGTH - 2, LENGTH + 3), st.integers(2 * LENGTH, 2 * LENGTH + 5))


@given(st.lists(st.tuples(st.integers(0, 1), COUNTS, st.booleans(), st.integers(0, 3)), max_size=12))
def test_many_accesses_at_once_are_the_same_as_one_by_one(parts: list[tuple[int, int, bool, int]]) -> None:
    alone, together, tag = Log(NEVER), Log(NEVER), 0
    for new_batch, count, at_once, behind in parts:
        tag += new_batch
        retired = (tag - behind, 0)
        notes: Notes = [(tag, ((at, at + 1),)) for at in range(count)]
        for space, spans in notes:
            alone.add((tag, 0), space, spans, retired)
        if at_once:
            together.add_several((tag, 0), count, notes[-LENGTH:], retired)
        else:
            for space, spans in notes:
                together.add((tag, 0), space, spans, retired)
        assert together == alone
