"""Which stages an access is ordered before by execution dependencies alone, for us and for old layers.

Old layers take the execution dependency of a synchronization2 buffer or image barrier for that resource only. Whether
that explains a disagreement is decided by following both readings from the first access to the second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.layer.stream import Scope, Stream, Subject, scopes
from harness.spec.scopes import BY_NAME, execution_scope_dst, execution_scope_src
from harness.trace.calls import Call

EVERYTHING = (1 << 64) - 1
QUEUE_FLAGS = 0x7
"""GRAPHICS | COMPUTE | TRANSFER: a meta stage stands for everything that such a queue can do."""


def stages_after(start: int, commands: Iterable[Call], of: set[int] | None = None) -> int:
    """Stages that wait for an access at stage `start` after these commands: 0 when no barrier orders anything.

    `of` are resources: with it, synchronization2 barriers of other buffers and images order nothing.
    """
    ordered = 0
    for call in commands:
        # Barriers of one command do not chain: each starts from what held before the command.
        before = start | ordered
        for scope in scopes(call):
            if of is not None and scope.sync2 and scope.what != "memory" and scope.resource not in of:
                continue
            if execution_scope_src(scope.src_stages, QUEUE_FLAGS) & before:
                ordered |= execution_scope_dst(scope.dst_stages, QUEUE_FLAGS)
    return ordered


def ordered_by_another_resource(subject: Subject, stream: Stream, own: Call, window: Sequence[Call]) -> bool:
    """True when only synchronization2 barriers of other resources order the second access after the first one, or
    carry the first write on to barriers that cover it, or order it after a read between that was reported already."""
    hazard, _, _, access, prior_access = subject.key
    resources = {touch.resource for touch in stream.touches(own) if touch.write == hazard.startswith("WRITE")}
    if subject.finding is not None:
        resources = {subject.finding.resource}
    start = BY_NAME[prior_access].stage if prior_access in BY_NAME else 0
    waits = BY_NAME[access].stage if access in BY_NAME and access != "SYNC_IMAGE_LAYOUT_TRANSITION" else 0
    # A layout transition has no stage; it waits where its barrier's first scope is.
    waits = waits or _first_scopes(scopes(own))

    def differs(stage: int, commands: Sequence[Call], mask: int) -> bool:
        # Barriers of the resource itself may cover another part of it: whether they order anything is left open.
        least = stages_after(stage, commands, resources) & stages_after(stage, commands, set())
        return bool(stages_after(stage, commands) & ~least & mask)

    if hazard == "WRITE_AFTER_READ":
        return differs(start, window, waits)
    # A longer chain of the write matters only if a barrier came after the one that extended it, the own one included.
    barriers = [call for call in (*window, own) if any(scopes(call))]
    if len(barriers) >= 2 and differs(start, window, EVERYTHING):
        return True
    return hazard == "READ_AFTER_WRITE" and any(
        differs(touch.stage, window[position + 1 :], waits)
        for position, call in enumerate(window)
        for touch in stream.touches(call)
        if not touch.write and touch.resource in resources
    )


def _first_scopes(barriers: Iterable[Scope]) -> int:
    mask = 0
    for scope in barriers:
        if scope.transition:
            mask |= execution_scope_src(scope.src_stages, QUEUE_FLAGS)
    return mask
