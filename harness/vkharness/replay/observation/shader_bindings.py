"""State that is bound where a draw or dispatch is recorded: addresses behind each descriptor, for notes of shaders."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field

from vkharness.commands.drawing.descriptors import BUFFER_TYPES, IMAGE_TYPES, TEXEL_TYPES, viewed
from vkharness.commands.object_state import BoundSet, CommandBuffer, ObjectState, PushConstants
from vkharness.spans import Span
from vkharness.spec.command_classes import TRACES_RAYS
from vkharness.spec.enums import VkPipelineBindPoint
from vkharness.trace.resources import BufferView, Descriptor, DescriptorsInMemory, Image, ImageView, Stage

Place = tuple[int, int, int]
"""(set, binding, array element)."""


@dataclass(frozen=True, slots=True)
class Target:
    """The part of a resource behind one descriptor, in addresses of the resource.

    An image has its view, by which coordinates become addresses.
    """

    resource: int
    spans: tuple[Span, ...]
    is_block: bool = False
    """Whether offsets of a shader are bytes from the begin of the one span."""
    image: Image | None = None
    view: ImageView | None = None
    texels: int = 0
    """The VkBufferView of a texel buffer, or 0."""

    def texel(self, coordinates: tuple[int, int, int]) -> tuple[Span, ...]:
        """The addresses of one texel, clipped to the view; those of the whole view where it has several mip levels."""
        if self.image is None or self.view is None or len(self.view.mips) != 1:
            return self.spans
        x, y, z = coordinates
        mip, first = self.view.mips.start, self.view.layers.start
        deep = self.image.type == 2
        layer = 0 if deep else first + (z if len(self.view.layers) > 1 else 0)
        if layer not in range(self.image.layers):
            return ()
        offset = (x, y, (first + z if self.view.sliced else z) if deep else 0)
        return tuple(
            span
            for aspect in self.image.split_aspects(self.view.aspects)
            for span in self.image.region(aspect, mip, [layer], offset, (1, 1, 1))
        )


@dataclass(slots=True)
class Bound:
    """The shaders of a recorded command, what their descriptors mean, and their push constants."""

    stages: tuple[Stage, ...] = ()
    targets: dict[Place, Target] = field(default_factory=dict)
    constants: PushConstants = field(default_factory=PushConstants)
    late: bool = False
    """Whether descriptors may be written after the command was recorded, so that `targets` need not be the last."""
    reason: str = ""
    """Why notes of shaders do not tell all that they access."""


def bound(objects: ObjectState, command_buffer: int, name: str, late: bool) -> Bound:
    """Returns the state of the draw, dispatch or trace recorded just now; `late` becomes that of the result."""
    buffer = objects.get(CommandBuffer, command_buffer)
    point = VkPipelineBindPoint.GRAPHICS if name.startswith("vkCmdDraw") else VkPipelineBindPoint.COMPUTE
    pipeline = buffer.pipelines.get(point) if buffer is not None else None
    if name.startswith(TRACES_RAYS) or buffer is None or pipeline is None or not pipeline.stages:
        return Bound(reason="its shaders are not known")
    if any(isinstance(each.set, DescriptorsInMemory) for each in buffer.sets.get(point, {}).values()):
        return Bound(reason="its descriptors lie in memory")
    targets = dict(_targets(objects, buffer.sets.get(point, {})))
    return Bound(pipeline.stages, targets, copy(buffer.constants), late)


def _targets(objects: ObjectState, sets: dict[int, BoundSet]) -> Iterator[tuple[Place, Target]]:
    for number, each in sets.items():
        for place, held in each.set.slots.items():
            target = _target(objects, held, each.offset(place))
            if target is not None:
                yield (number, *place), target


def _target(objects: ObjectState, held: Descriptor, dynamic_offset: int) -> Target | None:
    if held.type in IMAGE_TYPES:
        seen = viewed(objects, held)
        return None if seen is None else Target(seen[0].id, seen[1].spans, False, *seen)
    id, offset, size, view_of_texels = held.resource, held.offset + dynamic_offset, held.size, 0
    if held.type in TEXEL_TYPES:
        texels = objects.get(BufferView, held.resource)
        if texels is None:
            return None
        id, offset, size, view_of_texels = texels.buffer, texels.offset, texels.size, texels.id
    elif held.type not in BUFFER_TYPES:
        return None
    buffer = objects.buffer(id)
    if buffer is None:
        return None
    begin, end = buffer.span(offset, size)
    spans = ((begin - buffer.offset, end - buffer.offset),)
    return Target(id, spans, held.type in BUFFER_TYPES, texels=view_of_texels)
