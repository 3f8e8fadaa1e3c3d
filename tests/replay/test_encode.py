"""Encoding: decoding a struct from C memory gives what was encoded, and what does not fit is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.normal_form import Generator
from tests.support.streams import Stream, struct
from vkharness.findings import UserError
from vkharness.record.decode import Decoder, _has_pointers
from vkharness.replay.objects.encode import MAX_DEPTH, Encoder, Handles
from vkharness.replay.objects.target import load
from vkharness.spec import _generated as tables
from vkharness.spec.followed import GUARDS
from vkharness.spec.shapes import members
from vkharness.trace.calls import Call
from vkharness.trace.handles import HandleRegistry
from vkharness.trace.named_objects import OBJECT_TYPES

pytestmark = pytest.mark.driver  # the package's C declarations come with its import, which opens the loader
GEOMETRY = "VkAccelerationStructureGeometryDataKHR"
PLAIN_UNIONS = tables.UNIONS - {"VkClearValue", "VkClearColorValue"}
GUARDED = {name for name, _ in GUARDS}
"""Structs with a pointer that is followed only for some values of another member."""


@pytest.fixture
def encoder() -> Encoder:
    ffi, _ = load()
    return Encoder(ffi, Handles())


class Encodable(Generator):
    """Values that C memory can hold: null handles, one account of each union, no structs without tables."""

    def value(self, base: str, depth: int) -> Any:
        return 0 if self.canonical(base) in tables.HANDLES else super().value(base, depth)

    def struct(self, name: str, depth: int) -> dict[str, Any]:
        if name in PLAIN_UNIONS:
            zero = struct(name)
            return {row[0]: zero[row[0]] for row in tables.STRUCTS[name] if not self._points(row)}
        made = super().struct(name, depth)
        if "pNext" in made:
            made["pNext"] = self.extending(name, made["pNext"])
        for row in tables.STRUCTS[name]:
            if self.canonical(row[1]) in PLAIN_UNIONS and isinstance(made[row[0]], dict):
                made[row[0]] = self.struct(self.canonical(row[1]), depth + 1)
            if isinstance(row[4], int) and isinstance(made[row[0]], (list, bytes)):
                made[row[0]] = [0] * row[4]
            if (name, row[0]) in OBJECT_TYPES:
                made[row[0]] = 0
        for member in members(name) or ():
            if member.selector is not None and self.canonical(member.type) in tables.SELECTIONS:
                made[member.name] = self.selected(self.canonical(member.type), made[member.selector], depth)
        if name == "VkPipelineMultisampleStateCreateInfo":
            made["pSampleMask"] = [1] * -(-made["rasterizationSamples"] // 32)
        if name == "VkAccelerationStructureGeometryKHR":
            kind = dict(enumerate(tables.STRUCTS[GEOMETRY])).get(made["geometryType"])
            made["geometry"] = {kind[0]: self.struct(kind[1], depth + 1)} if kind else {}
        if name == "VkPerformanceValueINTEL":
            made["type"] %= 2
            made["data"] = {("value32", "value64")[made["type"]]: 7}
        if name == "VkDescriptorGetInfoEXT":
            made["type"] = made["type"] % 2 + 6
            held = self.struct("VkDescriptorAddressInfoEXT", depth + 1)
            made["data"] = {("pUniformBuffer", "pStorageBuffer")[made["type"] - 6]: held}
        return made

    def selected(self, union: str, selector: int, depth: int) -> dict[str, Any]:
        """A union with the one member that is selected, a pointer to nothing; all members where none has a pointer."""
        if not any(map(_has_pointers, members(union) or ())):
            return self.struct(union, depth + 1)
        for each in members(union) or ():
            if selector in tables.SELECTIONS[union].get(each.name, ()):
                kind = self.canonical(each.type)
                held = self.struct(kind, depth + 1) if kind in tables.STRUCTS else 0
                return {each.name: None if each.pointer else held}
        return {}

    def extending(self, owner: str, chain: dict[str, Any] | None) -> dict[str, Any] | None:
        """Returns the part of a chain that may be in this struct's chain: decoding passes over the rest."""
        if chain is None:
            return None
        rest = self.extending(owner, chain["pNext"])
        if owner not in tables.EXTENDED.get(tables.STYPES.get(chain["sType"], ""), ()):
            return rest
        return chain | {"pNext": rest}

    def chain(self, depth: int) -> dict[str, Any] | None:
        made = super().chain(depth)
        while made is not None and made["sType"] not in tables.STYPES:
            made = made["pNext"]
        return None if made is None or tables.STYPES[made["sType"]] in GUARDED else made


@pytest.mark.parametrize("seed", [1, 2])
def test_every_struct_decodes_to_what_was_encoded(seed: int) -> None:
    ffi, _ = load()
    decoder, generator = Decoder(HandleRegistry()), Encodable(seed)
    compared = 0
    for name in tables.STRUCTS:
        if name in tables.UNIONS or name in GUARDED:
            continue
        value = generator.struct(name, 0)
        if holds_guarded(value):
            continue
        encoder = Encoder(ffi, Handles())
        pointer = encoder.struct(name, value, name)
        assert decoder.read(name, int(ffi.cast("uintptr_t", pointer))) == value
        compared += 1
    assert compared > 800


def holds_guarded(value: Any) -> bool:
    """Whether one of the guarded structs is anywhere inside."""
    if isinstance(value, list):
        return any(holds_guarded(item) for item in value)
    if not isinstance(value, dict):
        return False
    guarded = {member for _, member in GUARDS}
    return bool(guarded & value.keys()) or any(holds_guarded(item) for item in value.values())


def fill_args(**changed: Any) -> dict[str, Any]:
    return {"commandBuffer": 0, "dstBuffer": 0, "dstOffset": 0, "size": 4, "data": 1, **changed}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (fill_args(data=1 << 32), r"vkCmdFillBuffer data: 4294967296 does not fit"),
        (fill_args(data=-1), r"vkCmdFillBuffer data: -1 does not fit"),
        (fill_args(data="7"), r"vkCmdFillBuffer data is not a number but str"),
        (fill_args(data=1.5), r"vkCmdFillBuffer data is not a number but float"),
        (fill_args(dstBuffer=77), r"vkCmdFillBuffer dstBuffer: object 77 does not exist here, or has no memory"),
        (fill_args(dstBuffer="a"), r"vkCmdFillBuffer dstBuffer is not a handle but str"),
        (fill_args(data=None), r"vkCmdFillBuffer data is not a number but NoneType"),
        ([], r"the arguments of vkCmdFillBuffer are not an object"),
    ],
)
def test_values_that_do_not_fit_are_named(encoder: Encoder, args: Any, message: str) -> None:
    with pytest.raises(UserError, match=f"^block 3: {message}"):
        encoder.call("vkCmdFillBuffer", args, "block 3")


def test_an_unknown_command_is_named(encoder: Encoder) -> None:
    with pytest.raises(UserError, match="block 3: unknown command vkCmdNone"):
        encoder.call("vkCmdNone", {}, "block 3")


def test_a_handle_of_another_type_is_refused(encoder: Encoder) -> None:
    encoder.handles.add(9, "VkImage", 0x1000)
    with pytest.raises(UserError, match="object 9 is a VkImage, not a VkBuffer"):
        encoder.call("vkCmdFillBuffer", fill_args(dstBuffer=9), "block 3")


def test_a_handle_becomes_the_targets(encoder: Encoder) -> None:
    encoder.handles.add(9, "VkBuffer", 0x1000)
    encoded = encoder.call("vkCmdFillBuffer", fill_args(dstBuffer=9), "block 3")
    assert int(encoder.ffi.cast("uintptr_t", encoded.arguments[1])) == 0x1000


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("VkSubmitInfo", {"commandBufferCount": 2, "pCommandBuffers": [0]}, "has 1 elements where its count says 2"),
        ("VkSubmitInfo", {"commandBufferCount": 1, "pCommandBuffers": 5}, "pCommandBuffers is not an array but int"),
        ("VkShaderModuleCreateInfo", {"codeSize": 64, "pCode": b"1234"}, "has 4 elements where its count says 64"),
        ("VkImageCreateInfo", {"extent": 5}, "extent is not an object but int"),
        ("VkImageBlit", {"srcOffsets": [{}, {}, {}]}, "srcOffsets is not an array of 2 elements"),
        ("VkLayerProperties", {"layerName": "x" * 256}, "layerName is not a text of fewer than 256 bytes"),
        ("VkBufferCreateInfo", {"pNext": {"sType": "a"}}, "pNext is not a struct with an sType"),
        ("VkBufferCreateInfo", {"pNext": 7}, "pNext is not a struct with an sType"),
        ("VkInstanceCreateInfo", {"ppEnabledLayerNames": [5]}, "ppEnabledLayerNames is not an array of texts"),
    ],
)
def test_structs_that_would_read_past_their_end_are_refused(
    encoder: Encoder, name: str, value: Any, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        encoder.struct(name, value, name)


def test_words_as_bytes_count_as_words(encoder: Encoder) -> None:
    """Eight bytes are two words: C would read four if the bytes were counted instead."""
    wanted = {"enabledValidationFeatureCount": 4, "pEnabledValidationFeatures": b"12345678"}
    with pytest.raises(UserError, match="has 2 elements where its count says 4"):
        encoder.struct("VkValidationFeaturesEXT", wanted, "features")


def test_endless_nesting_is_refused(encoder: Encoder) -> None:
    value: dict[str, Any] = struct("VkBufferCreateInfo")
    for _ in range(MAX_DEPTH + 1):
        value = struct("VkPhysicalDeviceFeatures2", pNext=value)
    with pytest.raises(UserError, match=f"nested deeper than {MAX_DEPTH} levels"):
        encoder.chain(value, "chain")


def test_a_struct_cannot_pass_for_another(encoder: Encoder) -> None:
    made = encoder.struct("VkBufferCreateInfo", {"sType": 99, "size": 4}, "info")
    assert made.sType == 12


def test_what_the_tables_lack_is_left_out_and_told(encoder: Encoder) -> None:
    known = struct("VkPhysicalDeviceVulkan12Features", timelineSemaphore=1)
    chain = encoder.chain({"sType": 1999999999, "pNext": known}, "chain")
    assert encoder.skipped == {1999999999}
    assert encoder.ffi.cast("VkPhysicalDeviceVulkan12Features *", chain).timelineSemaphore == 1


def test_outputs_have_memory_for_all_that_comes_back(encoder: Encoder) -> None:
    info = struct("VkCommandBufferAllocateInfo", commandBufferCount=3)
    args = {"device": 0, "pAllocateInfo": info, "pCommandBuffers": [5, 6, 7]}
    encoded = encoder.call("vkAllocateCommandBuffers", args, "block 1")
    assert len(encoded.outputs["pCommandBuffers"]) == 3
    with pytest.raises(UserError, match="pCommandBuffers has 1 elements where its count says 3"):
        encoder.call("vkAllocateCommandBuffers", {**args, "pCommandBuffers": [5]}, "block 1")


def test_null_where_the_driver_would_look_is_refused(encoder: Encoder) -> None:
    with pytest.raises(UserError, match="block 1: vkCreateBuffer pCreateInfo is missing"):
        encoder.call("vkCreateBuffer", {"device": 0, "pCreateInfo": None, "pBuffer": 5}, "block 1")
    args = {"commandBuffer": 0, "srcBuffer": 0, "dstBuffer": 0, "regionCount": 0, "pRegions": None}
    encoder.call("vkCmdCopyBuffer", args, "block 2")
    with pytest.raises(UserError, match="block 2: vkCmdCopyBuffer pRegions is missing"):
        encoder.call("vkCmdCopyBuffer", {**args, "regionCount": 1}, "block 2")


def test_unused_members_may_hold_anything(encoder: Encoder) -> None:
    """The specification ignores dstSet in push descriptors: a stale handle there must not stop a replay."""
    write = struct("VkWriteDescriptorSet", dstSet=12345)
    assert encoder.struct("VkWriteDescriptorSet", write, "write").dstSet == encoder.ffi.NULL


def test_our_streams_have_every_member() -> None:
    stream = Stream()
    stream.buffer(16)
    call = stream.blocks[-1]
    assert isinstance(call, Call)
    assert call.args.keys() == {row[0] for row in tables.COMMANDS[call.name][1]}
