"""The scopes that a finding needs, and whether masks of stages and accesses hold them."""

from __future__ import annotations

from functools import reduce
from operator import or_

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
    execution_scope_dst,
    execution_scope_src,
    expand_accesses,
)
from vkharness.trace.barrier_calls import Masks

ALL_QUEUES = 0xFFFF
"""VkQueueFlags of a family that supports everything."""
_WRITES, _READS = (
    reduce(or_, (kind.access for kind in ACCESS_KINDS if kind.write is writes)) for writes in (True, False)
)


def needed(finding: Finding) -> Masks:
    """The scopes of the dependency that a finding lacks. A side that no stage performs (a layout transition, the
    presentation engine) has none."""
    src, dst = scope_of(finding.prior_access), scope_of(finding.access)
    if finding.hazard.prior_reads:
        return Masks(src[0], 0, dst[0], 0)
    return Masks(*src, *dst)


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


def covers_source_stages(masks: Masks, wanted: Masks) -> bool:
    """Whether a first scope holds the stages of another one."""
    return not wanted.src_stages & ~(execution_scope_src(masks.src_stages, ALL_QUEUES) & ~ENDS)


def covers_destination_stages(masks: Masks, wanted: Masks) -> bool:
    """Whether a second scope holds the stages of another one."""
    return not wanted.dst_stages & ~(execution_scope_dst(masks.dst_stages, ALL_QUEUES) & ~ENDS)


def has_accesses(mask: int, wanted: int) -> bool:
    """Whether a mask of accesses, at whatever stages, holds those of another one."""
    held = expand_accesses(mask)
    held |= (_WRITES if mask & VkAccess2.MEMORY_WRITE else 0) | (_READS if mask & VkAccess2.MEMORY_READ else 0)
    return not expand_accesses(wanted) & ~held
