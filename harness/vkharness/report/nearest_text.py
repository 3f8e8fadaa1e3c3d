"""The dependency that comes nearest to the missing one, in words: where it is, and what of it does not fit."""

from __future__ import annotations

from vkharness.findings import Lack, NearestDependency
from vkharness.report.stack_text import relative
from vkharness.spec import names

MOST_NAMED = 2
"""Parts of a resource that are named; more are counted."""


def nearest_text(nearest: NearestDependency) -> str:
    """`vkCmdPipelineBarrier at mesh.cpp:88 (call 12): its second scope lacks COMPUTE_SHADER, and has TRANSFER`."""
    where = f" at {relative(nearest.site)}" if nearest.site else ""
    return f"{nearest.command}{where} (call {nearest.call}): {'; '.join(lacks_of(nearest))}"


def lacks_of(nearest: NearestDependency) -> list[str]:
    """One phrase for each scope that lacks something, one for the range and one for the region."""
    lacks = {*nearest.lacks}
    said = []
    sides = (
        ("first", Lack.FIRST_STAGES, Lack.FIRST_ACCESSES, nearest.src_stages, nearest.src_accesses),
        ("second", Lack.SECOND_STAGES, Lack.SECOND_ACCESSES, nearest.dst_stages, nearest.dst_accesses),
    )
    for side, of_stages, of_accesses, stages, accesses in sides:
        missing = [word for word, lack in (("stage", of_stages), ("access", of_accesses)) if lack in lacks]
        if missing:
            scope = f"{names.stages(stages)}/{names.accesses(accesses)}"
            said.append(f"its {side} scope, {scope}, lacks the {' and the '.join(missing)}")
    if Lack.RANGE in lacks:
        said.append(f"it leaves out {_left_out(nearest)}")
    if Lack.REGION in lacks:
        said.append("it holds by region (VK_DEPENDENCY_BY_REGION_BIT)")
    return said


def _left_out(nearest: NearestDependency) -> str:
    ranges = [f"[{offset}, {offset + size})" for offset, size in nearest.uncovered]
    boxes = [
        f"{names.flags_names('VkImageAspectFlags', box.aspect)} mip {box.mip} layer {box.layer}"
        for box in nearest.uncovered_boxes
    ]
    parts = list(dict.fromkeys(ranges + boxes))
    more = f" and {len(parts) - MOST_NAMED} more" if len(parts) > MOST_NAMED else ""
    return ", ".join(parts[:MOST_NAMED]) + more
