"""Which texels blits read: those of the box, and what a filter may read beside it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.interpreted import InterpretedStream
from tests.support.streams import layers, struct
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.findings import Certainty
from vkharness.spec.enums import VkFilter, VkImageType
from vkharness.trace.effects import Access

NEAREST, LINEAR, CUBIC = VkFilter.NEAREST, VkFilter.LINEAR, VkFilter.CUBIC_EXT
BOX = ((4, 0, 0), (8, 1, 1))
"""Four texels of a row of 16."""


def offset(values: tuple[int, int, int]) -> dict[str, int]:
    return dict(zip("xyz", values, strict=True))


class Blits(InterpretedStream):
    """A row of 16 texels that is read, another image that is written."""

    def __init__(self, size: tuple[int, int, int] = (16, 1, 1), kind: int = VkImageType.TYPE_2D) -> None:
        super().__init__()
        self.source, self.target = self.image(size, kind=kind), self.image((64, 64, 64), kind=VkImageType.TYPE_3D)
        self.begin()

    def blit(
        self, wide: tuple[int, int, int], filter: int, box: Any = BOX, chain: Any = None, region: Any = None
    ) -> None:
        """A blit of a box to one of this size."""
        one = struct(
            "VkImageBlit2",
            pNext=region,
            srcSubresource=layers(),
            dstSubresource=layers(),
            srcOffsets=[offset(each) for each in box],
            dstOffsets=[offset((0, 0, 0)), offset(wide)],
        )
        info = struct(
            "VkBlitImageInfo2", pNext=chain, srcImage=self.source, dstImage=self.target, pRegions=[one], filter=filter
        )
        self.cmd("BlitImage2", pBlitImageInfo=info)

    def read(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """The texels that are read for sure, and that may be."""
        recorded = [each for each in self.did() if hasattr(each, "command")]
        accesses = [each for each in recorded[-1].command.effects if isinstance(each, Access)]
        found = {
            certainty: [span for each in accesses if each.resource == self.source and each.certainty is certainty
                        for span in each.spans]
            for certainty in (Certainty.EXACT, Certainty.DECLARED)
        }  # fmt: skip
        return found[Certainty.EXACT], found[Certainty.DECLARED]


@pytest.mark.parametrize(
    ("filter", "width", "beside"),
    [
        (LINEAR, 5, [(3, 4), (8, 9)]),
        (LINEAR, 64, [(3, 4), (8, 9)]),
        (LINEAR, 4, []),
        (LINEAR, 3, []),
        (LINEAR, 1, []),
        (NEAREST, 8, []),
        (NEAREST, 3, []),
        (CUBIC, 8, [(2, 4), (8, 10)]),
        (CUBIC, 4, []),
        (CUBIC, 3, [(3, 4), (8, 9)]),
        (CUBIC, 2, [(3, 4), (8, 9)]),
        (CUBIC, 1, []),
    ],
)
@pytest.mark.parametrize("mirrored", [False, True])
def test_texels_beside_the_region(filter: int, width: int, beside: list[tuple[int, int]], mirrored: bool) -> None:
    stream = Blits()
    stream.blit((width, 1, 1), filter, BOX[::-1] if mirrored else BOX)
    assert stream.read() == ([(4, 8)], beside)


def test_a_kernel_of_an_extension_has_weight_beside_the_region() -> None:
    stream = Blits()
    stream.blit((4, 1, 1), CUBIC, chain=struct("VkBlitImageCubicWeightsInfoQCOM", cubicWeights=2))
    assert stream.read() == ([(4, 8)], [(3, 4), (8, 9)])


def test_the_edge_of_the_image_clamps() -> None:
    stream = Blits()
    stream.blit((64, 1, 1), LINEAR, ((0, 0, 0), (8, 1, 1)))
    assert stream.read() == ([(0, 8)], [(8, 9)])
    stream.blit((64, 1, 1), CUBIC, ((1, 0, 0), (15, 1, 1)))
    assert stream.read() == ([(1, 15)], [(0, 1), (15, 16)])
    stream.blit((64, 1, 1), LINEAR, ((0, 0, 0), (16, 1, 1)))
    assert stream.read() == ([(0, 16)], [])


def test_each_axis_has_a_scale_of_its_own() -> None:
    """Rows of 4 texels in 4 rows, of which the middle of the two inner rows is magnified downwards alone."""
    stream = Blits((4, 4, 1))
    stream.blit((2, 8, 1), LINEAR, ((1, 1, 0), (3, 2, 1)))
    assert stream.read() == ([(5, 7)], [(1, 3), (9, 11)])


def test_a_quarter_turn_exchanges_the_axes() -> None:
    stream = Blits((4, 4, 1))
    stream.blit((8, 2, 1), LINEAR, ((1, 1, 0), (3, 2, 1)), region=struct("VkCopyCommandTransformInfoQCOM", transform=2))
    assert stream.read() == ([(5, 7)], [(1, 3), (9, 11)])


def test_slices_of_a_3d_image() -> None:
    """One texel in each of four slices."""
    stream = Blits((1, 1, 4), VkImageType.TYPE_3D)
    stream.blit((1, 1, 8), LINEAR, ((0, 0, 2), (1, 1, 3)))
    assert stream.read() == ([(2, 3)], [(1, 2), (3, 4)])


@pytest.mark.parametrize(("width", "certainty"), [(8, ["declared"]), (4, [])])
def test_a_write_beside_the_region_of_a_magnified_blit(width: int, certainty: list[str]) -> None:
    stream = Blits()
    region = struct("VkBufferImageCopy", imageSubresource=layers(), imageOffset=offset((8, 0, 0)),
                    imageExtent={"width": 8, "height": 1, "depth": 1})  # fmt: skip
    stream.cmd(
        "CopyBufferToImage", srcBuffer=stream.buffer(64), dstImage=stream.source, dstImageLayout=1, pRegions=[region]
    )
    stream.blit((width, 1, 1), LINEAR)
    stream.submit()
    assert [each.certainty for each in Analysis().follow(stream.blocks).findings] == certainty
    assert agreement(stream.blocks).disagreements == ()
