"""Addresses of the texels that a shader reaches through an image view.

Specification: "Image Views", "Texel Coordinate Systems", "Texel Output Coordinate Validation";
rules.md#texels-that-a-shader-reaches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from vkharness.spans import Span, merge
from vkharness.spec.enums import VkImageType
from vkharness.trace.resources import PLANES, Image, ImageView

if TYPE_CHECKING:
    from vkharness.shader.lanes.reached_places import Partly, ReachedTexels, Runs


def extent(image: Image, view: ImageView, level: int) -> tuple[int, int, int] | None:
    """Width, height, and depth or layers of a mip level of a view; None where it has no such level, or where its format
    may give it another size."""
    if not 0 <= level < len(view.mips) or not _is_plain(image, view):
        return None
    width, height, depth = image.texels(image.split_aspects(view.aspects)[0], view.mips[level])
    return width, height, depth if _is_deep(image, view) else len(view.layers)


def _is_plain(image: Image, view: ImageView) -> bool:
    """Whether texels of the view are texels of one aspect of the image."""
    aspects = image.split_aspects(view.aspects)
    return len(aspects) == 1 and not aspects[0] & PLANES and image.block_extent(aspects[0]) == (1, 1, 1)


def _is_deep(image: Image, view: ImageView) -> bool:
    """Whether the last coordinate chooses a slice of a 3D image."""
    return image.type == VkImageType.TYPE_3D and not view.sliced


def texel_spans(image: Image, view: ImageView, runs: Runs) -> tuple[Span, ...] | None:
    """The addresses of rows of texels. Those outside of the view are none. None where they are not told apart."""
    import numpy as np

    from vkharness.shader.lanes.reached_places import Runs, spans_of, texel_places

    if not _is_plain(image, view):
        return None
    found = []
    (aspect,) = image.split_aspects(view.aspects)
    x, y, third, levels = texel_places(runs.first)
    for level in np.unique(levels).tolist():
        if level >= len(view.mips):
            continue
        at, (width, height, depth) = image.level(aspect, view.mips[level])
        here = (levels == level) & (x < width) & (y < height)
        if _is_deep(image, view):
            here &= third < depth
            plane = third
        else:
            here &= third < len(view.layers)
            plane = third + view.layers.start
        count = np.minimum(runs.length, width - x)[here]
        found.append((at + (plane[here] * height + y[here]) * width + x[here], count))
    if not found:
        return ()
    first, count = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.argsort(first)
    first, last = first[order], (first + count)[order]
    begins = np.concatenate([[True], first[1:] > last[:-1]]) if len(first) else np.zeros(0, np.bool_)
    ends = np.concatenate([begins[1:], [True]]) if len(first) else begins
    return spans_of(Runs(first[begins], last[ends] - first[begins]))


def subresource_spans(image: Image, view: ImageView, part: Partly) -> tuple[Span, ...]:
    """The addresses of the mip levels and layers, or slices, of a view in which texels are that are not known. A level
    and a layer beyond the last one stand for that."""
    levels = range(max(view.mips.start, view.least), view.mips.stop)
    if part.level is not None and levels:
        level = max(view.mips[min(max(part.level, 0), len(view.mips) - 1)], levels.start)
        levels = range(level, level + 1)
    layers = view.layers
    if part.layer is not None and len(layers) and not _is_deep(image, view):
        layer = layers[min(max(part.layer, 0), len(layers) - 1)]
        layers = range(layer, layer + 1)
    if not view.sliced:
        return image.subresources(view.aspects, levels.start, len(levels), layers.start, len(layers))
    width, height, _ = image.texels(image.aspects[0], view.mips.start)
    return image.region(view.aspects, view.mips.start, (0,), (0, 0, layers.start), (width, height, len(layers)))


def reached_spans(image: Image, view: ImageView, texels: ReachedTexels) -> Iterator[tuple[tuple[Span, ...], bool]]:
    """The addresses of texels, and whether they are reached for sure."""
    from vkharness.shader.lanes.reached_places import Partly, texel_places

    for runs, sure in ((texels.sure, True), (texels.maybe, False)):
        spans = texel_spans(image, view, runs)
        if spans is not None:
            yield spans, sure
            continue
        _, _, third, levels = texel_places(runs.first)
        several = set(zip(levels.tolist(), third.tolist(), strict=True))
        inside = {(level, layer) for level, layer in several if level < len(view.mips)}
        yield tuple(merge([s for each in inside for s in subresource_spans(image, view, Partly(*each))])), False
    for part in texels.partly:
        yield subresource_spans(image, view, part), False
