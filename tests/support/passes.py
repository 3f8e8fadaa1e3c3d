"""Rendering in traces written by hand: views, render passes, framebuffers, instances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.streams import COLOR, R8G8B8A8, Stream, struct
from vkharness.spec.enums import VkAttachmentLoadOp, VkAttachmentStoreOp, VkImageLayout

LOAD = VkAttachmentLoadOp.LOAD
CLEAR = VkAttachmentLoadOp.CLEAR
DONT_CARE = VkAttachmentLoadOp.DONT_CARE
NONE_LOAD = VkAttachmentLoadOp.NONE
STORE, DISCARD, NONE_STORE = VkAttachmentStoreOp.STORE, VkAttachmentStoreOp.DONT_CARE, VkAttachmentStoreOp.NONE
COLOR_LAYOUT = VkImageLayout.COLOR_ATTACHMENT_OPTIMAL
DEPTH_LAYOUT = VkImageLayout.DEPTH_STENCIL_ATTACHMENT_OPTIMAL
READ_ONLY = VkImageLayout.SHADER_READ_ONLY_OPTIMAL
WHITE = {"color": {"uint32": [0x3F800000] * 4}}

Size = tuple[int, int]


def view(
    stream: Stream,
    image: int,
    form: int = R8G8B8A8,
    *,
    aspects: int = COLOR,
    mip: int = 0,
    layers: tuple[int, int] = (0, 1),
    kind: int | None = None,
) -> int:
    """A VkImageView of one mip level and (first, count) layers."""
    span = struct(
        "VkImageSubresourceRange",
        aspectMask=aspects,
        baseMipLevel=mip,
        levelCount=1,
        baseArrayLayer=layers[0],
        layerCount=layers[1],
    )
    kind = (5 if layers[1] > 1 else 1) if kind is None else kind
    info = struct("VkImageViewCreateInfo", image=image, viewType=kind, format=form, subresourceRange=span)
    return stream.make("vkCreateImageView", "pView", info)


def described(
    form: int = R8G8B8A8,
    load: int = CLEAR,
    store: int = STORE,
    initial: int = 0,
    final: int = COLOR_LAYOUT,
    *,
    stencil: tuple[int, int] = (DONT_CARE, DISCARD),
    samples: int = 1,
    stencil_layouts: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """A VkAttachmentDescription2."""
    made = struct(
        "VkAttachmentDescription2",
        format=form,
        samples=samples,
        loadOp=load,
        storeOp=store,
        stencilLoadOp=stencil[0],
        stencilStoreOp=stencil[1],
        initialLayout=initial,
        finalLayout=final,
    )
    if stencil_layouts is not None:
        first, last = stencil_layouts
        made["pNext"] = struct(
            "VkAttachmentDescriptionStencilLayout", stencilInitialLayout=first, stencilFinalLayout=last
        )
    return made


def refer(attachment: int, layout: int = COLOR_LAYOUT, aspects: int = 0) -> dict[str, Any]:
    """A VkAttachmentReference2."""
    return struct("VkAttachmentReference2", attachment=attachment, layout=layout, aspectMask=aspects)


def subpass(
    colors: Sequence[dict[str, Any]] = (),
    depth: dict[str, Any] | None = None,
    inputs: Sequence[dict[str, Any]] = (),
    resolves: Sequence[dict[str, Any]] | None = None,
    *,
    views: int = 0,
    preserve: Sequence[int] = (),
    depth_resolve: tuple[dict[str, Any], int, int] | None = None,
) -> dict[str, Any]:
    """A VkSubpassDescription2; `depth_resolve` is (reference, depth mode, stencil mode)."""
    made = struct(
        "VkSubpassDescription2",
        viewMask=views,
        pInputAttachments=list(inputs),
        pColorAttachments=list(colors),
        pResolveAttachments=None if resolves is None else list(resolves),
        pDepthStencilAttachment=depth,
        pPreserveAttachments=list(preserve),
    )
    if depth_resolve is not None:
        target, depth_mode, stencil_mode = depth_resolve
        made["pNext"] = struct(
            "VkSubpassDescriptionDepthStencilResolve",
            depthResolveMode=depth_mode,
            stencilResolveMode=stencil_mode,
            pDepthStencilResolveAttachment=target,
        )
    return made


def depends(src: int, dst: int, masks: tuple[int, int, int, int], barrier: bool = False) -> dict[str, Any]:
    """A VkSubpassDependency2 of (source stages, source accesses, destination stages, destination accesses); with
    `barrier` they are in a chained VkMemoryBarrier2."""
    names = ("srcStageMask", "srcAccessMask", "dstStageMask", "dstAccessMask")
    given = dict(zip(names, masks, strict=True))
    made = struct("VkSubpassDependency2", srcSubpass=src, dstSubpass=dst, **({} if barrier else given))
    if barrier:
        made["pNext"] = struct("VkMemoryBarrier2", **given)
    return made


def render_pass(
    stream: Stream,
    attachments: Sequence[dict[str, Any]],
    subpasses: Sequence[dict[str, Any]],
    dependencies: Sequence[dict[str, Any]] = (),
    form: int = 2,
) -> int:
    """vkCreateRenderPass2, or with `form` 1 vkCreateRenderPass of the same, as far as it has a place for it."""
    values: dict[str, Any] = {
        "attachmentCount": len(attachments),
        "pAttachments": list(attachments),
        "subpassCount": len(subpasses),
        "pSubpasses": list(subpasses),
        "dependencyCount": len(dependencies),
        "pDependencies": list(dependencies),
    }
    if form == 2:
        return stream.make("vkCreateRenderPass2", "pRenderPass", struct("VkRenderPassCreateInfo2", **values))
    masks = [each["viewMask"] for each in subpasses]
    info = _first_form(struct("VkRenderPassCreateInfo", **values))
    if any(masks):
        info["pNext"] = struct("VkRenderPassMultiviewCreateInfo", subpassCount=len(masks), pViewMasks=masks)
    return stream.make("vkCreateRenderPass", "pRenderPass", info)


def _first_form(value: Any) -> Any:
    """Structs of the second form as those of the first: without what is only in the second."""
    if isinstance(value, list):
        return [_first_form(each) for each in value]
    if not isinstance(value, dict):
        return value
    keep = {key: _first_form(each) for key, each in value.items()}
    if value.get("sType") != struct("VkRenderPassCreateInfo")["sType"]:
        for key in ("sType", "pNext", "aspectMask", "viewMask", "viewOffset"):
            keep.pop(key, None)
    return keep


def framebuffer(stream: Stream, passed: int, views: Sequence[int], size: Size, layers: int = 1) -> int:
    """vkCreateFramebuffer."""
    info = struct(
        "VkFramebufferCreateInfo",
        renderPass=passed,
        pAttachments=list(views),
        width=size[0],
        height=size[1],
        layers=layers,
    )
    return stream.make("vkCreateFramebuffer", "pFramebuffer", info)


def rect(size: Size, offset: Size = (0, 0)) -> dict[str, Any]:
    """A VkRect2D."""
    place = {"x": offset[0], "y": offset[1]}
    return {"offset": place, "extent": {"width": size[0], "height": size[1]}}


def begin_pass(
    stream: Stream,
    passed: int,
    frame: int,
    area: dict[str, Any],
    values: Sequence[dict[str, Any]] = (),
    form: int = 2,
    following: dict[str, Any] | None = None,
) -> int:
    """vkCmdBeginRenderPass2 (or 1)."""
    info = struct(
        "VkRenderPassBeginInfo",
        pNext=following,
        renderPass=passed,
        framebuffer=frame,
        renderArea=area,
        pClearValues=list(values),
    )
    if form == 1:
        return stream.cmd("BeginRenderPass", pRenderPassBegin=info)
    return stream.cmd("BeginRenderPass2", pRenderPassBegin=info, pSubpassBeginInfo=struct("VkSubpassBeginInfo"))


def next_subpass(stream: Stream) -> int:
    """vkCmdNextSubpass2."""
    begin, end = struct("VkSubpassBeginInfo"), struct("VkSubpassEndInfo")
    return stream.cmd("NextSubpass2", pSubpassBeginInfo=begin, pSubpassEndInfo=end)


def end_pass(stream: Stream) -> int:
    """vkCmdEndRenderPass2."""
    return stream.cmd("EndRenderPass2", pSubpassEndInfo=struct("VkSubpassEndInfo"))


def attached(image_view: int, load: int = CLEAR, store: int = STORE, **more: Any) -> dict[str, Any]:
    """A VkRenderingAttachmentInfo in the GENERAL layout, cleared to white unless it loads."""
    return struct(
        "VkRenderingAttachmentInfo",
        imageView=image_view,
        loadOp=load,
        storeOp=store,
        **{"imageLayout": 1, "clearValue": WHITE, **more},
    )


def begin_rendering(
    stream: Stream,
    area: dict[str, Any],
    colors: Sequence[dict[str, Any]] = (),
    depth: dict[str, Any] | None = None,
    stencil: dict[str, Any] | None = None,
    *,
    layers: int = 1,
    views: int = 0,
    flags: int = 0,
) -> int:
    """vkCmdBeginRendering."""
    info = struct(
        "VkRenderingInfo",
        flags=flags,
        renderArea=area,
        layerCount=layers,
        viewMask=views,
        pColorAttachments=list(colors),
        pDepthAttachment=depth,
        pStencilAttachment=stencil,
    )
    return stream.cmd("BeginRendering", pRenderingInfo=info)


def clear_attachments(
    stream: Stream, clears: Sequence[tuple[int, int]], rects: Sequence[tuple[dict[str, Any], int, int]]
) -> int:
    """vkCmdClearAttachments of (aspects, colour attachment) to white, in (rectangle, first layer, layers)."""
    attachments = [struct("VkClearAttachment", aspectMask=a, colorAttachment=c, clearValue=WHITE) for a, c in clears]
    places = [struct("VkClearRect", rect=area, baseArrayLayer=first, layerCount=count) for area, first, count in rects]
    return stream.cmd("ClearAttachments", pAttachments=attachments, pRects=places)
