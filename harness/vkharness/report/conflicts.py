"""A conflict of the model in words: what it is, and which edge or which memory operation is missing."""

from __future__ import annotations

from vkharness.model import Conflict, ConflictKind, ModelAccess
from vkharness.model.stages import ACCESS_KIND, BESIDE_STAGES, PRESENT
from vkharness.spec import names

_FIXED = {
    ConflictKind.EVENT_UNORDERED: "an execution dependency between the two operations on the event: nothing orders "
    "them",
    ConflictKind.BINDING: "an execution dependency between the binding operation and the other, by a semaphore or the "
    "fence of the earlier one",
    ConflictKind.EVENT_USAGE: "a wait that matches the operation which signaled its event",
    ConflictKind.QUERY_UNORDERED: "an execution dependency between the two operations on the query",
    ConflictKind.QUERY_NOT_RESET: "a reset of the query between the two",
    ConflictKind.QUERY_NOT_AWAITED: "VK_QUERY_RESULT_WAIT_BIT, or an execution dependency from ALL_COMMANDS to COPY",
    ConflictKind.QUERY_WITHOUT_RESULT: "a query that was ended, or a timestamp, before its results are asked for",
    ConflictKind.USAGE: "an object that keeps the rules of valid usage",
    ConflictKind.LOST: "vkFlushMappedMemoryRanges before the invalidate",
    ConflictKind.DIRTY: "the write in the first access scope of the barrier, or of a dependency before it",
    ConflictKind.RACING: "an execution dependency between the write and the barrier",
    ConflictKind.OWNERSHIP_WITHOUT_CONTENTS: "both halves of a queue family ownership transfer, or neither: "
    "nobody wrote the contents",
    ConflictKind.OWNERSHIP: "a queue family ownership transfer between the two: a release, and an acquire that "
    "matches it",
}
_ENDS = {
    ConflictKind.UNORDERED: "nothing orders them",
    ConflictKind.UNAVAILABLE: "they are ordered, but nothing makes the write available",
    ConflictKind.INVISIBLE: "the write is available, but not visible to this access",
}


def conflict_text(conflict: Conflict) -> str:
    """One line: `unordered: vkCmdCopyBuffer SYNC_COPY_TRANSFER_READ (call 12) after ...`."""
    return f"{conflict.kind}: {use_text(conflict.current)} after {use_text(conflict.prior)}"


def use_text(use: ModelAccess) -> str:
    """`vkCmdCopyBuffer SYNC_COPY_TRANSFER_READ (call 12)`."""
    return f"{use.command}{f' {use.access}' if use.access else ''} (call {use.call})"


def missing_text(conflict: Conflict) -> str:
    """Names the missing dependency, or another remedy, in the specification's terms."""
    if conflict.kind in _FIXED:
        return _FIXED[conflict.kind]
    writes = conflict.prior.write
    execution = conflict.kind is ConflictKind.UNORDERED and not writes
    between = f"from {_scope(conflict.prior.access, writes)} to {_scope(conflict.current.access, writes)}"
    return f"{'an execution' if execution else 'a memory'} dependency {between}: {_ENDS[conflict.kind]}"


def _scope(access: str, with_accesses: bool) -> str:
    kind = ACCESS_KIND[access]
    text = names.stages(kind.stage)
    named = with_accesses and kind.access and not kind.stage & (BESIDE_STAGES | PRESENT)  # no mask has theirs
    return f"{text}/{names.accesses(kind.access)}" if named else text
