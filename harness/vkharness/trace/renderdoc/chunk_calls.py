"""A chunk as the printed calls that it stands for, with the names that Vulkan has for its parameters.

RenderDoc writes the parameters of a command in their order, and a struct in place of a pointer to it. What makes
several objects at once comes once for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from vkharness.spec import _generated as tables
from vkharness.spec.enums import VkStructureType
from vkharness.spec.shapes import Member, signature
from vkharness.trace.lines import Corrupt
from vkharness.trace.named_objects import object_type_of
from vkharness.trace.printed.printed_values import PrintedCall, PrintedValue
from vkharness.trace.renderdoc.byte_archive import decimal
from vkharness.trace.renderdoc.chunks import CaptureChunk
from vkharness.trace.work_budget import A_BLOCK, spend_reading

NULL = "NULL"
IMAGES = "vkGetSwapchainImagesKHR"
UNMAPS = ("vkUnmapMemory", "vkUnmapMemory2", "vkUnmapMemory2KHR")
FLUSH, COHERENT = "vkFlushMappedMemoryRanges", "Internal::Coherent Mapped Memory Write"
INITIAL, BEGIN = "Internal::Initial Contents", "Internal::Beginning of Capture"
WITHOUT_EFFECT = ("SetShaderDebugPath", "vkCmdIndirectSubCommand")
"""Chunks of RenderDoc's own that say nothing of what is accessed, beside those that begin with `INTERNAL`."""
INTERNAL = "Internal::"
_MOST_IMAGES = 64
"""Of a swapchain. Drivers have some eight at most."""
_FIRST_LEFT_OUT = 1 << 62
"""The numbers from here on are those of images that are not in the capture."""
_LACKS = "it lacks values that RenderDoc writes"
_NAMING = ("vkSetDebugUtilsObjectNameEXT", "vkDebugMarkerSetObjectNameEXT")
_COUNTS = {"vkAllocateCommandBuffers": "commandBufferCount", "vkAllocateDescriptorSets": "descriptorSetCount"}


class HostBytes(NamedTuple):
    """Bytes that mapped memory held when the program made them count. `offset` counts from the start of the memory,
    which is named by its number in the capture."""

    memory: int
    offset: int
    data: bytes


def host_bytes(chunk: CaptureChunk) -> HostBytes | None:
    """The bytes that a chunk says mapped memory held; None where they are not there. Raises Corrupt."""
    if len(chunk.values) < 4:
        raise Corrupt("it lacks the bytes that the host wrote")
    held = next((each for each in chunk.values if each.tag in ("buffer", "null")), None)
    if held is None:
        raise Corrupt("it lacks the bytes that the host wrote")
    memory: PrintedValue
    offset: PrintedValue
    if chunk.name in UNMAPS:
        memory, offset = chunk.values[1:3]
        memory = _member(memory, "memory") if memory.parts else memory
    else:
        memory, offset = (_member(chunk.values[2], name) for name in ("memory", "offset"))
    return None if held.data is None else HostBytes(object_number(memory), _whole(offset), held.data)


class ChunkCalls:
    """Turns the chunks of one capture into calls."""

    def __init__(self) -> None:
        self.types: dict[str, str] = {}
        """The type of each object, by the text of its number."""
        self._device = "0x0"
        self._bind_points: dict[str, PrintedValue] = {}
        """Of each template that pushes descriptors."""
        self._several: dict[str, dict[int, CaptureChunk]] = {}
        """By swapchain and by the index of the image: chunks with one image each."""
        self._left_out = _FIRST_LEFT_OUT

    def read(self, chunk: CaptureChunk) -> Iterator[PrintedCall]:
        """The calls that a chunk stands for. Raises Corrupt."""
        if chunk.name == IMAGES and len(chunk.values) >= 4 and not chunk.trouble:
            index = decimal(chunk.values[2].text)
            if index is None or index >= _MOST_IMAGES:
                yield _call(chunk, trouble=f"image {chunk.values[2].text[:60]!r} of a swapchain")
                return
            self._several.setdefault(chunk.values[1].text, {})[index] = chunk
            return
        made = _SPECIAL.get(chunk.name)
        try:
            yield from made(self, chunk) if made is not None and not chunk.trouble else (self._plain(chunk),)
        except (IndexError, KeyError, ValueError):  # also of values that are taken apart, which are too few
            yield _call(chunk, trouble=_LACKS)

    def _plain(self, chunk: CaptureChunk) -> PrintedCall:
        """The call of which the chunk has the parameters in their order."""
        shape = signature(chunk.name)
        if shape is None or chunk.trouble:
            return _call(chunk, *chunk.values)
        if len(chunk.values) < len(shape.params):
            return _call(chunk, trouble=_LACKS)
        by_name: dict[str, PrintedValue] = {}
        for member, value in zip(shape.params, chunk.values, strict=False):
            value.name = member.name
            by_name[member.name] = value
            if member.length is not None and value.tag in ("struct", "ResourceId"):
                by_name[member.name] = PrintedValue(member.name, "", [value])
                if isinstance(member.length, str) and member.length in by_name:
                    by_name[member.length].text = "1"
            self._learn(member, value)
        if chunk.name in _COUNTS:
            _part(by_name["pAllocateInfo"], _COUNTS[chunk.name]).text = "1"
        if chunk.name == "vkCreateDescriptorUpdateTemplate":
            self._bind_points[chunk.values[3].text] = _part(by_name["pCreateInfo"], "pipelineBindPoint")
        return _call(chunk, *by_name.values())

    def _learn(self, member: Member, value: PrintedValue) -> None:
        """Takes note of an object that a call returns."""
        if member.pointer and not member.const and member.type in tables.HANDLES:
            self.types[value.text] = member.type
            if member.type == "VkDevice":
                self._device = value.text

    def begun(self) -> Iterator[PrintedCall]:
        """The calls that have a chunk for each image of a swapchain, once these are all read."""
        several, self._several = self._several, {}
        for chunks in several.values():
            yield self._images(chunks)

    def _images(self, chunks: dict[int, CaptureChunk]) -> PrintedCall:
        """The images of a swapchain, each at its index: RenderDoc leaves out those that the frame does not use."""
        spend_reading(A_BLOCK * (max(chunks) + 1), "images of swapchains")
        images = []
        for index in range(max(chunks) + 1):
            self._left_out += index not in chunks
            text = chunks[index].values[3].text if index in chunks else hex(self._left_out)
            self.types[text] = "VkImage"
            images.append(PrintedValue("", text))
        first = next(iter(chunks.values()))
        count = PrintedValue("pSwapchainImageCount", str(len(images)))
        device, swapchain = (
            PrintedValue(name, first.values[at].text) for at, name in enumerate(("device", "swapchain"))
        )
        return _call(first, device, swapchain, count, PrintedValue("pSwapchainImages", "", images))

    def _instance(self, chunk: CaptureChunk) -> Iterator[PrintedCall]:
        given = chunk.values[0]
        extensions = _part(given, "Extensions").parts
        application = [
            _s_type(VkStructureType.APPLICATION_INFO),
            PrintedValue("pNext", NULL),
            *(
                PrintedValue(name, _part(given, theirs).text)
                for name, theirs in (
                    ("pApplicationName", "AppName"),
                    ("applicationVersion", "AppVersion"),
                    ("pEngineName", "EngineName"),
                    ("engineVersion", "EngineVersion"),
                    ("apiVersion", "APIVersion"),
                )
            ),
        ]
        create = [
            _s_type(VkStructureType.INSTANCE_CREATE_INFO),
            PrintedValue("pNext", NULL),
            PrintedValue("flags", "0"),
            PrintedValue("pApplicationInfo", "", application),
            PrintedValue("enabledLayerCount", "0"),
            PrintedValue("ppEnabledLayerNames", NULL),
            PrintedValue("enabledExtensionCount", str(len(extensions))),
            PrintedValue("ppEnabledExtensionNames", "" if extensions else NULL, extensions),
        ]
        yield _call(
            chunk,
            PrintedValue("pCreateInfo", "", create),
            PrintedValue("pAllocator", NULL),
            PrintedValue("pInstance", _part(given, "InstanceID").text),
        )

    def _physical_device(self, chunk: CaptureChunk) -> Iterator[PrintedCall]:
        """One physical device, with what queries of it return."""
        instance, _number, device = chunk.values[:3]
        named = {each.name: each for each in chunk.values}
        one, several = PrintedValue("pPhysicalDeviceCount", "1"), PrintedValue("pPhysicalDevices", "", [device])
        yield _call(chunk, instance, one, several)
        asked = PrintedValue("physicalDevice", device.text)
        for theirs, name, member in (
            ("physProps", "vkGetPhysicalDeviceProperties", "pProperties"),
            ("memProps", "vkGetPhysicalDeviceMemoryProperties", "pMemoryProperties"),
        ):
            yield _call(chunk, asked, PrintedValue(member, "", named[theirs].parts), name=name)
        families = named["queueProps"].parts[: _whole(named["queueCount"])]
        yield _call(
            chunk,
            asked,
            PrintedValue("pQueueFamilyPropertyCount", str(len(families))),
            PrintedValue("pQueueFamilyProperties", "", families),
            name="vkGetPhysicalDeviceQueueFamilyProperties",
        )

    def _unmap(self, chunk: CaptureChunk) -> Iterator[PrintedCall]:
        chunk.values = chunk.values[:2]
        yield self._plain(chunk)

    def _named(self, chunk: CaptureChunk) -> Iterator[PrintedCall]:
        """The name of an object, of which the chunk does not say which type it has."""
        given, text = chunk.values[:2]
        kind = self.types.get(given.text)
        number = object_type_of("VkObjectType", kind) if kind is not None else None
        if number is None:
            return
        info = [
            _s_type(VkStructureType.DEBUG_UTILS_OBJECT_NAME_INFO_EXT),
            PrintedValue("pNext", NULL),
            PrintedValue("objectType", str(number)),
            PrintedValue("objectHandle", given.text),
            PrintedValue("pObjectName", text.text),
        ]
        device = PrintedValue("device", self._device)
        yield _call(chunk, device, PrintedValue("pNameInfo", "", info), name=_NAMING[0])

    def _updated(self, chunk: CaptureChunk) -> Iterator[PrintedCall]:
        """The writes that a template makes of its data, as plain ones."""
        device, target, _template, writes = chunk.values[:4]
        for write in writes.parts:
            _part(write, "dstSet").text = target.text
        yield _call(
            chunk,
            device,
            PrintedValue("descriptorWriteCount", str(len(writes.parts))),
            PrintedValue("pDescriptorWrites", "", writes.parts),
            PrintedValue("descriptorCopyCount", "0"),
            PrintedValue("pDescriptorCopies", NULL),
            name="vkUpdateDescriptorSets",
        )

    def _pushed(self, chunk: CaptureChunk) -> Iterator[PrintedCall]:
        commands, template, layout, number, writes = chunk.values[:5]
        yield _call(
            chunk,
            commands,
            PrintedValue("pipelineBindPoint", self._bind_points[template.text].text),
            layout,
            number,
            PrintedValue("descriptorWriteCount", str(len(writes.parts))),
            PrintedValue("pDescriptorWrites", "", writes.parts),
            name="vkCmdPushDescriptorSetKHR",
        )


_SPECIAL: dict[str, Callable[[ChunkCalls, CaptureChunk], Iterator[PrintedCall]]] = {
    "vkCreateInstance": ChunkCalls._instance,
    "vkEnumeratePhysicalDevices": ChunkCalls._physical_device,
    **dict.fromkeys(UNMAPS, ChunkCalls._unmap),
    **dict.fromkeys(_NAMING, ChunkCalls._named),
    "vkUpdateDescriptorSetWithTemplate": ChunkCalls._updated,
    "vkCmdPushDescriptorSetWithTemplateKHR": ChunkCalls._pushed,
}


def _call(chunk: CaptureChunk, *values: PrintedValue, name: str = "", trouble: str = "") -> PrintedCall:
    name = name or chunk.name
    shape = signature(name)
    result = "VK_SUCCESS" if shape is not None and shape.returns == "VkResult" else ""
    return PrintedCall(chunk.number, name, result, chunk.thread, list(values), chunk.trouble or trouble)


def _part(value: PrintedValue, name: str) -> PrintedValue:
    """A member by its name. Raises KeyError."""
    for each in value.parts:
        if each.name == name:
            return each
    raise KeyError(name)


def _member(value: PrintedValue, name: str) -> PrintedValue:
    """The same of a struct in which bytes of the host are. Raises Corrupt."""
    try:
        return _part(value, name)
    except KeyError:
        raise Corrupt("it lacks the range that the host wrote") from None


def object_number(value: PrintedValue) -> int:
    """The number of an object in the capture. Raises Corrupt."""
    try:
        return int(value.text, 16)
    except ValueError:
        raise Corrupt(f"{value.text[:60]!r} is no number of an object") from None


def _s_type(number: int) -> PrintedValue:
    return PrintedValue("sType", str(int(number)))


def _whole(value: PrintedValue) -> int:
    number = decimal(value.text)
    if number is None:
        raise Corrupt(f"{value.text[:60]!r} is no number").inside(f".{value.name[:60]}")
    return number
