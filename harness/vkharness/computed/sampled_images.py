"""Images as shaders sample them ("Image Operations"): known where all texels that may count are known and equal.

Which sampler is bound is not followed: a sample must be the same with each sampler of the trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import floor
from typing import Any, NamedTuple

from vkharness.findings import UserError
from vkharness.shader.execution.float_bits import InexactBits, error_of, from_bits
from vkharness.shader.execution.outside import ShaderImage
from vkharness.spec.enums import VkFilter, VkSamplerAddressMode, VkSamplerMipmapMode

Texel = tuple[int, int, int, int]
BETWEEN = 1 / 16
"""In texels and mip levels: how near to the border of two a coordinate may lie on either side. Implementations count
in steps of at most this (subTexelPrecisionBits and mipmapPrecisionBits are at least 4)."""
WEIGHT_ERROR = 2.0**-18
"""How far the weights of equal texels may be from 1 together."""
MOST_SAMPLERS = 8
MOST_TEXELS = 64
"""Of one sample, with all samplers."""
SUPPORTED_MODES = (
    VkSamplerAddressMode.REPEAT,
    VkSamplerAddressMode.MIRRORED_REPEAT,
    VkSamplerAddressMode.CLAMP_TO_EDGE,
    VkSamplerAddressMode.MIRROR_CLAMP_TO_EDGE,
)


class FloatRange(NamedTuple):
    """Numbers that an operand may be: from `low` to `high`."""

    low: float
    high: float

    @classmethod
    def of(cls, bits: int) -> FloatRange:
        """Those of a float."""
        number, error = float(from_bits(bits, 32)), error_of(bits)
        return cls(number - error, number + error)

    def scaled(self, size: int, moved: float, margin: float) -> FloatRange:
        """Times a size, moved, with a margin on both sides."""
        return FloatRange(self.low * size + moved - margin, self.high * size + moved + margin)


@dataclass(frozen=True, slots=True)
class Sampler:
    """The members of a VkSamplerCreateInfo that decide which texels count."""

    magnified: int
    minified: int
    mipmaps: int
    modes: tuple[int, int, int]
    bias: float
    least: float
    most: float
    followed: bool

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> Sampler:
        """That of a create info."""
        modes = (info["addressModeU"], info["addressModeV"], info["addressModeW"])
        filters = (info["magFilter"], info["minFilter"])
        plain = not any(
            info[each] for each in ("pNext", "anisotropyEnable", "compareEnable", "unnormalizedCoordinates")
        )
        plain = plain and all(each in (VkFilter.NEAREST, VkFilter.LINEAR) for each in filters)
        lods = (info["mipLodBias"], info["minLod"], info["maxLod"])
        return cls(*filters, info["mipmapMode"], modes, *lods, plain)

    def filters(self, lod: FloatRange) -> set[int]:
        """The filters that may be used: that of magnification up to a level of detail of 0."""
        clamped = self._clamped(lod)
        found = {self.magnified} if clamped.low <= 0 else set()
        return found | ({self.minified} if clamped.high > 0 else set())

    def levels(self, lod: FloatRange, count: int) -> range:
        """The mip levels of a view that may count ("Image Level(s) Selection")."""
        clamped = self._clamped(lod)
        low, high = (min(max(each, 0.0), count - 1.0) for each in clamped)
        if low == high and low.is_integer():
            return range(int(low), int(low) + 1)
        first, last = low - BETWEEN, high + BETWEEN
        if self.mipmaps == VkSamplerMipmapMode.NEAREST:
            first, last = first + 0.5, last + 0.5
        else:
            last += 1
        return range(max(0, floor(first)), min(count - 1, floor(last)) + 1)

    def _clamped(self, lod: FloatRange) -> FloatRange:
        return FloatRange(*(min(max(each + self.bias, self.least), self.most) for each in lod))


def sample(
    image: ShaderImage, samplers: Iterable[Sampler], dimensions: int, levels: int, place: Sequence[int], lod: int | None
) -> Texel:
    """The bits of a sample at normalized coordinates, and a layer behind these; `lod` is None for one that follows
    from derivatives. Raises `UserError` where texels differ, or are not known."""
    asked = FloatRange(-1e4, 1e4) if lod is None else FloatRange.of(lod)
    found: set[tuple[int, tuple[int, ...]]] = set()
    filtered = False
    for sampler in samplers:
        if not sampler.followed:
            raise UserError("a sampler of this sort is not followed")
        chosen, used = sampler.levels(asked, levels), sampler.filters(asked)
        filtered = filtered or VkFilter.LINEAR in used or len(chosen) > 1
        for level, which in product(chosen, used):
            found.update((level, each) for each in _texels(image.size(level), sampler, dimensions, which, place))
        if len(found) > MOST_TEXELS:
            raise UserError(f"a sample of more than {MOST_TEXELS} texels is not followed")
    if not found:
        raise UserError("no sampler is known")
    several = {image.read(texel, level) for level, texel in found}
    if len(several) > 1:
        raise UserError("texels that differ may be filtered")
    texel = several.pop()
    return _filtered(texel) if filtered else texel


def _texels(
    size: Sequence[int], sampler: Sampler, dimensions: int, filter_: int, place: Sequence[int]
) -> Iterator[tuple[int, ...]]:
    """The texels of one mip level that may count."""
    axes: list[set[int]] = []
    for axis in range(dimensions):
        moved, more = (-0.5, 1) if filter_ == VkFilter.LINEAR else (0.0, 0)
        span = FloatRange.of(place[axis]).scaled(size[axis], moved, BETWEEN)
        if span.high - span.low > MOST_TEXELS:
            raise UserError("the place of a sample is not known")
        numbers = range(floor(span.low), floor(span.high) + more + 1)
        axes.append({_wrapped(number, size[axis], sampler.modes[axis]) for number in numbers})
    if len(size) > dimensions:
        layer = FloatRange.of(place[dimensions]).scaled(1, 0.5, BETWEEN)
        most = size[dimensions] - 1
        axes.append({min(max(floor(each), 0), most) for each in layer})
    return product(*axes)


def _wrapped(number: int, size: int, mode: int) -> int:
    """ "Wrapping Operation". Raises `UserError` for a texel of the border."""
    if mode == VkSamplerAddressMode.REPEAT:
        return number % size
    if mode == VkSamplerAddressMode.MIRRORED_REPEAT:
        turned = number % (2 * size) - size
        return size - 1 - (turned if turned >= 0 else -(1 + turned))
    if mode == VkSamplerAddressMode.MIRROR_CLAMP_TO_EDGE:
        number = number if number >= 0 else -(1 + number)
    if mode in SUPPORTED_MODES:
        return min(max(number, 0), size - 1)
    if not 0 <= number < size:
        raise UserError("a sample of the border is not followed")
    return number


def _filtered(texel: Texel) -> Texel:
    """A weighted sum of texels that are all this one."""
    x, y, z, w = (InexactBits.of(each, _error(each), "a filtered texel is not exact") for each in texel)
    return x, y, z, w


def _error(bits: int) -> float:
    try:
        return error_of(bits) + abs(float(from_bits(bits, 32))) * WEIGHT_ERROR
    except UserError:
        return 0.0
