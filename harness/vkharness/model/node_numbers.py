"""Sets of the numbers of nodes, which share their parts with the sets that they were made from.

What is before a node is nearly what is before the node before it. A set is therefore a chain of windows, the last one
first: a window has the members among `WIDTH` numbers as the bits of an integer, and leads to the windows of lower
numbers. Sets with the same lower members lead to the same windows. A union looks at the windows in which its two sets
differ, and no further, so that a set costs about as much as what is new in it.

>>> some, others = NodeNumbers.of([1, 5000]), NodeNumbers.of([2, 5000])
>>> sorted(some | others), list(some & others), list(some - others), 2 in others
([1, 2, 5000], [5000], [1], True)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vkharness.trace.work_budget import spend

WIDTH_BITS = 10
WIDTH = 1 << WIDTH_BITS
"""Numbers of a window."""
FAR_BITS = 5
"""Windows are looked for in leaps over this many bits of their own number."""
MOST_KNOWN = 1 << 16
"""Unions of windows that are remembered, at most."""


class NodeNumbers:
    """A set of numbers from 0 on, which never changes."""

    __slots__ = ("_bits", "_far", "_older", "_window")

    _window: int
    _bits: int
    _older: NodeNumbers
    """The windows of lower numbers."""
    _far: NodeNumbers
    """The first of them behind a leap."""

    def __init__(self, window: int, bits: int, older: NodeNumbers) -> None:
        self._window = window
        self._bits = bits
        self._older = older
        self._far = older if older._window >> FAR_BITS < window >> FAR_BITS else older._far

    @staticmethod
    def of(numbers: Iterable[int]) -> NodeNumbers:
        """The set of these numbers."""
        windows: dict[int, int] = {}
        for number in numbers:
            window = number >> WIDTH_BITS
            windows[window] = windows.get(window, 0) | 1 << (number & WIDTH - 1)
        made = EMPTY
        for window in sorted(windows):
            made = NodeNumbers(window, windows[window], made)
        return made

    @staticmethod
    def one(number: int) -> NodeNumbers:
        """The set of one number."""
        return NodeNumbers(number >> WIDTH_BITS, 1 << (number & WIDTH - 1), EMPTY)

    def __bool__(self) -> bool:
        return self is not EMPTY

    def __contains__(self, number: int) -> bool:
        window, at = number >> WIDTH_BITS, self
        far = window >> FAR_BITS
        while at._window >> FAR_BITS > far:
            at = at._far
        while at._window > window:
            at = at._older
        return at._window == window and bool(at._bits >> (number & WIDTH - 1) & 1)

    def __or__(self, other: NodeNumbers) -> NodeNumbers:
        if other is EMPTY or other is self:
            return self
        if self is EMPTY:
            return other
        if self._window == other._window:
            older = self._older
            if older is not other._older:
                older = _union(older, other._older)
            return _made(self._window, self._bits | other._bits, older, self, other)
        high, low = (self, other) if self._window > other._window else (other, self)
        older = high._older
        if older is not low:
            older = _union(older, low)
        return _made(high._window, high._bits, older, high, high)

    def __and__(self, other: NodeNumbers) -> NodeNumbers:
        if self is other:
            return self
        windows = []
        one, two = self, other
        while one is not two and one is not EMPTY and two is not EMPTY:
            if one._window > two._window:
                one = one._older
            elif one._window < two._window:
                two = two._older
            else:
                windows.append((one._window, one._bits & two._bits))
                one, two = one._older, two._older
        return _on_top(windows, one if one is two else EMPTY)

    def __sub__(self, other: NodeNumbers) -> NodeNumbers:
        windows = []
        one, two = self, other
        while one is not two and one is not EMPTY and two is not EMPTY:
            if one._window < two._window:
                two = two._older
                continue
            same = one._window == two._window
            windows.append((one._window, one._bits & ~two._bits if same else one._bits))
            one, two = one._older, two._older if same else two
        return _on_top(windows, EMPTY if one is two else one)

    def _windows(self) -> list[NodeNumbers]:
        """All windows, the last one first."""
        found, at = [], self
        while at is not EMPTY:
            found.append(at)
            at = at._older
        return found

    def __len__(self) -> int:
        return sum(each._bits.bit_count() for each in self._windows())

    def __iter__(self) -> Iterator[int]:
        """The numbers in order."""
        for each in reversed(self._windows()):
            first, left = each._window << WIDTH_BITS, each._bits
            while left:
                low = left & -left
                yield first + low.bit_length() - 1
                left ^= low

    def __reversed__(self) -> Iterator[int]:
        """The numbers, the highest one first."""
        at = self
        while at is not EMPTY:
            first, left = at._window << WIDTH_BITS, at._bits
            while left:
                high = left.bit_length() - 1
                yield first + high
                left ^= 1 << high
            at = at._older

    def __repr__(self) -> str:
        return f"NodeNumbers.of({list(self)})"


def _empty() -> NodeNumbers:
    made = NodeNumbers.__new__(NodeNumbers)
    made._window, made._bits, made._older, made._far = -1, 0, made, made
    return made


EMPTY = _empty()
"""The set without members."""


def _made(window: int, bits: int, older: NodeNumbers, one: NodeNumbers, other: NodeNumbers) -> NodeNumbers:
    """A window on top of others: one of two that are there if it is the same, so that sets go on sharing it."""
    if older is one._older and bits == one._bits:
        return one
    if older is other._older and bits == other._bits:
        return other
    return NodeNumbers(window, bits, older)


def _on_top(windows: list[tuple[int, int]], older: NodeNumbers) -> NodeNumbers:
    """Windows, the last one first, on top of others."""
    for window, bits in reversed(windows):
        older = NodeNumbers(window, bits, older) if bits else older
    return older


_known: dict[tuple[NodeNumbers, NodeNumbers], NodeNumbers] = {}
"""Unions of windows behind the last one: the same two are asked for until the next window begins."""


def _union(one: NodeNumbers, other: NodeNumbers) -> NodeNumbers:
    """The union of two sets, from the windows that they share on."""
    steps: list[tuple[NodeNumbers, NodeNumbers]] = []
    while True:
        if one is other or other is EMPTY:
            made = one
            break
        if one is EMPTY:
            made = other
            break
        found = _known.get((one, other))
        if found is not None:
            made = found
            break
        steps.append((one, other))
        high = one._window - other._window
        one, other = one._older if high >= 0 else one, other._older if high <= 0 else other
    spend(len(steps), "steps of the second judge")
    for first, second in reversed(steps):
        if first._window == second._window:
            made = _made(first._window, first._bits | second._bits, made, first, second)
        else:
            high_one = first if first._window > second._window else second
            made = _made(high_one._window, high_one._bits, made, high_one, high_one)
        _known[first, second] = made
    if len(_known) > MOST_KNOWN:
        _known.clear()
    return made
