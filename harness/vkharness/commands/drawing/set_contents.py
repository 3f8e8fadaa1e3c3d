"""Contents of descriptor sets: the resources to which they refer. Sets with equal contents have one number.

Accesses of a dispatch or draw follow from the contents of its sets and not from which sets they are, since a program
may take fresh sets in each frame, or write the same ones anew. So `contents_of` numbers contents: the descriptors of a
set, and where the memory is that they refer to. A set keeps its number until it is written, or until an object that
descriptors refer to goes or is bound to memory (`ObjectState.moved`). A number is never used again for other contents.

Of the memory behind the descriptors, shaders can tell the sizes and not where it lies. These sizes have a number, too
(`SetContents.shape`), so that accesses that were found once can be moved to other memory (`drawing.shaders`).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

from vkharness.commands.drawing.descriptors import BUFFER_TYPES, IMAGE_TYPES, TEXEL_TYPES, UNKNOWN
from vkharness.commands.drawing.shader_memory import MemoryPart, behind_descriptor
from vkharness.commands.object_state import ObjectState
from vkharness.spec.enums import VkDescriptorType
from vkharness.trace.resources import BufferView, Descriptor, DescriptorSet, DescriptorsInMemory, ImageView

MORE_THAN_MEMORY = (VkDescriptorType.INPUT_ATTACHMENT, VkDescriptorType.ACCELERATION_STRUCTURE_KHR, UNKNOWN)
"""Descriptors that mean what a render pass instance has, or what was built, or what nobody knows."""
MOST_BY_VALUE = 64
"""The most descriptors of a set that are compared with those of others. A larger set has a number of its own each time
that it is written: who writes a few of its many descriptors shall not pay for all."""


class SetContents(NamedTuple):
    """The contents of equal descriptor sets. The native core has objects with the same members for contents that differ
    from these only in where memory lies (`MovedContents`)."""

    number: int
    """Above 0; those that the native core gives are below."""
    shape: int | None
    """The number of all that shaders can tell of it beside where memory lies, if no dynamic offset clips that; None
    where more is to be told of it."""
    memories: dict[tuple[int, int], MemoryPart]
    """The memory behind the descriptors, by (binding, array element), with dynamic offsets of 0."""


def contents_of(objects: ObjectState, held: DescriptorSet) -> SetContents:
    """Gives the present contents of a descriptor set."""
    found: SetContents | None
    if held.contents is not None:
        moved, found = held.contents
        if found is not None and moved == objects.moved:
            return found
    known, slots = objects.shaders, held.slots
    if len(slots) > MOST_BY_VALUE:
        found = SetContents(known.fresh(), None, {})
    else:
        key = (_layout(held), *slots, *[_value(objects, each) for each in slots.values()])
        found = known.contents.get(key)
        if found is None:
            found = known.contents[key] = SetContents(known.fresh(), *_shape(objects, held))
    held.contents = (objects.moved, found)
    return found


def _layout(held: DescriptorSet) -> Hashable:
    """The layout of a set, and whether its descriptors lie in memory and are still to be read."""
    if not isinstance(held, DescriptorsInMemory):
        return held.layout.id
    return (held.layout.id, held.is_read)


def _shape(objects: ObjectState, held: DescriptorSet) -> tuple[int | None, dict[tuple[int, int], MemoryPart]]:
    """The number of the sizes of the memory of a set, and that memory."""
    shape: list[Hashable] = [held.layout.id]
    memories: dict[tuple[int, int], MemoryPart] = {}
    for place, each in held.slots.items():
        if each.type in MORE_THAN_MEMORY:
            return None, {}
        shape.append(place)
        memory = behind_descriptor(objects, each, 0)
        if memory is None:
            continue
        buffer = objects.buffer(memory.resource)
        part = memory.part(0 if buffer is None else buffer.offset + buffer.size)
        if part is None:
            return None, {}
        memories[place] = part
        shape += (part.read_access, part.whole is None, part.end - part.begin)
    return objects.shaders.number(tuple(shape)), memories


def _value(objects: ObjectState, held: Descriptor) -> Hashable:
    """All that decides what a descriptor refers to, but for dynamic offsets."""
    where: Any = None
    if held.type in BUFFER_TYPES or (held.type in TEXEL_TYPES and held.size):
        where = objects.buffer(held.resource)
    elif held.type in IMAGE_TYPES:
        view = objects.get(ImageView, held.resource)
        return (held, view is not None and objects.image(view.image) is not None)
    elif held.type in TEXEL_TYPES:
        texels = objects.get(BufferView, held.resource)
        where = None if texels is None else objects.buffer(texels.buffer)
    return (held, None) if where is None else (held, where.memory, where.offset)
