"""Instructions that read, sample, write and change texels, as closures."""

from __future__ import annotations

from typing import Any

from vkharness.shader.execution.access_chains import Registers
from vkharness.shader.execution.outside import NotInterpreted, ShaderImage
from vkharness.shader.execution.scalar_operations import signed
from vkharness.shader.execution.value_reader import Operands, ValueReader
from vkharness.shader.opcodes import Op

LOD, SAMPLE = 0x2, 0x40
MAKE_AVAILABLE, MAKE_VISIBLE, NON_PRIVATE, VOLATILE = 0x100, 0x200, 0x400, 0x800
HARMLESS = MAKE_AVAILABLE | MAKE_VISIBLE | NON_PRIVATE | VOLATILE
"""Image operands (MakeTexelAvailable and so on) which say how an access is ordered."""


class ImageReader(ValueReader):
    """Makes the code of image instructions. A register with an image holds a `ShaderImage`."""

    def _at(self, operands: Operands) -> int | None:
        """The register of the mip level or sample that image operands name; None without one."""
        mask = operands[0] & ~HARMLESS if operands else 0
        if mask not in (0, LOD, SAMPLE):
            raise NotInterpreted(f"image operands 0x{mask:x} are not interpreted")
        return self._register(operands[1]) if mask else None

    def _image_read(self, _: int, operands: Operands) -> None:
        at, target = self._at(operands[4:]), self._register(operands[1])
        image, coordinates = self._many(operands[2:4])
        if self._types[operands[0]].op != Op.TypeVector or self._types[operands[0]].count != 4:
            raise NotInterpreted("a texel that is no vector of four is not interpreted")

        def read(r: Registers) -> None:
            r[target] = r[image].read(signed_coordinates(r[coordinates]), 0 if at is None else r[at])

        self._add(read)

    def _image_write(self, _: int, operands: Operands) -> None:
        if self._at(operands[3:]) is not None:
            raise NotInterpreted("a store to a sample or a mip level is not interpreted")
        image, coordinates, texel = self._many(operands[:3])
        self._add(lambda r: r[image].write(signed_coordinates(r[coordinates]), _tuple(r[texel])))

    def _image_sample(self, op: int, operands: Operands) -> None:
        explicit, mask = op == Op.ImageSampleExplicitLod, operands[4] & ~HARMLESS if len(operands) > 4 else 0
        if mask != (LOD if explicit else 0):
            raise NotInterpreted(f"image operands 0x{mask:x} of a sample are not interpreted")
        if self._types[operands[0]].op != Op.TypeVector or self._types[operands[0]].count != 4:
            raise NotInterpreted("a sample that is no vector of four is not interpreted")
        lod = self._register(operands[5]) if explicit else None
        (image, coordinates), target = self._many(operands[2:4]), self._register(operands[1])

        def sample(r: Registers) -> None:
            r[target] = r[image].sample(_tuple(r[coordinates]), None if lod is None else r[lod])

        self._add(sample)

    def _texel_pointer(self, _: int, operands: Operands) -> None:
        image, coordinates, sample = self._many(operands[2:5])
        target = self._register(operands[1])

        def point(r: Registers) -> None:
            if r[sample]:
                raise NotInterpreted("an atomic on a sample is not interpreted")
            table, element, _ = r[image]
            r[target] = (TexelCell(table.image(element), signed_coordinates(r[coordinates])), 0, 0)

        self._add(point)

    def _image_size(self, op: int, operands: Operands) -> None:
        image, target = self._register(operands[2]), self._register(operands[1])
        level = self._register(operands[3]) if op == Op.ImageQuerySizeLod else None
        count = self._types[operands[0]].count

        def size(r: Registers) -> None:
            found = r[image].size(0 if level is None else r[level])
            if len(found) != (count or 1):
                raise NotInterpreted("the shader asks for the size of a view of another sort")
            r[target] = found if count else found[0]

        self._add(size)


class TexelCell:
    """The one component of a texel that atomics work on, as memory of one cell."""

    def __init__(self, image: ShaderImage, coordinates: tuple[int, ...]) -> None:
        self.image, self.coordinates = image, coordinates

    def __getitem__(self, _: int) -> int:
        return self.image.read(self.coordinates, 0)[0]

    def __setitem__(self, _: int, value: int) -> None:
        self.image.write(self.coordinates, (value, 0, 0, 1))


def _tuple(value: Any) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,)


def signed_coordinates(coordinates: Any) -> tuple[int, ...]:
    """A scalar or vector of coordinates as signed numbers."""
    return tuple(signed(each, 32) for each in _tuple(coordinates))
