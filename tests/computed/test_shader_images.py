"""Texel buffers, atomics of texels and samples in dispatches, held against values worked out by hand."""

from __future__ import annotations

import struct as packing
from typing import Any

import pytest

from tests.computed.test_executed_shaders import known_words
from tests.support.drawing import descriptors
from tests.support.passes import view
from tests.support.streams import COLOR, DEPTH, DST, GENERAL, UNDEFINED, Stream, layers, struct, words
from vkharness.computed.expected_bytes import ComputedBytes, compute
from vkharness.computed.sampled_images import Sampler, sample
from vkharness.computed.texel_values import texel_value
from vkharness.findings import UserError
from vkharness.shader.execution.float_bits import InexactBits, settled
from vkharness.shader.library import load
from vkharness.spec.enums import VkDescriptorType, VkFilter, VkFormat, VkSamplerAddressMode
from vkharness.spec.formats import format_of

R32, RGBA8 = VkFormat.R32_UINT, VkFormat.R8G8B8A8_UNORM
UNIFORM_TEXELS, STORAGE_TEXELS = VkDescriptorType.UNIFORM_TEXEL_BUFFER, VkDescriptorType.STORAGE_TEXEL_BUFFER
STORAGE, STORAGE_IMAGE = VkDescriptorType.STORAGE_BUFFER, VkDescriptorType.STORAGE_IMAGE
SAMPLED = VkDescriptorType.COMBINED_IMAGE_SAMPLER
REPEAT, MIRRORED = VkSamplerAddressMode.REPEAT, VkSamplerAddressMode.MIRRORED_REPEAT
EDGE, BORDER = VkSamplerAddressMode.CLAMP_TO_EDGE, VkSamplerAddressMode.CLAMP_TO_BORDER
ONCE = VkSamplerAddressMode.MIRROR_CLAMP_TO_EDGE
NEAREST, LINEAR = VkFilter.NEAREST, VkFilter.LINEAR


def dispatch(stream: Stream, shader: str, *entries: tuple[int, int], push: bytes = b"") -> None:
    """One work group of a shader of the project with descriptors from binding 0 on."""
    made, layout = descriptors(stream, *entries)
    code = load(f"{shader}.comp")
    module = stream.make("vkCreateShaderModule", "pShaderModule", struct("VkShaderModuleCreateInfo", pCode=code))
    stage = struct("VkPipelineShaderStageCreateInfo", stage=0x20, module=module, pName="main")
    pipeline = stream.id()
    info = struct("VkComputePipelineCreateInfo", stage=stage, layout=layout)
    stream.call("vkCreateComputePipelines", device=stream.device, pCreateInfos=[info], pPipelines=[pipeline])
    stream.cmd("BindPipeline", pipelineBindPoint=1, pipeline=pipeline)
    stream.cmd("BindDescriptorSets", pipelineBindPoint=1, layout=layout, pDescriptorSets=[made])
    if push:
        stream.cmd("PushConstants", layout=layout, stageFlags=0x20, size=len(push), pValues=push)
    stream.cmd("Dispatch", groupCountX=1, groupCountY=1, groupCountZ=1)


def texel_view(stream: Stream, buffer: int, form: int = R32, offset: int = 0, size: int = 0xFFFFFFFFFFFFFFFF) -> int:
    """A view of texels of a buffer."""
    info = struct("VkBufferViewCreateInfo", buffer=buffer, format=form, offset=offset, range=size)
    return stream.make("vkCreateBufferView", "pView", info)


def filled(stream: Stream, count: int) -> int:
    """A buffer of words that the host wrote: 1, 2, 3 and so on."""
    memory = stream.memory(4 * count)
    stream.host_write(memory, 0, words(*range(1, count + 1)))
    return stream.buffer(4 * count, memory)


@pytest.mark.parametrize(
    ("shader", "kind"), [("texel_fetch_buffer", UNIFORM_TEXELS), ("texel_load_buffer", STORAGE_TEXELS)]
)
def test_texels_of_a_buffer_are_read_from_where_the_view_begins(shader: str, kind: int) -> None:
    stream = Stream()
    source, target = filled(stream, 16), stream.buffer(32)
    seen = texel_view(stream, source, offset=16, size=20)
    stream.begin()
    stream.fill(target, 0)
    dispatch(stream, shader, (kind, seen), (STORAGE, target))
    stream.submit()
    computed = compute(stream.blocks)
    assert known_words(computed, target) == [5, 6, 7, 8, 9, 0, 0, 0]
    assert not computed.reasons


@pytest.mark.parametrize(("size", "count"), [(0xFFFFFFFFFFFFFFFF, 12), (8, 2)])
def test_texels_of_a_buffer_are_written(size: int, count: int) -> None:
    stream = Stream()
    target = filled(stream, 16)
    seen = texel_view(stream, target, offset=16, size=size)
    stream.begin()
    dispatch(stream, "texel_store_buffer", (STORAGE_TEXELS, seen), push=words(100))
    stream.submit()
    before = list(range(1, 17))
    expected = [*before[:4], *range(100, 100 + count), *before[4 + count :]]
    assert known_words(compute(stream.blocks), target) == expected


def test_a_texel_of_two_components_takes_both_words() -> None:
    stream = Stream()
    source, target = filled(stream, 8), stream.buffer(16)
    seen = texel_view(stream, source, VkFormat.R32G32_UINT)
    stream.begin()
    dispatch(stream, "texel_fetch_buffer", (UNIFORM_TEXELS, seen), (STORAGE, target))
    stream.submit()
    assert known_words(compute(stream.blocks), target) == [1, 3, 5, 7]


def test_a_texel_of_64_bits_is_not_followed() -> None:
    stream = Stream()
    source, target = filled(stream, 8), stream.buffer(16)
    seen = texel_view(stream, source, VkFormat.R64_UINT)
    stream.begin()
    dispatch(stream, "texel_fetch_buffer", (UNIFORM_TEXELS, seen), (STORAGE, target))
    stream.submit()
    computed = compute(stream.blocks)
    assert known_words(computed, target) == [None] * 4
    assert list(computed.reasons) == ["vkCmdDispatch: components of 64 bits are not followed"]


def image(stream: Stream, form: int, texels: bytes, size: tuple[int, int, int]) -> tuple[int, int]:
    """(image, view) with these texels."""
    memory = stream.memory(len(texels))
    stream.host_write(memory, 0, texels)
    source, made = stream.buffer(len(texels), memory), stream.image(size, form)
    stream.begin()
    stream.transition(made, UNDEFINED, DST)
    extent = dict(zip(("width", "height", "depth"), size, strict=True))
    region = struct("VkBufferImageCopy", imageSubresource=layers(), imageExtent=extent)
    stream.cmd("CopyBufferToImage", srcBuffer=source, dstImage=made, dstImageLayout=DST, pRegions=[region])
    stream.transition(made, DST, GENERAL)
    return made, view(stream, made, form)


def test_atomics_change_texels() -> None:
    stream = Stream()
    made, seen = image(stream, R32, words(*range(64)), (8, 8, 1))
    dispatch(stream, "image_atomic_add", (STORAGE_IMAGE, seen), push=words(5))
    stream.submit()
    cells = compute(stream.blocks).cells[made, (COLOR, 0, 0)]
    assert cells.known.all()
    assert cells.data.tobytes() == words(*range(5, 69))


def sampler(stream: Stream, filter_: int = NEAREST, mode: int = REPEAT, **more: Any) -> int:
    """A sampler of the base level."""
    modes = dict.fromkeys(("addressModeU", "addressModeV", "addressModeW"), mode)
    info = struct("VkSamplerCreateInfo", magFilter=filter_, minFilter=filter_, **modes, **more)
    return stream.make("vkCreateSampler", "pSampler", info)


def sampled(texels: bytes, *filters: int, **more: Any) -> tuple[ComputedBytes, int]:
    """Runs sample_2d on an image of 4 by 2 texels, with samplers of these filters in the trace."""
    stream = Stream()
    for each in filters:
        sampler(stream, each, **more)
    target = stream.buffer(32)
    _, seen = image(stream, RGBA8, texels, (4, 2, 1))
    dispatch(stream, "sample_2d", (SAMPLED, seen), (STORAGE, target))
    stream.submit()
    return compute(stream.blocks), target


TEXELS = words(*(0x01020304 * each for each in range(1, 9)))


def test_the_nearest_texel_is_sampled_at_its_centre() -> None:
    computed, target = sampled(TEXELS, NEAREST, NEAREST)
    assert known_words(computed, target) == [0x01020304 * each for each in range(1, 9)]
    assert not computed.reasons


@pytest.mark.parametrize("filters", [(LINEAR,), (NEAREST, LINEAR)])
def test_filtered_texels_are_known_where_all_of_them_are_equal(filters: tuple[int, ...]) -> None:
    computed, target = sampled(words(*[0x01020304] * 8), *filters)
    assert known_words(computed, target) == [0x01020304] * 8
    computed, target = sampled(TEXELS, *filters)
    assert known_words(computed, target) == [None] * 8
    assert list(computed.reasons) == ["vkCmdDispatch: texels that differ may be filtered"]


@pytest.mark.parametrize("more", [{"anisotropyEnable": 1}, {"compareEnable": 1}, {"unnormalizedCoordinates": 1}])
def test_samplers_of_other_sorts_are_not_followed(more: dict[str, int]) -> None:
    computed, target = sampled(words(*[0x01020304] * 8), NEAREST, **more)
    assert known_words(computed, target) == [None] * 8
    assert list(computed.reasons) == ["vkCmdDispatch: a sampler of this sort is not followed"]


class Numbered:
    """An image whose texel at (x, y) of a level is (x, y, level, 1); levels are 4, 2 and 1 wide and high."""

    def size(self, level: int) -> tuple[int, ...]:
        return (4 >> level, 4 >> level)

    def read(self, coordinates: tuple[int, ...], at: int) -> tuple[int, int, int, int]:
        x, y = coordinates
        return x, y, at, 1

    def sample(self, coordinates: tuple[int, ...], lod: int | None) -> tuple[int, int, int, int]:
        raise NotImplementedError

    def write(self, coordinates: tuple[int, ...], texel: tuple[int, ...]) -> None:
        raise NotImplementedError

    def located(self, coordinates: tuple[int, ...], at: int) -> tuple[int, Any]:
        raise NotImplementedError

    @property
    def texel_bytes(self) -> int:
        raise NotImplementedError


def bits(number: float) -> int:
    return int.from_bytes(packing.pack("<f", number), "little")


def taken(place: tuple[float, float], lod: float | None = 0.0, **more: Any) -> tuple[int, ...]:
    """The texel of three levels that is sampled; any level unless the sampler says otherwise."""
    mode = more.pop("mode", EDGE)
    modes = dict.fromkeys(("addressModeU", "addressModeV", "addressModeW"), mode)
    info = struct("VkSamplerCreateInfo", **{**modes, "maxLod": 1000.0, **more})
    level = None if lod is None else bits(lod)
    return sample(Numbered(), [Sampler.of(info)], 2, 3, [bits(each) for each in place], level)[:3]


@pytest.mark.parametrize(
    ("mode", "x", "texel"),
    [
        (REPEAT, 1.125, 0), (REPEAT, -0.125, 3), (REPEAT, -1.375, 2), (MIRRORED, 1.125, 3), (MIRRORED, 1.875, 0),
        (MIRRORED, -0.125, 0), (MIRRORED, 2.125, 0), (EDGE, 1.125, 3), (EDGE, -5.125, 0), (ONCE, -0.375, 1),
        (ONCE, -3.125, 3), (BORDER, 0.125, 0),
    ],
)  # fmt: skip
def test_coordinates_outside_are_wrapped(mode: int, x: float, texel: int) -> None:
    assert taken((x, 0.375), mode=mode) == (texel, 1, 0)


@pytest.mark.parametrize(
    ("lod", "more", "level"),
    [
        (0.0, {}, 0), (1.0, {}, 1), (5.0, {}, 2), (-3.0, {}, 0), (0.25, {}, 0), (0.75, {}, 1),
        (2.0, {"maxLod": 1.0}, 1), (0.0, {"minLod": 2.0}, 2), (0.0, {"mipLodBias": 1.0}, 1),
        (1.0, {"mipmapMode": 1}, 1), (None, {"maxLod": 0.0}, 0),
    ],
)  # fmt: skip
def test_the_level_of_detail_chooses_the_mip_level(lod: float | None, more: dict[str, Any], level: int) -> None:
    assert taken((0.1, 0.9), lod, **more) == (0, (4 >> level) - 1, level)


@pytest.mark.parametrize(
    ("place", "lod", "more", "told"),
    [
        ((0.25, 0.1), 0.0, {}, "texels that differ"),
        ((0.26, 0.1), 0.0, {}, "texels that differ"),
        ((0.1, 0.1), 0.5, {}, "texels that differ"),
        ((0.1, 0.1), 0.25, {"mipmapMode": 1}, "texels that differ"),
        ((0.1, 0.1), None, {}, "texels that differ"),
        ((0.125, 0.125), 0.0, {"magFilter": LINEAR, "mode": REPEAT}, "texels that differ"),
        ((1.125, 0.1), 0.0, {"mode": BORDER}, "border"),
    ],
)
def test_what_lies_between_texels_or_levels_is_not_known(
    place: tuple[float, float], lod: float | None, more: dict[str, Any], told: str
) -> None:
    with pytest.raises(UserError, match=told):
        taken(place, lod, **more)


def test_the_filter_is_that_of_magnification_up_to_a_level_of_detail_of_zero() -> None:
    assert taken((0.1, 0.1), 0.0, minFilter=LINEAR) == (0, 0, 0)
    assert taken((0.1, 0.1), 1.0, magFilter=LINEAR) == (0, 0, 1)
    with pytest.raises(UserError, match="texels that differ"):
        taken((0.3, 0.1), 0.1, minFilter=LINEAR)


def test_a_coordinate_that_is_off_may_lie_in_another_texel() -> None:
    info = struct("VkSamplerCreateInfo")
    near = InexactBits.of(bits(0.125), 0.001, "off")
    assert sample(Numbered(), [Sampler.of(info)], 2, 3, [near, bits(0.1)], 0)[:2] == (0, 0)
    far = InexactBits.of(bits(0.125), 0.2, "off")
    with pytest.raises(UserError, match="texels that differ"):
        sample(Numbered(), [Sampler.of(info)], 2, 3, [far, bits(0.1)], 0)
    with pytest.raises(UserError, match="place of a sample"):
        sample(Numbered(), [Sampler.of(info)], 2, 3, [bits(0.1), InexactBits.of(bits(0.5), 1e6, "off")], 0)


def test_without_a_sampler_nothing_is_known() -> None:
    with pytest.raises(UserError, match="no sampler"):
        sample(Numbered(), [], 2, 3, [bits(0.1), bits(0.1)], 0)


def test_beside_depth_nothing_is_certain_but_alpha() -> None:
    """By the specification green and blue are 0, if depth is the red one; a driver of this machine repeats depth."""
    form = format_of(VkFormat.D32_SFLOAT)
    red, green, blue, alpha = texel_value(form, DEPTH, words(0x3F000000))
    assert (settled(red), settled(alpha)) == (0x3F000000, 0x3F800000)
    for each in (green, blue):
        with pytest.raises(UserError, match="beside depth"):
            settled(each)
    assert texel_value(form, DEPTH, words(0))[1:3] == (0, 0), "either way"
