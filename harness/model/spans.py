"""What two sorted lists of disjoint spans share, and what one has beyond the other. Linear in both."""

from __future__ import annotations

from collections.abc import Sequence

from harness.spans import Span


def overlap(first: Sequence[Span], second: Sequence[Span]) -> list[Span]:
    """The addresses in both.

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


def without(spans: Sequence[Span], holes: Sequence[Span]) -> list[Span]:
    """The addresses of the first that are not in the second.

    >>> without([(0, 9)], [(2, 4), (6, 7)])
    [(0, 2), (4, 6), (7, 9)]
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
