"""Words for a conflict: the dependency or memory operation that is missing, and how far the chain of nodes gets."""

from __future__ import annotations

from harness.model.order import ExecutionOrder
from harness.model.stages import ACCESS_KIND
from harness.spec import names

UNORDERED, UNAVAILABLE, INVISIBLE = "unordered", "unavailable", "invisible"
"""Kinds of conflict between two accesses of memory.

* unordered: neither happens before the other.
* unavailable: they are ordered, but the write was not made available.
* invisible: the write was made available, but not visible to the later access.
"""
EVENT_UNORDERED = "event-unordered"
"""The kind for two operations on one event of which neither happens before the other."""
DIRTY = "dirty-invalidate"
"""The kind for memory that is invalidated before a write to it is flushed. On the device it is only a remark."""
OWNERSHIP = "ownership"
"""The kind for contents that are undefined for a queue family, since no complete ownership transfer gave them to it."""
RACING = "racing-invalidate"
"""The kind for a write without an order with a dependency that makes its memory visible: only a remark (`caches`)."""
CONFLICT_KINDS = (UNORDERED, UNAVAILABLE, INVISIBLE, EVENT_UNORDERED, DIRTY, OWNERSHIP)
"""Every kind of conflict that is more than a remark."""


def missing(kind: str, prior: str, writes: bool, current: str) -> str:
    """A phrase for what would mend a conflict, in the specification's terms.

    `prior` and `current` are names of kinds of access; `writes` says whether the prior access writes.
    """
    if kind == EVENT_UNORDERED:
        return "an execution dependency between the two operations on the event: nothing orders them"
    if kind == DIRTY:
        return "vkFlushMappedMemoryRanges, or a dependency that has the write in its first scope, before the invalidate"
    if kind == RACING:
        return "an execution dependency between the write and the dependency that invalidates its memory"
    if kind == OWNERSHIP:
        return "a queue family ownership transfer between the two: a release, and an acquire that matches it"
    between = f"from {_scope(prior, writes)} to {_scope(current, writes)}"
    if kind == UNORDERED:
        what = "a memory dependency" if writes else "an execution dependency"
        return f"{what} {between}: nothing orders them"
    if kind == UNAVAILABLE:
        return f"a memory dependency {between}: they are ordered, but nothing makes the write available"
    if kind == INVISIBLE:
        return f"a memory dependency {between}: the write is available, but not visible to this access"
    return kind


def _scope(name: str, access: bool) -> str:
    kind = ACCESS_KIND[name]
    text = names.stages(kind.stage)
    return f"{text}/{names.accesses(kind.access)}" if access and kind.access else text


def chain(first: int, second: int, order: ExecutionOrder) -> list[int]:
    """A shortest chain of nodes from the first to the second.

    If there is none, the chain leads to the last node before the second that comes after the first. It is the first
    node alone when no node comes after that.
    """
    whole = order.path(first, second)
    if whole:
        return whole
    after = [node for node in range(first + 1, second) if order.precedes(first, node)]
    return order.path(first, after[-1]) if after else [first]
