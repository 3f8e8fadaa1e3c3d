"""Texels, mip levels and layers that a shader reaches, and bytes that its loops reach, where the dispatch decides."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import numpy as np
import pytest

from tests.support.glsl_dispatch import (
    COMBINED_SAMPLER,
    DECLARED,
    EXACT,
    STORAGE,
    STORAGE_IMAGE,
    Bound,
    GlslDispatch,
    view,
)
from tests.support.interpreted import InterpretedStream
from tests.support.streams import struct as made
from vkharness.findings import UserError
from vkharness.shader.lanes.inputs import Inputs
from vkharness.shader.lanes.walk import walk
from vkharness.shader.library import load
from vkharness.shader.reflect import reflect
from vkharness.spans import Span

TILE = """
layout(local_size_x = {0}, local_size_y = {1}) in;
layout(set = 0, binding = 0, rgba8) uniform writeonly image2D target;
layout(push_constant) uniform Push {{ ivec2 at; }} push;
void main() {{ imageStore(target, push.at + ivec2(gl_GlobalInvocationID.xy), vec4(1)); }}
"""
STRIDE = """
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Target {{ uint words[]; }} target;
{0}
void main() {{
    for (uint i = gl_GlobalInvocationID.x; i < {1}; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {{ {2} }}
}}
"""
PUSHED = "layout(push_constant) uniform Push { uint first; uint count; } push;"


def pushed(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}i", *values)


def rows(width: int, x: Span, y: Span, base: int = 0) -> tuple[Span, ...]:
    return tuple((base + row * width + x[0], base + row * width + x[1]) for row in range(*y))


@pytest.fixture
def stream() -> InterpretedStream:
    stream = InterpretedStream()
    stream.begin()
    return stream


@pytest.mark.parametrize(("tile", "size"), [((8, 8), (64, 64, 1)), ((4, 16), (60, 33, 1)), ((1, 1), (7, 5, 1))])
def test_a_tile_is_its_texels(
    stream: InterpretedStream, tmp_path: Path, tile: Span, size: tuple[int, int, int]
) -> None:
    whole = view(stream, stream.image(size), 1, (0, 1), (0, 1))
    dispatch = GlslDispatch(stream, tmp_path, TILE.format(*tile), [Bound(STORAGE_IMAGE, whole)])
    width, height = min(2 * tile[0], size[0] - 3), min(tile[1], size[1] - 1)
    assert dispatch.reached(2, 1, push=pushed(3, 1)) == [
        ("STORAGE_WRITE", rows(size[0], (3, 3 + width), (1, 1 + height)), EXACT)
    ]
    assert dispatch.reached(1, push=pushed(size[0], 0)) == [], "it lies outside of the image"
    assert dispatch.reached(1, push=pushed(-tile[0], 0)) == [], "as it does on the other side"
    assert dispatch.reached(0, push=pushed(0, 0)) == []


FETCH = """
layout(local_size_x = 4, local_size_y = 4) in;
layout(set = 0, binding = 0) uniform sampler2D source;
layout(set = 0, binding = 1, rgba8) uniform writeonly image2D target;
layout(push_constant) uniform Push {{ int level; }} push;
void main() {{
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    imageStore(target, at, {0});
}}
"""
MIPS = (0, 64 * 64, 64 * 64 + 32 * 32)
"""Where the levels of an image of 64 by 64 texels begin."""


@pytest.mark.parametrize("level", [0, 1])
def test_a_fetched_level_is_its_texels(stream: InterpretedStream, tmp_path: Path, level: int) -> None:
    image = stream.image((64, 64, 1), mips=3)
    every, last = view(stream, image, 1, (0, 3), (0, 1)), view(stream, image, 1, (2, 1), (0, 1))
    bound = [Bound(COMBINED_SAMPLER, every), Bound(STORAGE_IMAGE, last)]
    for number in (str(level), "push.level"):
        dispatch = GlslDispatch(stream, tmp_path, FETCH.format(f"texelFetch(source, at, {number})"), bound)
        assert sorted(dispatch.reached(2, push=pushed(level))) == [
            ("SAMPLED_READ", rows(64 >> level, (0, 8), (0, 4), MIPS[level]), EXACT),
            ("STORAGE_WRITE", rows(16, (0, 8), (0, 4), MIPS[2]), EXACT),
        ]


def test_levels_count_from_the_first_of_the_view(stream: InterpretedStream, tmp_path: Path) -> None:
    image = stream.image((64, 64, 1), mips=3)
    high, first = view(stream, image, 1, (1, 2), (0, 1)), view(stream, image, 1, (0, 1), (0, 1))
    bound = [Bound(COMBINED_SAMPLER, high), Bound(STORAGE_IMAGE, first)]
    dispatch = GlslDispatch(stream, tmp_path, FETCH.format("texelFetch(source, at, push.level)"), bound)
    for level, begin in ((0, MIPS[1]), (1, MIPS[2])):
        (read, *_) = sorted(dispatch.reached(1, push=pushed(level)))
        assert read == ("SAMPLED_READ", rows(32 >> level, (0, 4), (0, 4), begin), EXACT)
    assert [each[0] for each in dispatch.reached(1, push=pushed(2))] == ["STORAGE_WRITE"], "it has no such level"


@pytest.mark.parametrize(
    ("mode", "lod", "levels"), [(0, "1.0", (1,)), (1, "1.0", (1,)), (1, "0.5", (0, 1)), (0, "0.5", (0, 1))]
)
def test_a_sampled_level_is_whole(
    stream: InterpretedStream, tmp_path: Path, mode: int, lod: str, levels: tuple[int, ...]
) -> None:
    image = stream.image((64, 64, 1), mips=3)
    stream.make("vkCreateSampler", "pSampler", made("VkSamplerCreateInfo", mipmapMode=mode, maxLod=1000.0))
    bound = [Bound(COMBINED_SAMPLER, view(stream, image, 1, (0, 3), (0, 1)))]
    bound.append(Bound(STORAGE_IMAGE, view(stream, image, 1, (2, 1), (0, 1))))
    dispatch = GlslDispatch(stream, tmp_path, FETCH.format(f"textureLod(source, vec2(at), {lod})"), bound)
    (read, *_) = sorted(dispatch.reached(1))
    assert read == ("SAMPLED_READ", ((MIPS[levels[0]], MIPS[levels[-1] + 1]),), DECLARED)


def test_a_bias_of_a_sampler_may_choose_any_level(stream: InterpretedStream, tmp_path: Path) -> None:
    image = stream.image((64, 64, 1), mips=2)
    bound = [Bound(COMBINED_SAMPLER, view(stream, image, 1, (0, 2), (0, 1)))]
    bound.append(Bound(STORAGE_IMAGE, view(stream, image, 1, (1, 1), (0, 1))))
    dispatch = GlslDispatch(stream, tmp_path, FETCH.format("textureLod(source, vec2(at), 0.0)"), bound)
    for more, end in (({}, MIPS[2]), ({"maxLod": 8.0}, MIPS[1]), ({"maxLod": 8.0, "mipLodBias": 1.0}, MIPS[2])):
        if more:
            stream.make("vkCreateSampler", "pSampler", made("VkSamplerCreateInfo", **more))
        (read, *_) = sorted(dispatch.reached(1))
        assert read == ("SAMPLED_READ", ((0, end),), DECLARED), more


ARRAYS = {
    "1D": (0, (16, 1, 1), 0, "image1D", "int(id.x)"),
    "1D array": (4, (16, 1, 1), 0, "image1DArray", "ivec2(id.x, push.layer)"),
    "2D array": (5, (8, 4, 1), 1, "image2DArray", "ivec3(id.xy, push.layer)"),
    "cube": (3, (4, 4, 1), 1, "imageCube", "ivec3(id.xy, push.layer)"),
    "cube array": (6, (4, 4, 1), 1, "imageCubeArray", "ivec3(id.xy, push.layer)"),
    "3D": (2, (8, 4, 5), 2, "image3D", "ivec3(id.xy, push.layer)"),
}


@pytest.mark.parametrize("sort", ARRAYS)
def test_a_layer_is_that_of_the_view(stream: InterpretedStream, tmp_path: Path, sort: str) -> None:
    type, size, kind, name, place = ARRAYS[sort]
    layers = 13 if kind < 2 else 1
    image = stream.image(size, kind=kind, array=layers)
    first, count = (1, {0: 1, 3: 6}.get(type, 12)) if kind < 2 else (0, 1)
    body = f"""
    layout(local_size_x = 2, local_size_y = {1 if kind == 0 else 2}) in;
    layout(set = 0, binding = 0, rgba8) uniform {name} target;
    layout(push_constant) uniform Push {{ int layer; }} push;
    void main() {{ uvec3 id = gl_GlobalInvocationID; imageStore(target, {place}, imageLoad(target, {place})); }}
    """
    dispatch = GlslDispatch(
        stream, tmp_path, body, [Bound(STORAGE_IMAGE, view(stream, image, type, (0, 1), (first, count)))]
    )
    layer = 0 if type == 0 else 3
    base = (layer + first) * size[0] * size[1]
    spans = rows(size[0], (0, 2), (0, 1 if kind == 0 else 2), base)
    assert dispatch.reached(1, push=pushed(layer)) == [("STORAGE_WRITE", spans, EXACT)]
    if type:
        assert dispatch.reached(1, push=pushed(size[2] if kind == 2 else count)) == []


def test_a_slice_that_a_flat_view_chooses(stream: InterpretedStream, tmp_path: Path) -> None:
    image = stream.image((8, 8, 6), kind=2, flags=0x20)
    target = view(stream, image, 5, (0, 1), (2, 3))
    body = (
        TILE.format(2, 2)
        .replace("image2D", "image2DArray")
        .replace("push.at + ivec2(gl_GlobalInvocationID.xy)", "ivec3(gl_GlobalInvocationID.xy, push.at.x)")
    )
    dispatch = GlslDispatch(stream, tmp_path, body, [Bound(STORAGE_IMAGE, target)])
    assert dispatch.reached(1, push=pushed(1, 0)) == [("STORAGE_WRITE", rows(8, (0, 2), (0, 2), 3 * 64), EXACT)]
    assert dispatch.reached(1, push=pushed(3, 0)) == []


def test_the_size_of_an_image_is_a_guard(stream: InterpretedStream, tmp_path: Path) -> None:
    target = view(stream, stream.image((10, 7, 1)), 1, (0, 1), (0, 1))
    body = TILE.format(8, 8).replace(
        "{ imageStore",
        "{ if (any(greaterThanEqual(ivec2(gl_GlobalInvocationID.xy) + 1, imageSize(target)))) return; imageStore",
    )
    dispatch = GlslDispatch(stream, tmp_path, body, [Bound(STORAGE_IMAGE, target)])
    assert dispatch.reached(2, 1, push=pushed(0, 0)) == [("STORAGE_WRITE", rows(10, (0, 9), (0, 6)), EXACT)]


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 200, 1000])
@pytest.mark.parametrize("first", [0, 128])
def test_a_loop_over_the_grid_is_its_words(stream: InterpretedStream, tmp_path: Path, first: int, count: int) -> None:
    buffer = stream.buffer(8192)
    body = STRIDE.format(PUSHED, "push.count", "target.words[push.first + i] = i;")
    dispatch = GlslDispatch(stream, tmp_path, body, [Bound(STORAGE, buffer)])
    expected = [("STORAGE_WRITE", ((4 * first, 4 * (first + count)),), EXACT)] if count else []
    assert dispatch.reached(3, push=pushed(first, count)) == expected


def test_what_a_loop_leaves_out_is_not_reached(stream: InterpretedStream, tmp_path: Path) -> None:
    body = STRIDE.format(PUSHED, "push.count", "if (i % 3u == 1u) continue; target.words[2u * i] = i;")
    dispatch = GlslDispatch(stream, tmp_path, body, [Bound(STORAGE, stream.buffer(8192))])
    spans = tuple((8 * i, 8 * i + 4) for i in range(70) if i % 3 != 1)
    assert dispatch.reached(1, push=pushed(0, 70)) == [("STORAGE_WRITE", spans, EXACT)]


def test_loops_in_loops(stream: InterpretedStream, tmp_path: Path) -> None:
    inner = "for (uint j = 0u; j <= i % 4u; ++j) target.words[8u * i + j] = j;"
    body = STRIDE.format(PUSHED, "push.count", inner)
    dispatch = GlslDispatch(stream, tmp_path, body, [Bound(STORAGE, stream.buffer(8192))])
    spans = tuple((32 * i, 32 * i + 4 * (i % 4 + 1)) for i in range(100))
    assert dispatch.reached(1, push=pushed(0, 100)) == [("STORAGE_WRITE", spans, EXACT)]


def test_a_count_of_a_specialization_constant(stream: InterpretedStream, tmp_path: Path) -> None:
    body = STRIDE.format("layout(constant_id = 3) const uint count = 5u;", "count", "target.words[i] = i;")
    for given, count in ((None, 5), ({3: pushed(77)}, 77)):
        dispatch = GlslDispatch(stream, tmp_path, body, [Bound(STORAGE, stream.buffer(8192))], constants=given)
        assert dispatch.reached(1) == [("STORAGE_WRITE", ((0, 4 * count),), EXACT)]


def test_a_condition_on_memory_leaves_the_words_of_a_loop(stream: InterpretedStream, tmp_path: Path) -> None:
    body = STRIDE.format(PUSHED, "push.count", "if (target.words[1000u + i] > 3u) target.words[i] = i;")
    dispatch = GlslDispatch(stream, tmp_path, body, [Bound(STORAGE, stream.buffer(8192))])
    assert dispatch.reached(1, push=pushed(0, 100)) == [
        ("STORAGE_WRITE", ((0, 400),), DECLARED),
        ("STORAGE_READ", ((4000, 4400),), EXACT),
    ]


def test_a_count_that_the_shader_reads_from_what_it_may_write_is_not_known(
    stream: InterpretedStream, tmp_path: Path
) -> None:
    body = STRIDE.format("", "target.words[0]", "target.words[1u + i] = i;")
    dispatch = GlslDispatch(stream, tmp_path, body, [Bound(STORAGE, stream.buffer(8192))])
    (write, *_) = dispatch.reached(1)
    assert write == ("STORAGE_WRITE", ((0, 8192),), DECLARED)


def test_a_loop_that_never_ends_is_not_followed(stream: InterpretedStream, tmp_path: Path) -> None:
    body = STRIDE.format(PUSHED, "push.count", "target.words[i] = i; i -= gl_NumWorkGroups.x * gl_WorkGroupSize.x;")
    dispatch = GlslDispatch(stream, tmp_path, body, [Bound(STORAGE, stream.buffer(8192))])
    assert dispatch.reached(1, push=pushed(0, 100)) == [("STORAGE_WRITE", ((0, 8192),), DECLARED)]


def test_a_large_grid_is_followed_at_once(stream: InterpretedStream, tmp_path: Path) -> None:
    body = STRIDE.format(PUSHED, "push.count", "target.words[i] = i;")
    dispatch = GlslDispatch(stream, tmp_path, body, [Bound(STORAGE, stream.buffer(4 << 20))])
    assert dispatch.reached(256, push=pushed(0, 1 << 19)) == [("STORAGE_WRITE", ((0, 4 << 19),), EXACT)]


def test_functions_and_their_arguments(stream: InterpretedStream, tmp_path: Path) -> None:
    body = (
        TILE.format(4, 1)
        .replace(
            "void main()",
            "void move(inout ivec2 at, int by) { if (by > 1) { at.y += by; return; } at.y = 0; }\nvoid main()",
        )
        .replace(
            "{ imageStore(target, push.at +",
            "{ ivec2 own = push.at; move(own, push.at.y); move(own, 2); imageStore(target, own +",
        )
    )
    dispatch = GlslDispatch(
        stream, tmp_path, body, [Bound(STORAGE_IMAGE, view(stream, stream.image((16, 16, 1)), 1, (0, 1), (0, 1)))]
    )
    assert dispatch.reached(1, push=pushed(0, 1)) == [("STORAGE_WRITE", rows(16, (0, 4), (2, 3)), EXACT)]
    assert dispatch.reached(1, push=pushed(0, 3)) == [("STORAGE_WRITE", rows(16, (0, 4), (8, 9)), EXACT)]


def test_no_mutated_module_makes_the_walk_fail(tmp_path: Path) -> None:
    """A module that is not valid is not followed, and takes no more than a valid one may."""
    source = tmp_path / "loop.comp"
    body = STRIDE.format(PUSHED, "push.count", "if (i % 3u == 1u) continue; target.words[2u * i] = i;")
    source.write_text("#version 450\n" + body)
    code, followed = load(source), 0
    for seed in range(300):
        rng = random.Random(seed)
        words = bytearray(code)
        for _ in range(rng.choice((1, 1, 2, 4))):
            at = 4 * rng.randrange(5, len(words) // 4)
            words[at : at + 4] = rng.choice((rng.randrange(64), rng.randrange(1 << 32))).to_bytes(4, "little")
        try:
            entry = reflect(bytes(words), "main")
        except UserError:
            continue
        if entry.code is not None:
            known = Inputs(
                64,
                {(28, 0): np.arange(64)},
                lambda *_: 100,
                lambda *_: 3,
                lambda *_: 64,
                lambda *_: None,
                lambda _: (None,),
                True,
            )
            walked = walk(entry.code, known, 1 << 22)
            followed += not isinstance(walked, int)
    assert followed > 20
