"""Dispatches: what the bound compute shader statically uses, through the bound descriptors (SYNC_RULES 2.12)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from harness.commands.descriptors import (
    BUFFER_TYPES,
    IMAGE_TYPES,
    STORAGE_BUFFER,
    STORAGE_BUFFER_DYNAMIC,
    STORAGE_IMAGE,
    STORAGE_TEXEL_BUFFER,
    TEXEL_TYPES,
    UNIFORM_BUFFER,
    UNIFORM_BUFFER_DYNAMIC,
)
from harness.commands.objects import BoundSet, CommandBuffer, Objects
from harness.commands.pipelines import COMPUTE_BIND_POINT
from harness.commands.registry import command
from harness.commands.transfer import buffer_access
from harness.shader.reflect import Use, reflect
from harness.spans import Span, merge
from harness.spec.scopes import BY_NAME
from harness.trace.effects import Access, Effect, Unmodelled
from harness.trace.resources import BufferView, Descriptor, ImageView, Stage

INDIRECT_READ = BY_NAME["SYNC_DRAW_INDIRECT_INDIRECT_COMMAND_READ"].index
DISPATCH_INDIRECT_BYTES = 12

STAGE_NAMES = {0x20: "COMPUTE_SHADER"}
"""Pipeline stage name by VkShaderStageFlagBits, as access names spell it."""

UNIFORM_TYPES = (UNIFORM_BUFFER, UNIFORM_BUFFER_DYNAMIC)
STORAGE_TYPES = (STORAGE_BUFFER, STORAGE_BUFFER_DYNAMIC, STORAGE_IMAGE, STORAGE_TEXEL_BUFFER)


@command("vkCmdDispatch", "vkCmdDispatchBase")
def dispatch(objects: Objects, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """The shader's accesses; an empty grid runs nothing."""
    if args["groupCountX"] and args["groupCountY"] and args["groupCountZ"]:
        yield from shader_effects(objects, buffer, COMPUTE_BIND_POINT)


@command("vkCmdDispatchIndirect")
def dispatch_indirect(objects: Objects, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads one VkDispatchIndirectCommand, then runs the shader."""
    source = objects.buffer(args["buffer"])
    if source is not None:
        yield from buffer_access(INDIRECT_READ, source, [source.span(args["offset"], DISPATCH_INDIRECT_BYTES)])
    yield from shader_effects(objects, buffer, COMPUTE_BIND_POINT)


def shader_effects(objects: Objects, buffer: CommandBuffer, bind_point: int) -> Iterator[Effect]:
    """Accesses of every stage of the bound pipeline, spans of equal accesses joined."""
    pipeline = buffer.pipelines.get(bind_point)
    if pipeline is None or not pipeline.stages:
        yield Unmodelled("a pipeline whose shaders were not seen")
        return
    sets = buffer.sets.get(bind_point, {})
    joined: dict[tuple[int, int, int, bool], list[Span]] = {}
    for stage in pipeline.stages:
        for effect in _stage_effects(objects, stage, sets):
            if isinstance(effect, Access):
                key = (effect.sync, effect.space, effect.resource, effect.atomic)
                joined.setdefault(key, []).extend(effect.spans)
            else:
                yield effect
    for (sync, space, resource, atomic), spans in joined.items():
        yield Access(sync, space, tuple(merge(spans)), resource, atomic)


def _stage_effects(objects: Objects, stage: Stage, sets: dict[int, BoundSet]) -> Iterator[Effect]:
    entry = reflect(stage.code, stage.entry, stage.specialization)
    name = STAGE_NAMES[entry.stage]
    for use in entry.uses:
        bound = sets.get(use.set)
        if bound is None or not (use.reads or use.writes):
            continue
        if use.elements is None:
            yield Unmodelled("descriptor arrays indexed at run time")
            continue
        for element in use.elements:
            # Elements past the end of a binding continue in the next one only for updates, never for access.
            held = bound.set.slots.get((use.binding, element))
            if held is not None:
                offset = bound.offsets.get((use.binding, element), 0)
                yield from _descriptor_effects(objects, name, use, held, offset)


def _descriptor_effects(
    objects: Objects, stage: str, use: Use, held: Descriptor, dynamic_offset: int
) -> Iterator[Effect]:
    """A written variable counts as written only (write wins), as the shader orders its own accesses."""
    atomic = use.atomics and held.type in STORAGE_TYPES and not use.plain_writes
    if held.type in STORAGE_TYPES:
        access = "SHADER_STORAGE_WRITE" if use.writes and not atomic else "SHADER_STORAGE_READ"
    elif held.type in UNIFORM_TYPES:
        access = "UNIFORM_READ"
    else:
        access = "SHADER_SAMPLED_READ"
    sync = BY_NAME[f"SYNC_{stage}_{access}"].index
    for resource, space, spans in _addresses(objects, use, held, dynamic_offset):
        yield Access(sync, space, spans, resource, atomic)


def _addresses(
    objects: Objects, use: Use, held: Descriptor, dynamic_offset: int
) -> Iterator[tuple[int, int, tuple[Span, ...]]]:
    """(resource, space, spans) behind one descriptor."""
    if held.type in IMAGE_TYPES:
        view = objects.get(ImageView, held.resource)
        if view is not None and objects.image(view.image) is not None:
            yield view.image, view.image, view.spans
        return
    offset, size = held.offset, held.size
    id = held.resource
    if held.type in TEXEL_TYPES:
        texels = objects.get(BufferView, held.resource)
        if texels is None:
            return
        id, offset, size = texels.buffer, texels.offset, texels.size
    buffer = objects.buffer(id)
    if buffer is None:
        return
    begin, end = buffer.span(offset + dynamic_offset, size)
    spans = [(begin, end)]
    exact = use.write_ranges if use.writes else use.read_ranges
    if held.type in BUFFER_TYPES and exact is not None:
        spans = [(begin + at, min(end, begin + at + length)) for at, length in exact if begin + at < end]
    if spans and size != 0:
        yield buffer.id, buffer.space, tuple(merge(spans))
