"""Sets of nodes that share their parts hold what plain sets hold, and the model says the same whatever they share."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkharness.fuzz import random_text
from vkharness.model import judge_stream_events, node_numbers
from vkharness.model.memory import MemoryOperation, MemoryOperations, Nodes
from vkharness.model.node_numbers import EMPTY, WIDTH, NodeNumbers
from vkharness.model.opinion import Opinion
from vkharness.model.order import NodeSet
from vkharness.model.program import SemaphoreHistory
from vkharness.report.conflicts import conflict_text
from vkharness.text_form import stream_text

NUMBERS = st.integers(0, 40) | st.integers(0, 70 * WIDTH) | st.sampled_from([WIDTH - 1, WIDTH, 32 * WIDTH, 33 * WIDTH])
PLAIN = st.sets(NUMBERS, max_size=12)


@given(st.lists(PLAIN, min_size=2, max_size=5), st.data())
def test_operations_are_those_of_sets(plain: list[set[int]], data: st.DataObject) -> None:
    pairs = [(NodeNumbers.of(each), each) for each in plain]
    for _ in range(8):
        (one, first), (other, second) = data.draw(st.sampled_from(pairs)), data.draw(st.sampled_from(pairs))
        kind = data.draw(st.sampled_from("|&-"))
        if kind == "|":
            pairs.append((one | other, first | second))
        elif kind == "&":
            pairs.append((one & other, first & second))
        else:
            pairs.append((one - other, first - second))
        made, expected = pairs[-1]
        assert list(made) == sorted(expected)
        assert list(reversed(made)) == sorted(expected, reverse=True)
        assert (len(made), bool(made)) == (len(expected), bool(expected))
        number = data.draw(NUMBERS)
        assert (number in made) == (number in expected)
        assert all(each in made for each in expected)


def test_a_union_that_adds_nothing_is_the_set_that_was_there() -> None:
    large, small = NodeNumbers.of(range(5 * WIDTH)), NodeNumbers.of(range(WIDTH, 2 * WIDTH, 3))
    assert large | small is large and small | large is large
    assert large | EMPTY is large and EMPTY | large is large
    assert not large - large and (large & small | small) is not EMPTY


def test_a_set_shares_all_but_its_last_window_with_the_one_before_it() -> None:
    grown = NodeNumbers.of(range(100 * WIDTH))
    more = grown | NodeNumbers.one(100 * WIDTH)
    assert more._older is grown
    assert (more | NodeNumbers.one(100 * WIDTH + 1))._older is grown


class PlainNodes:
    """A plain set, as `Seen` stands for one."""

    def __init__(self, nodes: set[int]) -> None:
        self._nodes = nodes

    def __contains__(self, node: int) -> bool:
        return node in self._nodes


def all_seen(self: MemoryOperations, scopes: NodeNumbers, accesses: int, by_region: bool) -> Nodes:
    """`MemoryOperations.seen`, by its definition."""
    before, nodes = self._order.closure(by_region), set[int]()
    for each in self.everything:
        if each.space is None and each.invalidates & accesses and each.node in scopes:
            nodes |= {each.node, *before[each.node]}
    return PlainNodes(nodes)


def is_flushed(self: MemoryOperations, writer: int, index: int, by: Nodes) -> bool:
    """`MemoryOperations.flushed`, by its definition."""
    flushes = [each for each in self.everything if each.space is None and each.flushes >> index & 1]
    return any(each.node in by and writer in each.first for each in flushes)


def said(opinion: Opinion) -> list[Any]:
    """All that an opinion says, and its whole order."""
    order = opinion.order
    told = [(conflict_text(each), each.spans, each.prior, each.current) for each in opinion.everything]
    sets = [[list(each) for each in table] for table in (order.before, order.by_region, order.across, order.direct)]
    return [told, opinion.unmodelled, sets, list(order.edges())]


def all_ranged_flushes(self: MemoryOperations, space: int, writer: int, index: int) -> list[MemoryOperation]:
    """`MemoryOperations.ranged_flushes`, by its definition."""
    return [each for each in self.everything if each.space == space and each.makes_available(writer, index)]


@pytest.fixture
def by_definition(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The model with tiny windows, and without its short ways to an answer."""
    with monkeypatch.context() as patch:
        patch.setattr(node_numbers, "WIDTH_BITS", 2)
        patch.setattr(node_numbers, "WIDTH", 4)
        patch.setattr(node_numbers, "FAR_BITS", 1)
        patch.setattr(MemoryOperations, "seen", all_seen)
        patch.setattr(MemoryOperations, "flushed", is_flushed)
        patch.setattr(MemoryOperations, "ranged_flushes", all_ranged_flushes)
        patch.setattr(NodeSet, "is_everywhere", property(lambda self: False))
        yield patch


def test_the_short_ways_change_nothing(by_definition: pytest.MonkeyPatch) -> None:
    texts = [random_text.make(random.Random(seed).choice) for seed in range(300)]
    slow = [said(judge_stream_events(stream_text.parse(text))) for text in texts]
    by_definition.undo()
    quick = [said(judge_stream_events(stream_text.parse(text))) for text in texts]
    for text, one, other in zip(texts, slow, quick, strict=True):
        assert one == other, text
    assert sum(bool(each[0]) for each in quick) > 100


def test_the_first_signal_that_reaches_a_value_is_the_lowest_and_the_first_of_its_value() -> None:
    signals = [NodeSet(NodeNumbers.one(at)) for at in range(4)]
    held = SemaphoreHistory(True)
    for value, signal in zip((5, 3, 5, 9), signals, strict=True):
        held.add(value, signal)
    found = [held.first_to_reach(value) for value in (1, 3, 4, 5, 6, 10)]
    assert [None if each is None else signals.index(each[1]) for each in found] == [1, 1, 0, 0, 3, None]
