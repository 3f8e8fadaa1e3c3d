"""The bytes of memory objects that executing a command buffer may write, from the effects of its commands.

The recorder asks before each submit, and does not search the bytes that pending work may write for writes of the host.
So the answer may be too large, but never too small. An image reaches to the end of its memory, since its addresses are
texel blocks and not bytes.

Most programs submit the same commands frame after frame. Ranges that a command buffer wrote are remembered, for as
long as its commands have the same plans: where these say all, and each image that they name is bound, nothing else can
change it.

A command that is not modelled may write everything that shaders and fixed functions can write by its usage. The same
holds for draws, dispatches and traces in a program with anything else that is not modelled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vkharness.commands.object_state import CommandBuffer, ObjectState, WrittenRanges
from vkharness.native import core
from vkharness.spans import ENDLESS, Span, merge
from vkharness.spec.command_classes import RUNS_SHADERS
from vkharness.spec.enums import VkBufferUsage, VkImageUsage
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.trace.effects import Access, Command, EffectPlan, Execute, Unmodelled
from vkharness.trace.resources import Buffer, Image

WRITABLE_BUFFER = (
    VkBufferUsage.STORAGE_TEXEL_BUFFER
    | VkBufferUsage.STORAGE_BUFFER
    | VkBufferUsage.TRANSFORM_FEEDBACK_BUFFER_EXT
    | VkBufferUsage.TRANSFORM_FEEDBACK_COUNTER_BUFFER_EXT
    | VkBufferUsage.SHADER_DEVICE_ADDRESS
    | VkBufferUsage.ACCELERATION_STRUCTURE_STORAGE_KHR
)
WRITES = frozenset(kind.index for kind in ACCESS_KINDS if kind.write)
"""The kinds of access that write, by index."""
ANYTHING_ELSE = (Execute, Unmodelled)
"""Effects of which it depends on more than the plan what they write."""
WRITABLE_IMAGE = VkImageUsage.STORAGE | VkImageUsage.COLOR_ATTACHMENT | VkImageUsage.DEPTH_STENCIL_ATTACHMENT


def device_writes(objects: ObjectState, command_buffers: Iterable[int], exact: bool) -> dict[int, list[Span]]:
    """The ranges that executing command buffers may write, by memory object. `exact` is False if part of the program is
    not modelled."""
    several = [
        _of_buffer(objects, buffer, exact) for id in command_buffers if (buffer := objects.get(CommandBuffer, id))
    ]
    if len(several) == 1:
        return several[0]
    found: dict[int, set[Span]] = {}
    for each in several:
        for memory, spans in each.items():
            found.setdefault(memory, set()).update(spans)
    return {memory: merge(spans) for memory, spans in found.items()}


def _of_buffer(objects: ObjectState, buffer: CommandBuffer, exact: bool) -> dict[int, list[Span]]:
    plans, held = buffer.commands.plans, buffer.written
    if exact and held is not None and held.length == len(plans) and held.plans == plans:
        buffer.written = held._replace(plans=plans)  # the next ones are these, and not equal ones that are compared
        return held.ranges
    ranges = _plain(objects, plans) if exact and not buffer.has_late else None
    if ranges is not None:
        buffer.written = WrittenRanges(plans, len(plans), ranges)
        return ranges
    buffer.written = None
    found: dict[int, set[Span]] = {}
    for memory, span in _writes(objects, buffer.executed(), exact):
        found.setdefault(memory, set()).add(span)
    return {memory: merge(spans) for memory, spans in found.items()}


def _plain(objects: ObjectState, plans: list[EffectPlan]) -> dict[int, list[Span]] | None:
    """Ranges that plans may write, by memory object, if they stay the same as long as the plans do; else None."""
    others, flat = (plans, dict[int, list[Span]]()) if core is None else core.flat_writes(plans)
    found: dict[int, set[Span]] = {}
    images: dict[int, Image | None] = {}
    for plan in others:
        for effect in plan.effects:
            if isinstance(effect, Access):
                if effect.access_kind not in WRITES and not effect.atomic:
                    continue
                resource = effect.resource
                image = images[resource] if resource in images else images.setdefault(resource, objects.image(resource))
                if image is None:
                    held = found.get(effect.space)
                    if held is None:
                        held = found[effect.space] = set()
                    held.update(effect.spans)
                elif image.memory is None:
                    return None
                else:
                    found.setdefault(image.memory, set()).add((image.offset, ENDLESS))
            elif isinstance(effect, ANYTHING_ELSE):
                return None
    return flat | {memory: merge({*spans, *flat.get(memory, ())}) for memory, spans in found.items()}


def _writes(objects: ObjectState, commands: Iterable[Command], exact: bool) -> Iterator[tuple[int, Span]]:
    for command in commands:
        for effect in command.effects:
            if isinstance(effect, Access):
                if effect.access_kind in WRITES or effect.atomic:
                    yield from _of_access(objects, effect)
            elif isinstance(effect, Execute):
                for _, inner in effect.buffers:
                    yield from _writes(objects, inner, exact)
            elif isinstance(effect, Unmodelled):
                yield from _anything(objects)
        if not exact and command.name.startswith(RUNS_SHADERS):
            yield from _anything(objects)


def _of_access(objects: ObjectState, access: Access) -> Iterator[tuple[int, Span]]:
    image = objects.image(access.resource)
    if image is None:
        yield from ((access.space, span) for span in access.spans)
    elif image.memory is not None:
        yield image.memory, (image.offset, ENDLESS)


def _anything(objects: ObjectState) -> Iterator[tuple[int, Span]]:
    """All ranges that a command can write without naming them."""
    for buffer in objects.every(Buffer):
        if buffer.memory is not None and buffer.usage & WRITABLE_BUFFER:
            yield buffer.memory, (buffer.offset, buffer.offset + buffer.size)
    for image in objects.every(Image):
        if image.memory is not None and image.info.get("usage", 0) & WRITABLE_IMAGE:
            yield image.memory, (image.offset, ENDLESS)
