"""The attachments that are bound while a command buffer renders, set when a render pass instance begins.

Draws find their attachments here: `colors` by location (an index of pColorAttachments), `depth`, `stencil`, and
`inputs` by input attachment index. An entry is None where nothing is attached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from vkharness.spans import Span, merge
from vkharness.spec.enums import VkImageAspect
from vkharness.trace.effects import Effect, PassEnd
from vkharness.trace.render_passes import ALL_VIEWS
from vkharness.trace.resources import Image, ImageView

MOST_AREAS = 64
"""The most areas of one image view whose addresses are remembered."""
Area = tuple[int, int, int, int]
"""x, y, width, height in texels."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """An image view that is bound as an attachment. `aspects` are those that this use of it concerns."""

    image: Image
    view: ImageView
    aspects: int
    feedback_loop: bool = False
    """Whether feedback loop is enabled for it: its operations stay in the render area then."""

    @property
    def is_color(self) -> bool:
        """Whether it is a colour attachment."""
        return not self.aspects & (VkImageAspect.DEPTH | VkImageAspect.STENCIL)

    def only(self, aspects: int) -> Attachment:
        """The same view for fewer aspects. A colour attachment keeps the aspects of its view (a plane, for one)."""
        return self if self.is_color else replace(self, aspects=self.aspects & aspects)

    def spans(self, layers: Sequence[int], area: Area | None) -> tuple[Span, ...]:
        """Addresses of an area of some layers, clipped to the view; None stands for their whole subresources.

        Results are remembered, since they are asked for often.
        """
        key = (self.aspects, area, layers if isinstance(layers, range) else tuple(layers))
        known = self.view.areas
        spans = known.get(key)
        if spans is None:
            if len(known) >= MOST_AREAS:
                known.clear()
            spans = known[key] = self._spans(layers, area) if area is not None else self._subresources(layers)
        return spans

    def _spans(self, layers: Sequence[int], area: Area) -> tuple[Span, ...]:
        x, y, width, height = area
        mip, chosen = self.view.mips.start, self._chosen(layers)
        if not self.view.sliced:
            return self.image.region(self.aspects, mip, chosen, (x, y, 0), (width, height, 1))
        spans: list[Span] = []
        for z in chosen:
            spans += self.image.region(self.aspects, mip, (0,), (x, y, z), (width, height, 1))
        return tuple(merge(spans))

    def subresources(self, layers: Sequence[int]) -> tuple[Span, ...]:
        """Addresses of the image subresources that hold some layers: whole layers, or the whole mip level of a 3D
        image. Layout transitions and the writes of load, store and resolve operations cover them."""
        return self.spans(layers, None)

    def _subresources(self, layers: Sequence[int]) -> tuple[Span, ...]:
        """With maintenance9 they are only the slices of a 3D image that the view refers to."""
        mip, held = self.view.mips.start, self.view.layers
        if self.view.sliced and self.image.by_slice:
            return self.image.barrier_spans(self.aspects, mip, 1, held.start, len(held))
        if self.view.sliced:
            return self.image.subresources(self.aspects, mip, 1, 0, 1)
        width, height, depth = self.image.texels(self.image.aspects[0], mip)
        return self.image.region(self.aspects, mip, self._chosen(layers), (0, 0, 0), (width, height, depth))

    def _chosen(self, layers: Sequence[int]) -> Sequence[int]:
        """Layers of the image (slices of a 3D image), clipped to the view. A range stays one range, whatever its
        length."""
        held = self.view.layers
        if isinstance(layers, range):
            return held[layers.start : layers.stop]
        return [held[layer] for layer in layers if layer < len(held)]


@dataclass(frozen=True, slots=True, eq=False)
class RenderingState:
    """A render pass instance in progress; for a VkRenderPass, its current subpass.

    All accesses of an attachment by draws lie in `attachment.spans(layers, area)`.
    """

    area: Area
    layers: Sequence[int]
    """The layers that are rendered to, from the first of each view: 0 up to the layer count, or the bits of
    `view_mask`."""
    view_mask: int = 0
    colors: tuple[Attachment | None, ...] = ()
    depth: Attachment | None = None
    stencil: Attachment | None = None
    inputs: tuple[Attachment | None, ...] = ()
    at_begin: tuple[Effect, ...] = field(default=(), repr=False)
    """The effects of its begin."""
    at_end: tuple[Effect, ...] = field(default=(), repr=False)
    """The resolve and store operations of its end."""
    stores_if_written: tuple[tuple[Effect, ...], ...] = field(default=(), repr=False)
    """Accesses of each store operation NONE of its end, which it makes if the instance wrote to its attachment. The
    first one is its write."""
    read_by_fragments: tuple[Effect, ...] = field(default=(), repr=False)
    """Reads of shading rates and density maps by each draw that makes fragments."""
    suspends: bool = False
    """Whether dynamic rendering is suspended at its end."""
    following: RenderingState | None = field(default=None, repr=False)
    """The next subpass."""
    end: PassEnd | None = None
    """The end of the render pass instance; None for dynamic rendering."""

    def spans(self, attachment: Attachment, layers: Sequence[int] | None = None) -> tuple[Span, ...]:
        """Addresses of the render area of an attachment, in the given layers, or in all layers that are rendered to."""
        return attachment.spans(self.layers if layers is None else layers, self.area)


def layers_of(views: int, count: int) -> Sequence[int]:
    """The bits of a view mask, or the first `count` layers for ALL_VIEWS."""
    if views == ALL_VIEWS:
        return range(count)
    return tuple(bit for bit in range(views.bit_length()) if views >> bit & 1)
