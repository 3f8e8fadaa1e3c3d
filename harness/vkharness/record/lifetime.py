"""Keeps alive what the `vulkan` package lets die too early (realitix/vulkan issue 94).

A struct that is passed by value, or in a list, into another struct is copied, while the arrays and strings it points
to belong to the Python object that was copied: when that temporary dies, the copy points at freed memory. Here the new
struct also holds on to the Python values it was made from, for as long as it lives itself. Nothing is leaked, and
nothing about the structs changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def keeping(new: Callable[..., Any], owners: Any, cdata: type) -> Callable[..., Any]:
    """A stand-in for the package's `_new` that keeps inner structs alive.

    `owners` is the package's weak dictionary from a struct to the list of what it owns, `cdata` the type of cffi
    values.
    """

    def new_keeping(ctype: str, **members: Any) -> Any:
        made = new(ctype, **members)
        kept = [value for value in map(_copy, members.values()) if isinstance(value, (cdata, tuple))]
        if kept:
            owners[made].extend(kept)
        return made

    return new_keeping


def _copy(value: Any) -> Any:
    """A list as a tuple, since the program may change the list while the struct lives."""
    return tuple(value) if isinstance(value, list) else value
