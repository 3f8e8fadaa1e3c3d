"""Image and buffer addresses: a region's spans hold exactly its texel blocks, and boxes lead back from spans."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vkharness.spec.enums import VK_REMAINING_ARRAY_LAYERS, VK_WHOLE_SIZE
from vkharness.spec.names import enum_value
from vkharness.trace.resources import Buffer, Image


def image(format: str = "VK_FORMAT_R8G8B8A8_UNORM", extent: tuple[int, int, int] = (5, 4, 1), **more: int) -> Image:
    kind = 2 if extent[2] > 1 else 1
    return Image(1, kind, enum_value("VkFormat", format), extent, more.get("mips", 1), more.get("layers", 1))


def cells(spans: tuple[tuple[int, int], ...]) -> set[int]:
    return {at for begin, end in spans for at in range(begin, end)}


@given(
    st.sampled_from([((5, 4, 1), 3, 3), ((4, 3, 3), 2, 1)]),
    st.integers(0, 2),
    st.tuples(*[st.integers(0, 4)] * 3),
    st.tuples(*[st.integers(1, 5)] * 3),
)
def test_a_region_is_exactly_its_texels(
    shape: tuple[tuple[int, int, int], int, int], mip: int, offset: tuple[int, ...], size: tuple[int, ...]
) -> None:
    extent, mips, layers = shape
    made = image(extent=extent, mips=mips, layers=layers)
    mip = min(mip, mips - 1)
    width, height, depth = made.texels(1, mip)
    expected = set()
    whole = made.subresources(1, mip, 1, 0, VK_REMAINING_ARRAY_LAYERS)
    base = whole[0][0]
    for layer in range(layers):
        for z in range(offset[2], min(depth, offset[2] + size[2])):
            for y in range(offset[1], min(height, offset[1] + size[1])):
                for x in range(offset[0], min(width, offset[0] + size[0])):
                    expected.add(base + ((layer * depth + z) * height + y) * width + x)
    found = made.region(1, mip, range(layers), (offset[0], offset[1], offset[2]), (size[0], size[1], size[2]))
    assert cells(found) == expected


def test_subresources_are_disjoint_and_fill_the_space() -> None:
    made = image("VK_FORMAT_D24_UNORM_S8_UINT", mips=3, layers=2)
    seen: set[int] = set()
    for aspect in (2, 4):
        for mip in range(3):
            for layer in range(2):
                part = cells(made.subresources(aspect, mip, 1, layer, 1))
                assert part
                assert not part & seen
                seen |= part
    assert (
        seen
        == cells(made.subresources(6, 0, VK_REMAINING_ARRAY_LAYERS, 0, VK_REMAINING_ARRAY_LAYERS))
        == set(range(len(seen)))
    )


def test_boxes_lead_back_to_the_spans_of_whole_rows() -> None:
    made = image(extent=(6, 5, 1), mips=2, layers=2)
    for begin, end in made.region(1, 1, range(1, 2), (0, 1, 0), (3, 1, 1)):
        (box,) = made.boxes((begin, end))
        assert (box.aspect, box.mip, box.layer, box.offset, box.extent) == (1, 1, 1, (0, 1, 0), (3, 1, 1))


def test_compressed_formats_count_blocks() -> None:
    made = image("VK_FORMAT_BC1_RGB_UNORM_BLOCK", extent=(8, 8, 1), mips=2)
    assert len(cells(made.subresources(1, 0, 1, 0, 1))) == 4
    assert len(cells(made.subresources(1, 1, 1, 0, 1))) == 1
    assert cells(made.region(1, 0, range(1), (4, 0, 0), (4, 4, 1))) == {1}


def test_planes_have_extents_of_their_own() -> None:
    made = image("VK_FORMAT_G8_B8R8_2PLANE_420_UNORM", extent=(4, 4, 1))
    assert [len(cells(made.subresources(plane, 0, 1, 0, 1))) for plane in (0x10, 0x20)] == [16, 4]
    assert len(cells(made.subresources(1, 0, 1, 0, 1))) == 20


def test_buffers_of_one_memory_have_addresses_by_offset() -> None:
    buffer = Buffer(7, 64, memory=3, offset=128)
    assert buffer.space == 3
    assert buffer.span(16, VK_WHOLE_SIZE) == (144, 192)
    assert buffer.span(48, 64) == (176, 192)
    assert buffer.span(80, 4) == (192, 192)
