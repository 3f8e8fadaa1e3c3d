"""What is bound while a command buffer renders: set at the beginning of a render pass instance, read by every draw.

Draws find their attachments here: `colors` by location (an index of pColorAttachments), `depth`, `stencil`, and
`inputs` by input attachment index. An entry is None where nothing is attached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.commands.rendering.attachments import Area, Attachment
from harness.spans import Span
from harness.trace.effects import Effect, PassEnd
from harness.trace.render_passes import ALL_VIEWS


@dataclass(frozen=True, slots=True)
class RenderingState:
    """A render pass instance in progress; of a VkRenderPass, the current subpass of it.

    Whatever a draw accesses of an attachment lies in `attachment.spans(layers, area)`.
    """

    area: Area
    layers: Sequence[int]
    """Layers that are rendered to, from the first of each view: 0 up to the layer count, or the bits of `view_mask`."""
    view_mask: int = 0
    colors: tuple[Attachment | None, ...] = ()
    depth: Attachment | None = None
    stencil: Attachment | None = None
    inputs: tuple[Attachment | None, ...] = ()
    at_begin: tuple[Effect, ...] = field(default=(), repr=False)
    """The effects with which it begins."""
    at_end: tuple[Effect, ...] = field(default=(), repr=False)
    """The resolve and store operations with which it ends."""
    following: RenderingState | None = field(default=None, repr=False)
    """The next subpass."""
    end: PassEnd | None = None
    """The end of the render pass instance; None for dynamic rendering."""

    def spans(self, attachment: Attachment, layers: Sequence[int] | None = None) -> tuple[Span, ...]:
        """Addresses of the render area of an attachment, in all layers that are rendered to unless some are given."""
        return attachment.spans(self.layers if layers is None else layers, self.area)


def layers_of(views: int, count: int) -> Sequence[int]:
    """The bits of a view mask, or the first `count` layers for ALL_VIEWS."""
    if views == ALL_VIEWS:
        return range(count)
    return tuple(bit for bit in range(views.bit_length()) if views >> bit & 1)
