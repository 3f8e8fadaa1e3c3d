"""Half-open ranges of addresses and a map from them: `SpanMap`.

A `SpanMap` holds disjoint, non-empty spans in order. Neighbours that touch and hold equal values are one span.

`SpanMap` is the native one (harness/vkharness/native/span_map.hpp: a B-tree, in which a million spans cost about what a
thousand do) or, without a native core, `PythonSpanMap`. `bench/spans.py` compares them.

In Python, where the spans begin is kept in order, in one of two ways. A list is searched fastest, but each span that
comes or goes moves all that lie behind it by one machine word. Up to some 30,000 spans those moves cost less than the
rest. A map that holds more (`LARGE`) keeps a `SortedList`, which moves a few thousand words at most and is searched
more slowly. A map that shrinks goes back to a list at half of that size, so that one near the limit does not change
over and over.

Of the costs below, n is the number of spans held and k the number of spans touched; those of a change are amortized.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from sortedcontainers import SortedList

from vkharness import native

Span = tuple[int, int]
"""Half-open: (begin, end)."""
ENDLESS = 1 << 62
"""An end that lies behind every address."""

V = TypeVar("V")


class _Many(SortedList[int]):
    """Many begins in order, with the two changes of a list that `PythonSpanMap` makes."""

    def insert(self, _index: int, begin: int) -> None:
        """Adds a begin, whose place follows from its value. O(log n)."""
        self.add(begin)

    def __setitem__(self, where: Any, begins: Any) -> None:
        """Puts begins in the place of a slice, between whose neighbours they lie. O(k log n)."""
        if where.start < where.stop:
            del self[where]
        self.update(begins)


class PythonSpanMap(Generic[V]):
    """Values over disjoint half-open spans.

    >>> m: SpanMap[str] = SpanMap()
    >>> m.assign(0, 10, "a"); m.assign(4, 6, "b")
    >>> list(m)
    [(0, 4, 'a'), (4, 6, 'b'), (6, 10, 'a')]
    >>> m.assign(4, 6, "a"); list(m)
    [(0, 10, 'a')]
    """

    __slots__ = ("_begins", "_held", "_least", "_left", "_most", "_right")

    LARGE: ClassVar[int] = 1 << 15
    """Spans beyond which a map keeps its begins in a `SortedList`."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[int, V]] = {}
        """Begin of a span to its end and value."""
        self._keep([])

    def _keep(self, begins: list[int] | _Many) -> None:
        """Makes `begins` the container of the same begins in order, for as long as their number suits it."""
        self._begins = begins
        self._left: Callable[[int], int]
        self._right: Callable[[int], int]
        if isinstance(begins, list):
            self._left, self._right = partial(bisect_left, begins), partial(bisect_right, begins)
            self._least, self._most = 0, self.LARGE
        else:
            self._left, self._right = begins.bisect_left, begins.bisect_right
            self._least, self._most = self.LARGE // 2, sys.maxsize

    def _resized(self) -> None:
        """Takes the other container when this one no longer suits. O(n), once in n/2 changes."""
        begins = self._begins
        if not self._least <= len(begins) <= self._most:
            self._keep(_Many(begins) if isinstance(begins, list) else list(begins))

    def __len__(self) -> int:
        """Spans held. O(1).

        >>> len(SpanMap())
        0
        """
        return len(self._begins)

    def __iter__(self) -> Iterator[tuple[int, int, V]]:
        """(begin, end, value) of each span, in order. O(n) for all."""
        for begin in self._begins:
            end, value = self._held[begin]
            yield begin, end, value

    def exact(self, begin: int, end: int) -> V | None:
        """The value of precisely this span, None when no such span is held: the common case in frames. O(1).

        >>> m: SpanMap[str] = SpanMap()
        >>> m.assign(4, 8, "a")
        >>> m.exact(4, 8), m.exact(4, 6)
        ('a', None)
        """
        held = self._held.get(begin)
        return held[1] if held is not None and held[0] == end else None

    def set_exact(self, begin: int, end: int, value: V) -> None:
        """Replaces the value of a span for which `exact` answered; neighbours are not merged. O(1)."""
        self._held[begin] = (end, value)

    def put(self, begin: int, end: int, value: V) -> None:
        """Like `set_exact` where precisely this span is held, like `assign` elsewhere."""
        held = self._held.get(begin)
        if held is not None and held[0] == end:
            self._held[begin] = (end, value)
        else:
            self.assign(begin, end, value)

    def pieces(self, begin: int, end: int) -> list[tuple[int, int, V]]:
        """The held parts of [begin, end), clipped to it, in order. O(k + log n).

        >>> m: SpanMap[str] = SpanMap()
        >>> m.assign(0, 4, "a"); m.assign(6, 9, "b")
        >>> m.pieces(2, 7)
        [(2, 4, 'a'), (6, 7, 'b')]
        """
        if begin >= end:
            return []
        held = self._held
        found = []
        after = self._right(begin)
        for key in self._begins[after - 1 if after else 0 : self._left(end)]:
            stop, value = held[key]
            if stop > begin:
                found.append((key if key > begin else begin, stop if stop < end else end, value))
        return found

    def erase(self, begin: int, end: int) -> None:
        """Forgets [begin, end); spans that stick out keep their outer parts. O(k + log n), and the move in a list.

        >>> m: SpanMap[str] = SpanMap()
        >>> m.assign(0, 9, "a"); m.erase(2, 4); list(m)
        [(0, 2, 'a'), (4, 9, 'a')]
        """
        if begin < end:
            self._replace(begin, end, [])

    def assign(self, begin: int, end: int, value: V) -> None:
        """Makes `value` the value of [begin, end). O(k + log n), and the move in a list."""
        if begin < end:
            self._replace(begin, end, [(begin, end, value)])

    def update(self, begin: int, end: int, change: Callable[[int, int, V | None], V | None]) -> None:
        """Replaces each held piece and each gap of [begin, end) by `change(begin, end, value or None)`; None erases.
        O(k log n).

        >>> m: SpanMap[int] = SpanMap()
        >>> m.assign(2, 4, 1)
        >>> m.update(0, 6, lambda begin, end, old: (old or 0) + 1); list(m)
        [(0, 2, 1), (2, 4, 2), (4, 6, 1)]
        """
        old = self.pieces(begin, end)
        if not old:
            made = change(begin, end, None) if begin < end else None
            if made is not None:
                self._fill(begin, end, made)
            return
        new: list[tuple[int, int, V | None]] = []
        at = begin
        for piece_begin, piece_end, value in old:
            if piece_begin > at:
                new.append((at, piece_begin, change(at, piece_begin, None)))
            new.append((piece_begin, piece_end, change(piece_begin, piece_end, value)))
            at = piece_end
        if at < end:
            new.append((at, end, change(at, end, None)))
        self._replace(begin, end, [(low, high, value) for low, high, value in new if value is not None])

    def _fill(self, begin: int, end: int, value: V) -> None:
        """Makes `value` the value of a gap, or of a part of one."""
        begins, held = self._begins, self._held
        at = self._left(begin)
        if at < len(begins) and begins[at] == end and (held[end][1] is value or held[end][1] == value):
            end = held.pop(end)[0]
            del begins[at]
        if at:
            before = begins[at - 1]
            stop, known = held[before]
            if stop == begin and (known is value or known == value):
                held[before] = (end, known)
                return
        held[begin] = (end, value)
        begins.insert(at, begin)
        self._resized()

    def _replace(self, begin: int, end: int, new: list[tuple[int, int, V]]) -> None:
        """Puts spans, in order and inside of [begin, end), in the place of what that holds.

        Neighbours that touch it or reach into it are put in again with the new spans, joined to those that are equal.
        """
        begins, held = self._begins, self._held
        first = self._left(begin)
        last = self._left(end)
        if last:
            stop, value = held[begins[last - 1]]
            if stop > end:
                new.append((end, stop, value))
        if last < len(begins) and begins[last] == end:
            new.append((end, *held[end]))
            last += 1
        if first:
            key = begins[first - 1]
            stop, value = held[key]
            if stop >= begin:
                first -= 1
                new.insert(0, (key, begin, value))
        for key in begins[first:last]:
            del held[key]
        begins[first:last] = self._insert(new)
        self._resized()

    def _insert(self, new: list[tuple[int, int, V]]) -> list[int]:
        """Holds spans, those joined that touch and have equal values; answers with where they begin."""
        held = self._held
        begins: list[int] = []
        at = 0
        for low, high, value in new:
            if begins:
                stop, known = held[at]
                if stop == low and (known is value or known == value):
                    held[at] = (high, known)
                    continue
            held[low] = (high, value)
            begins.append(low)
            at = low
        return begins

    def _check(self) -> None:
        """Raises AssertionError when an invariant is broken: order, disjointness, no empty span, the container."""
        last = None
        assert list(self._begins) == sorted(self._held), "begins are out of step"
        assert self._least <= len(self._begins) <= self._most, "the container does not suit the number of spans"
        if isinstance(self._begins, _Many):
            self._begins._check()  # type: ignore[attr-defined]  # the stubs leave it out
        for begin, end, _ in self:
            assert begin < end, f"empty span at {begin}"
            assert last is None or last <= begin, f"spans overlap at {begin}"
            last = end


if TYPE_CHECKING or native.core is None:
    SpanMap = PythonSpanMap
else:
    SpanMap = native.core.SpanMap


def merge(spans: Iterable[Span]) -> list[Span]:
    """Sorted, disjoint spans that cover the same addresses; touching ones are joined.

    >>> merge([(4, 6), (0, 4), (8, 9)])
    [(0, 6), (8, 9)]
    """
    spans = list(spans)
    if len(spans) == 1:
        return [span for span in spans if span[0] < span[1]]
    merged: list[Span] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            if end > merged[-1][1]:
                merged[-1] = (merged[-1][0], end)
        elif begin < end:
            merged.append((begin, end))
    return merged


def overlap(first: Sequence[Span], second: Sequence[Span]) -> list[Span]:
    """The addresses in both of two sorted lists of disjoint spans. Linear in both.

    >>> overlap([(0, 4), (6, 9)], [(2, 7)])
    [(2, 4), (6, 7)]
    """
    found: list[Span] = []
    at = other = 0
    while at < len(first) and other < len(second):
        begin, end = max(first[at][0], second[other][0]), min(first[at][1], second[other][1])
        if begin < end:
            found.append((begin, end))
        if first[at][1] < second[other][1]:
            at += 1
        else:
            other += 1
    return found


def subtract(spans: Sequence[Span], holes: Sequence[Span]) -> list[Span]:
    """Returns the parts of sorted, disjoint spans outside sorted, disjoint holes. Linear in both.

    >>> subtract([(0, 10), (20, 30)], [(2, 4), (8, 25)])
    [(0, 2), (4, 8), (25, 30)]
    """
    left: list[Span] = []
    at = 0
    for begin, end in spans:
        while at < len(holes) and holes[at][1] <= begin:
            at += 1
        here = at
        while here < len(holes) and holes[here][0] < end:
            if begin < holes[here][0]:
                left.append((begin, holes[here][0]))
            begin = max(begin, holes[here][1])
            here += 1
        if begin < end:
            left.append((begin, end))
    return left
