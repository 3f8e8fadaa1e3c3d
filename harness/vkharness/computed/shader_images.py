"""Images and texel buffers as one execution of shaders reads and writes them, through views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from vkharness.computed.known_cells import Bytes, Cells, Mask
from vkharness.computed.sampled_images import Sampler, sample
from vkharness.computed.texel_values import stored_components, texel_value
from vkharness.findings import UserError
from vkharness.shader.execution.outside import ShaderMemory
from vkharness.spec.enums import VkImageAspect, VkImageViewType
from vkharness.spec.formats import Format
from vkharness.trace.resources import Image, ImageView

ARRAYS = (VkImageViewType.TYPE_1D_ARRAY, VkImageViewType.TYPE_2D_ARRAY)
DIMENSIONS = {
    VkImageViewType.TYPE_1D: 1,
    VkImageViewType.TYPE_2D: 2,
    VkImageViewType.TYPE_3D: 3,
    VkImageViewType.TYPE_1D_ARRAY: 1,
    VkImageViewType.TYPE_2D_ARRAY: 2,
}
"""Coordinates of a view without the layer; other types of views are not followed."""


@dataclass(frozen=True, slots=True)
class TexelCopy:
    """A copy of the texels of one subresource, with a flag for each: written by this execution."""

    cells: Cells
    written: Mask


@dataclass(frozen=True, slots=True)
class BoundImage:
    """An image view that is bound; it implements `ShaderImage`. Whatever is not followed raises `UserError`."""

    image: Image
    view: ImageView
    type: int
    """A VkImageViewType."""
    format: Format
    copy_of: Callable[[int, int, int, int], TexelCopy]
    """The copy of an image's aspect, mip level and layer."""
    samplers: Sequence[Sampler] = ()
    """Those with which it may be sampled; none for a view that is not sampled as others are."""

    @property
    def texel_bytes(self) -> int:
        """Those of its format."""
        return self.format.block_bytes

    def size(self, level: int) -> tuple[int, ...]:
        """The extent of a mip level, and the number of layers of an array."""
        found = self.image.texels(self.view.aspects, self._mip(level))[: self._dimensions]
        return (*found, len(self.view.layers)) if self.type in ARRAYS else found

    def read(self, coordinates: tuple[int, ...], at: int) -> tuple[int, int, int, int]:
        """A known texel; of several samples the one that all are."""
        copy, place = self._texel(coordinates, 0 if self.image.samples > 1 else at)
        if not copy.cells.known[place]:
            raise UserError("the shader reads texels that are not known")
        data: Bytes = copy.cells.data[place]
        return texel_value(self.format, self.view.aspects, data.tobytes())

    def write(self, coordinates: tuple[int, ...], texel: tuple[int, ...]) -> None:
        """A texel that is known from now on."""
        copy, place = self._texel(coordinates, 0)
        if self.image.samples > 1 or len(texel) != 4:
            raise UserError("a store to a sample, or of less than four components, is not followed")
        data = b"".join(part for _, part in stored_components(self.format, texel))
        copy.cells.data[place] = list(data)
        copy.cells.known[place] = copy.written[place] = True

    def located(self, coordinates: tuple[int, ...], at: int) -> tuple[int, Any]:
        """Names the copy of the subresource, and the texel in it."""
        copy, place = self._texel(coordinates, 0 if self.image.samples > 1 else at)
        return id(copy.written), place

    def sample(self, coordinates: tuple[int, ...], lod: int | None) -> tuple[int, int, int, int]:
        """A sample that is the same with each sampler."""
        return sample(self, self.samplers, self._dimensions, len(self.view.mips), coordinates, lod)

    @property
    def _dimensions(self) -> int:
        if self.type not in DIMENSIONS or self.view.sliced:
            raise UserError("a view of this type is not followed")
        return DIMENSIONS[self.type]

    def _mip(self, level: int) -> int:
        if not 0 <= level < len(self.view.mips):
            raise UserError(f"the view has no mip level {level}")
        return self.view.mips[level]

    def _texel(self, coordinates: tuple[int, ...], level: int) -> tuple[TexelCopy, tuple[int, int, int]]:
        inside, mip = self._dimensions, self._mip(level)
        layer = coordinates[inside] if self.type in ARRAYS else 0
        x, y, z = (*coordinates[:inside], 0, 0)[:3]
        width, height, depth = self.image.texels(self.view.aspects, mip)
        if not (0 <= x < width and 0 <= y < height and 0 <= z < depth and 0 <= layer < len(self.view.layers)):
            raise UserError("the shader reaches a texel outside of the view")
        return self.copy_of(self.image.id, self.view.aspects, mip, self.view.layers[layer]), (z, y, x)


@dataclass(frozen=True, slots=True)
class BoundTexelBuffer:
    """A buffer view that is bound; it implements `ShaderImage`. Whatever is not followed raises `UserError`."""

    memory: ShaderMemory
    format: Format

    @property
    def texel_bytes(self) -> int:
        """Those of its format."""
        return self.format.block_bytes

    def size(self, level: int) -> tuple[int, ...]:
        """The number of texels."""
        return (self.memory.size // self.format.block_bytes,)

    def read(self, coordinates: tuple[int, ...], at: int) -> tuple[int, int, int, int]:
        """A texel of which all bytes are known."""
        data = self.memory.read(self._place(coordinates), self.format.block_bytes)
        return texel_value(self.format, VkImageAspect.COLOR, data)

    def write(self, coordinates: tuple[int, ...], texel: tuple[int, ...]) -> None:
        """A texel that is known from now on."""
        if len(texel) != 4:
            raise UserError("a store of less than four components is not followed")
        data = b"".join(part for _, part in stored_components(self.format, texel))
        self.memory.write(self._place(coordinates), data)

    def located(self, coordinates: tuple[int, ...], at: int) -> tuple[int, Any]:
        """Names the memory, and the first byte of the texel in it."""
        return self.memory.located(self._place(coordinates))

    def sample(self, coordinates: tuple[int, ...], lod: int | None) -> tuple[int, int, int, int]:
        """Raises `UserError`: no shader may do so."""
        raise UserError(f"the shader samples a texel buffer at {coordinates}, {lod}")

    def _place(self, coordinates: tuple[int, ...]) -> int:
        (at,) = coordinates
        if not 0 <= at < self.size(0)[0]:
            raise UserError("the shader reaches a texel outside of the view")
        return at * self.format.block_bytes
