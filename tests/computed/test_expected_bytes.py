"""Bytes that are computed without a driver, held against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.streams import (
    COLOR,
    DEPTH,
    DST,
    GENERAL,
    R32_UINT,
    SRC,
    STENCIL,
    UNDEFINED,
    Stream,
    layers,
    struct,
    words,
)
from vkharness.computed.clear_values import cleared_color, cleared_depth
from vkharness.computed.expected_bytes import ComputedBytes, compute
from vkharness.findings import UserError
from vkharness.replay.contents.observe import Key, Outputs, Surface, compare
from vkharness.spec.formats import format_of
from vkharness.spec.names import enum_value
from vkharness.trace.calls import HostRead
from vkharness.trace.first_bytes import pattern_of


def left(stream: Stream, key: Key) -> tuple[bytes, bool]:
    """The bytes of one surface, and whether all of them are known."""
    cells = compute(stream.blocks).cells[key]
    return cells.data.tobytes(), bool(cells.known.all())


def test_fills_updates_and_copies_are_followed_in_the_order_of_execution() -> None:
    stream = Stream()
    a, b = stream.buffer(16), stream.buffer(16)
    stream.begin()
    stream.fill(a, 1)
    stream.copy(a, b, 8)
    stream.cmd("UpdateBuffer", dstBuffer=a, dstOffset=4, dataSize=4, pData=words(9))
    stream.submit()
    assert left(stream, (a, None)) == (words(1, 9, 1, 1), True)
    assert left(stream, (b, None)) == (words(1, 1) + bytes([pattern_of(b)]) * 8, True)


def test_a_fill_behind_the_end_of_its_buffer_is_named() -> None:
    stream = Stream()
    a = stream.buffer(16)
    stream.begin()
    stream.cmd("FillBuffer", dstBuffer=a, dstOffset=64, size=4, data=1)
    stream.submit()
    with pytest.raises(UserError, match=r"block \d+: vkCmdFillBuffer is malformed"):
        compute(stream.blocks)


def test_a_copy_reads_and_writes_no_more_than_its_buffers_have() -> None:
    """However large its regions are: a capture of 688 bytes asked for 64 GiB."""
    stream = Stream()
    source, target = stream.buffer(64), stream.buffer(16)
    stream.begin()
    stream.fill(source, 0x01010101)
    stream.barrier()
    stream.copy(source, target, 1 << 36)
    stream.submit()
    assert left(stream, (target, None)) == (b"\1" * 16, True)
    stream.begin()
    regions = [struct("VkBufferCopy", size=16)] * 2
    stream.cmd("CopyBuffer", srcBuffer=source, dstBuffer=target, pRegions=regions)
    stream.submit()
    with pytest.raises(UserError, match="more bytes than its buffer has"):
        compute(stream.blocks)


def test_buffers_on_one_memory_hold_the_same_bytes() -> None:
    stream = Stream()
    memory = stream.memory(32)
    first, second = stream.buffer(16, memory), stream.buffer(16, memory, offset=8)
    stream.begin()
    stream.fill(first, 5)
    stream.submit()
    assert left(stream, (second, None))[0][:8] == words(5, 5)


def test_what_the_host_writes_and_reads_is_followed() -> None:
    stream = Stream()
    memory = stream.memory(16)
    a = stream.buffer(16, memory)
    stream.host_write(memory, 4, words(3))
    stream.blocks.append(HostRead(len(stream.blocks) + 1, memory, 4, 4))
    stream.host_write(memory, 4, words(4))
    assert left(stream, (-len(stream.blocks) + 1, None)) == (words(3), True)
    assert left(stream, (a, None))[0][4:8] == words(4)


def test_texels_go_through_images_by_rows_and_offsets() -> None:
    stream = Stream()
    memory = stream.memory(64)
    a, b = stream.buffer(64, memory), stream.buffer(64)
    image = stream.image((4, 2, 1), R32_UINT)
    stream.host_write(memory, 0, words(*range(16)))
    stream.begin()
    stream.transition(image, UNDEFINED, DST)
    region = {
        "bufferOffset": 4,
        "bufferRowLength": 5,
        "bufferImageHeight": 0,
        "imageSubresource": layers(),
        "imageOffset": {"x": 1, "y": 0, "z": 0},
        "imageExtent": {"width": 3, "height": 2, "depth": 1},
    }
    arguments = {"srcBuffer": a, "dstImage": image, "dstImageLayout": DST, "regionCount": 1, "pRegions": [region]}
    stream.cmd("CopyBufferToImage", **arguments)
    stream.transition(image, DST, SRC)
    back = {"srcImage": image, "srcImageLayout": SRC, "dstBuffer": b, "regionCount": 1}
    stream.cmd("CopyImageToBuffer", **back, pRegions=[{**region, "bufferOffset": 0, "bufferRowLength": 0}])
    stream.submit()
    cells = compute(stream.blocks).cells[image, (COLOR, 0, 0)]
    assert cells.data.view("<u4")[0, :, 1:, 0].tolist() == [[1, 2, 3], [6, 7, 8]]
    assert cells.known[0].tolist() == [[False, True, True, True]] * 2
    assert left(stream, (b, None))[0][:24] == words(1, 2, 3, 6, 7, 8)


def test_a_transition_from_undefined_loses_what_was_known() -> None:
    stream = Stream()
    image = stream.image((2, 2, 1), R32_UINT)
    stream.begin()
    stream.transition(image, UNDEFINED, DST)
    stream.clear(image, (0.0, 0.0, 0.0, 0.0))
    kept = compute([*stream.blocks])
    stream.transition(image, UNDEFINED, GENERAL)
    stream.submit()
    assert not compute(stream.blocks).cells[image, (COLOR, 0, 0)].known.any()
    assert kept.cells == {}, "a command buffer that is not submitted does nothing"


def test_what_shaders_may_write_is_unknown_and_nothing_else() -> None:
    stream = Stream()
    a, b = stream.buffer(16), stream.buffer(16)
    stream.begin()
    stream.fill(a, 1)
    stream.fill(b, 1)
    stream.compute("fill_words", [b]).run()
    stream.submit()
    assert left(stream, (a, None)) == (words(1, 1, 1, 1), True)
    assert not compute(stream.blocks).cells[b, None].known.any()


@pytest.mark.parametrize(
    ("name", "value", "texel"),
    [
        ("R8G8B8A8_UNORM", (1.0, 0.0, 1.0, 0.0), b"\xff\0\xff\0"),
        ("B8G8R8A8_UNORM", (1.0, 0.0, 0.0, 1.0), b"\0\0\xff\xff"),
        ("R8_UNORM", (0.5, 0.0, 0.0, 0.0), None),
        ("R16G16_SFLOAT", (0.5, 2.0, 0.0, 0.0), b"\0\x38\0\x40"),
        ("R32_SFLOAT", (0.1, 0.0, 0.0, 0.0), np.float32(0.1).tobytes()),
        ("R16_SFLOAT", (0.1, 0.0, 0.0, 0.0), None),
        ("R8_SNORM", (-1.0, 0.0, 0.0, 0.0), b"\x81"),
        ("A2B10G10R10_UNORM_PACK32", (1.0, 0.0, 0.0, 0.0), None),
    ],
)
def test_clear_values_give_bytes_where_the_specification_leaves_no_choice(
    name: str, value: tuple[float, ...], texel: bytes | None
) -> None:
    words32 = np.array(value, np.float32).view(np.uint32).tolist()
    found = cleared_color(format_of(_format(name)), words32)
    assert (None if found is None else found.tobytes()) == texel


def _format(name: str) -> int:
    return enum_value("VkFormat", f"VK_FORMAT_{name}")


def test_integers_that_do_not_fit_are_not_computed() -> None:
    assert cleared_color(format_of(_format("R8_UINT")), (256, 0, 0, 0)) is None
    found = cleared_color(format_of(_format("R8G8_SINT")), (0xFFFFFFFF, 127, 0, 0))
    assert found is not None and found.tobytes() == b"\xff\x7f"
    depth = cleared_depth(format_of(_format("D16_UNORM")), 1.0)
    assert depth is not None and depth.tobytes() == b"\xff\xff"


def test_only_known_bytes_are_held_against_a_run() -> None:
    """The rest is taken from the run, so that it differs in nothing."""
    stream = Stream()
    a = stream.buffer(8)
    stream.begin()
    stream.fill(a, 1)
    stream.submit()
    computed = compute(stream.blocks)
    computed.cells[a, None].forget(4, 8)
    run = Outputs({(a, None): Surface(a, None, np.frombuffer(words(2, 7), np.uint8))})
    (difference,) = compare(computed.beside(run), run)
    assert (difference.first, difference.count, difference.expected) == ((0,), 1, "01000000")
    assert computed.count(run) == (4, 8)
    assert ComputedBytes().count(run) == (0, 8)


def test_why_bytes_are_unknown_is_said_where_some_are() -> None:
    stream = Stream()
    a, b = stream.buffer(4), stream.buffer(4)
    stream.begin()
    stream.cmd("WriteBufferMarkerAMD", pipelineStage=1, dstBuffer=a, dstOffset=0, marker=1)
    stream.submit()
    computed = compute(stream.blocks)
    seen = {key: Surface(key, None, np.zeros(4, np.uint8)) for key in (a, b, b + 1)}
    assert computed.why_unknown(Outputs({(b, None): seen[b]})) == ()
    assert computed.why_unknown(Outputs({(a, None): seen[a]})) == ("vkCmdWriteBufferMarkerAMD: not followed",)
    absent = computed.why_unknown(Outputs({(b + 1, None): seen[b + 1]}))
    assert absent == ("buffers of a sort that is not followed", "vkCmdWriteBufferMarkerAMD: not followed")


def test_array_layers_become_slices_and_slices_layers() -> None:
    stream = Stream()
    memory = stream.memory(64)
    data = stream.buffer(64, memory)
    stream.host_write(memory, 0, words(*range(16)))
    flat, deep = stream.image((2, 2, 1), R32_UINT, array=3), stream.image((2, 2, 4), R32_UINT, kind=2)
    back = stream.image((2, 2, 1), R32_UINT, array=3)
    size = {"width": 2, "height": 2, "depth": 1}
    zero = {"x": 0, "y": 0, "z": 0}
    stream.begin()
    upload = struct("VkBufferImageCopy", imageSubresource=layers(count=3), imageExtent=size)
    stream.cmd("CopyBufferToImage", srcBuffer=data, dstImage=flat, dstImageLayout=DST, pRegions=[upload])
    into = {"srcSubresource": layers(layer=1, count=2), "srcOffset": zero, "dstSubresource": layers()}
    region = {**into, "dstOffset": {"x": 0, "y": 0, "z": 2}, "extent": size}
    stream.cmd("CopyImage", srcImage=flat, dstImage=deep, pRegions=[{**region, "extent": {**size, "depth": 2}}])
    again = {"srcSubresource": layers(), "srcOffset": {"x": 0, "y": 0, "z": 3}, "dstOffset": zero, "extent": size}
    stream.cmd("CopyImage", srcImage=deep, dstImage=back, pRegions=[{**again, "dstSubresource": layers(layer=2)}])
    stream.submit()
    cells = compute(stream.blocks).cells
    assert cells[deep, (COLOR, 0, 0)].data.tobytes()[32:] == words(*range(4, 12))
    assert cells[deep, (COLOR, 0, 0)].known.all(axis=(1, 2)).tolist() == [False, False, True, True]
    assert cells[back, (COLOR, 0, 2)].data.tobytes() == words(*range(8, 12))
    assert cells[back, (COLOR, 0, 2)].known.all()


@pytest.mark.parametrize("aspects", [DEPTH, STENCIL, DEPTH | STENCIL])
def test_a_copy_takes_the_aspects_that_it_names(aspects: int) -> None:
    stream = Stream()
    form = enum_value("VkFormat", "VK_FORMAT_D32_SFLOAT_S8_UINT")
    a, b = stream.image((2, 2, 1), form), stream.image((2, 2, 1), form)
    stream.begin()
    stream.clear_depth(a, 0.5, 3, DEPTH | STENCIL)
    stream.image_to_image(a, b, (2, 2, 1), layers(aspects))
    stream.submit()
    computed = compute(stream.blocks)
    for aspect, texel in ((DEPTH, bytes([0, 0, 0, 0x3F])), (STENCIL, bytes([3]))):
        cells = computed.cells.get((b, (aspect, 0, 0)))
        assert (cells is not None and bool(cells.known.all())) == bool(aspects & aspect)
        assert cells is None or not aspects & aspect or cells.data.tobytes() == texel * 4
    assert not computed.reasons
