"""Formats: bytes and extents of texel blocks, aspects, planes. Source: the registry; "Copying Data Between Buffers
and Images" for depth and stencil.

Extents are in texels, block sizes in bytes. Aspects are VkImageAspectFlagBits: COLOR 1, DEPTH 2, STENCIL 4,
PLANE_0 to PLANE_2 0x10, 0x20, 0x40.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from vkharness.findings import UserError
from vkharness.spec import _generated as tables
from vkharness.spec.enums import VkImageAspect

PLANES = (0x10, 0x20, 0x40)


@dataclass(frozen=True, slots=True)
class Plane:
    """One plane of a multi-planar format: its extent is the image's divided by the divisors, rounded up."""

    aspect: int
    width_divisor: int
    height_divisor: int
    block_bytes: int


@dataclass(frozen=True, slots=True)
class Format:
    """A VkFormat. `block_bytes` is the size of one texel block with all aspects, as the registry has it."""

    value: int
    name: str
    block_bytes: int
    block_extent: tuple[int, int, int]
    aspects: int
    planes: tuple[Plane, ...]

    @property
    def compressed(self) -> bool:
        """Whether a texel block holds more than one texel."""
        return self.block_extent != (1, 1, 1)

    def aspect_bytes(self, aspect: int) -> int:
        """Bytes that one texel block of one aspect takes in a buffer that is copied from or to.

        Depth of D16 formats takes 2, of all others 4 (the 24 bits of D24 in a 32-bit word); stencil takes 1.
        Raises UserError when the format lacks the aspect.
        """
        if aspect == VkImageAspect.STENCIL and self.aspects & VkImageAspect.STENCIL:
            return 1
        if aspect == VkImageAspect.DEPTH and self.aspects & VkImageAspect.DEPTH:
            return 2 if self.name.startswith("VK_FORMAT_D16") else 4
        if aspect == VkImageAspect.COLOR and (self.aspects & VkImageAspect.COLOR or self.planes):
            return self.block_bytes
        return self._plane(aspect).block_bytes

    def aspect_extent(self, aspect: int, extent: tuple[int, int, int]) -> tuple[int, int, int]:
        """Extent in texels of one aspect of an image (or mip level) of that extent: smaller for subsampled planes."""
        if aspect in (VkImageAspect.COLOR, VkImageAspect.DEPTH, VkImageAspect.STENCIL):
            return extent
        plane = self._plane(aspect)
        width, height, depth = extent
        return (-(-width // plane.width_divisor), -(-height // plane.height_divisor), depth)

    def aspect_list(self) -> tuple[int, ...]:
        """The single aspect bits, lowest first."""
        return tuple(
            bit
            for bit in (VkImageAspect.COLOR, VkImageAspect.DEPTH, VkImageAspect.STENCIL, *PLANES)
            if self.aspects & bit
        )

    def _plane(self, aspect: int) -> Plane:
        for plane in self.planes:
            if plane.aspect == aspect:
                return plane
        raise UserError(f"{self.name} has no aspect {aspect:#x} (VkImageAspectFlagBits)")


def is_format(value: int) -> bool:
    """Whether the tables have a format of this VkFormat value."""
    return value in tables.FORMATS


@cache
def format_of(value: int) -> Format:
    """The format of a VkFormat value. Raises UserError for VK_FORMAT_UNDEFINED and values that the tables lack."""
    row = tables.FORMATS.get(value)
    if row is None:
        what = "VK_FORMAT_UNDEFINED (0) has" if value == 0 else f"VkFormat {value} is not in the tables: it has"
        raise UserError(f"{what} no texel size or aspects")
    name, block_bytes, width, height, depth, aspects, planes = row
    made = tuple(Plane(PLANES[index], wide, high, size) for index, wide, high, size in planes)
    return Format(value, name, block_bytes, (width, height, depth), aspects, made)
