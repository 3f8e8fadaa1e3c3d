"""The scopes that a finding needs, and what masks of stages and accesses allow."""

from __future__ import annotations

from vkharness.findings import Finding
from vkharness.spec.enums import VkAccess2, VkPipelineStage2
from vkharness.spec.scopes import (
    ACCESS_KIND,
    ACCESS_KINDS,
    ENDS,
    IMAGE_LAYOUT_TRANSITION,
    OWNERSHIP_TRANSFER,
    PRESENT_ENGINE,
    AccessKind,
    bits,
    expand_accesses,
    expand_stages,
)
from vkharness.trace.barrier_calls import Masks

ALL_QUEUES = 0xFFFF
"""VkQueueFlags of a family that supports everything."""


def needed(finding: Finding) -> Masks:
    """The scopes of the dependency that a finding lacks. A side that no stage performs (a layout transition, the
    presentation engine) has none."""
    src, dst = scope_of(finding.prior_access), scope_of(finding.access)
    if finding.hazard.prior_reads:
        return Masks(src[0], 0, dst[0], 0)
    return Masks(*src, *dst)


def crosses_queues(finding: Finding) -> bool:
    """Whether the earlier access is not of the later one's queue: of another one, or of the presentation engine."""
    return finding.prior.queue != finding.place.queue and finding.place.queue is not None


def scope_of(access: str) -> tuple[int, int]:
    """The stage and the access of a kind of access, (0, 0) where no stage of a command performs it."""
    kind = ACCESS_KIND.get(access)
    if kind is None or not _is_of_a_stage(kind):
        return 0, 0
    stage = kind.stage
    if stage == VkPipelineStage2.ACCELERATION_STRUCTURE_COPY_KHR:  # the stage of builds holds it, and is always there
        stage = VkPipelineStage2.ACCELERATION_STRUCTURE_BUILD_KHR
    return stage, kind.access


def _is_of_a_stage(kind: AccessKind) -> bool:
    return kind not in (IMAGE_LAYOUT_TRANSITION, OWNERSHIP_TRANSFER) and not kind.stage & PRESENT_ENGINE


def supported(accesses: int, stages: int) -> int:
    """The accesses of a mask that some stage of the other can make ("Supported Access Types")."""
    concrete = expand_stages(stages, ALL_QUEUES)
    possible = 0
    for kind in ACCESS_KINDS[1:]:
        if kind.stage & concrete:
            possible |= kind.access | (VkAccess2.MEMORY_WRITE if kind.write else VkAccess2.MEMORY_READ)
    return sum(bit for bit in bits(accesses) if expand_accesses(bit) & possible)


def joined_stages(mask: int, more: int) -> int:
    """A stage mask with more stages. TOP_OF_PIPE and BOTTOM_OF_PIPE add nothing to other stages and are left out, and
    beside ALL_COMMANDS all but HOST."""
    joined = (mask & ~ENDS) | more if more else mask
    everything = VkPipelineStage2.ALL_COMMANDS
    return joined & (everything | VkPipelineStage2.HOST) if more and joined & everything else joined
