"""Sizes, aspects and planes of formats."""

from __future__ import annotations

import pytest

from vkharness.findings import UserError
from vkharness.spec import _generated as tables
from vkharness.spec.enums import VkImageAspect
from vkharness.spec.formats import PLANES, Format, format_of


def named(name: str) -> Format:
    return format_of(tables.ENUMS["VkFormat"][f"VK_FORMAT_{name}"])


def test_colour_format() -> None:
    found = named("R8G8B8A8_UNORM")
    assert (found.block_bytes, found.block_extent, found.aspects) == (4, (1, 1, 1), VkImageAspect.COLOR)
    assert found.aspect_bytes(VkImageAspect.COLOR) == 4
    assert found.aspect_list() == (VkImageAspect.COLOR,)
    assert not found.compressed


@pytest.mark.parametrize(
    ("name", "depth", "stencil"),
    [
        ("D16_UNORM", 2, None),
        ("X8_D24_UNORM_PACK32", 4, None),
        ("D32_SFLOAT", 4, None),
        ("S8_UINT", None, 1),
        ("D16_UNORM_S8_UINT", 2, 1),
        ("D24_UNORM_S8_UINT", 4, 1),
        ("D32_SFLOAT_S8_UINT", 4, 1),
    ],
)
def test_depth_and_stencil_are_copied_apart(name: str, depth: int | None, stencil: int | None) -> None:
    found = named(name)
    assert found.aspects == (VkImageAspect.DEPTH if depth else 0) | (VkImageAspect.STENCIL if stencil else 0)
    for aspect, size in ((VkImageAspect.DEPTH, depth), (VkImageAspect.STENCIL, stencil)):
        if size:
            assert found.aspect_bytes(aspect) == size
        else:
            with pytest.raises(UserError, match=f"VK_FORMAT_{name} has no aspect"):
                found.aspect_bytes(aspect)


def test_compressed_formats_count_blocks() -> None:
    found = named("BC1_RGB_UNORM_BLOCK")
    assert (found.block_bytes, found.block_extent) == (8, (4, 4, 1))
    assert found.compressed
    wide = named("ASTC_10x6_SRGB_BLOCK")
    assert (wide.block_bytes, wide.block_extent) == (16, (10, 6, 1))


def test_planes_have_their_own_extent_and_size() -> None:
    found = named("G8_B8R8_2PLANE_420_UNORM")
    assert found.aspects == PLANES[0] | PLANES[1]
    assert found.aspect_list() == PLANES[:2]
    assert found.aspect_bytes(PLANES[0]) == 1
    assert found.aspect_bytes(PLANES[1]) == 2
    assert found.aspect_extent(PLANES[0], (10, 6, 1)) == (10, 6, 1)
    assert found.aspect_extent(PLANES[1], (10, 6, 1)) == (5, 3, 1)
    with pytest.raises(UserError, match="has no aspect 0x40"):
        found.aspect_bytes(PLANES[2])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, r"^VK_FORMAT_UNDEFINED \(0\) has no texel size or aspects$"),
        (7777777, "^VkFormat 7777777 is not in the tables"),
        (-1, "^VkFormat -1 is not in the tables"),
    ],
)
def test_undefined_and_unknown_formats_are_named(value: int, said: str) -> None:
    with pytest.raises(UserError, match=said):
        format_of(value)


def test_every_format_of_the_binding_is_known() -> None:
    for name, value in tables.ENUMS["VkFormat"].items():
        if value:
            found = format_of(value)
            assert found.block_bytes > 0, name
            assert found.aspect_list()
            for aspect in found.aspect_list():
                assert 0 < found.aspect_bytes(aspect) <= 32
