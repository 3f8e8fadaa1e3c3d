"""What descriptor sets refer to, by value: sets with equal contents have one number.

What a dispatch or draw accesses follows from what its sets refer to and not from which sets they are, since a program
may take fresh sets in each frame, or write the same ones anew. So `contents_of` numbers contents: the descriptors of a
set, and where the memory is that they refer to. A set keeps its number until it is written, or until an object that
descriptors refer to goes or is bound to memory (`ObjectState.moved`). A number is never used again for other contents.

`bound_memory` finds the memory behind the descriptors of a bound set, with its dynamic offsets. What a shader reaches
of it follows from its size and not from where it lies (`harness.commands.drawing.shaders`).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from harness.commands.drawing.descriptors import BUFFER_TYPES, IMAGE_TYPES, TEXEL_TYPES
from harness.commands.object_state import ObjectState
from harness.trace.resources import BufferView, Descriptor, DescriptorSet, ImageView

MOST_BY_VALUE = 64
"""The most descriptors of a set that are compared with those of others. A larger set has a number of its own each time
that it is written: who writes a few of its many descriptors shall not pay for all."""


def contents_of(objects: ObjectState, held: DescriptorSet) -> int:
    """The number of what a set refers to now."""
    known = held.contents
    if known is not None and known[1] == objects.moved:
        return known[0]
    slots, by_value = held.slots, None
    if len(slots) <= MOST_BY_VALUE:
        by_value = (held.layout.id, *slots, *[_value(objects, each) for each in slots.values()])
    number = objects.shaders.number(by_value)
    held.contents = (number, objects.moved)
    return number


def _value(objects: ObjectState, held: Descriptor) -> Hashable:
    """All that decides what a descriptor refers to, but for dynamic offsets."""
    where: Any = None
    if held.type in BUFFER_TYPES:
        where = objects.buffer(held.resource)
    elif held.type in IMAGE_TYPES:
        view = objects.get(ImageView, held.resource)
        return (held, view is not None and objects.image(view.image) is not None)
    elif held.type in TEXEL_TYPES:
        texels = objects.get(BufferView, held.resource)
        where = None if texels is None else objects.buffer(texels.buffer)
    return (held, None) if where is None else (held, where.memory, where.offset)
