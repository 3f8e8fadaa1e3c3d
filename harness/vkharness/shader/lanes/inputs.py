"""Values that a dispatch or draw gives its invocations, as far as they are known before these are followed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Inputs(NamedTuple):
    """Inputs of the invocations of one dispatch or draw. None is a value that is not known."""

    lanes: int
    """Invocations that are followed; 1 where they are not known, which stands for all then."""
    built_ins: Mapping[tuple[int, int], Any]
    """(built-in, component) -> its value, or an array with one for each invocation."""
    push: Callable[[int, int], int | None]
    """(offset, size) in bytes -> the unsigned value of push constants."""
    loaded: Callable[[int, int, int, int], int | None]
    """(set, binding, offset, size in bytes) -> the unsigned value of a member of a block."""
    length: Callable[[int, int, int], int | None]
    """(set, binding, element) -> the bytes of the range of a buffer descriptor."""
    size: Callable[[int, int, int, int], tuple[int, int, int] | None]
    """(set, binding, element, mip level) -> width, height, and depth or layers of a view."""
    levels: Callable[[float], tuple[int | None, ...]]
    """A level of detail -> the mip levels of the view that samplers may choose for it; None for any."""
    sure: bool
    """Whether each of these invocations runs for sure."""
