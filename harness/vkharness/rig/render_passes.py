"""Render passes and framebuffers.

C structs that point to other structs keep them alive until the call is over, since the `vulkan` package does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vkharness.findings import UserError
from vkharness.rig.core import COLOR_FORMAT, RigDevice, RigImage, layout
from vkharness.spec.enums import VK_ATTACHMENT_UNUSED, VkAttachmentDescription, VkFramebufferCreate
from vkharness.spec.formats import format_of
from vkharness.spec.masks import scope
from vkharness.spec.names import enum_value, flags_value


def load_op(name: str) -> int:
    """A VkAttachmentLoadOp, named without VK_ATTACHMENT_LOAD_OP_; NONE comes from an extension."""
    return enum_value("VkAttachmentLoadOp", f"VK_ATTACHMENT_LOAD_OP_{'NONE_EXT' if name == 'NONE' else name}")


def store_op(name: str) -> int:
    """A VkAttachmentStoreOp, named without VK_ATTACHMENT_STORE_OP_."""
    return enum_value("VkAttachmentStoreOp", f"VK_ATTACHMENT_STORE_OP_{name}")


def resolve_mode(name: str) -> int:
    """A VkResolveModeFlagBits, named without VK_RESOLVE_MODE_ and _BIT."""
    return 0 if name == "NONE" else flags_value("VkResolveModeFlags", f"VK_RESOLVE_MODE_{name}_BIT")


@dataclass(frozen=True, slots=True)
class RigAttachment:
    """An attachment of a render pass. Operations and layouts are names. `stencil` is (load, store)."""

    format: str = COLOR_FORMAT
    load: str = "CLEAR"
    store: str = "STORE"
    initial: str = "UNDEFINED"
    final: str = "GENERAL"
    stencil: tuple[str, str] = ("DONT_CARE", "DONT_CARE")
    samples: int = 1
    may_alias: bool = False


Use = int | tuple[int, str]
"""A use of an attachment: its index, with the usual layout for the use; or index and layout."""


@dataclass(frozen=True, slots=True)
class RigSubpass:
    """A subpass and its uses of attachments. UNUSED stands for a gap.

    `depth_resolve` is (target, depth mode, stencil mode). `preserve` are indices.
    """

    colors: Sequence[Use] = ()
    depth: Use | None = None
    inputs: Sequence[Use] = ()
    resolves: Sequence[Use] = ()
    views: int = 0
    preserve: Sequence[int] = ()
    depth_resolve: tuple[Use, str, str] | None = None
    input_aspects: Sequence[int] = ()
    flags: int = 0


@dataclass(frozen=True, slots=True)
class RigSubpassDependency:
    """A subpass dependency with a name and with scopes as in `Commands.barrier`. Without a name it stays in every twin.

    A twin leaves a named dependency out, or replaces members of it by those of `weaker`.
    """

    name: str
    src: int
    dst: int
    before: str
    after: str
    flags: int = 0
    view_offset: int = 0
    weaker: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(slots=True)
class RigRenderPass:
    """A render pass, with the samples and the number of colour attachments of each subpass."""

    handle: Any
    attachments: tuple[RigAttachment, ...]
    subpasses: tuple[RigSubpass, ...]


@dataclass(slots=True)
class RigFramebuffer:
    """A framebuffer. The `views` of an imageless framebuffer are given when a render pass instance begins."""

    handle: Any
    extent: tuple[int, int]
    views: tuple[Any, ...]
    imageless: bool


class RenderPasses(RigDevice):
    """Render passes and framebuffers of one device."""

    def render_pass(
        self,
        attachments: Sequence[RigAttachment],
        subpasses: Sequence[RigSubpass],
        dependencies: Sequence[RigSubpassDependency] = (),
        *,
        v2: bool = True,
    ) -> RigRenderPass:
        """vkCreateRenderPass2, or vkCreateRenderPass without `v2`."""
        vk, kept = self.vk, _KeptStructs()
        two = "2" if v2 else ""
        described = [_describe(vk, each, two) for each in attachments]
        made = [_subpass(vk, kept, each, attachments, two) for each in subpasses]
        needed = [one for each in dependencies for one in _dependency(self, kept, each, two)]
        more: dict[str, Any] = {}
        if not v2 and any(each.views for each in subpasses):
            masks = [each.views for each in subpasses]
            more["pNext"] = kept(vk.VkRenderPassMultiviewCreateInfo(subpassCount=len(masks), pViewMasks=masks))
        info = getattr(vk, f"VkRenderPassCreateInfo{two}")(
            pAttachments=described, pSubpasses=made, pDependencies=needed, **more
        )
        handle = getattr(vk, f"vkCreateRenderPass{two}")(self.device, info, None)
        return RigRenderPass(self.own("RenderPass", handle), tuple(attachments), tuple(subpasses))

    def framebuffer(
        self,
        render_pass: RigRenderPass,
        views: Sequence[Any],
        extent: tuple[int, int] = (16, 16),
        *,
        layers: int = 1,
        imageless: Sequence[RigImage] = (),
    ) -> RigFramebuffer:
        """A framebuffer of image views. With `imageless`, the images of the views, it gets the views at begin."""
        vk, kept = self.vk, _KeptStructs()
        size = {"width": extent[0], "height": extent[1], "layers": layers}
        if not imageless:
            info = vk.VkFramebufferCreateInfo(renderPass=render_pass.handle, pAttachments=list(views), **size)
        else:
            infos = [
                kept(
                    vk.VkFramebufferAttachmentImageInfo(
                        usage=each.usage,
                        width=each.extent[0],
                        height=each.extent[1],
                        layerCount=layers,
                        viewFormatCount=1,
                        pViewFormats=[each.format],
                    )
                )
                for each in imageless
            ]
            following = kept(vk.VkFramebufferAttachmentsCreateInfo(pAttachmentImageInfos=infos))
            info = vk.VkFramebufferCreateInfo(
                pNext=following,
                flags=VkFramebufferCreate.IMAGELESS,
                renderPass=render_pass.handle,
                attachmentCount=len(views),
                **size,
            )
        handle = self.own("Framebuffer", vk.vkCreateFramebuffer(self.device, info, None))
        return RigFramebuffer(handle, extent, tuple(views), bool(imageless))


class _KeptStructs(list[Any]):
    """Keeps the structs alive to which other C structs point."""

    def __call__(self, struct: Any) -> Any:
        self.append(struct)
        return struct


def _describe(vk: Any, each: RigAttachment, two: str) -> Any:
    return getattr(vk, f"VkAttachmentDescription{two}")(
        flags=VkAttachmentDescription.MAY_ALIAS if each.may_alias else 0,
        format=enum_value("VkFormat", each.format),
        samples=each.samples,
        loadOp=load_op(each.load),
        storeOp=store_op(each.store),
        stencilLoadOp=load_op(each.stencil[0]),
        stencilStoreOp=store_op(each.stencil[1]),
        initialLayout=layout(each.initial),
        finalLayout=layout(each.final),
    )


def _subpass(vk: Any, kept: _KeptStructs, each: RigSubpass, attachments: Sequence[RigAttachment], two: str) -> Any:
    def refer(use: Use, usual: str, aspects: int = 0) -> Any:
        index, at = use if isinstance(use, tuple) else (use, usual)
        more = {"aspectMask": aspects} if two else {}
        return kept(getattr(vk, f"VkAttachmentReference{two}")(attachment=index, layout=layout(at), **more))

    def aspects_of(number: int, use: Use) -> int:
        index = use[0] if isinstance(use, tuple) else use
        if number < len(each.input_aspects):
            return each.input_aspects[number]
        return (
            format_of(enum_value("VkFormat", attachments[index].format)).aspects if index != VK_ATTACHMENT_UNUSED else 0
        )

    color, deep = "COLOR_ATTACHMENT_OPTIMAL", "DEPTH_STENCIL_ATTACHMENT_OPTIMAL"
    more: dict[str, Any] = {"viewMask": each.views} if two else {}
    if each.depth_resolve is not None:
        use, *modes = each.depth_resolve
        depth_mode, stencil_mode = (resolve_mode(mode) for mode in modes)
        more["pNext"] = kept(
            vk.VkSubpassDescriptionDepthStencilResolve(
                depthResolveMode=depth_mode,
                stencilResolveMode=stencil_mode,
                pDepthStencilResolveAttachment=refer(use, deep),
            )
        )
    return kept(
        getattr(vk, f"VkSubpassDescription{two}")(
            pInputAttachments=[
                refer(use, "SHADER_READ_ONLY_OPTIMAL", aspects_of(number, use))
                for number, use in enumerate(each.inputs)
            ],
            pColorAttachments=[refer(use, color) for use in each.colors],
            pResolveAttachments=[refer(use, color) for use in each.resolves] or None,
            pDepthStencilAttachment=None if each.depth is None else refer(each.depth, deep),
            pPreserveAttachments=list(each.preserve),
            flags=each.flags,
            **more,
        )
    )


def _dependency(rig: RigDevice, kept: _KeptStructs, each: RigSubpassDependency, two: str) -> list[Any]:
    """The struct of a dependency, or none when a twin leaves it out.

    A VkMemoryBarrier2 is chained where the form allows it, since masks of the struct have 32 bits.
    """
    written = {"src": each.src, "dst": each.dst, "before": each.before, "after": each.after, "flags": each.flags}
    written["view_offset"] = each.view_offset
    amended = rig.amend(each.name, written, each.weaker) if each.name else written
    if amended is None:
        return []
    (src_stages, src_accesses), (dst_stages, dst_accesses) = scope(amended["before"]), scope(amended["after"])
    masks = {
        "srcStageMask": src_stages,
        "srcAccessMask": src_accesses,
        "dstStageMask": dst_stages,
        "dstAccessMask": dst_accesses,
    }
    ends = {"srcSubpass": amended["src"], "dstSubpass": amended["dst"], "dependencyFlags": amended["flags"]}
    if not two:
        if max(masks.values()) >> 32:
            raise UserError(f"{each.before} -> {each.after}: vkCreateRenderPass takes 32-bit masks only")
        return [rig.vk.VkSubpassDependency(**ends, **masks)]
    barrier = kept(rig.vk.VkMemoryBarrier2(**masks))
    return [kept(rig.vk.VkSubpassDependency2(pNext=barrier, viewOffset=amended["view_offset"], **ends))]
