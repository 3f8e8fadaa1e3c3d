"""Contents of attachments after render pass instances, held against texels worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.passes import (
    CLEAR,
    DISCARD,
    DONT_CARE,
    LOAD,
    NONE_LOAD,
    NONE_STORE,
    STORE,
    WHITE,
    attached,
    begin_pass,
    begin_rendering,
    clear_attachments,
    described,
    end_pass,
    framebuffer,
    next_subpass,
    rect,
    refer,
    render_pass,
    subpass,
    view,
)
from tests.support.streams import COLOR, D32_S8, DEPTH, DST, GENERAL, R8G8B8A8, STENCIL, UNDEFINED, Stream, layers
from vkharness.computed.expected_bytes import compute
from vkharness.computed.fetched_samples import fetched
from vkharness.computed.known_cells import Cells
from vkharness.replay.contents.observe import Outputs, Surface
from vkharness.spec.enums import VkImageUsage, VkRendering, VkResolveMode

SIZE = (4, 4)
USAGE = VkImageUsage.COLOR_ATTACHMENT | VkImageUsage.TRANSFER_SRC | VkImageUsage.TRANSFER_DST
DEPTH_USAGE = VkImageUsage.DEPTH_STENCIL_ATTACHMENT | VkImageUsage.TRANSFER_SRC
RED = {"color": {"uint32": [0x3F800000, 0, 0, 0x3F800000]}}
RED_TEXEL = 0xFF0000FF
WHITE_TEXEL = 0xFFFFFFFF
UNKNOWN = -1


def target(stream: Stream, array: int = 1, samples: int = 1, form: int = R8G8B8A8) -> int:
    """An image to render to."""
    usage = USAGE if form == R8G8B8A8 else DEPTH_USAGE
    return stream.image((*SIZE, 1), form, array=array, samples=samples, usage=usage)


def ready(stream: Stream, image: int) -> None:
    """Moves an image to GENERAL and clears it to 0."""
    stream.transition(image, UNDEFINED, GENERAL)
    for layer in range(2):
        stream.clear(image, (0.0, 0.0, 0.0, 0.0), layer=layer, layout=GENERAL)


def texels(stream: Stream, image: int, aspect: int = COLOR, layer: int = 0) -> list[list[int]]:
    """The texels of one layer as numbers, UNKNOWN where they are not known."""
    cells = compute(stream.blocks).cells[image, (aspect, 0, layer)]
    weights = 256 ** np.arange(cells.data.shape[-1])
    values = (cells.data[0].astype(np.int64) * weights).sum(axis=-1)
    return np.where(cells.known[0], values, UNKNOWN).tolist()  # type: ignore[no-any-return]


def quarters(inside: int, outside: int, width: int = 2, height: int = 2) -> list[list[int]]:
    """`inside` in the area (0, 0, width, height), `outside` elsewhere."""
    return [[inside if x < width and y < height else outside for x in range(4)] for y in range(4)]


def test_a_clear_on_load_sets_the_render_area_and_nothing_else() -> None:
    stream = Stream()
    image = target(stream)
    stream.begin()
    ready(stream, image)
    begin_rendering(stream, rect((2, 3)), [attached(view(stream, image), clearValue=RED)])
    stream.cmd("EndRendering")
    stream.submit()
    assert texels(stream, image) == quarters(RED_TEXEL, 0, 2, 3)


@pytest.mark.parametrize(
    ("load", "store", "inside"),
    [
        (LOAD, STORE, 0),
        (LOAD, DISCARD, UNKNOWN),
        (DONT_CARE, STORE, UNKNOWN),
        (NONE_LOAD, NONE_STORE, 0),
        (NONE_LOAD, STORE, UNKNOWN),
        (LOAD, NONE_STORE, 0),
        (CLEAR, NONE_STORE, UNKNOWN),
    ],
)
def test_what_operations_keep_and_lose(load: int, store: int, inside: int) -> None:
    stream = Stream()
    image = target(stream)
    stream.begin()
    ready(stream, image)
    begin_rendering(stream, rect((2, 2)), [attached(view(stream, image), load, store)])
    stream.cmd("EndRendering")
    stream.submit()
    assert texels(stream, image) == quarters(inside, 0)


def test_store_none_keeps_no_attachment_that_was_cleared_inside() -> None:
    stream = Stream()
    image = target(stream)
    stream.begin()
    ready(stream, image)
    begin_rendering(stream, rect((2, 2)), [attached(view(stream, image), LOAD, NONE_STORE)])
    clear_attachments(stream, [(COLOR, 0)], [(rect((1, 1)), 0, 1)])
    stream.cmd("EndRendering")
    stream.submit()
    assert texels(stream, image) == quarters(UNKNOWN, 0)


def test_clears_inside_reach_their_rectangles_layers_and_attachments() -> None:
    stream = Stream()
    image = target(stream, array=2)
    stream.begin()
    ready(stream, image)
    both = view(stream, image, layers=(0, 2))
    begin_rendering(stream, rect(SIZE), [attached(0), attached(both, LOAD)], layers=2)
    clear_attachments(stream, [(COLOR, 0), (COLOR, 1)], [(rect((2, 2)), 1, 1)])
    stream.cmd("EndRendering")
    stream.submit()
    assert texels(stream, image) == quarters(0, 0)
    assert texels(stream, image, layer=1) == quarters(WHITE_TEXEL, 0)


def test_views_are_layers_of_their_own() -> None:
    stream = Stream()
    image = target(stream, array=2)
    stream.begin()
    ready(stream, image)
    begin_rendering(stream, rect(SIZE), [attached(view(stream, image, layers=(0, 2)))], views=2)
    clear_attachments(stream, [(COLOR, 0)], [(rect((0, 0)), 0, 1)])
    stream.cmd("EndRendering")
    stream.submit()
    assert texels(stream, image) == quarters(0, 0)
    assert texels(stream, image, layer=1) == quarters(WHITE_TEXEL, WHITE_TEXEL)


def test_suspended_rendering_loads_once_and_stores_once() -> None:
    stream = Stream()
    image = target(stream)
    stream.begin()
    ready(stream, image)
    shown = attached(view(stream, image), CLEAR, STORE)
    begin_rendering(stream, rect(SIZE), [shown], flags=VkRendering.SUSPENDING)
    stream.cmd("EndRendering")
    begin_rendering(stream, rect(SIZE), [{**shown, "clearValue": RED}], flags=VkRendering.RESUMING)
    stream.cmd("EndRendering")
    stream.submit()
    assert texels(stream, image) == quarters(WHITE_TEXEL, WHITE_TEXEL)


def test_an_initial_layout_of_undefined_loses_all_layers_and_the_area_is_cleared() -> None:
    stream = Stream()
    image = target(stream)
    made = render_pass(stream, [described()], [subpass([refer(0)])])
    frame = framebuffer(stream, made, [view(stream, image)], SIZE)
    stream.begin()
    ready(stream, image)
    begin_pass(stream, made, frame, rect((2, 2)), [RED])
    end_pass(stream)
    stream.submit()
    assert texels(stream, image) == quarters(RED_TEXEL, UNKNOWN)


@pytest.mark.parametrize("form", [1, 2])
def test_an_attachment_is_loaded_by_its_first_subpass_and_stored_by_its_last(form: int) -> None:
    stream = Stream()
    first, second = target(stream), target(stream)
    attachments = [described(initial=GENERAL), described(store=DISCARD, initial=GENERAL)]
    made = render_pass(stream, attachments, [subpass([refer(1)]), subpass([refer(0)])], form=form)
    frame = framebuffer(stream, made, [view(stream, first), view(stream, second)], SIZE)
    stream.begin()
    ready(stream, first)
    ready(stream, second)
    begin_pass(stream, made, frame, rect(SIZE), [RED, WHITE], form=1)
    next_subpass(stream)
    clear_attachments(stream, [(COLOR, 0)], [(rect((2, 2)), 0, 1)])
    end_pass(stream)
    stream.submit()
    assert texels(stream, first) == quarters(WHITE_TEXEL, RED_TEXEL)
    assert texels(stream, second) == quarters(UNKNOWN, UNKNOWN)


def test_depth_and_stencil_have_operations_of_their_own() -> None:
    stream = Stream()
    image = target(stream, form=D32_S8)
    both = DEPTH | STENCIL
    attachment = described(D32_S8, CLEAR, DISCARD, stencil=(CLEAR, STORE))
    made = render_pass(stream, [attachment], [subpass(depth=refer(0))])
    frame = framebuffer(stream, made, [view(stream, image, D32_S8, aspects=both)], SIZE)
    stream.begin()
    begin_pass(stream, made, frame, rect(SIZE), [{"color": {"uint32": [0x3F000000, 7, 0, 0]}}])
    end_pass(stream)
    stream.submit()
    assert texels(stream, image, STENCIL) == quarters(7, 7)
    assert texels(stream, image, DEPTH) == quarters(UNKNOWN, UNKNOWN)


@pytest.mark.parametrize("mode", [VkResolveMode.AVERAGE, VkResolveMode.SAMPLE_ZERO])
def test_samples_that_are_equal_resolve_to_what_they_hold(mode: int) -> None:
    stream = Stream()
    many, one = target(stream, samples=4), target(stream)
    stream.begin()
    ready(stream, one)
    resolve: dict[str, Any] = {"resolveMode": mode, "resolveImageView": view(stream, one)}
    shown = attached(view(stream, many), CLEAR, DISCARD, clearValue=RED, **resolve)
    begin_rendering(stream, rect((2, 2)), [shown])
    stream.cmd("EndRendering")
    stream.submit()
    assert texels(stream, one) == quarters(RED_TEXEL, 0)
    assert texels(stream, many) == quarters(UNKNOWN, UNKNOWN)


def test_a_resolve_command_copies_boxes_of_equal_samples() -> None:
    stream = Stream()
    many, one = target(stream, samples=4), target(stream)
    stream.begin()
    ready(stream, one)
    stream.transition(many, UNDEFINED, DST)
    stream.clear(many, (1.0, 0.0, 0.0, 1.0))
    region = {
        "srcSubresource": layers(),
        "srcOffset": {"x": 0, "y": 0, "z": 0},
        "dstSubresource": layers(),
        "dstOffset": {"x": 0, "y": 0, "z": 0},
        "extent": {"width": 2, "height": 2, "depth": 1},
    }
    stream.cmd(
        "ResolveImage", srcImage=many, srcImageLayout=DST, dstImage=one, dstImageLayout=GENERAL, pRegions=[region]
    )
    stream.submit()
    assert texels(stream, one) == quarters(RED_TEXEL, 0)


def samples_of(data: list[int], words: list[list[float]], name: str = "VK_FORMAT_R8G8B8A8_UNORM") -> list[float] | None:
    """The float words that are expected of a texel of a run, which showed these words for each sample."""
    cells = Cells(np.array(data, np.uint8).reshape(1, 1, 1, -1), np.ones((1, 1, 1), np.bool_))
    seen = np.array(words, np.float32).reshape(len(words), 1, 1, -1)
    surface = Surface(1, (COLOR, 0, 0), seen.view(np.uint8), name, len(words))
    found = fetched(cells, surface)
    return None if found is None else found.data.view(np.float32)[:, 0, 0].ravel().tolist()


def test_samples_are_expected_as_a_shader_fetches_them() -> None:
    third = float(np.nextafter(np.float32(85 / 255), np.float32(1)))
    assert samples_of([255, 85, 0, 255], [[1.0, third, 0.0, 1.0]]) == [1.0, third, 0.0, 1.0]
    assert samples_of([255, 85, 0, 255], [[1.0, 0.4, 0.0, 0.5]]) == [1.0, float(np.float32(85 / 255)), 0.0, 1.0]
    assert samples_of([0, 0x3C], [[9.0, 9.0, 9.0, 9.0]] * 2, "VK_FORMAT_R16_SFLOAT") == [1.0, 0.0, 0.0, 1.0] * 2
    assert samples_of([1, 2, 3, 4], [[0.0] * 4], "VK_FORMAT_A8B8G8R8_SRGB_PACK32") is None


def test_undefined_contents_and_what_is_copied_from_them_are_told_from_unknown_bytes() -> None:
    stream = Stream()
    image, buffer = target(stream), stream.buffer(80)
    stream.begin()
    stream.transition(image, UNDEFINED, GENERAL)
    begin_rendering(stream, rect((4, 2)), [attached(view(stream, image), clearValue=RED)])
    stream.cmd("EndRendering")
    stream.image_to_buffer(image, buffer, (*SIZE, 1), layout=GENERAL)
    stream.submit()
    computed = compute(stream.blocks)
    assert computed.undefined[image, (COLOR, 0, 0)][0].tolist() == [[False] * 4] * 2 + [[True] * 4] * 2
    assert computed.undefined[buffer, None].tolist() == [False] * 32 + [True] * 32 + [False] * 16
    run = Outputs({(buffer, None): Surface(buffer, None, np.zeros(80, np.uint8))})
    assert computed.count(run) == (48, 48)
