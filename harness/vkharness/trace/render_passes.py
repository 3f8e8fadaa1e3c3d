"""Render passes and framebuffers as data (specification: "Render Pass", VkRenderPassCreateInfo2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from vkharness.spec.enums import VkAttachmentLoadOp, VkAttachmentStoreOp, VkImageAspect
from vkharness.trace.effects import SubpassDependency
from vkharness.trace.usage_effects import InvalidUsage


def stored_as(load: int, store: int) -> int:
    """The effect of a VkAttachmentStoreOp after a VkAttachmentLoadOp.

    NONE is like DONT_CARE when values are written (specification: VK_ATTACHMENT_STORE_OP_NONE). Only load operations
    count here. `commands.rendering.store_none` finds the other writes.
    """
    written = load in (VkAttachmentLoadOp.CLEAR, VkAttachmentLoadOp.DONT_CARE)
    return VkAttachmentStoreOp.DONT_CARE if store == VkAttachmentStoreOp.NONE and written else store


ALL_VIEWS = -1
"""A value in place of a view mask, without multiview: every layer of the framebuffer."""


@dataclass(frozen=True, slots=True)
class AttachmentAspect:
    """One aspect of an attachment description, with operations and layouts of its own."""

    aspect: int
    load: int
    store: int
    initial_layout: int
    final_layout: int


@dataclass(frozen=True, slots=True)
class AttachmentDescription:
    """A VkAttachmentDescription2: one part for colour, or a part for each of depth and stencil that the format has."""

    format: int
    parts: tuple[AttachmentAspect, ...]
    may_alias: bool = False
    """VK_ATTACHMENT_DESCRIPTION_MAY_ALIAS_BIT: other attachments may be the same memory."""

    @property
    def aspects(self) -> int:
        """All its aspects."""
        return sum(part.aspect for part in self.parts)


@dataclass(frozen=True, slots=True)
class Reference:
    """A VkAttachmentReference2 that is not VK_ATTACHMENT_UNUSED; `aspects` only for input attachments (0: all)."""

    attachment: int
    layout: int
    stencil_layout: int
    aspects: int = 0


@dataclass(frozen=True, slots=True)
class Subpass:
    """A VkSubpassDescription2; `view_mask` is ALL_VIEWS without multiview."""

    inputs: tuple[Reference | None, ...]
    colors: tuple[Reference | None, ...]
    resolves: tuple[Reference | None, ...]
    depth_stencil: Reference | None
    depth_stencil_resolve: Reference | None
    depth_resolve_mode: int
    stencil_resolve_mode: int
    view_mask: int
    rate: Reference | None = None
    """The fragment shading rate attachment."""
    rate_texel: tuple[int, int] = (1, 1)
    """The pixels for which one texel of it stands."""
    density: Reference | None = None
    """The fragment density map."""

    @property
    def references(self) -> tuple[Reference, ...]:
        """Every use of an attachment in the subpass. A preserved attachment is not used."""
        several = (*self.drawn, self.rate, self.density)
        return tuple(each for each in several if each is not None)

    @property
    def drawn(self) -> tuple[Reference, ...]:
        """The uses of attachments that have load and store operations: "no access to the shading rate attachment is
        performed" by those."""
        several = (*self.inputs, *self.colors, *self.resolves, self.depth_stencil, self.depth_stencil_resolve)
        return tuple(each for each in several if each is not None)

    def uses(self, attachment: int) -> bool:
        """Whether the subpass uses an attachment."""
        return any(each.attachment == attachment for each in self.references)


@dataclass(frozen=True, slots=True)
class AttachmentTransition:
    """A layout change of some aspects of an attachment. `leaves`, `users` and `later` are those of an
    AutomaticTransition."""

    attachment: int
    aspects: int
    old: int
    new: int
    leaves: tuple[int, ...]
    users: tuple[int, ...]
    later: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class AttachmentAspectOperation:
    """A load or store operation of one aspect of an attachment, for some views (a mask, or ALL_VIEWS)."""

    attachment: int
    aspect: int
    operation: int
    views: int


@dataclass(frozen=True, slots=True)
class SubpassWork:
    """The operations around the commands of one subpass that the render pass makes by itself."""

    changes: tuple[AttachmentTransition, ...]
    loads: tuple[AttachmentAspectOperation, ...]
    stores: tuple[AttachmentAspectOperation, ...]


@dataclass(frozen=True, slots=True)
class RenderPass:
    """A VkRenderPass. `dependencies` has the implicit ones too; `final` has the last transitions."""

    id: int
    attachments: tuple[AttachmentDescription, ...]
    subpasses: tuple[Subpass, ...]
    dependencies: tuple[SubpassDependency, ...]
    work: tuple[SubpassWork, ...]
    final: tuple[AttachmentTransition, ...]
    unmodelled: tuple[str, ...] = ()
    misuses: tuple[InvalidUsage, ...] = ()
    """The rules of valid usage that its description breaks."""

    def has_depth_stencil(self, subpass: int) -> tuple[bool, bool]:
        """Whether a subpass has a depth, and a stencil attachment."""
        used = self.subpasses[subpass].depth_stencil if subpass < len(self.subpasses) else None
        aspects = self.attachments[used.attachment].aspects if used is not None else 0
        return bool(aspects & VkImageAspect.DEPTH), bool(aspects & VkImageAspect.STENCIL)

    @property
    def views(self) -> int:
        """The views that some subpass uses, as a mask; ALL_VIEWS without multiview."""
        mask = 0
        for subpass in self.subpasses:
            mask |= subpass.view_mask
        return mask


@dataclass(frozen=True, slots=True)
class Framebuffer:
    """A VkFramebuffer; `views` are the ids of its image views, None when it is imageless."""

    id: int
    views: tuple[int, ...] | None
    extent: tuple[int, int]
    layers: int
    instances: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
    """Effects of render pass instances on this framebuffer, by the arguments with which they were begun."""
