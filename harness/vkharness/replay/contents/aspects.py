"""Writes one aspect of a multisampled depth/stencil image without touching the other aspect.

"Copying Data Between Images" lets a copy name one aspect. Mesa 22.3's lavapipe copies both when the image is
multisampled. The other aspect is then repaired by a clear, which is possible when it has the same value everywhere.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from vkharness.findings import Box, UserError
from vkharness.replay.contents.contents import Content, Contents, StagingImage, clear_depth_stencil
from vkharness.replay.contents.fetch import Fetcher
from vkharness.replay.schedule.layouts import TRANSFER_DST
from vkharness.spec.enums import VkImageAspect


def write_apart(contents: Contents, image: int, box: Box, content: Content) -> None:
    """Puts contents into a box. UserError when the driver cannot keep depth and stencil apart there."""
    resource = contents.resources.images[image]
    if (
        not isinstance(content, StagingImage)
        or resource.image.format.aspects != VkImageAspect.DEPTH | VkImageAspect.STENCIL
    ):
        contents.write_box(image, box, content)
        return
    other = Box((VkImageAspect.DEPTH | VkImageAspect.STENCIL) ^ box.aspect, box.mip, box.layer, box.offset, box.extent)
    fetcher = Fetcher(contents)
    try:
        before = fetcher.fetch(resource, other.aspect, box.layer)
        contents.write_box(image, box, content)
        if not np.array_equal(before, fetcher.fetch(resource, other.aspect, box.layer)):
            _mend(contents, image, other, before)
    finally:
        fetcher.close()


def _mend(contents: Contents, image: int, box: Box, held: npt.NDArray[np.uint8]) -> None:
    resource = contents.resources.images[image]
    texels = held.reshape(-1, 4)
    if np.any(texels != texels[0]):
        name, target = resource.image.format.name, contents.recorder.device.target.name
        raise UserError(f"{target} cannot copy depth and stencil of a multisampled {name} image apart")
    depth, stencil = float(texels[0].view(np.float32)[0]), int(texels[0].view(np.uint32)[0])
    where = (box.aspect, box.mip, 1, box.layer, 1)
    contents.enter(resource, [box], TRANSFER_DST)
    clear_depth_stencil(
        contents.recorder,
        resource,
        where,
        depth if box.aspect == VkImageAspect.DEPTH else 0.0,
        stencil if box.aspect == VkImageAspect.STENCIL else 0,
    )
    contents.leave(resource, [box], TRANSFER_DST)
    contents.recorder.finish()
