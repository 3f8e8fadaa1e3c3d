"""Observation: every subresource is read back, multisampled ones by fetching; what cannot be read is named."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.drivers_here import on_each_driver
from tests.support.streams import COLOR, D32, D32_S8, DEPTH, DST, S8, STENCIL, UNDEFINED, Stream
from vkharness.replay.contents.observe import Outputs, Surface, compare
from vkharness.replay.outcomes.jobs import run_serial
from vkharness.spec.enums import VkFormat, VkImageUsage

DEPTH_USAGE = VkImageUsage.TRANSFER_SRC | VkImageUsage.TRANSFER_DST | VkImageUsage.DEPTH_STENCIL_ATTACHMENT
COLOR_TARGET = VkImageUsage.TRANSFER_SRC | VkImageUsage.TRANSFER_DST | VkImageUsage.COLOR_ATTACHMENT
R32_UINT = VkFormat.R32_UINT
R32_SFLOAT = VkFormat.R32_SFLOAT
R16_SINT = VkFormat.R16_SINT
R5G6B5 = VkFormat.R5G6B5_UNORM_PACK16
BC1 = VkFormat.BC1_RGB_UNORM_BLOCK


def cleared(format_value: int, aspects: int, samples: int = 1, array: int = 1) -> tuple[Stream, int]:
    """A depth or stencil image cleared to 0.25 and 0x3C."""
    stream = Stream()
    image = stream.image((4, 3, 1), format_value, samples=samples, usage=DEPTH_USAGE, array=array)
    stream.begin()
    stream.transition(image, UNDEFINED, DST, aspects)
    stream.clear_depth(image, 0.25, 0x3C, aspects)
    stream.submit()
    return stream, image


@on_each_driver
@pytest.mark.parametrize("samples", [1, 4])
@pytest.mark.parametrize(
    ("format_value", "aspects"), [(D32, DEPTH), (S8, STENCIL), (D32_S8, DEPTH | STENCIL)], ids=["D32", "S8", "D32_S8"]
)
def test_depth_and_stencil_are_separate_surfaces(driver: str, format_value: int, aspects: int, samples: int) -> None:
    stream, image = cleared(format_value, aspects, samples)
    outputs = run_serial(stream.blocks, driver)
    assert outputs.unobserved == {}
    wanted = {(image, (aspect, 0, 0)) for aspect in (DEPTH, STENCIL) if aspect & aspects}
    assert outputs.surfaces.keys() == wanted
    if aspects & DEPTH:
        depth = outputs.surfaces[image, (DEPTH, 0, 0)].data
        assert depth.shape == (samples, 3, 4, 4)
        assert np.all(depth.view(np.float32) == 0.25)
    if aspects & STENCIL:
        stencil = outputs.surfaces[image, (STENCIL, 0, 0)].data
        assert np.all(stencil[..., 0] == 0x3C)


@on_each_driver
def test_each_layer_of_a_multisampled_array_is_fetched(driver: str) -> None:
    stream = Stream()
    image = stream.image((4, 4, 1), array=2, samples=4, usage=COLOR_TARGET)
    stream.begin()
    stream.transition(image, UNDEFINED, DST)
    stream.clear(image, (1, 0, 0, 1), layer=0)
    stream.clear(image, (0, 1, 0, 1), layer=1)
    stream.submit()
    outputs = run_serial(stream.blocks, driver)
    for layer, color in ((0, [1, 0, 0, 1]), (1, [0, 1, 0, 1])):
        data = outputs.surfaces[image, (COLOR, 0, layer)].data
        assert data.shape == (4, 4, 4, 16)
        assert data.view(np.float32)[3, 2, 1].tolist() == color


@on_each_driver
def test_an_integer_multisampled_image(driver: str) -> None:
    stream = Stream()
    image = stream.image((2, 2, 1), R32_UINT, samples=4, usage=COLOR_TARGET)
    stream.begin()
    stream.transition(image, UNDEFINED, DST)
    index = stream.clear(image, (0, 0, 0, 0))
    getattr(stream.blocks[index - 1], "args")["pColor"] = {"uint32": [0xDEADBEEF, 0, 0, 0]}  # noqa: B009
    stream.submit()
    data = run_serial(stream.blocks, driver).surfaces[image, (COLOR, 0, 0)].data
    assert np.all(data.view(np.uint32)[..., 0] == 0xDEADBEEF)


@on_each_driver
@pytest.mark.parametrize("kind", [0, 1, 2], ids=["1D", "2D", "3D"])
def test_all_dimensions_and_mips(driver: str, kind: int) -> None:
    stream = Stream()
    size = [(8, 1, 1), (8, 4, 1), (8, 4, 2)][kind]
    image = stream.image(size, mips=3, kind=kind)
    stream.begin()
    stream.transition(image, UNDEFINED, DST)
    stream.submit()
    outputs = run_serial(stream.blocks, driver)
    shapes = {key[1][1]: surface.data.shape for key, surface in outputs.surfaces.items() if key[1] is not None}
    depth, height = (2 if kind == 2 else 1), (4 if kind else 1)
    assert shapes[0] == (depth, height, 8, 4)
    assert shapes[2] == (1, 1, 2, 4)
    assert outputs.surfaces[image, (COLOR, 1, 0)].data.any()  # the first contents are known, not zero


@on_each_driver
@pytest.mark.parametrize("format_value", [R32_SFLOAT, R16_SINT, R5G6B5, BC1], ids=["float", "sint", "packed", "BC1"])
def test_formats_of_all_kinds_start_with_known_contents(driver: str, format_value: int) -> None:
    stream = Stream()
    image = stream.image((8, 8, 1), format_value)
    stream.begin()
    stream.transition(image, UNDEFINED, DST)
    stream.submit()
    first, second = run_serial(stream.blocks, driver), run_serial(stream.blocks, driver)
    data = first.surfaces[image, (COLOR, 0, 0)].data
    assert first.notes == [] and compare(first, second) == []
    assert np.all(data == data[:1, :1, :1])
    assert data.any()


@on_each_driver
def test_an_image_that_never_left_undefined_is_named(driver: str) -> None:
    stream = Stream()
    image = stream.image((4, 4, 1))
    outputs = run_serial(stream.blocks, driver)
    assert outputs.surfaces == {}
    assert "never left its initial layout" in outputs.unobserved[image]


def buffer_outputs(data: bytes) -> Outputs:
    return Outputs({(7, None): Surface(7, None, np.frombuffer(data, np.uint8))})


def test_a_buffer_difference_names_the_first_wrong_word() -> None:
    found = compare(buffer_outputs(b"\0" * 14), buffer_outputs(b"\0" * 9 + b"\1\0\0\2\0"))
    assert [difference.to_dict() for difference in found] == [
        {
            "resource": 7,
            "kind": "buffer",
            "subresource": None,
            "count": 2,
            "total": 4,
            "first": [8],
            "expected": "00000000",
            "observed": "00010000",
        }
    ]


def test_an_image_difference_names_the_first_wrong_texel() -> None:
    before = np.zeros((2, 3, 4, 4), np.uint8)
    after = before.copy()
    after[1, 2, 3, 1] = 9
    key = (5, (1, 0, 0))
    found = compare(Outputs({key: Surface(5, key[1], before)}), Outputs({key: Surface(5, key[1], after)}))
    assert [(difference.first, difference.count, difference.observed) for difference in found] == [
        ((3, 2, 1), 1, "00090000")
    ]


def test_a_surface_that_one_run_lacks_is_a_difference() -> None:
    found = compare(buffer_outputs(b"\0" * 4), Outputs())
    assert [(difference.expected, difference.observed) for difference in found] == [("something", "nothing")]


def test_equal_outputs_have_no_differences() -> None:
    assert compare(buffer_outputs(b"abcd"), buffer_outputs(b"abcd")) == []
