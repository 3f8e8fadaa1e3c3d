"""What masks of stages and accesses allow, and where a finding's accesses are."""

from __future__ import annotations

from vkharness.findings import Finding
from vkharness.needed_scopes import ALL_QUEUES
from vkharness.spec.enums import VkAccess2, VkPipelineStage2
from vkharness.spec.scopes import ACCESS_KINDS, ENDS, bits, expand_accesses, expand_stages


def crosses_queues(finding: Finding) -> bool:
    """Whether the earlier access is not of the later one's queue: of another one, or of the presentation engine."""
    return finding.prior.queue != finding.place.queue and finding.place.queue is not None


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
