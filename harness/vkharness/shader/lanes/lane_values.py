"""Values of many invocations at once: a number for all, an array with one for each, a tuple of such, or None.

None stands for what is not known. Integers are not negative: the bits of their type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Chosen = npt.NDArray[np.bool_]


@dataclass(slots=True)
class LaneState:
    """Values and variables of some invocations at one point of their execution."""

    lanes: Numbers
    """Numbers of the invocations, in order."""
    values: dict[int, Any]
    """By id of SPIR-V."""
    memory: dict[int, Any]
    """Values of the variables that each invocation has, by id."""

    def part(self, chosen: Chosen) -> LaneState:
        """The same of some of them."""
        return LaneState(
            self.lanes[chosen],
            {id: part(value, chosen) for id, value in self.values.items()},
            {id: part(value, chosen) for id, value in self.memory.items()},
        )

    def copy(self) -> LaneState:
        """The same, which may go on by itself."""
        return LaneState(self.lanes, dict(self.values), dict(self.memory))


def part(value: Any, chosen: Chosen) -> Any:
    """A value of some of the invocations."""
    if isinstance(value, np.ndarray):
        return value[chosen]
    if isinstance(value, tuple):
        return rebuilt(value, [part(each, chosen) for each in value])
    return value


def rebuilt(like: tuple[Any, ...], parts: Sequence[Any]) -> Any:
    """A tuple of the same class with other parts."""
    return type(like)(*parts) if hasattr(like, "_fields") else tuple(parts)


def joined(states: Sequence[LaneState]) -> LaneState:
    """The states of invocations that meet. Invocations may be in several, where a branch was not known: what differs
    for one of these is not known."""
    if len(states) == 1:
        return states[0]
    lanes = np.unique(np.concatenate([each.lanes for each in states]))
    places = [np.searchsorted(lanes, each.lanes) for each in states]
    values, memory = (
        {
            id: join([held[id] for held in each], places, len(lanes))
            for id in each[0]
            if all(id in held for held in each[1:])
        }
        for each in ([state.values for state in states], [state.memory for state in states])
    )
    return LaneState(lanes, values, memory)


def join(values: Sequence[Any], places: Sequence[Numbers], count: int) -> Any:
    """One value of `count` invocations from those of parts of them; `pointed_places` are where each part's go."""
    first = values[0]
    if not isinstance(first, np.ndarray | tuple) and all(each is first for each in values):
        return first
    if any(each is None for each in values):
        return None
    if all(isinstance(each, tuple) for each in values):
        if any(type(each) is not type(first) or len(each) != len(first) for each in values):
            return None
        return rebuilt(first, [join(column, places, count) for column in zip(*values, strict=True)])
    if any(isinstance(each, tuple | float) for each in values):
        return first if all(isinstance(each, float) and each == first for each in values) else None
    if not any(isinstance(each, np.ndarray) for each in values) and all(each == first for each in values):
        return first
    return _filled(values, places, count)


def _filled(values: Sequence[Any], places: Sequence[Numbers], count: int) -> Any:
    truths = [np.asarray(each).dtype == np.bool_ for each in values]
    if any(truths) != all(truths):
        return None
    made: Any = np.zeros(count, np.bool_ if truths[0] else np.int64)
    seen = np.zeros(count, np.bool_)
    for value, place in zip(values, places, strict=True):
        if not isinstance(value, np.ndarray) and not -(1 << 63) <= value < 1 << 63:
            return None
        spread = np.broadcast_to(np.asarray(value, made.dtype), place.shape)
        again = seen[place]
        if again.any() and (made[place][again] != spread[again]).any():
            return None
        made[place] = spread
        seen[place] = True
    return made


def same(one: Any, other: Any) -> bool:
    """Whether two values are known to be equal, or both are not known."""
    if one is other:
        return True
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return bool(np.array_equal(one, other))
    if isinstance(one, np.ndarray | tuple) or isinstance(other, np.ndarray | tuple):
        return False
    return bool(one == other)


def is_covered(state: LaneState, by: LaneState) -> bool:
    """Whether the second state stands for all that the first one does."""
    if not np.array_equal(state.lanes, by.lanes):
        return False
    pairs = ((state.values, by.values), (state.memory, by.memory))
    return all(
        value is None or (id in held and same(value, held[id])) for held, found in pairs for id, value in found.items()
    )
