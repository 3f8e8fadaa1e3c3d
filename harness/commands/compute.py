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
from harness.spans import Span, merge, subtract
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
    entry = reflect(stage.code, stage.entry, stage.specialization, stage.stage)
    for what in entry.unmodelled:
        yield Unmodelled(what)
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
    """A written address counts as written only (write wins), as the shader orders its own accesses."""
    target = _addresses(objects, held, dynamic_offset)
    if target is None:
        return
    resource, space, spans = target
    if held.type not in STORAGE_TYPES:
        access = "UNIFORM_READ" if held.type in UNIFORM_TYPES else "SHADER_SAMPLED_READ"
        yield from _access(stage, access, space, _narrowed(held, spans, use.read_ranges), resource)
        return
    atomic = use.atomics and not use.plain_writes
    written = _narrowed(held, spans, use.write_ranges) if use.writes else []
    read = _narrowed(held, spans, use.read_ranges) if use.reads else []
    access = "SHADER_STORAGE_READ" if atomic else "SHADER_STORAGE_WRITE"
    yield from _access(stage, access, space, written, resource, atomic)
    yield from _access(stage, "SHADER_STORAGE_READ", space, subtract(read, written), resource)


def _access(
    stage: str, access: str, space: int, spans: list[Span], resource: int, atomic: bool = False
) -> Iterator[Access]:
    if spans:
        yield Access(BY_NAME[f"SYNC_{stage}_{access}"].index, space, tuple(spans), resource, atomic)


def _narrowed(held: Descriptor, spans: list[Span], ranges: tuple[Span, ...] | None) -> list[Span]:
    """The spans of a bound buffer range that a block's constant offsets reach; all of them when that is not known.

    `ranges` are (offset, size) in bytes from the start of the range.
    """
    if ranges is None or held.type not in BUFFER_TYPES:
        return spans
    begin, end = spans[0]
    return merge([(begin + at, min(end, begin + at + size)) for at, size in ranges if begin + at < end])


def _addresses(objects: Objects, held: Descriptor, dynamic_offset: int) -> tuple[int, int, list[Span]] | None:
    """(resource, space, spans) behind one descriptor; None when it refers to nothing known or to no bytes."""
    if held.type in IMAGE_TYPES:
        view = objects.get(ImageView, held.resource)
        if view is None or objects.image(view.image) is None:
            return None
        return view.image, view.image, list(view.spans)
    id, offset, size = held.resource, held.offset, held.size
    if held.type in TEXEL_TYPES:
        texels = objects.get(BufferView, held.resource)
        if texels is None:
            return None
        id, offset, size = texels.buffer, texels.offset, texels.size
    buffer = objects.buffer(id)
    if buffer is None:
        return None
    span = buffer.span(offset + dynamic_offset, size)
    return (buffer.id, buffer.space, [span]) if span[0] < span[1] else None
