"""Classes of attachment accesses by operation. Accesses of some classes are ordered without a barrier."""

from __future__ import annotations

from enum import IntEnum


class RasterizationOrder(IntEnum):
    """Classes of accesses in a render pass instance, nearly all of attachments. Inside a subpass those of one class are
    ordered without a barrier.

    Specification: "Rasterization Order"; rules.md#attachment-accesses-are-in-rasterization-order.
    """

    NONE = 0
    COLOR = 1
    DEPTH_STENCIL = 2
    RASTER = 3
    """The class of input attachments: after colour and depth/stencil accesses of load operations."""
    FEEDBACK = 4
    """That of counters of transform feedback: the read of its begin comes before the write of its end."""


class AttachmentOperation(IntEnum):
    """The operation to which an attachment access belongs. Some are ordered where ordinary accesses are not."""

    ORDINARY = 0
    LOAD = 1
    STORE = 2
    RESOLVE_READ = 3
    RESOLVE_WRITE = 4
    RASTER_ORDERED = 5
    """A draw by a pipeline with rasterization order attachment access for this aspect."""
