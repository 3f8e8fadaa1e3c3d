"""What is bound while a command buffer renders: set at the beginning of a render pass instance, read by every draw.

Draws find their attachments here: `colors` by location (an index of pColorAttachments), `depth`, `stencil`, and
`inputs` by input attachment index. An entry is None where nothing is attached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.commands.attachments import Area, Attachment
from harness.spans import Span
from harness.trace.effects import Access
from harness.trace.rendering import ALL_VIEWS, RenderPass


@dataclass(frozen=True, slots=True)
class PassInstance:
    """An instance of a VkRenderPass: every attachment by index, and how many layers the framebuffer has."""

    render_pass: RenderPass
    attachments: tuple[Attachment | None, ...]
    layers: int
    area: Area
    subpass: int

    def layers_of(self, views: int) -> Sequence[int]:
        """Layers, from the first of a view, that a view mask stands for; all of the framebuffer's for ALL_VIEWS."""
        return layers_of(views, self.layers)


@dataclass(frozen=True, slots=True)
class Rendering:
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
    instance: PassInstance | None = None
    """None for dynamic rendering."""
    at_end: tuple[Access, ...] = ()
    """Dynamic rendering: the resolve and store operations of vkCmdEndRendering."""

    def spans(self, attachment: Attachment, layers: Sequence[int] | None = None) -> tuple[Span, ...]:
        """Addresses of the render area of an attachment, in all layers that are rendered to unless some are given."""
        return attachment.spans(self.layers if layers is None else layers, self.area)


def layers_of(views: int, count: int) -> Sequence[int]:
    """The bits of a view mask, or the first `count` layers for ALL_VIEWS."""
    if views == ALL_VIEWS:
        return range(count)
    return tuple(bit for bit in range(views.bit_length()) if views >> bit & 1)
