"""Which mip levels the samplers of a stream may choose for a level of detail that a shader gives.

Which sampler is bound is not followed. So a level of detail means what any sampler of the stream may make of it.
Specification: "LOD Operation", "Image Level(s) Selection"; rules.md#texels-that-a-shader-reaches.
"""

from __future__ import annotations

import math

from vkharness.spec.enums import VkSamplerMipmapMode

FURTHEST = 64.0
"""More than any mip level."""
MOST_SORTS = 64
"""The most sorts of samplers that are told apart."""


class SamplerLevels:
    """The sorts of samplers in a stream that differ in the mip levels that they choose."""

    def __init__(self) -> None:
        self._sorts: dict[tuple[int, float, float], None] | None = {}
        """(mipmap mode, least level of detail, greatest one); None where a level may be any."""

    @property
    def number(self) -> int:
        """Tells what `levels` answers apart from what it answered before."""
        return -1 if self._sorts is None else hash(tuple(self._sorts))

    def add(self, mode: int, bias: float, least: float, greatest: float) -> bool:
        """Adds a sampler (VkSamplerCreateInfo). Gives whether it is of a new sort."""
        sort = (mode, float(least), float(greatest))
        if self._sorts is None or (sort in self._sorts and not bias):
            return False
        if bias or len(self._sorts) >= MOST_SORTS or not all(map(math.isfinite, sort)):
            self._sorts = None
        else:
            self._sorts[sort] = None
        return True

    def forget(self) -> None:
        """An image view changes what samplers choose (VK_EXT_image_view_min_lod)."""
        self._sorts = None

    def levels(self, lod: float) -> tuple[int | None, ...]:
        """The levels of a view, from 0 for its first one; None for any. A level beyond the last one stands for that.

        With linear mipmaps a whole number chooses one level: the second one has the weight 0.
        """
        if not self._sorts or not math.isfinite(lod):
            return (None,)
        found: set[int] = set()
        for mode, least, greatest in self._sorts:
            clamped = max(0.0, min(max(lod, least), greatest, FURTHEST))
            if mode == VkSamplerMipmapMode.LINEAR:
                found.update((math.floor(clamped), math.ceil(clamped)))
            else:
                found.update((math.ceil(clamped + 0.5) - 1, math.floor(clamped + 0.5)))
        return tuple(sorted(found))
