"""The vertices that known indices mean, as runs of consecutive indices.

Work is bounded by the number of indices, in numpy, and is done once for each part of a chunk of known bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from vkharness.commands.contents.known_memory import Chunk, KnownMemory, Piece
from vkharness.spans import Span, merge

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_RUNS = 256
"""The most runs that are told apart. Of more, those with the smallest gaps between them are joined."""
FEW = 1 << 12
"""The most indices that are looked at without numpy."""
_CODES = {1: "B", 2: "H", 4: "I"}
MOST_JOINED = 16 << 20
"""The most bytes of indices that are put together from pieces that cut through an index."""


HeldPiece = tuple[int, int, Piece]
"""Known bytes, with the addresses where they begin and end."""


class Indices(NamedTuple):
    """A part of an index buffer: its space and addresses, the bytes of one index, and whether primitives restart."""

    space: int
    span: Span
    size: int
    restart: bool


def held_indices(memory: KnownMemory, indices: Indices) -> list[HeldPiece] | None:
    """The known bytes that are the indices; None when not all of them are known."""
    begin, end = indices.span
    end -= (end - begin) % indices.size
    return memory.pieces(indices.space, (begin, end)) if begin < end else []


def runs_of(held: list[HeldPiece], indices: Indices) -> list[Span] | None:
    """Half-open runs that hold the values of the indices and, up to `MOST_RUNS` of them, no others. None when these
    cannot be told."""
    begin, size = indices.span[0], indices.size
    if any((low - begin) % size for low, _, _ in held):
        if sum(high - low for low, high, _ in held) > MOST_JOINED:
            return None
        joined = Chunk(b"".join(chunk.bytes(low - base, high - base) for low, high, (chunk, base) in held))
        return _of_part(joined, 0, held[-1][1] - begin, indices)
    parts = [_of_part(chunk, low - base, high - base, indices) for low, high, (chunk, base) in held]
    return parts[0] if len(parts) == 1 else joined_runs(run for part in parts for run in part)


def joined_runs(runs: Iterable[Span], most: int = MOST_RUNS) -> list[Span]:
    """Runs in any order as at most `most` disjoint ones; those with the smallest gaps are joined.

    >>> joined_runs([(10, 12), (0, 2), (3, 4), (11, 14)], 2)
    [(0, 4), (10, 14)]
    """
    apart = merge(runs)
    if len(apart) <= most:
        return apart
    gaps = sorted(range(1, len(apart)), key=lambda at: apart[at][0] - apart[at - 1][1], reverse=True)
    starts = [0, *sorted(gaps[: most - 1])]
    ends = [*(at - 1 for at in starts[1:]), len(apart) - 1]
    return [(apart[low][0], apart[high][1]) for low, high in zip(starts, ends, strict=True)]


def _of_part(chunk: Chunk, begin: int, end: int, indices: Indices) -> list[Span]:
    if chunk.repeats:
        end = min(end, begin + 8)
    key = (begin, end, indices.size, indices.restart)
    found: list[Span] | None = chunk.facts.get(key)
    if found is None:
        found = _runs(chunk, begin, end, indices)
        chunk.remember(key, found)
    return found


def _runs(chunk: Chunk, begin: int, end: int, indices: Indices) -> list[Span]:
    number = (end - begin) // indices.size
    largest = (1 << 8 * indices.size) - 1
    if number > FEW:
        return _runs_of_many(chunk.data, begin, number, indices.size, largest if indices.restart else None)
    layout = f"<{number}{_CODES[indices.size]}"
    values = set(struct.unpack(layout, chunk.bytes(begin, end)))
    if indices.restart:
        values.discard(largest)
    return joined_runs((value, value + 1) for value in values)


def _runs_of_many(data: bytes, begin: int, number: int, size: int, restart: int | None) -> list[Span]:
    import numpy as np  # programs without such draws do without it

    values: NDArray[Any] = np.frombuffer(data, f"<u{size}", number, begin)
    if restart is not None:
        values = values[values != restart]
    if not len(values):
        return []
    low, high = int(values.min()), int(values.max())
    if high - low < 4 * len(values):
        used = np.zeros(high - low + 3, bool)
        used[values.astype(np.int64) - (low - 1)] = True
        edges = np.flatnonzero(used[1:] != used[:-1]).reshape(-1, 2) + low
    else:
        each = np.unique(values).astype(np.int64)
        starts = np.append(True, each[1:] != each[:-1] + 1)
        edges = np.stack((each[starts], each[np.append(starts[1:], True)] + 1), axis=1)
    return [(first, end) for first, end in _within(edges, MOST_RUNS).tolist()]


def _within(edges: NDArray[Any], most: int) -> NDArray[Any]:
    """At most `most` runs; those with the smallest gaps are joined."""
    import numpy as np

    if len(edges) <= most:
        return edges
    gaps = edges[1:, 0] - edges[:-1, 1]
    split = np.zeros(len(gaps), bool)
    split[np.argpartition(gaps, -(most - 1))[-(most - 1) :]] = True
    return np.stack((edges[np.append(True, split), 0], edges[np.append(split, True), 1]), axis=1)
