"""Store operations that should be NONE: of attachments that an instance of a render pass only reads.

A store operation writes its attachment, whatever it stores. VK_ATTACHMENT_STORE_OP_NONE writes nothing where nothing
was written before, and leaves the contents as they are ("VkAttachmentStoreOp"). So it is for aspects in layouts
that are for reading alone, which are loaded and neither cleared nor discarded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from vkharness.findings import Finding
from vkharness.mending.recordings import Recordings
from vkharness.mending.scope_sites import Path
from vkharness.spec.command_classes import ENDS_RENDERING
from vkharness.spec.enums import (
    VK_ATTACHMENT_UNUSED,
    VkAttachmentLoadOp,
    VkAttachmentStoreOp,
    VkImageLayout,
    VkStructureType,
)
from vkharness.trace.calls import Call
from vkharness.trace.chain import chained
from vkharness.trace.edits import EditedTrace, value_at, with_value

READ_ONLY = {
    VkImageLayout.DEPTH_STENCIL_READ_ONLY_OPTIMAL,
    VkImageLayout.DEPTH_READ_ONLY_OPTIMAL,
    VkImageLayout.READ_ONLY_OPTIMAL,
}
"""The layouts in which neither depth nor colour of an attachment is written."""
READ_ONLY_STENCIL = {
    VkImageLayout.DEPTH_STENCIL_READ_ONLY_OPTIMAL,
    VkImageLayout.STENCIL_READ_ONLY_OPTIMAL,
    VkImageLayout.READ_ONLY_OPTIMAL,
}
NONE = VkAttachmentStoreOp.NONE
KEEPS = (VkAttachmentLoadOp.LOAD, VkAttachmentLoadOp.NONE)
"""The load operations that write nothing."""


def with_no_store(trace: EditedTrace, findings: Sequence[Finding]) -> EditedTrace | None:
    """Makes the store operations NONE that findings are about. None where one is about none, or where an attachment may
    be written."""
    made = trace
    for finding in findings:
        changed = _with_no_store(made, finding)
        if changed is None:
            return None
        made = changed
    return made if made is not trace else None


def _with_no_store(trace: EditedTrace, finding: Finding) -> EditedTrace | None:
    """The trace itself where the operation is NONE already."""
    for place, image in ((finding.place, finding.through or finding.resource), (finding.prior, finding.resource)):
        recording = Recordings(trace.blocks).at(place.call - 1) if place.command.startswith(ENDS_RENDERING) else None
        instance = recording.instance_at(place.call - 1) if recording is not None else None
        if instance is None:
            continue
        if instance.render_pass is None:
            position, paths = instance.begin, list(_of_rendering(trace, trace.call(instance.begin).args, image))
        else:
            framebuffer = trace.call(instance.begin).args["pRenderPassBegin"]["framebuffer"]
            found = _made(trace, "vkCreateRenderPass", "pRenderPass", instance.render_pass)
            if found is None:
                continue
            position, paths = found, list(_of_pass(trace, trace.call(found).args, framebuffer, image))
        args = trace.call(position).args
        for path in paths:
            args = with_value(args, path, NONE)
        if paths:
            return trace.changed(position, args) if args != trace.call(position).args else trace
    return None


def _of_rendering(trace: EditedTrace, args: dict[str, Any], image: int) -> Iterator[Path]:
    """The store operations of an image in dynamic rendering, where the instance only reads it."""
    for name, layouts in (("pDepthAttachment", READ_ONLY), ("pStencilAttachment", READ_ONLY_STENCIL)):
        held = args["pRenderingInfo"].get(name)
        if not held or _image_of(trace, held["imageView"]) != image:
            continue
        if held["imageLayout"] in layouts and held["loadOp"] in KEEPS:
            yield "pRenderingInfo", name, "storeOp"


def _of_pass(trace: EditedTrace, args: dict[str, Any], framebuffer: int, image: int) -> Iterator[Path]:
    """The same in a render pass, with the images of a framebuffer: each subpass that uses the attachment reads it."""
    created = _made(trace, "vkCreateFramebuffer", "pFramebuffer", framebuffer)
    views = trace.call(created).args["pCreateInfo"].get("pAttachments") if created is not None else None
    info = args["pCreateInfo"]
    for at, (view, described) in enumerate(zip(views or (), info["pAttachments"] or (), strict=False)):
        if _image_of(trace, view) != image:
            continue
        uses = [each for subpass in info["pSubpasses"] or () for each in _references(subpass, at)]
        if uses and described["loadOp"] in KEEPS and {each["layout"] for each in uses} <= READ_ONLY:
            yield "pCreateInfo", "pAttachments", at, "storeOp"
        if uses and described["stencilLoadOp"] in KEEPS and set(map(_stencil_layout, uses)) <= READ_ONLY_STENCIL:
            yield "pCreateInfo", "pAttachments", at, "stencilStoreOp"


def _references(subpass: dict[str, Any], attachment: int) -> Iterator[dict[str, Any]]:
    """The references of a subpass to an attachment."""
    resolve = chained(subpass, VkStructureType.SUBPASS_DESCRIPTION_DEPTH_STENCIL_RESOLVE) or {}
    names = ("pInputAttachments", "pColorAttachments", "pResolveAttachments", "pDepthStencilAttachment")
    for held in (*map(subpass.get, names), resolve.get("pDepthStencilResolveAttachment")):
        for each in [held] if isinstance(held, dict) else held or ():
            if each["attachment"] == attachment != VK_ATTACHMENT_UNUSED:
                yield each


def _stencil_layout(reference: dict[str, Any]) -> int:
    own = chained(reference, VkStructureType.ATTACHMENT_REFERENCE_STENCIL_LAYOUT)
    return int(reference["layout"] if own is None else own["stencilLayout"])


def _image_of(trace: EditedTrace, view: int) -> int | None:
    created = _made(trace, "vkCreateImageView", "pView", view)
    return None if created is None else value_at(trace.call(created).args, ("pCreateInfo", "image"))


def _made(trace: EditedTrace, name: str, output: str, id: int) -> int | None:
    """The position of the call that makes an object; `name` begins its name."""
    for position, block in enumerate(trace.blocks):
        if isinstance(block, Call) and block.name.startswith(name) and block.args.get(output) == id:
            return position
    return None
