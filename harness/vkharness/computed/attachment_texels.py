"""The texels behind attachments: what is cleared, forgotten or resolved in an area of some layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from vkharness.computed.clear_values import cleared_color, cleared_depth
from vkharness.computed.followed_transfers import Box, KnownContents
from vkharness.computed.known_cells import Bytes, Cells
from vkharness.spec.enums import VkImageAspect
from vkharness.spec.formats import Format
from vkharness.trace.rendering_state import Area, Attachment


class AreaTexels(NamedTuple):
    """An area of one layer of one aspect of an attachment. `box` is clipped to the mip level."""

    aspect: int
    cells: Cells
    box: Box


def area_texels(
    contents: KnownContents, attachment: Attachment, layers: Sequence[int], area: Area
) -> Iterator[AreaTexels]:
    """The area in each layer, counted from the first of the view, and in each aspect; layers outside of the view and
    images that are not followed give nothing."""
    view, (x, y, width, height) = attachment.view, area
    for aspect in attachment.image.split_aspects(attachment.aspects):
        for layer in layers:
            if not 0 <= layer < len(view.layers):
                continue
            at = view.layers[layer]
            cells = contents.subresource(attachment.image.id, aspect, view.mips.start, 0 if view.sliced else at)
            if cells is not None:
                z = at if view.sliced else 0
                high, wide = cells.known.shape[1:]
                box = (slice(z, z + 1), slice(min(y, high), min(y + height, high)))
                yield AreaTexels(aspect, cells, (*box, slice(min(x, wide), min(x + width, wide))))


def cleared_texel(format_: Format, aspect: int, words: Sequence[int]) -> Bytes | None:
    """The bytes of a texel that a VkClearValue with these 32-bit words gives to one aspect; None where they are not
    known."""
    if aspect == VkImageAspect.STENCIL:
        return np.array([words[1] & 0xFF], np.uint8)
    if aspect == VkImageAspect.DEPTH:
        return cleared_depth(format_, float(np.array([words[0]], np.uint32).view(np.float32)[0]))
    return cleared_color(format_, words)


def clear_area(
    contents: KnownContents,
    attachment: Attachment,
    layers: Sequence[int],
    area: Area,
    format_: Format | None,
    words: Sequence[int],
) -> None:
    """Sets an area to a clear value in the format of the view; None for a format that is not known."""
    for aspect, cells, box in area_texels(contents, attachment, layers, area):
        texel = None if format_ is None else cleared_texel(format_, aspect, words)
        if texel is not None and texel.size == cells.data.shape[-1]:
            cells.data[box] = texel
            cells.known[box] = True
        else:
            cells.known[box] = False


def undefine_area(contents: KnownContents, attachment: Attachment, layers: Sequence[int], area: Area) -> None:
    """The specification leaves open what an area holds from now on."""
    for _, cells, box in area_texels(contents, attachment, layers, area):
        contents.undefine(cells, box)


def resolve_area(
    contents: KnownContents, source: Attachment, target: Attachment, layers: Sequence[int], area: Area
) -> None:
    """A multisample resolve. A texel of which all samples are equal and known gives this value in every mode."""
    read = {(layer, each.aspect): each for layer, each in _by_layer(contents, source, layers, area)}
    for layer, (aspect, cells, box) in _by_layer(contents, target, layers, area):
        found = read.get((layer, aspect))
        if found is not None and found.cells.data[found.box].shape == cells.data[box].shape:
            cells.data[box] = found.cells.data[found.box]
            cells.known[box] = found.cells.known[found.box]
        else:
            cells.known[box] = False


def _by_layer(
    contents: KnownContents, attachment: Attachment, layers: Sequence[int], area: Area
) -> Iterator[tuple[int, AreaTexels]]:
    for layer in layers:
        for each in area_texels(contents, attachment, (layer,), area):
            yield layer, each
