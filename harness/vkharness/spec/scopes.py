"""Synchronization scopes: from the stage and access masks of a barrier to sets of stages and of kinds of access.

A *stage mask* holds VkPipelineStageFlags2 bits (VkPipelineStageFlags have the same values, so synchronization1 masks
need no conversion). An *access set* holds one bit a `AccessKind`: `1 << access.index`. Source: Vulkan specification,
"Execution and Memory Dependencies" and "Pipeline Stages"; rules.md#scopes-stages-and-accesses.

Execution scopes extend to logically earlier or later stages, access scopes do not. `queue_flags` are the VkQueueFlags
of the queue family: a meta stage stands only for what that family supports; a stage named by itself is always kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from vkharness.findings import UserError
from vkharness.spec import _generated as tables
from vkharness.spec.enums import VkAccess2, VkPipelineStage2

PRESENT_ENGINE = tables.PSEUDO_STAGES["PRESENT_ENGINE"]
TOP, BOTTOM = VkPipelineStage2.TOP_OF_PIPE, VkPipelineStage2.BOTTOM_OF_PIPE
ENDS = TOP | BOTTOM
WHOLE_FIRST = VkPipelineStage2.ALL_COMMANDS | BOTTOM
"""Either of them makes a first scope of all operations of all commands."""
WHOLE_SECOND = VkPipelineStage2.ALL_COMMANDS | TOP
"""Either of them makes a second scope of all operations of all commands."""


@dataclass(frozen=True, slots=True)
class AccessKind:
    """One kind of access: a stage and an access that is legal there. `1 << index` is its bit in access sets."""

    index: int
    name: str
    stage: int
    access: int
    write: bool


ACCESS_KINDS: tuple[AccessKind, ...] = (
    AccessKind(0, "SYNC_ACCESS_INDEX_NONE", 0, 0, False),
    *(AccessKind(index, *row) for index, row in enumerate(tables.SYNC_ACCESSES, 1)),
)
"""Every kind of access, at its index; the first is none."""

ACCESS_KIND: dict[str, AccessKind] = {access.name: access for access in ACCESS_KINDS}
_BY_PAIR = {(access.stage, access.access): access for access in ACCESS_KINDS}

WRITES: int = sum(1 << access.index for access in ACCESS_KINDS[1:] if access.write)

IMAGE_LAYOUT_TRANSITION = ACCESS_KIND["SYNC_IMAGE_LAYOUT_TRANSITION"]
OWNERSHIP_TRANSFER = ACCESS_KIND["SYNC_QUEUE_FAMILY_OWNERSHIP_TRANSFER"]


def find(stage: int, access: int) -> AccessKind:
    """The kind of access for one concrete stage bit and one concrete access bit.

    Raises UserError when that access cannot happen at that stage.
    """
    found = _BY_PAIR.get((stage, access))
    if found is None or found.index == 0:
        raise UserError(
            f"access {access:#x} (VkAccessFlagBits2) cannot happen at stage {stage:#x} (VkPipelineStageFlagBits2)"
        )
    return found


def bits(mask: int) -> Iterator[int]:
    """The single bits of a mask, lowest first. Raises UserError for a negative number, which is no mask."""
    if mask < 0:
        raise UserError(f"{mask} is not a mask of flags: it is negative")
    while mask:
        low = mask & -mask
        yield low
        mask ^= low


def members(access_set: int) -> Iterator[AccessKind]:
    """The kinds of access in an access set, by index."""
    return (ACCESS_KINDS[bit.bit_length() - 1] for bit in bits(access_set))


@cache
def supported_stages(queue_flags: int) -> int:
    """Concrete stages that a queue family with these VkQueueFlags supports (HOST, TOP and BOTTOM are in every one)."""
    return sum(stage for stage in tables.EARLIER if tables.STAGE_QUEUES[stage] & queue_flags)


@cache
def expand_stages(mask: int, queue_flags: int) -> int:
    """Concrete stages of a stage mask. Meta stages stand for what the queue supports; TOP and BOTTOM are none.

    ALL_COMMANDS gives every supported stage without HOST. ACCELERATION_STRUCTURE_BUILD includes copies of acceleration
    structures. Bits that no table has are kept.
    """
    expanded = 0
    for stage in bits(mask & ~ENDS):
        parts = tables.STAGE_EXPANSION.get(stage)
        expanded |= stage if parts is None else parts & supported_stages(queue_flags)
    if expanded & VkPipelineStage2.ACCELERATION_STRUCTURE_BUILD_KHR:
        expanded |= VkPipelineStage2.ACCELERATION_STRUCTURE_COPY_KHR
    return expanded & ~ENDS


@cache
def execution_scope_src(mask: int, queue_flags: int) -> int:
    """First execution scope: the expanded stages and all logically earlier ones.

    ALL_COMMANDS gives BOTTOM_OF_PIPE as well, which stands for what no stage performs: transitions, ownership transfers
    and the operations of synchronization commands. BOTTOM_OF_PIPE is the same as ALL_COMMANDS here. TOP_OF_PIPE is the
    same as NONE, which gives the empty scope. Rule: rules.md#ends-of-the-pipe-order-execution.
    """
    if not mask & WHOLE_FIRST:
        return _with(tables.EARLIER, expand_stages(mask, queue_flags), queue_flags)
    return _with(tables.EARLIER, expand_stages(mask | VkPipelineStage2.ALL_COMMANDS, queue_flags), queue_flags) | BOTTOM


@cache
def execution_scope_dst(mask: int, queue_flags: int) -> int:
    """Second execution scope: the expanded stages and all logically later ones.

    ALL_COMMANDS gives TOP_OF_PIPE as well, which stands for what no stage performs. TOP_OF_PIPE is the same as
    ALL_COMMANDS here. BOTTOM_OF_PIPE is the same as NONE, which gives the empty scope.
    Rule: rules.md#ends-of-the-pipe-order-execution.
    """
    if not mask & WHOLE_SECOND:
        return _with(tables.LATER, expand_stages(mask, queue_flags), queue_flags)
    return _with(tables.LATER, expand_stages(mask | VkPipelineStage2.ALL_COMMANDS, queue_flags), queue_flags) | TOP


@cache
def expand_accesses(access_mask: int) -> int:
    """Access mask with SHADER_READ and SHADER_WRITE joined by what they stand for. SHADER_READ has no UNIFORM_READ.

    The two stay in the mask: at acceleration structure and micromap builds SHADER_READ is an access of its own.
    """
    return access_mask | _union(tables.ACCESS_EXPANSION, access_mask)


@cache
def access_scope(mask: int, access_mask: int, queue_flags: int) -> int:
    """Access scope: the access set legal at the expanded (never extended) stages and in the expanded access mask.

    MEMORY_READ and MEMORY_WRITE are every read and every write of those stages. TOP_OF_PIPE and BOTTOM_OF_PIPE make
    no access. ALL_COMMANDS holds the pseudo accesses of layout transitions and ownership transfers, whose writes are
    available unnamed.
    """
    stages = expand_stages(mask, queue_flags)
    accesses = expand_accesses(access_mask)
    found = 0
    for access in ACCESS_KINDS[1:]:
        meta = VkAccess2.MEMORY_WRITE if access.write else VkAccess2.MEMORY_READ
        if access.stage & stages and (access.access | meta) & accesses:
            found |= 1 << access.index
    if mask & VkPipelineStage2.ALL_COMMANDS:
        found |= 1 << IMAGE_LAYOUT_TRANSITION.index | 1 << OWNERSHIP_TRANSFER.index
    return found


@cache
def stage_accesses(stages: int) -> int:
    """Access set of everything that concrete stages (such as an execution scope) can do, whatever the access mask."""
    return sum(1 << access.index for access in ACCESS_KINDS[1:] if access.stage & stages)


def _with(table: dict[int, int], stages: int, queue_flags: int) -> int:
    return (stages | _union(table, stages) & supported_stages(queue_flags)) & ~ENDS


def _union(table: dict[int, int], mask: int) -> int:
    found = 0
    for bit in bits(mask):
        found |= table.get(bit, 0)
    return found
