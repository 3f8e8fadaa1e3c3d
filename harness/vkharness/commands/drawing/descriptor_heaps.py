"""Descriptor heaps: descriptors are bytes in memory, and pipelines say where in a heap each binding lies.

A pipeline's mapped bindings become sets whose descriptors lie in memory (`DescriptorsInMemory`), as those of descriptor
buffers do. Mappings through push data are resolved with the data that was pushed. Those through memory, heap data and
shader records are not followed: the binding has no place then, and the command is not modelled.
Specification: "Descriptor Heaps"; rules.md#descriptors-in-memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from vkharness.commands.contents.descriptor_bytes import NOTHING_MADE, MadeDescriptor
from vkharness.commands.drawing.descriptors import IMAGE_TYPES, TEXEL_TYPES, UNFOLLOWED_TYPES, UNKNOWN
from vkharness.commands.drawing.shaders import stage_uses
from vkharness.commands.handlers import call, command
from vkharness.commands.object_state import NOTHING, BoundHeap, BoundSet, CommandBuffer, ObjectState
from vkharness.commands.resources.memory import made_view
from vkharness.spec.enums import VK_WHOLE_SIZE, VkDescriptorType, VkStructureType
from vkharness.trace.calls import Call
from vkharness.trace.chain import chained
from vkharness.trace.effects import Effect, StreamEvent
from vkharness.trace.resources import (
    PUSH_ADDRESS,
    PUSH_DATA,
    Binding,
    Descriptor,
    HeapIndex,
    HeapMapping,
    HeapPlace,
    ImageView,
    MappedDescriptors,
    Pipeline,
    SetLayout,
)

if TYPE_CHECKING:
    from vkharness.shader.reflect import ResourceUse

VARIABLE_COUNT = 8
"""VK_DESCRIPTOR_BINDING_VARIABLE_DESCRIPTOR_COUNT_BIT: elements that a shader chooses as it runs count if they are
known."""
KINDS: dict[str, tuple[int, tuple[int, ...]]] = {
    "sampler": (0x1, (VkDescriptorType.SAMPLER,)),
    "sampled_image": (
        0x2,
        (
            VkDescriptorType.SAMPLED_IMAGE,
            VkDescriptorType.SAMPLE_WEIGHT_IMAGE_QCOM,
            VkDescriptorType.BLOCK_MATCH_IMAGE_QCOM,
        ),
    ),
    "uniform_texel_buffer": (0x2, (VkDescriptorType.UNIFORM_TEXEL_BUFFER,)),
    "input_attachment": (0x2, (VkDescriptorType.INPUT_ATTACHMENT,)),
    "storage_image": (0xC, (VkDescriptorType.STORAGE_IMAGE,)),
    "storage_texel_buffer": (0xC, (VkDescriptorType.STORAGE_TEXEL_BUFFER,)),
    "combined": (0x10, (VkDescriptorType.SAMPLED_IMAGE,)),
    "uniform_buffer": (0x20, (VkDescriptorType.UNIFORM_BUFFER,)),
    "storage_buffer": (0xC0, (VkDescriptorType.STORAGE_BUFFER,)),
    "acceleration_structure": (0x100, (VkDescriptorType.ACCELERATION_STRUCTURE_KHR,)),
}
"""By the kind of a resource in a shader, its VkSpirvResourceTypeFlagBitsEXT, and the descriptors that it may be."""


@call("vkWriteResourceDescriptorsEXT")
def write_resource_descriptors(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Remembers what the bytes stand for."""
    for info, where in zip(call.args["pResources"] or (), call.args["pDescriptors"] or (), strict=False):
        if isinstance(where["address"], bytes):
            objects.contents.needed()
            made = _made(objects, info["type"], info["data"])
            objects.contents.descriptors.note(info["type"], where["address"], made)
    return ()


@call("vkWriteSamplerDescriptorsEXT")
def write_sampler_descriptors(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Remembers how many bytes a sampler has. It means no memory."""
    for where in call.args["pDescriptors"] or ():
        if isinstance(where["address"], bytes):
            objects.contents.needed()
            objects.contents.descriptors.note(VkDescriptorType.SAMPLER, where["address"], NOTHING_MADE)
    return ()


def _made(objects: ObjectState, type: int, data: dict[str, Any]) -> MadeDescriptor:
    """Makes the descriptor of a VkResourceDescriptorInfoEXT. An image has a view that no other call makes."""
    if type in IMAGE_TYPES:
        image = data.get("pImage")
        return MadeDescriptor(type, _view(objects, image["pView"])) if image and image["pView"] else NOTHING_MADE
    if type in UNFOLLOWED_TYPES:
        return MadeDescriptor(type)
    held = data.get("pTexelBuffer" if type in TEXEL_TYPES else "pAddressRange")
    where = held["addressRange"] if held and type in TEXEL_TYPES else held
    return MadeDescriptor(type, 0, where["address"], where["size"]) if where and where["address"] else NOTHING_MADE


def _view(objects: ObjectState, info: dict[str, Any]) -> int:
    """The id of the view that a descriptor has, below those of objects: one for all that say the same."""
    part = info["subresourceRange"]
    slices = chained(info, VkStructureType.IMAGE_VIEW_SLICED_CREATE_INFO_EXT) or {}
    said = (info["image"], info["viewType"], info["flags"], *sorted(part.items()))
    id = objects.contents.descriptors.view((*said, slices.get("sliceOffset"), slices.get("sliceCount")))
    if objects.get(ImageView, id) is None:
        made_view(objects, id, info)
    return id


@command("vkCmdBindResourceHeapEXT")
def bind_resource_heap(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Binds the heap of images, buffers and acceleration structures."""
    buffer.resource_heap = _bound(args["pBindInfo"])
    return _map_again(objects, buffer)


@command("vkCmdBindSamplerHeapEXT")
def bind_sampler_heap(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Binds the heap of samplers."""
    buffer.sampler_heap = _bound(args["pBindInfo"])
    return _map_again(objects, buffer)


def _bound(info: dict[str, Any]) -> BoundHeap:
    """The heap of a VkBindHeapInfoEXT."""
    held = info["heapRange"]
    return BoundHeap(held["address"], held["size"], (info["reservedRangeOffset"], info["reservedRangeSize"]))


@command("vkCmdPushDataEXT")
def push_data(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Remembers the bytes, which are no memory, and which shaders get as push constants."""
    offset, data = args["pPushDataInfo"]["offset"], args["pPushDataInfo"]["data"]
    if isinstance(data["address"], bytes):
        buffer.constants.write(offset, data["address"])
    else:
        buffer.constants.forget(offset, data["size"])
    return _map_again(objects, buffer)


def _map_again(objects: ObjectState, buffer: CommandBuffer) -> Iterable[Effect]:
    """Where mapped bindings lie follows from heaps and push data."""
    for point, pipeline in buffer.pipelines.items():
        map_bindings(objects, buffer, point, pipeline)
    return NOTHING


def map_bindings(objects: ObjectState, buffer: CommandBuffer, point: int, pipeline: Pipeline) -> None:
    """Binds the sets of a pipeline whose stages say where in the heaps their bindings lie; nothing for others."""
    if not any(stage.is_mapped for stage in pipeline.stages):
        return
    found: dict[int, dict[int, Uses]] = {}
    for stage, entry in zip(pipeline.stages, stage_uses(objects, pipeline).entries, strict=True):
        for use in entry.uses:
            several = found.setdefault(use.set, {}).setdefault(use.binding, [])
            several.append((use, _mapping(stage.mappings, use)))
    buffer.sets[point] = {
        index: BoundSet(_mapped(objects, buffer, -(pipeline.id << 32 | index) - 1, bindings))
        for index, bindings in found.items()
    }


def _mapping(mappings: Iterable[HeapMapping], use: ResourceUse) -> HeapMapping | None:
    """The mapping of a resource; None where it has none, or one that may be of others of its kind alone."""
    mask = KINDS[use.kind][0] if use.kind in KINDS else 0
    here = (each for each in mappings if each.set == use.set and 0 <= use.binding - each.first < each.bindings)
    several = [each for each in here if each.mask & mask]
    return several[0] if len(several) == 1 and several[0].mask & mask == mask else None


Uses = list[tuple["ResourceUse", HeapMapping | None]]
"""The resources of shaders that have one binding, each with its mapping."""


def _mapped(objects: ObjectState, buffer: CommandBuffer, id: int, bindings: dict[int, Uses]) -> MappedDescriptors:
    """A set of which each binding lies where its mapping says. One that stages map differently lies nowhere."""
    places: dict[int, HeapPlace] = {}
    samplers: dict[int, HeapPlace] = {}
    fixed: dict[int, Descriptor] = {}
    for number, several in bindings.items():
        mappings = {mapping for _, mapping in several}
        mapping = mappings.pop() if len(mappings) == 1 else None
        if mapping is None:
            continue
        kinds = {use.kind for use, _ in several}
        if mapping.source in (PUSH_DATA, PUSH_ADDRESS):
            fixed[number] = _pushed(objects, buffer, mapping, kinds)
            continue
        if kinds & {"sampler", "combined"} and not mapping.embedded:
            index = mapping.sampler if "combined" in kinds else mapping.resource
            _put(samplers, _place(buffer, index, number, number - mapping.first, several, buffer.sampler_heap, True))
        if kinds != {"sampler"}:
            index = mapping.packed if mapping.packed and kinds == {"combined"} else mapping.resource
            _put(places, _place(buffer, index, number, number - mapping.first, several, buffer.resource_heap, False))
    layout = SetLayout(id, {number: Binding(number, UNKNOWN, 1) for number in bindings})
    held = MappedDescriptors(0, layout, places=places, samplers=samplers, fixed=fixed)
    held.buffer, held.offset = _where(objects, buffer.resource_heap)
    held.sampler_buffer, held.sampler_offset = _where(objects, buffer.sampler_heap)
    held.reserved = (
        ("RESOURCE_HEAP", held.buffer, *_reserved(held.offset, buffer.resource_heap)),
        ("SAMPLER_HEAP", held.sampler_buffer, *_reserved(held.sampler_offset, buffer.sampler_heap)),
    )
    return held


def _reserved(offset: int, heap: BoundHeap) -> tuple[int, int]:
    first, size = heap.reserved
    return offset + first, size


def _where(objects: ObjectState, heap: BoundHeap) -> tuple[int, int]:
    """The buffer that a heap lies in, 0 for none that is known, and its offset there."""
    found = objects.addresses.find(heap.address) if heap.address else None
    return (0, 0) if found is None else (found[0].id, found[1])


def _put(places: dict[int, HeapPlace], place: HeapPlace | None) -> None:
    if place is not None:
        places[place.binding.binding] = place


def _place(
    buffer: CommandBuffer,
    index: HeapIndex,
    number: int,
    shader_index: int,
    several: Uses,
    heap: BoundHeap,
    of_samplers: bool,
) -> HeapPlace | None:
    """Where the descriptors of a binding lie in a heap; None where the index is not known that was pushed."""
    pushed = 0 if index.push is None else buffer.constants.read(index.push, 4)
    if pushed is None:
        return None
    first = index.offset + (pushed >> index.shift & index.mask) * index.index_stride + shader_index * index.stride
    types = {type for use, _ in several for type in KINDS[use.kind][1]}
    types = {VkDescriptorType.SAMPLER} if of_samplers else types - {VkDescriptorType.SAMPLER}
    count = max(use.array_size for use, _ in several) or (
        max(0, heap.size - first) // index.stride if index.stride else 1
    )
    flags = VARIABLE_COUNT if any(use.elements is None for use, _ in several) else 0
    binding = Binding(number, min(types), count, flags, tuple(sorted(types)) if len(types) > 1 else ())
    return HeapPlace(first, index.stride, binding)


def _pushed(objects: ObjectState, buffer: CommandBuffer, mapping: HeapMapping, kinds: set[str]) -> Descriptor:
    """The block that lies in push data, which is no memory, or behind an address that was pushed."""
    if mapping.source == PUSH_DATA:
        return Descriptor(VkDescriptorType.SAMPLER, 0)
    address = buffer.constants.read(mapping.resource.offset, 8)
    found = None if address is None else objects.addresses.find(address)
    blocks = kinds & {"uniform_buffer", "storage_buffer"}
    if found is None or len(kinds) > 1 or not blocks:
        return Descriptor(UNKNOWN, 0)
    held, offset = found
    return Descriptor(KINDS[blocks.pop()][1][0], held.id, offset, VK_WHOLE_SIZE)
