"""Blits between images of one format, scaled and mirrored ("Image Copies With Scaling").

A texel of the target is known where all texels that may give it are known and equal: of the nearest one those on both
sides where the coordinate lies between them, of linear filtering all that have a weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from vkharness.computed.known_cells import Cells
from vkharness.spec.enums import VkFilter

BETWEEN = 1e-3
"""In texels: how near to the border of two a coordinate may lie on either side."""
Indices = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def blit(source: Cells, target: Cells, region: Mapping[str, Sequence[Mapping[str, int]]], filter_: int) -> None:
    """One layer of a VkImageBlit with a VkFilter; `region` has the bounds `srcOffsets` and `dstOffsets`."""
    axes = [_axis(region, name, filter_, extent) for name, extent in zip("zyx", source.known.shape, strict=True)]
    box = tuple(places for places, _ in axes)
    found = known = None
    for chosen in product(*(candidates for _, candidates in axes)):
        data, sure = source.data[np.ix_(*chosen)], source.known[np.ix_(*chosen)]
        if found is None or known is None:
            found, known = data.copy(), sure.copy()
        else:
            known &= sure & (data == found).all(axis=-1)
    assert found is not None, "each axis has a candidate"
    target.data[box] = found
    target.known[box] = known


def _axis(
    region: Mapping[str, Sequence[Mapping[str, int]]], name: str, filter_: int, extent: int
) -> tuple[slice, list[Indices]]:
    """The coordinates that are written, and those of the source that may give each of them."""
    (begin, end), (first, last) = ([each[name] for each in region[key]] for key in ("dstOffsets", "srcOffsets"))
    places = slice(min(begin, end), max(begin, end))
    written = np.arange(places.start, places.stop)
    at = (written + 0.5 - begin) * (last - first) / (end - begin) + first
    reach = 0.5 if filter_ != VkFilter.NEAREST else BETWEEN
    candidates = [np.floor(at - reach), np.floor(at + reach), np.floor(at)]
    return places, [np.clip(each, 0, extent - 1).astype(np.int64) for each in candidates]
