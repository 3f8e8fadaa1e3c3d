"""Pointers that a driver ignores may lead anywhere. The mirror must not follow them into memory that is not there."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any

import pytest

import vkharness
from hunts.front_programs import deaf_driver, heard
from tests.support.native_commands import NAMES, Recorder, address, native_command, new_objects
from vkharness.check import Analysis
from vkharness.native import core
from vkharness.record import struct_layout as layout
from vkharness.record.decode import Decoder
from vkharness.record.forward import make_forwarder
from vkharness.record.native_front import call_directly
from vkharness.record.template_data import Templates
from vkharness.spec._generated import COMMANDS, STRUCTS
from vkharness.spec.enums import VkDescriptorType
from vkharness.trace.calls import Call

ffi: Any = layout.package_ffi()
WILD = (3, 0xDEAD_BEE8, (1 << 47) - 8, 1 << 62)


def wild_arguments(name: str, at: int, place: int) -> list[Any]:
    """Arguments of which one pointer leads to `place`, and every count is 1."""
    kinds = ffi.typeof(f"PFN_{name}").args
    given = []
    for number, kind in enumerate(kinds):
        if kind.kind != "pointer":
            given.append(1.0 if kind.cname == "float" else 1)
        elif number == at:
            given.append(ffi.cast(kind, place))
        else:
            given.append(ffi.cast(kind, 0))
    return given


@pytest.mark.parametrize("place", WILD)
def test_a_wild_argument_of_any_command_is_not_followed(place: int) -> None:
    decoder, recorder, tried = Decoder(new_objects()), Recorder(), 0
    for name, (returns, params, _) in COMMANDS.items():
        made: list[tuple[Any, ...]] = []
        function = make_forwarder(name, lambda *args, m=made, r=returns: m.append(args) or (None if r == "void" else 0),
                                  decoder, recorder)  # fmt: skip
        for at, (_, _, stars, *_) in enumerate(params):
            if stars:
                del recorder.calls[:], recorder.errors[:]
                function(*wild_arguments(name, at, place))
                assert len(made) == 1, f"{name} reached the driver {len(made)} times"
                made.clear()
                told = [str(each) for each in recorder.errors]
                assert not told or (len(told) == 1 and told[0].endswith(" leads to no memory")), name
                assert not told or told[0].startswith(tuple(each[0] for each in params)), name
                assert len(recorder.calls) + len(told) == 1
                tried += bool(told)
    assert tried > 500


@pytest.mark.skipif(core is None, reason="there is no native core")
@pytest.mark.parametrize("place", WILD)
def test_the_native_front_does_the_same(place: int) -> None:
    call_directly(True)
    try:
        for name in NAMES:
            for at, (_, _, stars, *_) in enumerate(COMMANDS[name][1]):
                if stars:
                    given = wild_arguments(name, at, place)
                    native, python = (way(name, given) for way in (natively, by_python))
                    assert native == python, name
    finally:
        call_directly(False)


def by_python(name: str, given: list[Any]) -> tuple[list[Any], list[str]]:
    recorder = Recorder()
    make_forwarder(name, lambda *_: None, Decoder(new_objects()), recorder)(*given)
    return recorder.calls, [str(each) for each in recorder.errors]


def natively(name: str, given: list[Any]) -> tuple[list[Any], list[str]]:
    from tests.support.native_commands import direct

    recorder = Recorder()
    driver = ffi.callback(layout.prototype(name), lambda *_: None)
    direct(driver, native_command(name, driver, recorder, Decoder(new_objects())))(*given)
    return recorder.calls, [str(each) for each in recorder.errors]


@pytest.mark.parametrize("word", [3, 0x0000_0001_0000_0003, 0xFFFF_FFFF_FFFF_FFF8])
def test_no_member_of_any_struct_is_followed_into_nothing(word: int) -> None:
    """Each word of the struct is a pointer that leads nowhere, and counts are what is left of it."""
    decoder = Decoder(new_objects())
    for name in STRUCTS:
        size = layout.size_of(name)
        memory = ffi.new("uint64_t[]", [word] * (size // 8 + 1))
        decoder.read(name, address(memory))
    assert any(not each.startswith("a pNext") for each in decoder.cut)


@pytest.mark.parametrize("readable", [layout.is_readable, layout._KnownPages().have])
def test_memory_is_there_to_its_last_byte(readable: Callable[[int, int], bool]) -> None:
    pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    begin = address(ffi.from_buffer(pages))
    assert readable(begin, 2 * mmap.PAGESIZE) and readable(begin + 2 * mmap.PAGESIZE - 1, 1) and readable(3, 0)
    assert not any(readable(at, size) for at, size in ((0, 1), (3, 1), (-8, 1), (1 << 47, 1), ((1 << 47) - 1, 2)))
    assert not any(readable(begin, size) for size in (-1, 1 << 47, 1 << 80))


@pytest.mark.parametrize(
    "kind",
    [
        VkDescriptorType.SAMPLER,
        VkDescriptorType.STORAGE_BUFFER,
        VkDescriptorType.UNIFORM_TEXEL_BUFFER,
        VkDescriptorType.ACCELERATION_STRUCTURE_KHR,
        VkDescriptorType.INLINE_UNIFORM_BLOCK,
    ],
)
def test_data_of_a_template_are_read_where_there_is_memory(kind: int) -> None:
    decoder = Decoder(new_objects())
    templates = Templates(decoder.read, decoder.objects.table)
    page, size = mmap.PAGESIZE, 8 if kind == VkDescriptorType.INLINE_UNIFORM_BLOCK else 2
    entry = {"dstBinding": 0, "dstArrayElement": 0, "descriptorCount": size, "descriptorType": kind, "stride": page}
    info = {"templateType": 0, "pDescriptorUpdateEntries": [entry | {"offset": 64}]}
    templates.created({"pDescriptorUpdateTemplate": 5, "pCreateInfo": info})
    args = {"descriptorUpdateTemplate": 5, "descriptorSet": 9}
    pages = mmap.mmap(-1, 2 * page)
    begin = address(ffi.from_buffer(pages))
    assert templates.read(args, begin)["writes"][0]["descriptorCount"] == size
    for wild in (*WILD, (1 << 47) - 60 - page):
        with pytest.raises(BufferError, match="pData leads to no memory"):
            templates.read(args, wild)


def test_such_a_call_cannot_be_read_and_the_verdict_is_unknown() -> None:
    with deaf_driver() as vk:
        commands, buffer = vk.ffi.cast("VkCommandBuffer", 16), vk.ffi.cast("VkBuffer", 32)
        with vkharness.attach(keep_trace=True) as session:
            vk.vkBeginCommandBuffer(commands, vk.ffi.cast("VkCommandBufferBeginInfo *", 3))
            vk.vkCmdCopyBuffer(commands, buffer, buffer, 1, vk.ffi.cast("VkBufferCopy *", 3))
            inherits = vk.ffi.cast("VkCommandBufferInheritanceInfo *", 3)
            vk.vkBeginCommandBuffer(commands, vk.VkCommandBufferBeginInfo(pInheritanceInfo=inherits))
    assert heard() == ["vkBeginCommandBuffer", "vkCmdCopyBuffer", "vkBeginCommandBuffer"]
    calls = [each for each in session.blocks or () if isinstance(each, Call)]
    assert [each.unread for each in calls] == ["pBeginInfo leads to no memory", "pRegions leads to no memory", ""]
    assert all(each.site and each.site.startswith(__file__) for each in calls)
    assert session.verdict == Analysis().follow(calls).verdict == "unknown" and not session.internal_errors
    assert not session.cut_chains, "the command buffer may be a primary one, which inherits nothing"
