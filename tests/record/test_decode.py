"""C memory to normal form: against what cffi reads by itself, for every struct, and shape by shape."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.native_commands import Recorder
from vkharness.record import separate_aspects
from vkharness.record import struct_layout as layout
from vkharness.record.decode import Decoder, extends
from vkharness.record.forward import make_converter, make_forwarder
from vkharness.spec._generated import COMMANDS, HANDLES, STRUCTS, UNIONS
from vkharness.spec.followed import IGNORED_ELSEWHERE
from vkharness.spec.shapes import Member, is_callback, members, resolve
from vkharness.trace.handles import HandleRegistry

ffi: Any = layout.package_ffi()


@pytest.fixture
def objects() -> HandleRegistry:
    return HandleRegistry(lambda c: int(ffi.cast("uintptr_t", c)), lambda raw: ffi.cast("void *", raw))


@pytest.fixture
def decoder(objects: HandleRegistry) -> Decoder:
    return Decoder(objects)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def call(decoder: Decoder, recorder: Recorder) -> Callable[..., dict[str, Any]]:
    """Calls the stand-in of a command whose C side is `real`, and returns the recorded arguments."""

    def run(name: str, *args: Any, real: Callable[..., Any] = lambda *args: None) -> dict[str, Any]:
        result = real if COMMANDS[name][0] != "VkResult" else lambda *a: real(*a) or 0
        make_forwarder(name, result, decoder, recorder)(*args)
        assert recorder.errors == []
        return recorder.calls[-1][1]

    return run


def address(value: Any) -> int:
    return int(ffi.cast("uintptr_t", value))


def handle(kind: str, raw: int) -> Any:
    return ffi.cast(kind, raw)


# Every struct, against cffi.


def has_pointers(name: str) -> bool:
    return any(m.pointer or is_callback(m.type) or has_pointers(m.type) for m in members(name) or ())


def by_cffi(member: Member, value: Any, objects: HandleRegistry) -> Any:
    """Computes the normal form of a member, which is read by cffi attribute by attribute."""
    kind = resolve(member.type)
    if member.type == "char" and member.dims:
        return ffi.buffer(value)[:].split(b"\0")[0].decode("utf-8", "surrogateescape")
    if member.dims:
        inner = Member(*member[:5], member.dims[1:], *member[6:])
        return [by_cffi(inner, value[i], objects) for i in range(member.dims[0])]
    if kind in UNIONS or kind in STRUCTS:
        return struct_by_cffi(kind, value, objects)
    if kind in HANDLES:
        return objects.table(kind)[address(value)]
    if layout.scalar_code(kind) == "i":
        return (int(value) + (1 << 31)) % (1 << 32) - (1 << 31)
    return value if isinstance(value, float) else int(value)


def struct_by_cffi(name: str, value: Any, objects: HandleRegistry) -> dict[str, Any]:
    rows = members(name) or ()
    if name == "VkClearColorValue":
        rows = tuple(row for row in rows if row.name == "uint32")
    if name == "VkClearValue":
        rows = tuple(row for row in rows if row.name == "color")
    return {row.name: by_cffi(row, getattr(value, row.name), objects) for row in rows}


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, float) and math.isnan(a):
        return isinstance(b, float) and math.isnan(b)
    return type(a) is type(b) and bool(a == b)


PLAIN = sorted(name for name in STRUCTS if not has_pointers(name))


def test_random_bytes_decode_as_cffi_reads_them(decoder: Decoder, objects: HandleRegistry) -> None:
    rng = random.Random(7)
    assert len(PLAIN) > 100
    for name in PLAIN:
        for _ in range(3):
            memory = ffi.new(name + " *")
            size = ffi.sizeof(memory[0])
            ffi.buffer(memory, size)[:] = rng.randbytes(size)
            assert equal(decoder.read(name, address(memory)), struct_by_cffi(name, memory[0], objects)), name


def test_every_struct_and_command_has_code(decoder: Decoder, recorder: Recorder) -> None:
    for name in STRUCTS:
        memory = ffi.new(name + " *")
        read = decoder.read(name, address(memory))
        if name not in UNIONS:
            assert list(read) == [m.name for m in members(name) or ()], name
    for name in COMMANDS:
        assert make_forwarder(name, None, decoder, recorder).__name__ == name  # type: ignore[arg-type]


def test_zeroed_arguments_pass_through_every_command(decoder: Decoder, recorder: Recorder) -> None:
    """NULL, 0 and empty everywhere: what a decoder must not follow."""
    for name, (returns, params, _) in COMMANDS.items():
        zeros = [ffi.cast(t, 0) if t.kind == "pointer" else 0 for t in ffi.typeof("PFN_" + name).args]
        make_forwarder(name, lambda *args, void=returns == "void": None if void else 0, decoder, recorder)(*zeros)
        assert recorder.errors == [], name
        assert recorder.calls[-1][0] == name
        assert list(recorder.calls[-1][1]) == [p[0] for p in params]


def test_what_the_loader_cannot_be_asked_is_left_out_of_a_new_device(
    decoder: Decoder, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_functions = object()
    monkeypatch.setattr(separate_aspects, "_library", lambda: without_functions)
    physical = ffi.cast("VkPhysicalDevice", 1)
    make_forwarder("vkCreateDevice", lambda *_: 0, decoder, recorder)(physical, ffi.NULL, ffi.NULL, ffi.NULL)
    assert recorder.errors == []
    assert list(recorder.calls[-1][1]) == ["physicalDevice", "pCreateInfo", "pAllocator", "pDevice"]


# Shape by shape.


def test_chains_keep_unknown_structs_by_their_type(decoder: Decoder) -> None:
    last = ffi.new("VkPhysicalDeviceVulkan13Features *", {"sType": 53, "synchronization2": 1})
    unknown = ffi.new("VkBaseOutStructure *", {"sType": 1_999_999_999})
    unknown.pNext = ffi.cast("VkBaseOutStructure *", last)
    first = ffi.new("VkPhysicalDeviceFeatures2 *", {"sType": 1000059000, "pNext": unknown})
    read = decoder.read("VkPhysicalDeviceFeatures2", address(first))
    assert read["pNext"]["sType"] == 1_999_999_999
    assert set(read["pNext"]) == {"sType", "pNext"}
    assert read["pNext"]["pNext"]["synchronization2"] == 1
    assert read["features"]["robustBufferAccess"] == 0


def test_texts_and_lists_of_texts(decoder: Decoder) -> None:
    texts = [ffi.new("char[]", text) for text in (b"VK_KHR_a", "größe".encode(), b"\xff")]
    names = ffi.new("char *[]", texts)
    info = ffi.new("VkInstanceCreateInfo *", {"enabledExtensionCount": 3, "ppEnabledExtensionNames": names})
    read = decoder.read("VkInstanceCreateInfo", address(info))
    assert read["ppEnabledExtensionNames"] == ["VK_KHR_a", "größe", "\udcff"]
    assert read["ppEnabledLayerNames"] is None


def test_counted_pointers_that_are_empty_or_null(decoder: Decoder) -> None:
    some = ffi.new("VkCommandBuffer[1]")
    info = ffi.new("VkSubmitInfo *", {"pCommandBuffers": some})
    read = decoder.read("VkSubmitInfo", address(info))
    assert read["pCommandBuffers"] == []
    assert read["pWaitSemaphores"] is None


def test_code_is_bytes_and_sample_masks_are_words(decoder: Decoder) -> None:
    code = ffi.new("uint32_t[3]", [0x07230203, 2, 3])
    info = ffi.new("VkShaderModuleCreateInfo *", {"codeSize": 12, "pCode": code})
    assert decoder.read("VkShaderModuleCreateInfo", address(info))["pCode"] == bytes(ffi.buffer(code))
    masks = ffi.new("VkSampleMask[2]", [1, 2])
    state = ffi.new("VkPipelineMultisampleStateCreateInfo *", {"rasterizationSamples": 64, "pSampleMask": masks})
    assert decoder.read("VkPipelineMultisampleStateCreateInfo", address(state))["pSampleMask"] == [1, 2]
    state.rasterizationSamples = 4
    assert decoder.read("VkPipelineMultisampleStateCreateInfo", address(state))["pSampleMask"] == [1]


def test_clear_values_are_their_bits(decoder: Decoder) -> None:
    value = ffi.new("VkClearValue *")
    value.depthStencil.depth, value.depthStencil.stencil = 1.0, 9
    read = decoder.read("VkClearValue", address(value))
    assert read == {"color": {"uint32": [0x3F800000, 9, 0, 0]}}


def test_pointers_that_vulkan_ignores_are_not_followed(decoder: Decoder) -> None:
    nowhere = ffi.cast("void *", 8)
    buffers = ffi.new("VkDescriptorBufferInfo[1]", [{"offset": 3, "range": 5}])
    write = ffi.new(
        "VkWriteDescriptorSet *",
        {"descriptorCount": 1, "descriptorType": 7, "pBufferInfo": buffers, "pImageInfo": nowhere},
    )
    write.pTexelBufferView = nowhere
    read = decoder.read("VkWriteDescriptorSet", address(write))
    assert read["pBufferInfo"] == [{"buffer": 0, "offset": 3, "range": 5}]
    assert (read["pImageInfo"], read["pTexelBufferView"]) == (None, None)
    info = ffi.new("VkBufferCreateInfo *", {"queueFamilyIndexCount": 5, "pQueueFamilyIndices": nowhere})
    assert decoder.read("VkBufferCreateInfo", address(info))["pQueueFamilyIndices"] is None
    info.sharingMode, info.queueFamilyIndexCount = 1, 2
    info.pQueueFamilyIndices = families = ffi.new("uint32_t[2]", [0, 3])
    assert decoder.read("VkBufferCreateInfo", address(info))["pQueueFamilyIndices"] == list(families)


def test_views_of_an_imageless_framebuffer_are_not_followed(decoder: Decoder) -> None:
    """Garbage there would be read as handles."""
    views = ffi.new("VkImageView[1]", [handle("VkImageView", 7)])
    info = ffi.new("VkFramebufferCreateInfo *", {"attachmentCount": 1, "pAttachments": views, "flags": 1})
    assert decoder.read("VkFramebufferCreateInfo", address(info))["pAttachments"] is None
    info.flags = 0
    assert decoder.read("VkFramebufferCreateInfo", address(info))["pAttachments"] == [1]


@pytest.mark.parametrize(("owner", "member"), sorted(IGNORED_ELSEWHERE))
def test_a_pointer_that_may_be_ignored_leads_nowhere_without_a_word(decoder: Decoder, owner: str, member: str) -> None:
    """All else of the struct is read, and a pointer that is never ignored is told of."""
    memory = ffi.new("uint64_t[]", layout.size_of(owner) // 8 + 1)
    start = address(memory)
    (found,) = [each for each in members(owner) or () if each.name == member]
    assert found.pointer
    memory[layout.fields_of(owner)[member].offset // 8] = 8
    if found.length is not None:
        assert not isinstance(found.length, int)
        count = layout.fields_of(owner)[str(found.length if isinstance(found.length, str) else found.length[1])].offset
        memory[count // 8] |= 1 << 8 * (count % 8)
    assert decoder.read(owner, start)[member] is None and not decoder.cut
    submit = ffi.new("VkSubmitInfo *", {"commandBufferCount": 1, "pCommandBuffers": ffi.cast("void *", 8)})
    decoder.read("VkSubmitInfo", address(submit))
    assert decoder.cut == {"pCommandBuffers of VkSubmitInfo"}


def test_inputs_are_read_before_the_call_and_outputs_after(call: Any) -> None:
    regions = ffi.new("VkBufferCopy[2]", [(1, 2, 3), (4, 5, 6)])

    def overwrite(*args: Any) -> None:
        regions[0].size = 99

    args = call("vkCmdCopyBuffer", handle("VkCommandBuffer", 1), handle("VkBuffer", 2), handle("VkBuffer", 2), 2,
                regions, real=overwrite)  # fmt: skip
    assert [region["size"] for region in args["pRegions"]] == [3, 6]
    assert args["srcBuffer"] == args["dstBuffer"] != args["commandBuffer"]

    properties = ffi.new("VkMemoryRequirements *")

    def answer(device: Any, buffer: Any, out: Any) -> None:
        out.size = 64

    args = call("vkGetBufferMemoryRequirements", handle("VkDevice", 1), handle("VkBuffer", 2), properties, real=answer)
    assert args["pMemoryRequirements"] == {"size": 64, "alignment": 0, "memoryTypeBits": 0}


def test_counts_of_outputs_are_what_the_call_returned(call: Any) -> None:
    count = ffi.new("uint32_t *", 5)
    out = ffi.new("VkPhysicalDevice[5]")

    def answer(instance: Any, number: Any, devices: Any) -> None:
        number[0] = 2
        devices[0], devices[1] = handle("VkPhysicalDevice", 0x10), handle("VkPhysicalDevice", 0x20)

    args = call("vkEnumeratePhysicalDevices", handle("VkInstance", 1), count, out, real=answer)
    again = call("vkEnumeratePhysicalDevices", handle("VkInstance", 1), count, out, real=answer)
    assert args["pPhysicalDeviceCount"] == 2
    assert len(set(args["pPhysicalDevices"])) == 2
    assert again["pPhysicalDevices"] == args["pPhysicalDevices"]
    args = call("vkEnumeratePhysicalDevices", handle("VkInstance", 1), count, ffi.NULL)
    assert args["pPhysicalDevices"] is None


def test_bytes_floats_and_fixed_arrays_as_parameters(call: Any) -> None:
    commands = handle("VkCommandBuffer", 1)
    data = ffi.new("uint8_t[]", b"\1\2\3\4")
    assert call("vkCmdUpdateBuffer", commands, handle("VkBuffer", 2), 0, 4, data)["pData"] == b"\1\2\3\4"
    assert call("vkCmdSetLineWidth", commands, 2)["lineWidth"] == 2.0
    constants = ffi.new("float[4]", [0.0, 0.5, 1.0, 2.0])
    assert call("vkCmdSetBlendConstants", commands, constants)["blendConstants"] == [0.0, 0.5, 1.0, 2.0]
    assert call("vkCmdSetPrimitiveRestartEnable", commands, True)["primitiveRestartEnable"] == 1


def test_geometry_lists_are_as_long_as_each_geometry_count(call: Any) -> None:
    infos = ffi.new("VkAccelerationStructureBuildGeometryInfoKHR[2]", [{"geometryCount": 2}, {"geometryCount": 1}])
    ranges = [ffi.new("VkAccelerationStructureBuildRangeInfoKHR[]", [(n, 0, 0, 0) for n in c]) for c in ((7, 8), (9,))]
    lists = ffi.new("VkAccelerationStructureBuildRangeInfoKHR *[]", ranges)
    args = call("vkCmdBuildAccelerationStructuresKHR", handle("VkCommandBuffer", 1), 2, infos, lists)
    counts = [[one["primitiveCount"] for one in each] for each in args["ppBuildRangeInfos"]]
    assert counts == [[7, 8], [9]]


@pytest.mark.parametrize(("kind", "name"), [(0, "triangles"), (1, "aabbs"), (2, "instances"), (3, "")])
def test_geometry_is_read_as_its_type_says(decoder: Decoder, kind: int, name: str) -> None:
    made = ffi.new("VkAccelerationStructureGeometryKHR *", {"geometryType": kind})
    if name:
        data = getattr(made.geometry, name)
        (data.vertexData if name == "triangles" else data.data).deviceAddress = 0x123456789
    read = decoder.read("VkAccelerationStructureGeometryKHR", address(made))["geometry"]
    assert list(read) == [name] if name else read == {}
    if name:
        assert read[name]["vertexData" if name == "triangles" else "data"] == {"deviceAddress": 0x123456789}


def test_creations_give_ids_and_destructions_end_them(call: Any, objects: HandleRegistry) -> None:
    device = handle("VkDevice", 0x1)
    info = ffi.new("VkFenceCreateInfo *")
    out = ffi.new("VkFence *")

    def create(*args: Any) -> None:
        args[-1][0] = handle("VkFence", 0x5)

    first = call("vkCreateFence", device, info, ffi.NULL, out, real=create)["pFence"]
    assert call("vkDestroyFence", device, out[0], ffi.NULL)["fence"] == first
    assert objects.live.get(first) is None
    second = call("vkCreateFence", device, info, ffi.NULL, out, real=create)["pFence"]
    assert second not in (0, first)


def test_a_command_that_the_header_has_under_another_name_is_recorded(decoder: Decoder, recorder: Recorder) -> None:
    assert COMMANDS["vkCmdPushDescriptorSet"][2] == "vkCmdPushDescriptorSetKHR"
    forward = make_forwarder("vkCmdPushDescriptorSet", lambda *args: None, decoder, recorder)
    convert = make_converter("vkCmdPushDescriptorSet", forward, lambda value, kind: (value, value))
    convert(handle("VkCommandBuffer", 1), 1, handle("VkPipelineLayout", 2), 3, 0, None)
    name, args, _ = recorder.calls[0]
    assert (name, args["set"], args["pDescriptorWrites"]) == ("vkCmdPushDescriptorSet", 3, None)


def test_the_converter_does_what_the_package_does(recorder: Recorder, decoder: Decoder) -> None:
    import vulkan as vk

    forward = make_forwarder("vkQueueSubmit", lambda *args: 0, decoder, recorder)
    convert = make_converter("vkQueueSubmit", forward, vk._vulkan._cast_ptr)
    queue, fence = handle("VkQueue", 1), handle("VkFence", 2)
    commands = [handle("VkCommandBuffer", 3)]
    submit = vk.VkSubmitInfo(pCommandBuffers=commands)
    for submits in ([submit], submit, ffi.addressof(submit), ffi.new("VkSubmitInfo[1]", [submit])):
        convert(queue, 1, submits, None)
        convert(queue, 1, submits, fence)
    assert len({repr(args["pSubmits"]) for _, args, _ in recorder.calls}) == 1
    assert [bool(args["fence"]) for _, args, _ in recorder.calls] == [False, True] * 4
    assert recorder.calls[0][1]["pSubmits"][0]["commandBufferCount"] == 1


GARBAGE = 0x7EAD_BEEF_0000
"""An address without memory."""


def fence_info(following: Any) -> Any:
    """A VkFenceCreateInfo whose chain begins at an address."""
    return ffi.new("VkFenceCreateInfo *", {"sType": 8, "pNext": ffi.cast("void *", following)})


def chain_of(decoder: Decoder, following: Any) -> Any:
    return decoder.read("VkFenceCreateInfo", address(fence_info(following)))["pNext"]


@pytest.mark.parametrize("following", [GARBAGE, 8, (1 << 64) - 16, (1 << 47) - 8])
def test_a_chain_that_leads_nowhere_ends_there(decoder: Decoder, following: int) -> None:
    assert chain_of(decoder, following) is None
    assert decoder.cut == {"a pNext chain of VkFenceCreateInfo"}


def test_a_chain_with_an_end_is_not_cut(decoder: Decoder) -> None:
    export = ffi.new("VkExportFenceCreateInfo *", {"sType": 1000113000, "handleTypes": 1})
    chain_of(decoder, export)
    chain_of(decoder, ffi.NULL)
    assert not decoder.cut


def test_a_struct_that_extends_nothing_of_the_chain_is_passed_over(decoder: Decoder) -> None:
    """Its pointers may be garbage: a driver does not look at them."""
    export = ffi.new("VkExportFenceCreateInfo *", {"sType": 1000113000, "handleTypes": 1})
    stranger = ffi.new("VkApplicationInfo *", {"sType": 0, "pApplicationName": ffi.cast("char *", GARBAGE)})
    stranger.pNext = export
    assert chain_of(decoder, stranger) == {"sType": 1000113000, "pNext": None, "handleTypes": 1}
    stranger.pNext = ffi.NULL
    assert chain_of(decoder, stranger) is None


def test_an_unknown_struct_keeps_its_type_and_what_follows(decoder: Decoder) -> None:
    export = ffi.new("VkExportFenceCreateInfo *", {"sType": 1000113000, "handleTypes": 1})
    unknown = ffi.new("VkBaseInStructure *", {"sType": 1999999999})
    unknown.pNext = ffi.cast("VkBaseInStructure *", export)
    known = {"sType": 1000113000, "pNext": None, "handleTypes": 1}
    assert chain_of(decoder, unknown) == {"sType": 1999999999, "pNext": known}
    unknown.pNext = ffi.cast("VkBaseInStructure *", GARBAGE)
    assert chain_of(decoder, unknown) == {"sType": 1999999999, "pNext": None}


@pytest.mark.parametrize("kind", [1999999999, 0])
def test_a_chain_in_a_circle_ends(decoder: Decoder, kind: int) -> None:
    link = ffi.new("VkBaseInStructure *", {"sType": kind})
    link.pNext = link
    found, links = chain_of(decoder, link), 0
    while found is not None:
        found, links = found["pNext"], links + 1
    assert links <= 65
    assert decoder.cut == {"a pNext chain of VkFenceCreateInfo"}


def test_structs_of_one_chain_extend_the_same_struct() -> None:
    assert extends("VkTimelineSemaphoreSubmitInfo", "VkSubmitInfo")
    assert extends("VkTimelineSemaphoreSubmitInfo", "VkProtectedSubmitInfo")
    assert not extends("VkTimelineSemaphoreSubmitInfo", "VkFenceCreateInfo")
