"""Witnesses on images: mip levels, layers, 3D, depth apart from stencil, multisampled, and layout transitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.support.drivers_here import on_each_driver
from tests.support.streams import (
    COLOR,
    D32_S8,
    DEPTH,
    DST,
    GENERAL,
    SRC,
    STENCIL,
    UNDEFINED,
    Extent,
    Stream,
    hazard,
    layers,
)
from vkharness.findings import Box
from vkharness.replay.contents.regions import POISON
from vkharness.replay.outcomes.jobs import WitnessResult, run_witness
from vkharness.spec.enums import VkImageUsage

pytestmark = on_each_driver
RAW, WAR, WAW = "READ_AFTER_WRITE", "WRITE_AFTER_READ", "WRITE_AFTER_WRITE"
RED, GREEN = (1.0, 0.0, 0.0, 1.0), (0.0, 1.0, 0.0, 1.0)
RED_TEXEL, GREEN_TEXEL = [255, 0, 0, 255], [0, 255, 0, 255]
COLOR_TARGET = VkImageUsage.TRANSFER_SRC | VkImageUsage.TRANSFER_DST | VkImageUsage.COLOR_ATTACHMENT
DEPTH_USAGE = VkImageUsage.TRANSFER_SRC | VkImageUsage.TRANSFER_DST | VkImageUsage.DEPTH_STENCIL_ATTACHMENT


def whole(size: Extent, aspect: int = COLOR, mip: int = 0, layer: int = 0) -> Box:
    return Box(aspect, mip, layer, (0, 0, 0), size)


def texels(result: WitnessResult, image: int, key: tuple[int, int, int]) -> npt.NDArray[np.uint8]:
    assert result.observed is not None
    return result.observed.surfaces[image, key].data


@pytest.mark.parametrize(("mip", "layer"), [(0, 0), (1, 1), (2, 0)])
class TestSubresources:
    """Two images with three mips and two layers; the hazard is in one subresource."""

    def setup_images(self) -> tuple[Stream, int, int]:
        stream = Stream()
        first, second = stream.image((8, 8, 1), mips=3, array=2), stream.image((8, 8, 1), mips=3, array=2)
        stream.begin()
        stream.transition(first, UNDEFINED, GENERAL)
        stream.transition(second, UNDEFINED, GENERAL)
        for image in (first, second):
            for mip in range(3):
                for layer in range(2):
                    stream.clear(image, RED, mip, layer, GENERAL)
        stream.barrier()
        return stream, first, second

    def side(self, mip: int) -> Extent:
        return (8 >> mip, 8 >> mip, 1)

    def test_raw(self, driver: str, mip: int, layer: int) -> None:
        stream, first, second = self.setup_images()
        prior = stream.clear(first, GREEN, mip, layer, GENERAL)
        current = stream.image_to_image(first, second, self.side(mip), layers(COLOR, mip, layer), GENERAL, GENERAL)
        stream.submit()
        box = whole(self.side(mip), COLOR, mip, layer)
        result = run_witness(stream.blocks, hazard(stream, RAW, prior, current, first, boxes=(box,)), driver)
        key = (COLOR, mip, layer)
        assert np.all(result.expected.surfaces[second, key].data == GREEN_TEXEL)
        assert np.all(texels(result, second, key) == RED_TEXEL)
        assert np.all(texels(result, first, key) == GREEN_TEXEL)
        assert [(item.resource, item.subresource) for item in result.differences] == [(second, key)]

    def test_war(self, driver: str, mip: int, layer: int) -> None:
        stream, first, second = self.setup_images()
        prior = stream.image_to_image(first, second, self.side(mip), layers(COLOR, mip, layer), GENERAL, GENERAL)
        current = stream.clear(first, GREEN, mip, layer, GENERAL)
        stream.submit()
        box = whole(self.side(mip), COLOR, mip, layer)
        result = run_witness(stream.blocks, hazard(stream, WAR, prior, current, first, boxes=(box,)), driver)
        key = (COLOR, mip, layer)
        assert np.all(result.expected.surfaces[second, key].data == RED_TEXEL)
        assert np.all(texels(result, second, key) == GREEN_TEXEL)
        assert [(item.resource, item.subresource) for item in result.differences] == [(second, key)]

    def test_waw_of_a_part(self, driver: str, mip: int, layer: int) -> None:
        stream, first, _ = self.setup_images()
        prior = stream.clear(first, RED, mip, layer, GENERAL)
        current = stream.clear(first, GREEN, mip, layer, GENERAL)
        stream.submit()
        box = Box(COLOR, mip, layer, (1, 0, 0), (1, 2, 1))
        result = run_witness(stream.blocks, hazard(stream, WAW, prior, current, first, boxes=(box,)), driver)
        data = texels(result, first, (COLOR, mip, layer))
        assert np.all(data[0, :2, 1] == RED_TEXEL)
        assert np.all(data[0, :, 0] == GREEN_TEXEL) and np.all(data[0, 2:] == GREEN_TEXEL)
        assert [(item.count, item.first) for item in result.differences] == [(2, (1, 0, 0))]


def test_one_slice_of_a_3d_image(driver: str) -> None:
    stream = Stream()
    image = stream.image((4, 4, 3), kind=2)
    stream.begin()
    stream.transition(image, UNDEFINED, DST)
    prior = stream.clear(image, RED)
    current = stream.clear(image, GREEN)
    stream.submit()
    box = Box(COLOR, 0, 0, (0, 0, 1), (4, 4, 1))
    result = run_witness(stream.blocks, hazard(stream, WAW, prior, current, image, boxes=(box,)), driver)
    data = texels(result, image, (COLOR, 0, 0))
    assert np.all(data[1] == RED_TEXEL)
    assert np.all(data[[0, 2]] == GREEN_TEXEL)
    assert result.differences[0].first == (0, 0, 1)


@pytest.mark.parametrize("samples", [1, 4])
@pytest.mark.parametrize("aspect", [DEPTH, STENCIL], ids=["depth", "stencil"])
def test_depth_and_stencil_apart(driver: str, aspect: int, samples: int) -> None:
    stream = Stream()
    image = stream.image((4, 4, 1), D32_S8, samples=samples, usage=DEPTH_USAGE)
    stream.begin()
    stream.transition(image, UNDEFINED, DST, DEPTH | STENCIL)
    prior = stream.clear_depth(image, 0.25, 0x11, DEPTH | STENCIL)
    current = stream.clear_depth(image, 0.75, 0x22, DEPTH | STENCIL)
    stream.submit()
    box = whole((4, 4, 1), aspect)
    result = run_witness(stream.blocks, hazard(stream, WAW, prior, current, image, boxes=(box,)), driver)
    assert [item.subresource for item in result.differences] == [(aspect, 0, 0)]
    depth, stencil = texels(result, image, (DEPTH, 0, 0)), texels(result, image, (STENCIL, 0, 0))
    assert np.all(depth.view(np.float32) == (0.25 if aspect == DEPTH else 0.75))
    assert np.all(stencil[..., 0] == (0x11 if aspect == STENCIL else 0x22))


class TestMultisampled:
    def cleared(self, color: Any = RED) -> tuple[Stream, int, int]:
        stream = Stream()
        image = stream.image((4, 4, 1), samples=4, usage=COLOR_TARGET)
        target = stream.image((4, 4, 1), usage=COLOR_TARGET)
        stream.begin()
        stream.transition(image, UNDEFINED, GENERAL)
        stream.transition(target, UNDEFINED, GENERAL)
        stream.clear(image, color, layout=GENERAL)
        stream.barrier()
        return stream, image, target

    def resolve(self, stream: Stream, image: int, target: int) -> int:
        zero = {"x": 0, "y": 0, "z": 0}
        region = {
            "srcSubresource": layers(),
            "srcOffset": zero,
            "dstSubresource": layers(),
            "dstOffset": zero,
            "extent": {"width": 4, "height": 4, "depth": 1},
        }
        return stream.cmd(
            "ResolveImage",
            srcImage=image,
            srcImageLayout=GENERAL,
            dstImage=target,
            dstImageLayout=GENERAL,
            pRegions=[region],
        )

    def test_raw_shows_in_the_resolved_image(self, driver: str) -> None:
        stream, image, target = self.cleared()
        prior = stream.clear(image, GREEN, layout=GENERAL)
        current = self.resolve(stream, image, target)
        stream.submit()
        result = run_witness(
            stream.blocks, hazard(stream, RAW, prior, current, image, boxes=(whole((4, 4, 1)),)), driver
        )
        assert np.all(texels(result, target, (COLOR, 0, 0)) == RED_TEXEL)
        assert [item.resource for item in result.differences] == [target]

    def test_war_shows_in_the_resolved_image(self, driver: str) -> None:
        stream, image, target = self.cleared()
        prior = self.resolve(stream, image, target)
        current = stream.clear(image, GREEN, layout=GENERAL)
        stream.submit()
        result = run_witness(
            stream.blocks, hazard(stream, WAR, prior, current, image, boxes=(whole((4, 4, 1)),)), driver
        )
        assert np.all(texels(result, target, (COLOR, 0, 0)) == GREEN_TEXEL)
        assert [item.resource for item in result.differences] == [target]

    def test_waw_shows_in_every_sample(self, driver: str) -> None:
        stream, image, _ = self.cleared()
        prior = stream.clear(image, RED, layout=GENERAL)
        current = stream.clear(image, GREEN, layout=GENERAL)
        stream.submit()
        result = run_witness(
            stream.blocks, hazard(stream, WAW, prior, current, image, boxes=(whole((4, 4, 1)),)), driver
        )
        samples = texels(result, image, (COLOR, 0, 0)).view(np.float32)
        assert np.all(samples == RED)
        assert [(item.resource, item.count) for item in result.differences] == [(image, 64)]


class TestTransitions:
    """A layout transition is a write of its whole range."""

    def prepared(self) -> tuple[Stream, int, int]:
        stream = Stream()
        image, buffer = stream.image((4, 4, 1)), stream.buffer(64)
        stream.begin()
        stream.transition(image, UNDEFINED, DST)
        stream.clear(image, RED)
        stream.barrier()
        return stream, image, buffer

    def test_a_read_that_does_not_wait_for_it_may_see_anything(self, driver: str) -> None:
        stream, image, buffer = self.prepared()
        prior = stream.transition(image, DST, SRC)
        current = stream.image_to_buffer(image, buffer, (4, 4, 1))
        stream.submit()
        finding = hazard(stream, RAW, prior, current, image, boxes=(whole((4, 4, 1)),))
        result = run_witness(stream.blocks, finding, driver)
        assert result.outcome_id.endswith(":poison")
        assert result.observed is not None
        assert np.all(result.observed.surfaces[buffer, None].data == POISON)
        assert np.all(texels(result, image, (COLOR, 0, 0)) == RED_TEXEL)

    def test_a_write_that_is_not_available_to_it_may_be_lost(self, driver: str) -> None:
        stream, image, _ = self.prepared()
        prior = stream.clear(image, GREEN)
        current = stream.transition(image, DST, SRC)
        stream.submit()
        finding = hazard(stream, WAW, prior, current, image, boxes=(whole((4, 4, 1)),))
        result = run_witness(stream.blocks, finding, driver)
        assert result.outcome_id.endswith(":lost")
        assert np.all(result.expected.surfaces[image, (COLOR, 0, 0)].data == GREEN_TEXEL)
        assert np.all(texels(result, image, (COLOR, 0, 0)) == RED_TEXEL)

    def test_it_may_land_after_a_write_that_does_not_wait(self, driver: str) -> None:
        stream, image, _ = self.prepared()
        prior = stream.transition(image, DST, GENERAL)
        current = stream.clear(image, GREEN, layout=GENERAL)
        stream.submit()
        finding = hazard(stream, WAW, prior, current, image, boxes=(whole((4, 4, 1)),))
        result = run_witness(stream.blocks, finding, driver)
        assert np.all(texels(result, image, (COLOR, 0, 0)) == RED_TEXEL)

    def test_a_read_before_it_may_see_what_it_does(self, driver: str) -> None:
        stream, image, buffer = self.prepared()
        stream.transition(image, DST, SRC)
        prior = stream.image_to_buffer(image, buffer, (4, 4, 1))
        current = stream.transition(image, SRC, GENERAL)
        stream.submit()
        finding = hazard(stream, WAR, prior, current, image, boxes=(whole((4, 4, 1)),))
        result = run_witness(stream.blocks, finding, driver)
        assert result.observed is not None
        assert np.all(result.observed.surfaces[buffer, None].data == POISON)
        assert np.all(texels(result, image, (COLOR, 0, 0)) == RED_TEXEL)

    def test_a_write_before_a_discarding_one_may_land_after_the_next(self, driver: str) -> None:
        stream, image, _ = self.prepared()
        prior = stream.clear(image, RED)
        current = stream.transition(image, UNDEFINED, DST)
        after = stream.clear(image, GREEN)
        stream.submit()
        finding = hazard(stream, WAW, prior, current, image, boxes=(whole((4, 4, 1)),))
        result = run_witness(stream.blocks, finding, driver)
        assert result.outcome_id.endswith(":after-next") and after > current
        assert np.all(texels(result, image, (COLOR, 0, 0)) == RED_TEXEL)
