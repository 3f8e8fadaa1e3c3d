"""The `pNext` chain of a struct in normal form, which is nested dictionaries.

Specification: "Valid Usage for Structure Pointer Chains".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Struct = dict[str, Any]


def links(info: Mapping[str, Any] | None) -> Iterator[Struct]:
    """The structs in a struct's chain, nearest first. There are none for None."""
    link = info.get("pNext") if info else None
    while isinstance(link, dict):
        yield link
        link = link.get("pNext")


def chained(info: Struct | None, s_type: int) -> Struct | None:
    """The struct of a VkStructureType in a chain; None without such a struct."""
    return next((link for link in links(info) if link.get("sType") == s_type), None)


def rebuilt(info: Struct, change: Callable[[Struct], Struct | None]) -> Struct | None:
    """The chain with each struct as `change` returns it. A struct for which it returns None is left out."""
    made = None
    for link in reversed(list(links(info))):
        changed = change(link)
        made = made if changed is None else {**changed, "pNext": made}
    return made
