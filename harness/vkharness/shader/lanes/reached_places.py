"""Memory that instructions of an entry point accessed: bytes of buffers and texels of images, over all invocations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from vkharness.shader.lanes.lane_values import Numbers
from vkharness.spans import Span, merge

X_BITS, Y_BITS, Z_BITS, LEVEL_BITS = 28, 17, 14, 4
"""Bits of a texel's number: more than any image has texels in a direction."""
MOST_SPANS = 4096
"""The most spans of one answer. What has more is not told apart."""
MOST_PARTLY = 64
"""The most subresources of which some texel is reached that is not known."""


class Runs(NamedTuple):
    """Rows of texels or of bytes: numbers of the first ones, in order, and how many follow each."""

    first: Numbers
    length: Numbers


class Partly(NamedTuple):
    """Texels that are not known of a mip level and a layer or slice; None where that is not known either."""

    level: int | None
    layer: int | None


@dataclass(slots=True)
class ReachedTexels:
    """The texels that are accessed through one image descriptor."""

    sure: Runs
    """Texels that are reached for sure, as `texel_numbers` has them; layers and levels are those of the view."""
    maybe: Runs
    """Others that may be."""
    partly: tuple[Partly, ...]


class ReachedBytes(NamedTuple):
    """The bytes that are accessed through one buffer descriptor, as offsets from the start of its block."""

    sure: tuple[Span, ...]
    maybe: tuple[Span, ...]

    def parts(self) -> tuple[tuple[tuple[Span, ...], bool], ...]:
        """The same, each with whether it is reached for sure."""
        return (self.sure, True), (self.maybe, False)


@dataclass(slots=True)
class Gathered:
    """The bytes or texels of one variable that one instruction accesses."""

    unknown: bool = False
    """Whether it reaches what is not known."""
    offsets: dict[tuple[int, int, bool], list[Numbers]] = field(default_factory=dict)
    """By element, bytes of an access, and whether it is sure."""
    texels: dict[tuple[int, bool], list[Numbers]] = field(default_factory=dict)
    partly: dict[int, set[Partly]] = field(default_factory=dict)

    def elements(self) -> list[int]:
        """The descriptors of which something is reached."""
        return sorted({each[0] for each in (*self.offsets, *self.texels)} | self.partly.keys())


def texel_numbers(x: Any, y: Any, layer: Any, level: Any) -> Numbers:
    """One number for each texel, in the order of addresses of a level. Those that no image has are left out."""
    made = np.zeros(1, np.int64)
    inside = np.ones(1, np.bool_)
    for value, bits in ((level, LEVEL_BITS), (layer, Z_BITS), (y, Y_BITS), (x, X_BITS)):
        here = np.asarray(value, np.int64)
        inside = inside & (here >= 0) & (here < 1 << bits)
        made = (made << bits) + np.where((here >= 0) & (here < 1 << bits), here, 0)
    return np.broadcast_to(made, inside.shape)[inside]


def texel_places(numbers: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """(x, y, layer, level) of texels."""
    x, rest = numbers & (1 << X_BITS) - 1, numbers >> X_BITS
    y, rest = rest & (1 << Y_BITS) - 1, rest >> Y_BITS
    return x, y, rest & (1 << Z_BITS) - 1, rest >> Z_BITS


def runs_of(parts: Iterable[Numbers], size: int = 1) -> Runs:
    """Rows of what begins at these numbers and has `size` of them each."""
    listed = [each for each in parts if len(each)]
    if not listed:
        return Runs(np.zeros(0, np.int64), np.zeros(0, np.int64))
    first = np.unique(np.concatenate(listed))
    begins = np.concatenate([[True], first[1:] > first[:-1] + size])
    ends = np.concatenate([begins[1:], [True]])
    return Runs(first[begins], first[ends] + size - first[begins])


def spans_of(runs: Runs) -> tuple[Span, ...] | None:
    """The same as spans; None for too many."""
    if len(runs.first) > MOST_SPANS:
        return None
    return tuple((begin, begin + count) for begin, count in zip(runs.first.tolist(), runs.length.tolist(), strict=True))


def joined(several: Iterable[Gathered]) -> Mapping[int, ReachedBytes | ReachedTexels] | None:
    """Gives the bytes or texels that instructions access together, by element of the array of descriptors; None where
    that is not known. All are of one sort of resource."""
    gathered = list(several)
    if any(each.unknown for each in gathered):
        return None
    if any(each.texels or each.partly for each in gathered):
        return dict(_texels(gathered))
    found: dict[int, ReachedBytes] = {}
    for element in sorted({element for each in gathered for element in each.elements()}):
        sure, maybe = (_spans(gathered, element, certain) for certain in (True, False))
        if sure is None or maybe is None:
            return None
        found[element] = ReachedBytes(sure, maybe)
    return found


def _texels(gathered: list[Gathered]) -> Iterator[tuple[int, ReachedTexels]]:
    for element in sorted({element for each in gathered for element in each.elements()}):
        sure, maybe = (
            runs_of(part for each in gathered for part in each.texels.get((element, certain), ()))
            for certain in (True, False)
        )
        partly = {part for each in gathered for part in each.partly.get(element, ())}
        if len(partly) > MOST_PARTLY:
            partly = {Partly(None, None)}
        yield element, ReachedTexels(sure, maybe, tuple(sorted(partly, key=str)))


def _spans(gathered: list[Gathered], element: int, certain: bool) -> tuple[Span, ...] | None:
    found: list[Span] = []
    sizes = sorted({key[1] for each in gathered for key in each.offsets})
    for size in sizes:
        parts = [part for each in gathered for part in each.offsets.get((element, size, certain), ())]
        spans = spans_of(runs_of(parts, size))
        if spans is None:
            return None
        found += spans
    return tuple(merge(found))
