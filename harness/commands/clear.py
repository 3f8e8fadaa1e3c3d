"""Clears outside render passes: whole subresources, in the CLEAR stage."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.commands.handlers import command
from harness.commands.object_state import CommandBuffer, ObjectState
from harness.commands.transfer import CLEAR_WRITE, image_access
from harness.spans import Span
from harness.trace.effects import Effect


@command("vkCmdClearColorImage", "vkCmdClearDepthStencilImage")
def clear_image(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Writes the subresource ranges; depth and stencil are apart."""
    image = objects.image(args["image"])
    spans: list[Span] = []
    if image is not None:
        for part in args["pRanges"] or ():
            spans += image.subresources(
                part["aspectMask"], part["baseMipLevel"], part["levelCount"], part["baseArrayLayer"], part["layerCount"]
            )
    return image_access(CLEAR_WRITE, image, spans)
