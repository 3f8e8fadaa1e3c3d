"""Descriptor buffers: descriptors are bytes in memory, and the device said which bytes stand for which descriptor.

Specification: "Descriptor Buffers"; rules.md#descriptors-in-memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vkharness.commands.contents.content_steps import ReadsBytes
from vkharness.commands.contents.descriptor_bytes import INLINE, NOTHING_MADE, MadeDescriptor
from vkharness.commands.contents.known_memory import KnownMemory
from vkharness.commands.drawing.bind_points import points_of
from vkharness.commands.drawing.descriptors import BUFFER_TYPES, IMAGE_TYPES, TEXEL_TYPES, UNKNOWN
from vkharness.commands.handlers import call, command, folded
from vkharness.commands.object_state import NOTHING, BoundSet, CommandBuffer, ObjectState
from vkharness.commands.resources.acceleration_structures import AccelerationStructure
from vkharness.findings import Certainty
from vkharness.spans import merge
from vkharness.spec._generated import SELECTIONS
from vkharness.spec.enums import VkDescriptorType
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.trace.calls import Call
from vkharness.trace.effects import Access, Effect, StreamEvent
from vkharness.trace.resources import (
    Binding,
    Buffer,
    Descriptor,
    DescriptorsInMemory,
    MappedDescriptors,
    PipelineLayout,
    SetLayout,
)
from vkharness.trace.work_budget import spend

if TYPE_CHECKING:
    from vkharness.shader.reflect import ReflectedEntryPoint, ResourceUse

VARIABLE_COUNT = 8
"""VK_DESCRIPTOR_BINDING_VARIABLE_DESCRIPTOR_COUNT_BIT."""
MOST_LOOKED_AT = 4096
"""The most descriptors of one array that are looked at."""
UNKNOWN_DESCRIPTOR = Descriptor(UNKNOWN, 0)
UsedBinding = tuple[int, tuple[int, ...] | None]
"""A binding, and the elements of its array that shaders use; None for any."""
UNKNOWN_PLACE = "a descriptor buffer at an address of no known buffer"
UNKNOWN_OFFSETS = "descriptors in memory of a layout or type that the program did not ask the device about"
UNKNOWN_MAPPING = "a binding that is mapped by memory, by heap data or by nothing that is known"
UNKNOWN_HEAP = "a descriptor heap at an address of no known buffer, or none"


@call("vkGetDescriptorEXT")
def get_descriptor(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Remembers what the bytes stand for."""
    info, data = call.args["pDescriptorInfo"], call.args["pDescriptor"]
    if isinstance(data, bytes):
        objects.contents.needed()
        objects.contents.descriptors.note(info["type"], data, _made(info["type"], info["data"]))
    return ()


def _made(type: int, data: dict[str, Any]) -> MadeDescriptor:
    if type == VkDescriptorType.ACCELERATION_STRUCTURE_KHR:
        address = data["accelerationStructure"]
        return MadeDescriptor(type, address=address) if address else NOTHING_MADE
    held = next((data[name] for name, types in SELECTIONS["VkDescriptorDataEXT"].items() if type in types), None)
    if not isinstance(held, dict):
        return NOTHING_MADE
    if type in IMAGE_TYPES:
        return MadeDescriptor(type, held["imageView"]) if held["imageView"] else NOTHING_MADE
    return MadeDescriptor(type, 0, held["address"], held["range"]) if held["address"] else NOTHING_MADE


@call("vkGetDescriptorSetLayoutBindingOffsetEXT")
def get_binding_offset(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Remembers where a binding begins."""
    layout, offset = objects.get(SetLayout, call.args["layout"]), call.args["pOffset"]
    if layout is not None and offset is not None:
        objects.contents.descriptors.note_offset(layout, call.args["binding"], offset)
    return ()


@command("vkCmdBindDescriptorBuffersEXT")
def bind_descriptor_buffers(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Binds buffers. Offsets that were set before are no longer valid."""
    buffer.descriptor_buffers = tuple(each["address"] for each in args["pBindingInfos"] or ())
    for bound in buffer.sets.values():
        for index in [index for index, each in bound.items() if isinstance(each.set, DescriptorsInMemory)]:
            del bound[index]
    return NOTHING


@command("vkCmdSetDescriptorBufferOffsetsEXT", "vkCmdSetDescriptorBufferOffsets2EXT")
def set_offsets(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Lets sets begin at offsets in the bound buffers."""
    given = folded(args, "pSetDescriptorBufferOffsetsInfo")
    layout = objects.get(PipelineLayout, given["layout"])
    pairs = zip(given["pBufferIndices"] or (), given["pOffsets"] or (), strict=False)
    for number, (which, offset) in enumerate(pairs, given["firstSet"]):
        own = layout.sets[number] if layout is not None and number < len(layout.sets) else None
        for point in _points(given):
            places = buffer.sets.setdefault(point, {})
            places.pop(number, None)
            if own is not None:
                places[number] = BoundSet(_set(objects, buffer, own, which, offset))
    return NOTHING


@command("vkCmdBindDescriptorBufferEmbeddedSamplersEXT", "vkCmdBindDescriptorBufferEmbeddedSamplers2EXT")
def bind_embedded_samplers(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """A set of samplers alone, which mean no memory."""
    given = folded(args, "pBindDescriptorBufferEmbeddedSamplersInfo")
    for point in _points(given):
        buffer.sets.setdefault(point, {}).pop(given["set"], None)
    return NOTHING


def _points(given: dict[str, Any]) -> list[int]:
    """The VkPipelineBindPoints of a command of either form."""
    if "stageFlags" not in given:
        return [given["pipelineBindPoint"]]
    return points_of(given["stageFlags"])


def _set(
    objects: ObjectState, buffer: CommandBuffer, layout: SetLayout, which: int, offset: int
) -> DescriptorsInMemory:
    """A set at an offset in a bound buffer."""
    address = buffer.descriptor_buffers[which] if which < len(buffer.descriptor_buffers) else 0
    found = objects.addresses.find(address)
    held = DescriptorsInMemory(0, layout)
    if found is not None:
        held.buffer, held.offset = found[0].id, found[1] + offset
    return held


def descriptor_reads(
    objects: ObjectState, entry: ReflectedEntryPoint, sets: Mapping[int, BoundSet], stage: str
) -> Iterator[Access]:
    """The reads of all descriptors in memory that a stage of this name statically uses.

    "Implementations may read descriptor data for any statically accessed descriptor"; of a binding with a variable
    count only those that are dynamically accessed, so that of its array each that is not known may be.
    """
    for use in entry.uses:
        bound = sets.get(use.set)
        held = None if bound is None else bound.set
        if isinstance(held, MappedDescriptors):
            yield from _heap_reads(objects, use, held, stage)
        if not isinstance(held, DescriptorsInMemory) or isinstance(held, MappedDescriptors):
            continue
        buffer, place = objects.buffer(held.buffer), _place(objects, held, use.binding)
        if buffer is None or place is None:
            continue
        first, size, binding = place
        runs, certainty = _runs(use, binding)
        spans = [buffer.span(held.offset + first + at * size, count * size) for at, count in runs]
        spans = [(begin, end) for begin, end in spans if begin < end]
        if spans:
            access_kind = ACCESS_KIND[f"SYNC_{stage}_DESCRIPTOR_BUFFER_READ_EXT"].index
            yield Access(access_kind, buffer.space, tuple(sorted(spans)), buffer.id, certainty=certainty)


def _heap_reads(objects: ObjectState, use: ResourceUse, held: MappedDescriptors, stage: str) -> Iterator[Access]:
    """The reads of the descriptors of a mapped binding in the heaps.

    The specification does not say what the implementation does in its reserved ranges, so that it may read them. Rule:
    rules.md#descriptors-in-memory.
    """
    for name, id, first, count in held.reserved:
        heap = objects.buffer(id)
        if heap is not None and count:
            access_kind = ACCESS_KIND[f"SYNC_{stage}_{name}_READ_EXT"].index
            yield Access(access_kind, heap.space, (heap.span(first, count),), id, certainty=Certainty.BOUND)
    heaps = (
        ("RESOURCE_HEAP", held.buffer, held.offset, held.places.get(use.binding)),
        ("SAMPLER_HEAP", held.sampler_buffer, held.sampler_offset, held.samplers.get(use.binding)),
    )
    for name, id, offset, place in heaps:
        buffer = objects.buffer(id)
        size = None if place is None else objects.contents.descriptors.size(place.binding)
        if buffer is None or place is None or size is None:
            continue
        runs, certainty = _runs(use, place.binding)
        begins = [(offset + place.first + at * place.stride, count) for at, count in runs if count]
        spans = merge(buffer.span(begin, (count - 1) * place.stride + size) for begin, count in begins)
        if spans:
            access_kind = ACCESS_KIND[f"SYNC_{stage}_{name}_READ_EXT"].index
            yield Access(access_kind, buffer.space, tuple(spans), buffer.id, certainty=certainty)


def _runs(use: ResourceUse, binding: Binding) -> tuple[list[tuple[int, int]], Certainty]:
    """(first, count) of the descriptors of a binding that a shader statically uses, and how sure it is that they are
    read. Of those of which a shader chooses the element as it runs, where only what it accesses counts, each may be."""
    if binding.type != INLINE and use.elements is not None:
        return [(each, 1) for each in use.elements if each < binding.count], Certainty.EXACT
    chosen = binding.type != INLINE and binding.flags & VARIABLE_COUNT
    return [(0, binding.count)], Certainty.BOUND if chosen else Certainty.EXACT


def _place(objects: ObjectState, held: DescriptorsInMemory, number: int) -> tuple[int, int, Binding] | None:
    """Where a binding begins in its set, the bytes of a descriptor, and the binding; None where that is not known."""
    if isinstance(held, MappedDescriptors):
        place = held.places.get(number)
        known_size = None if place is None else objects.contents.descriptors.size(place.binding)
        return None if place is None or known_size is None else (place.first, place.stride or known_size, place.binding)
    binding = held.layout.bindings.get(number)
    known = objects.contents.descriptors
    offset = known.offsets(held.layout).get(number)
    size = None if binding is None else known.size(binding)
    return None if binding is None or offset is None or size is None else (offset, size, binding)


class NotKnownError(Exception):
    """Says what is not known of a set."""


def known_set(
    objects: ObjectState, held: DescriptorsInMemory, used: Sequence[UsedBinding], memory: ReadsBytes
) -> DescriptorsInMemory:
    """A set with the descriptors that memory holds where they are used. Raises `NotKnownError`."""
    buffer, is_mapped = objects.buffer(held.buffer), isinstance(held, MappedDescriptors)
    fixed = held.fixed if isinstance(held, MappedDescriptors) else {}
    slots = {(number, 0): fixed[number] for number, _ in used if number in fixed}
    for number, elements in [each for each in used if each[0] not in fixed]:
        if buffer is None:
            raise NotKnownError(UNKNOWN_HEAP if is_mapped else UNKNOWN_PLACE)
        place = _place(objects, held, number)
        if place is None:
            raise NotKnownError(UNKNOWN_MAPPING if is_mapped else UNKNOWN_OFFSETS)
        first, size, binding = place
        begin = buffer.offset + held.offset + first
        several = _written(memory, buffer.space, begin, size, binding.count) if elements is None else elements
        spend(len(several), "descriptors in memory")
        for element in several if binding.type != INLINE else ():
            found = _descriptor(objects, memory, buffer, begin + element * size, binding)
            if found is not None or elements is not None:
                slots[number, element] = found or UNKNOWN_DESCRIPTOR
        if elements is None and not any(each == number for each, _ in slots):
            slots[number, 0] = UNKNOWN_DESCRIPTOR
    return DescriptorsInMemory(0, held.layout, slots, None, held.buffer, held.offset, True)


def _written(memory: ReadsBytes, space: int, begin: int, size: int, count: int) -> list[int]:
    """The elements of an array of which any bytes are known: one that nobody wrote is not chosen."""
    found: dict[int, None] = {}
    for low, high in memory.known(space, (begin, begin + count * size)):
        several = range((low - begin) // size, -(-(high - begin) // size))
        if len(found) + len(several) > MOST_LOOKED_AT:
            raise NotKnownError(f"an index into an array of more than {MOST_LOOKED_AT} descriptors")
        found.update(dict.fromkeys(several))
    return list(found)


def _descriptor(
    objects: ObjectState, memory: ReadsBytes, buffer: Buffer, begin: int, binding: Binding
) -> Descriptor | None:
    """The descriptor that memory holds from an address of a buffer on; None where that is not known."""
    known = objects.contents.descriptors
    for type, size in known.meanings(binding):
        where = (begin, begin + size)
        data = memory.read(buffer.space, where)
        made = None if data is None else known.made(type, data)
        if made is not None:
            if isinstance(memory, KnownMemory) and memory.on_address is not None:
                memory.on_address((buffer.id, begin - buffer.offset), (buffer.space, where))
            return _meant(objects, made)
    return None


def _meant(objects: ObjectState, made: MadeDescriptor) -> Descriptor | None:
    """Makes the descriptor of the resource that is meant now; None where its address leads to no known resource."""
    if made.type in IMAGE_TYPES or not made.address:
        return Descriptor(made.type, made.object)
    found = objects.addresses.find(made.address)
    if found is None:
        return None
    buffer, offset = found
    if made.type in BUFFER_TYPES or made.type in TEXEL_TYPES:
        return Descriptor(made.type, buffer.id, offset, made.range)
    several = objects.every(AccelerationStructure)
    structure = next((each for each in several if (each.buffer, each.offset) == (buffer.id, offset)), None)
    return None if structure is None else Descriptor(made.type, structure.id)
