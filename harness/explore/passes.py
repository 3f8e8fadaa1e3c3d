"""What render passes do to image layouts: attachments end in the final layout that their render pass names."""

from __future__ import annotations

from typing import Any

from harness.explore.layouts import Layouts
from harness.explore.steps import core_name
from harness.trace.calls import Block, Call


class Passes:
    """Remembers views, framebuffers and render passes from their creation, and follows instances to their end."""

    def __init__(self, layouts: Layouts) -> None:
        self._layouts = layouts
        self._views: dict[int, dict[str, Any]] = {}
        self._framebuffers: dict[int, list[int]] = {}
        self._final: dict[int, list[int]] = {}
        self._now: tuple[list[int], list[int]] | None = None

    def note(self, block: Block) -> None:
        """Takes in one host call."""
        if not isinstance(block, Call):
            return
        name, args = core_name(block.name), block.args
        if name == "vkCreateImageView":
            self._views[args["pView"]] = args["pCreateInfo"]
        elif name == "vkCreateFramebuffer":
            self._framebuffers[args["pFramebuffer"]] = args["pCreateInfo"].get("pAttachments") or []
        elif name in ("vkCreateRenderPass", "vkCreateRenderPass2"):
            attachments = args["pCreateInfo"].get("pAttachments") or []
            self._final[args["pRenderPass"]] = [attachment["finalLayout"] for attachment in attachments]

    def after(self, call: Call) -> None:
        """Follows one command that has run."""
        name = core_name(call.name)
        if name in ("vkCmdBeginRenderPass", "vkCmdBeginRenderPass2"):
            begin = call.args["pRenderPassBegin"]
            self._now = (self._final.get(begin["renderPass"], []), _attachments(begin, self._framebuffers))
        elif name in ("vkCmdEndRenderPass", "vkCmdEndRenderPass2") and self._now is not None:
            for layout, view in zip(*self._now, strict=False):
                self._finish(view, layout)
            self._now = None

    def _finish(self, view: int, layout: int) -> None:
        info = self._views.get(view)
        if info is None or info["image"] not in self._layouts.images:
            return
        image, where = self._layouts.images[info["image"]], info["subresourceRange"]
        reached = [
            # Attachments always take depth and stencil together, whatever the view names.
            (aspect, mip, layer)
            for aspect in image.aspects
            for mip in image.level_range(where["baseMipLevel"], where["levelCount"])
            for layer in image.layer_range(where["baseArrayLayer"], where["layerCount"])
        ]
        self._layouts.put(image.id, reached, layout)


def _attachments(begin: dict[str, Any], framebuffers: dict[int, list[int]]) -> list[int]:
    """The image views of a render pass instance; an imageless framebuffer gets them at begin."""
    chain = begin.get("pNext")
    while isinstance(chain, dict):
        if chain.get("pAttachments"):
            return list(chain["pAttachments"])
        chain = chain.get("pNext")
    return framebuffers.get(begin["framebuffer"], [])
