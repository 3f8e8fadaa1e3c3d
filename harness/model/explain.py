"""From a conflict to words: which edge or which memory operation is missing, and how far the chain goes."""

from __future__ import annotations

from harness.model.order import ExecutionOrder
from harness.model.stages import ACCESS_KIND
from harness.spec import names

UNORDERED, UNAVAILABLE, INVISIBLE = "unordered", "unavailable", "invisible"
"""Neither happens before the other; ordered, but the write was not made available; available, but not made visible."""
EVENT_UNORDERED = "event-unordered"
"""Neither of two operations on one event happens before the other."""
DIRTY = "dirty-invalidate"
"""What was written is invalidated before it is flushed: on the host it is lost, on the device that is a remark."""
OWNERSHIP = "ownership"
"""The contents are undefined for this queue family: not transferred, released and not acquired, or the reverse."""
RACING = "racing-invalidate"
"""A write, and a dependency that makes its memory visible, in no order: a remark (`harness/model/caches.py`)."""
CONFLICT_KINDS = (UNORDERED, UNAVAILABLE, INVISIBLE, EVENT_UNORDERED, DIRTY, OWNERSHIP)
"""Every kind of conflict."""


def missing(kind: str, prior: str, writes: bool, current: str) -> str:
    """What would mend a conflict of two kinds of access (by name); `writes` says whether the prior one does."""
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
    """A shortest chain of nodes from the first to the second; if there is none, the one that gets furthest: to the last
    node before the second that is after the first. Only the first when nothing is."""
    whole = order.path(first, second)
    if whole:
        return whole
    after = [node for node in range(first + 1, second) if order.precedes(first, node)]
    return order.path(first, after[-1]) if after else [first]
