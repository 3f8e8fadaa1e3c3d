"""Stage and access masks of the first form (VkPipelineStageFlags, VkAccessFlags) from those of the second.

In the first form some stages and accesses are there only as a part of wider ones. Source: Vulkan specification,
"VkPipelineStageFlagBits2", "VkAccessFlagBits2".
"""

from __future__ import annotations

from vkharness.spec import _generated as tables
from vkharness.spec.enums import VkAccess2, VkPipelineStage2
from vkharness.spec.scopes import ACCESS_KINDS, bits

_META_STAGES = sorted(tables.STAGE_EXPANSION, key=lambda stage: tables.STAGE_EXPANSION[stage].bit_count())
_META_ACCESSES = sorted(tables.ACCESS_EXPANSION)
_BEYOND = 1 << 31
"""Above all bits of the first form."""


def first_form_stages(mask: int) -> int:
    """The smallest VkPipelineStageFlags that hold these stages."""
    made = 0
    for bit in bits(mask):
        if bit == VkPipelineStage2.ACCELERATION_STRUCTURE_COPY_KHR:
            bit = VkPipelineStage2.ACCELERATION_STRUCTURE_BUILD_KHR
        elif bit >= _BEYOND or bit == VkPipelineStage2.MICROMAP_BUILD_EXT:
            bit = next(
                (meta for meta in _META_STAGES if meta < _BEYOND and tables.STAGE_EXPANSION[meta] & bit),
                VkPipelineStage2.ALL_COMMANDS,
            )
        made |= bit
    return made


def first_form_accesses(mask: int) -> int:
    """The smallest VkAccessFlags that hold these accesses."""
    made = 0
    for bit in bits(mask):
        if bit >= _BEYOND:
            writes = any(kind.write for kind in ACCESS_KINDS if kind.access == bit)
            meta = VkAccess2.MEMORY_WRITE if writes else VkAccess2.MEMORY_READ
            bit = next((each for each in _META_ACCESSES if tables.ACCESS_EXPANSION[each] & bit), meta)
        made |= bit
    return made
