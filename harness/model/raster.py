"""Rasterization order: attachment accesses of one subpass that need no dependency between them.

Specification: "Rasterization Order", "Render Pass Load Operations", "Render Pass Store Operations"; an input attachment
is read by a shader, and shader accesses are in no such order (rules.md#input-attachments-are-read-by-the-shader).
"""

from __future__ import annotations

from harness.model.stages import ACCESS_KIND, ACCESS_KINDS
from harness.trace.effects import Access, AttachmentOperation, RasterizationOrder

_COLOR = ACCESS_KIND["SYNC_COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_READ"].stage
_EARLY = ACCESS_KIND["SYNC_EARLY_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_READ"].stage
_LATE = ACCESS_KIND["SYNC_LATE_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_READ"].stage
_INPUT = ACCESS_KIND["SYNC_FRAGMENT_SHADER_INPUT_ATTACHMENT_READ"].index
_STAGES = {
    RasterizationOrder.NONE: 0,
    RasterizationOrder.COLOR: _COLOR,
    RasterizationOrder.DEPTH_STENCIL: _EARLY | _LATE,
    RasterizationOrder.RASTER: _COLOR | _EARLY | _LATE,
}
_AFTER_SHADERS = (AttachmentOperation.STORE, AttachmentOperation.RESOLVE_READ, AttachmentOperation.RESOLVE_WRITE)


def in_raster_order(prior: Access, current: Access) -> bool:
    """Whether two attachment accesses of one subpass happen in the order in which they were recorded.

    Operations of the attachments' stages do; what a load operation wrote is there for shaders too, and stores come
    after shaders.
    """
    if prior.order == RasterizationOrder.NONE or current.order == RasterizationOrder.NONE:
        return False
    if current.access_kind == _INPUT:
        return prior.operation == AttachmentOperation.LOAD
    if prior.access_kind == _INPUT:
        return current.operation in _AFTER_SHADERS
    return bool(ACCESS_KINDS[prior.access_kind].stage & _STAGES[current.order])
