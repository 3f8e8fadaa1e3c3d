"""Affine forms over boxes of integers: which bytes an index touches for all invocations of a dispatch.

A *form* is `constant + c1*s1 + c2*s2 + ...` with integer coefficients. Its symbols stand for what differs between
invocations, mostly the components of WorkgroupId and LocalInvocationId. A *box* gives each symbol its least and its
greatest value. Everything else in an index (push constants, specialization constants, the number of workgroups) is a
number once the dispatch is known.

A shader that stores `words[8 * WorkgroupId.x + LocalInvocationId.x]`, with 8 invocations a workgroup, in 4-byte words:

>>> W, L = 1, 2  # the two symbols
>>> byte = scale(add(scale(symbol(W), 8), symbol(L)), 4)
>>> byte
Form(constant=0, terms=((1, 32), (2, 4)))

Dispatched over workgroups 0 to 2 it writes the first 96 bytes. A second half of the grid (vkCmdDispatchBase from
workgroup 3) writes the 96 bytes after these:

>>> reached(byte, {W: (0, 2), L: (0, 7)}, size=4)
([(0, 96)], True)
>>> reached(byte, {W: (3, 5), L: (0, 7)}, size=4)
([(96, 192)], True)

A guard is a form with bounds, and narrows the box: `if (8 * WorkgroupId.x + LocalInvocationId.x >= 4) return` cannot be
said by a box, but what it implies for each symbol can.

>>> within(add(scale(symbol(W), 8), symbol(L)), {W: (0, 2), L: (0, 7)}, 0, 3)
({1: (0, 0), 2: (0, 3)}, False)

Python's integers do not wrap. Addition, subtraction and multiplication of a shader wrap modulo a power of two, which
changes nothing as long as the value that is used in the end lies in the range of its type. So forms are computed
without wrapping, and whoever uses one asks `interval` whether it fits (`reach`).

Each answer covers at least what is touched. The second part of an answer says whether it is also touched for sure: the
symbols of a form must then be independent of one another, and each must take every value of its range.
"""

from __future__ import annotations

from typing import NamedTuple

from vkharness.spans import Span, merge

MOST_SPANS = 64
"""The most spans that an answer has. What would have more is answered with its hull."""

Box = dict[int, tuple[int, int]]
"""The least and the greatest value of each symbol."""


class Form(NamedTuple):
    """`constant` plus each symbol times its coefficient. Symbols are in order, and no coefficient is 0."""

    constant: int
    terms: tuple[tuple[int, int], ...] = ()


def symbol(id: int) -> Form:
    """The form that is one symbol."""
    return Form(0, ((id, 1),))


def add(left: Form, right: Form, factor: int = 1) -> Form:
    """left + factor * right."""
    if not right.terms:
        return Form(left.constant + factor * right.constant, left.terms)
    terms = dict(left.terms)
    for id, coefficient in right.terms:
        terms[id] = terms.get(id, 0) + factor * coefficient
    kept = tuple(sorted((id, value) for id, value in terms.items() if value))
    return Form(left.constant + factor * right.constant, kept)


def scale(form: Form, factor: int) -> Form:
    """factor * form."""
    return add(Form(0), form, factor)


def interval(form: Form, box: Box) -> tuple[int, int]:
    """The least and the greatest value of a form over a box."""
    low = high = form.constant
    for id, coefficient in form.terms:
        first, last = box[id]
        low += coefficient * (first if coefficient > 0 else last)
        high += coefficient * (last if coefficient > 0 else first)
    return low, high


def within(form: Form, box: Box, low: int, high: int) -> tuple[Box | None, bool]:
    """The part of a box in which low <= form <= high, as a box, and whether the two agree exactly.

    The box is None when there is no such part. A box that is not exact contains the part.
    """
    least, greatest = interval(form, box)
    if low <= least and greatest <= high:
        return box, True
    if greatest < low or high < least:
        return None, True
    narrowed = dict(box)
    for id, coefficient in form.terms:
        first, last = box[id]
        # All other terms together lie between `least` and `greatest` less this one's own part.
        ends = (coefficient * first, coefficient * last)
        room = (low - greatest + max(ends), high - least + min(ends))
        if coefficient > 0:
            bounds = (-(-room[0] // coefficient), room[1] // coefficient)
        else:
            bounds = (-(room[1] // -coefficient), -room[0] // -coefficient)
        narrowed[id] = (max(first, bounds[0]), min(last, bounds[1]))
        if narrowed[id][0] > narrowed[id][1]:
            return None, True
    return narrowed, len(form.terms) == 1


def reached(form: Form, box: Box, size: int) -> tuple[list[Span], bool]:
    """The bytes [value, value + size) of all values of a form over a box, and whether there are no others among them.

    The spans are in order and disjoint, and at most MOST_SPANS.
    """
    steps = sorted(
        (abs(coefficient), box[id][1] - box[id][0] + 1) for id, coefficient in form.terms if box[id][0] != box[id][1]
    )
    spans, exact = [(0, size)], True
    for stride, count in steps:
        end = spans[-1][1]
        if len(spans) == 1 and stride <= end:
            spans = [(0, end + stride * (count - 1))]
        elif exact and len(spans) * count <= MOST_SPANS:
            spans = merge([(first + at * stride, last + at * stride) for at in range(count) for first, last in spans])
        else:
            spans, exact = [(0, end + stride * (count - 1))], False
    low = interval(form, box)[0]
    return [(low + first, low + last) for first, last in spans], exact
