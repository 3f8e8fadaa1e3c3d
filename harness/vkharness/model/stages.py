"""Scopes: what the stage and access masks of a dependency stand for, worked out from the generated tables alone.

A *stage set* holds VkPipelineStageFlagBits2, and bits for operations that no pipeline stage performs: layout
transitions, transfers of ownership, synchronization commands, presentation. An *access set* holds `1 << index` for each
row of `ACCESS_KINDS`. A kind of access is a stage with an access that is legal there. Specification: "Pipeline Stages",
"Access Types", "Execution and Memory Dependencies".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from vkharness.spec import _generated as tables
from vkharness.spec.enums import VkAccess2, VkPipelineStage2

TOP, BOTTOM = (tables.STAGES[f"VK_PIPELINE_STAGE_2_{name}_OF_PIPE_BIT"] for name in ("TOP", "BOTTOM"))
TRANSITION = tables.PSEUDO_STAGES["LAYOUT_TRANSITION"]
PRESENT = tables.PSEUDO_STAGES["PRESENT_ENGINE"]
SYNCHRONIZATION = max(tables.PSEUDO_STAGES.values()) << 1
TRANSFER_OF_OWNERSHIP = tables.PSEUDO_STAGES["OWNERSHIP_TRANSFER"]
BESIDE_STAGES = TRANSITION | TRANSFER_OF_OWNERSHIP | SYNCHRONIZATION
"""Operations that only ALL_COMMANDS names, since no pipeline stage performs them."""


@dataclass(frozen=True, slots=True)
class ModelAccessKind:
    """A kind of access: its name, the stage that makes it, whether it writes."""

    index: int
    name: str
    stage: int
    access: int
    write: bool


ACCESS_KINDS: tuple[ModelAccessKind, ...] = (
    ModelAccessKind(0, "SYNC_ACCESS_INDEX_NONE", 0, 0, False),
    *(ModelAccessKind(index, *row) for index, row in enumerate(tables.SYNC_ACCESSES, 1)),
)
"""The kinds of access, by `Access.access_kind`. The first stands for none."""

ACCESS_KIND = {kind.name: kind for kind in ACCESS_KINDS}
FRAMEBUFFER_SPACE = sum(
    tables.STAGES[f"VK_PIPELINE_STAGE_2_{name}_BIT"]
    for name in ("FRAGMENT_SHADER", "EARLY_FRAGMENT_TESTS", "LATE_FRAGMENT_TESTS", "COLOR_ATTACHMENT_OUTPUT")
)
"""The stages that work region by region ("Framebuffer Region Dependencies")."""
EVERY_ACCESS = (1 << len(ACCESS_KINDS)) - 1
DEVICE_ACCESSES = sum(1 << kind.index for kind in ACCESS_KINDS[1:] if kind.stage != VkPipelineStage2.HOST)
EVERY_STAGE = sum(tables.EARLIER) | BESIDE_STAGES | PRESENT


def bits(mask: int) -> Iterator[int]:
    """The single bits of a mask, lowest first."""
    while mask:
        low = mask & -mask
        yield low
        mask ^= low


def indices(members: int) -> Iterator[int]:
    """The positions of the bits that are set, lowest first."""
    for bit in bits(members):
        yield bit.bit_length() - 1


@cache
def _supported(queue_flags: int) -> int:
    return sum(stage for stage in tables.EARLIER if tables.STAGE_QUEUES[stage] & queue_flags) & ~(TOP | BOTTOM)


@cache
def concrete(mask: int, queue_flags: int) -> int:
    """The stages that a mask names. Meta stages stand for what the queue supports. The ends of the pipe are no stages.

    The stage of acceleration structure builds includes copies of acceleration structures ("VkPipelineStageFlagBits2").
    Rule: rules.md#stage-names-that-stand-for-several-stages.
    """
    found = 0
    for stage in bits(mask & ~(TOP | BOTTOM)):
        parts = tables.STAGE_EXPANSION.get(stage)
        found |= stage if parts is None else parts & _supported(queue_flags)
    return found | (
        VkPipelineStage2.ACCELERATION_STRUCTURE_COPY_KHR
        if found & VkPipelineStage2.ACCELERATION_STRUCTURE_BUILD_KHR
        else 0
    )


@cache
def first_scope(mask: int, queue_flags: int) -> int:
    """The first synchronization scope of a mask: the stages named, and all logically earlier ones.

    ALL_COMMANDS is every operation of every command. BOTTOM_OF_PIPE is the same as ALL_COMMANDS here, and TOP_OF_PIPE
    is NONE. Specification: "VkPipelineStageFlagBits2".
    Rules: rules.md#ends-of-the-pipe-order-execution, rules.md#execution-scopes-reach-other-stages,
    rules.md#all-commands-is-everything.
    """
    whole = bool(mask & (VkPipelineStage2.ALL_COMMANDS | BOTTOM))
    found = concrete(mask | VkPipelineStage2.ALL_COMMANDS * whole, queue_flags)
    found |= _union(tables.EARLIER, found) & _supported(queue_flags)
    return found | BESIDE_STAGES * whole


@cache
def second_scope(mask: int, queue_flags: int) -> int:
    """The second synchronization scope of a mask: the stages named, and all logically later ones.

    TOP_OF_PIPE is the same as ALL_COMMANDS here, and BOTTOM_OF_PIPE is NONE. Specification: "VkPipelineStageFlagBits2".
    Rules: rules.md#ends-of-the-pipe-order-execution, rules.md#execution-scopes-reach-other-stages,
    rules.md#all-commands-is-everything.
    """
    whole = bool(mask & (VkPipelineStage2.ALL_COMMANDS | TOP))
    found = concrete(mask | VkPipelineStage2.ALL_COMMANDS * whole, queue_flags)
    found |= _union(tables.LATER, found) & _supported(queue_flags)
    return found | BESIDE_STAGES * whole


@cache
def access_scope(mask: int, access_mask: int, queue_flags: int) -> int:
    """The access scope: the kinds of access that the access mask names, at the stages named and no others.

    MEMORY_READ and MEMORY_WRITE are every read and write. The registry says what SHADER_READ and SHADER_WRITE hold.
    Rules: rules.md#access-scopes-do-not-reach-other-stages, rules.md#masks-name-stages-and-accesses-together,
    rules.md#memory-read-and-memory-write, rules.md#shader-read-and-shader-write.
    """
    stages = concrete(mask, queue_flags)
    accesses = access_mask | _union(tables.ACCESS_EXPANSION, access_mask)
    found = 0
    for kind in ACCESS_KINDS[1:]:
        every = VkAccess2.MEMORY_WRITE if kind.write else VkAccess2.MEMORY_READ
        if kind.stage & stages and (kind.access | every) & accesses:
            found |= 1 << kind.index
    return found


@cache
def accesses_at(stages: int) -> int:
    """Every kind of access that these stages make."""
    return sum(1 << kind.index for kind in ACCESS_KINDS[1:] if kind.stage & stages)


@cache
def written_by(index: int) -> int:
    """The kind of access with which a read-modify-write atomic writes, given the one with which it reads."""
    name = ACCESS_KINDS[index].name.removesuffix("_READ") + "_WRITE"
    return ACCESS_KIND[name].index if name in ACCESS_KIND else index


def _union(table: dict[int, int], mask: int) -> int:
    found = 0
    for bit in bits(mask):
        found |= table.get(bit, 0)
    return found
