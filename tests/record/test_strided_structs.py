"""Draws of which the parameters lie farther apart than they are long: as every reader of C memory and every writer has
them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.native_commands import Recorder, direct, native_command, new_objects
from vkharness.mirror_layer.layer_tables import Tables
from vkharness.record import native_front
from vkharness.record import struct_layout as layout
from vkharness.record.decode import Decoder
from vkharness.record.forward import make_forwarder
from vkharness.replay.objects.encode import Encoder, Handles
from vkharness.reproduction.script import Script
from vkharness.spec.followed import STRIDES
from vkharness.spec.shapes import signature
from vkharness.trace.calls import Call

ffi: Any = layout.package_ffi()
MULTI, INDEXED = STRIDES
WAYS = ("python", *(("native",) if native_front.available() else ()))


@pytest.fixture(autouse=True)
def called_directly() -> Iterator[None]:
    native_front.call_directly(True)
    yield
    native_front.call_directly(False)


def recorded(way: str, name: str, *arguments: Any) -> Recorder:
    recorder, decoder = Recorder(), Decoder(new_objects())
    driver = ffi.callback(layout.prototype(name), lambda *_: None)
    if way == "native":
        direct(driver, native_command(name, driver, recorder, decoder))(*arguments)
    else:
        make_forwarder(name, driver, decoder, recorder)(*arguments)
    return recorder


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("name", "count", "stride", "read"),
    [
        (MULTI, 2, 16, [(0, 3), (100, 6)]),
        (MULTI, 2, 8, [(0, 3), (7, 8)]),
        (MULTI, 2, 0, [(0, 3), (0, 3)]),
        (MULTI, 1, 1 << 30, [(0, 3)]),
        (MULTI, 0, 16, []),
        (INDEXED, 2, 16, [(0, 3, 7), (100, 6, 9)]),
        (INDEXED, 2, 12, [(0, 3, 7), (8, 100, 6)]),
    ],
)
def test_each_element_lies_a_stride_behind_the_one_before(
    way: str, name: str, count: int, stride: int, read: list[tuple[int, ...]]
) -> None:
    words = ffi.new("uint32_t[8]", [0, 3, 7, 8, 100, 6, 9, 10])
    indexed = name == INDEXED
    given = ffi.cast("VkMultiDrawIndexedInfoEXT *" if indexed else "VkMultiDrawInfoEXT *", words)
    more = (ffi.NULL,) if indexed else ()
    recorder = recorded(way, name, ffi.NULL, count, given, 1, 0, stride, *more)
    assert not recorder.errors
    assert [tuple(each.values()) for each in recorder.calls[0][1][STRIDES[name][0]]] == read


@pytest.mark.parametrize("way", WAYS)
def test_a_stride_that_leads_to_no_memory_is_refused(way: str) -> None:
    words = ffi.new("uint32_t[2]")
    given = ffi.cast("VkMultiDrawInfoEXT *", words)
    for count, stride in ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0)):
        recorder = recorded(way, MULTI, ffi.NULL, count, given, 1, 0, stride)
        assert not recorder.calls
        assert [str(error) for error in recorder.errors] == ["pVertexInfo leads to no memory"]


def test_the_layer_copies_what_lies_between_them() -> None:
    tables = Tables()
    for name, (of, stride) in STRIDES.items():
        shape = signature(name)
        assert shape is not None
        index = {each.name: at for at, each in enumerate(shape.params)}
        row = tables._of_parameter(name, shape, index[of], shape.params[index[of]])
        size = layout.size_of(shape.params[index[of]].type)
        assert (row.what, row.element, row.number, row.count_at) == ("STRIDED", size, index[stride], index["drawCount"])


def test_what_is_made_from_a_record_lies_side_by_side() -> None:
    parts = [{"firstVertex": 0, "vertexCount": 3}, {"firstVertex": 100, "vertexCount": 6}]
    args = {"commandBuffer": 0, "drawCount": 2, "pVertexInfo": parts, "instanceCount": 1, "firstInstance": 0}
    made = Encoder(ffi, Handles()).call(MULTI, args | {"stride": 16}, "here")
    given, stride = made.arguments[2], made.arguments[5]
    assert (stride, given[1].firstVertex, given[1].vertexCount) == (8, 100, 6)
    written = Script().arguments(Call(1, MULTI, args | {"stride": 16}), ["commands"])
    assert written[-1] == 'vk.ffi.sizeof("VkMultiDrawInfoEXT")' and len(written) == 6
