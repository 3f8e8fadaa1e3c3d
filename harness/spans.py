"""Half-open ranges of addresses and a map from them: `SpanMap`.

A `SpanMap` holds disjoint, non-empty spans in order. Neighbours that touch and hold equal values are one span.
Every operation costs O((k + 1) log n), where k is the number of spans that it touches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from sortedcontainers import SortedDict

Span = tuple[int, int]
"""Half-open: (begin, end)."""

V = TypeVar("V")


class SpanMap(Generic[V]):
    """Values over disjoint half-open spans.

    >>> m: SpanMap[str] = SpanMap()
    >>> m.assign(0, 10, "a"); m.assign(4, 6, "b")
    >>> list(m)
    [(0, 4, 'a'), (4, 6, 'b'), (6, 10, 'a')]
    >>> m.assign(4, 6, "a"); list(m)
    [(0, 10, 'a')]
    """

    __slots__ = ("_spans",)

    def __init__(self) -> None:
        self._spans: SortedDict[int, tuple[int, V]] = SortedDict()

    def __len__(self) -> int:
        return len(self._spans)

    def __iter__(self) -> Iterator[tuple[int, int, V]]:
        for begin, (end, value) in self._spans.items():
            yield begin, end, value

    def exact(self, begin: int, end: int) -> V | None:
        """The value of precisely this span, None when no such span is held (O(1); the common case in frames)."""
        held = self._spans.get(begin)
        return held[1] if held is not None and held[0] == end else None

    def set_exact(self, begin: int, end: int, value: V) -> None:
        """Replaces the value of a span for which `exact` answered; neighbours are not merged (O(1))."""
        self._spans[begin] = (end, value)

    def pieces(self, begin: int, end: int) -> list[tuple[int, int, V]]:
        """The held parts of [begin, end), clipped to it, in order."""
        if begin >= end:
            return []
        spans = self._spans
        found = []
        index = spans.bisect_right(begin)
        if index:
            stop, value = spans.peekitem(index - 1)[1]
            if stop > begin:
                found.append((begin, stop if stop < end else end, value))
        if index < len(spans):
            for key in spans.irange(begin, end, inclusive=(False, False)):
                stop, value = spans[key]
                found.append((key, stop if stop < end else end, value))
        return found

    def erase(self, begin: int, end: int) -> None:
        """Forgets [begin, end); spans that stick out keep their outer parts."""
        if begin >= end:
            return
        spans = self._spans
        index = spans.bisect_right(begin) - 1
        if index >= 0:
            key = spans.keys()[index]
            stop, value = spans[key]
            if stop > begin:
                del spans[key]
                if key < begin:
                    spans[key] = (begin, value)
                if stop > end:
                    spans[end] = (stop, value)
        for key in list(spans.irange(begin, end, inclusive=(True, False))):
            stop, value = spans.pop(key)
            if stop > end:
                spans[end] = (stop, value)

    def assign(self, begin: int, end: int, value: V) -> None:
        """Makes `value` the value of [begin, end)."""
        if begin >= end:
            return
        self.erase(begin, end)
        self._spans[begin] = (end, value)
        self._join(begin)
        self._join(end)

    def update(self, begin: int, end: int, change: Callable[[int, int, V | None], V | None]) -> None:
        """Replaces each held piece and each gap of [begin, end) by `change(begin, end, value or None)`; None erases."""
        old = self.pieces(begin, end)
        if not old:
            if begin < end:
                self._fill(begin, end, change(begin, end, None))
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
        self.erase(begin, end)
        for piece_begin, piece_end, result in new:
            if result is not None:
                self._spans[piece_begin] = (piece_end, result)
        for piece_begin, _, _ in new:
            self._join(piece_begin)
        self._join(end)

    def _fill(self, begin: int, end: int, value: V | None) -> None:
        """Puts a value into a gap."""
        if value is not None:
            self._spans[begin] = (end, value)
            self._join(begin)
            if end in self._spans:
                self._join(end)

    def _join(self, at: int) -> None:
        """Joins the span that begins at `at` to the one that ends there, when their values are equal."""
        spans = self._spans
        held = spans.get(at)
        if held is None:
            return
        index = spans.bisect_left(at) - 1
        if index < 0:
            return
        key = spans.keys()[index]
        stop, value = spans[key]
        if stop == at and value == held[1]:
            del spans[at]
            spans[key] = (held[0], value)

    def _check(self) -> None:
        """Raises AssertionError when an invariant is broken: order, disjointness, no empty span."""
        last = None
        for begin, (end, _) in self._spans.items():
            assert begin < end, f"empty span at {begin}"
            assert last is None or last <= begin, f"spans overlap at {begin}"
            last = end


def merge(spans: list[Span]) -> list[Span]:
    """Sorted, disjoint spans that cover the same addresses; touching ones are joined.

    >>> merge([(4, 6), (0, 4), (8, 9)])
    [(0, 6), (8, 9)]
    """
    merged: list[Span] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            if end > merged[-1][1]:
                merged[-1] = (merged[-1][0], end)
        elif begin < end:
            merged.append((begin, end))
    return merged


def subtract(spans: list[Span], holes: list[Span]) -> list[Span]:
    """What is left of sorted, disjoint spans outside sorted, disjoint holes.

    >>> subtract([(0, 10), (20, 30)], [(2, 4), (8, 25)])
    [(0, 2), (4, 8), (25, 30)]
    """
    left: list[Span] = []
    for begin, end in spans:
        for low, high in holes:
            if high <= begin or low >= end:
                continue
            if begin < low:
                left.append((begin, low))
            begin = max(begin, high)
        if begin < end:
            left.append((begin, end))
    return left
