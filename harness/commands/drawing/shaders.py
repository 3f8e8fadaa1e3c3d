"""The static uses of the bound descriptors by the shaders of a bound pipeline (rules.md#shaders)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.commands.drawing.bind import STAGES_OF
from harness.commands.drawing.descriptors import BUFFER_TYPES, IMAGE_TYPES, TEXEL_TYPES
from harness.commands.object_state import BoundSet, CommandBuffer, ObjectState
from harness.commands.rendering.attachment_access import attachment_effects
from harness.commands.resources.acceleration_structures import structure
from harness.findings import Certainty
from harness.spans import Span, merge, subtract
from harness.spec.enums import VkDescriptorType, VkPipelineBindPoint, VkShaderStage
from harness.spec.scopes import ACCESS_KIND, bits
from harness.trace.effects import Access, Effect, RasterizationOrder, Unmodelled
from harness.trace.graphics_state import Targets
from harness.trace.resources import BufferView, Descriptor, DescriptorSet, ImageView, Pipeline, Stage

if TYPE_CHECKING:
    from harness.shader.reflect import ResourceUse

STAGE_NAMES = {
    VkShaderStage.VERTEX: "VERTEX_SHADER",
    VkShaderStage.TESSELLATION_CONTROL: "TESSELLATION_CONTROL_SHADER",
    VkShaderStage.TESSELLATION_EVALUATION: "TESSELLATION_EVALUATION_SHADER",
    VkShaderStage.GEOMETRY: "GEOMETRY_SHADER",
    VkShaderStage.FRAGMENT: "FRAGMENT_SHADER",
    VkShaderStage.COMPUTE: "COMPUTE_SHADER",
    VkShaderStage.TASK_EXT: "TASK_SHADER_EXT",
    VkShaderStage.MESH_EXT: "MESH_SHADER_EXT",
}
"""The name of each VkShaderStageFlagBits stage as access names spell it."""
STAGE_NAMES |= dict.fromkeys(bits(STAGES_OF[VkPipelineBindPoint.RAY_TRACING_KHR]), "RAY_TRACING_SHADER")

MOST_SHADER_EFFECTS = 1 << 14
"""The most combinations of a pipeline and its bindings that are remembered."""
UNIFORM_TYPES = (VkDescriptorType.UNIFORM_BUFFER, VkDescriptorType.UNIFORM_BUFFER_DYNAMIC)
STORAGE_TYPES = (
    VkDescriptorType.STORAGE_BUFFER,
    VkDescriptorType.STORAGE_BUFFER_DYNAMIC,
    VkDescriptorType.STORAGE_IMAGE,
    VkDescriptorType.STORAGE_TEXEL_BUFFER,
)


def shader_effects(objects: ObjectState, buffer: CommandBuffer, bind_point: int, idle: int = 0) -> tuple[Effect, ...]:
    """The accesses of every stage of the bound pipeline. The spans of equal accesses are joined.

    `idle` holds the stages (VkShaderStageFlags) that do not run. The result is remembered for a pipeline and its sets
    until a set is written or any object that a descriptor may refer to is destroyed.
    """
    pipeline = buffer.pipelines.get(bind_point)
    if pipeline is None or not pipeline.stages:
        return (Unmodelled("a pipeline whose shaders were not seen"),)
    sets = buffer.sets.get(bind_point, {})
    if any(_depends_on_more(bound.set) for bound in sets.values()):
        return tuple(_shader_effects(objects, buffer, pipeline, sets, idle))
    key = (pipeline.id, idle, *((index, *bound.key) for index, bound in sets.items()))
    made = objects.shader_effects.get(key)
    if made is None:
        if len(objects.shader_effects) >= MOST_SHADER_EFFECTS:
            objects.shader_effects.clear()
        made = objects.shader_effects[key] = tuple(_shader_effects(objects, buffer, pipeline, sets, idle))
    return made


def _depends_on_more(held: DescriptorSet) -> bool:
    """Whether the meaning of a set's descriptors depends on more than the set.

    It may depend on the render pass instance, on the last build of an acceleration structure, and on what was pushed.
    """
    return held.id == 0 or bool(
        held.layout.places(VkDescriptorType.INPUT_ATTACHMENT, VkDescriptorType.ACCELERATION_STRUCTURE_KHR)
    )


def _shader_effects(
    objects: ObjectState, buffer: CommandBuffer, pipeline: Pipeline, sets: dict[int, BoundSet], idle: int
) -> Iterator[Effect]:
    joined: dict[tuple[int, int, int, bool, RasterizationOrder, Certainty], list[Span]] = {}
    for stage in pipeline.stages:
        if stage.stage & idle:
            continue
        for effect in _stage_effects(objects, buffer, stage, sets):
            if isinstance(effect, Access):
                key = (effect.access_kind, effect.space, effect.resource, effect.atomic, effect.order, effect.certainty)
                joined.setdefault(key, []).extend(effect.spans)
            else:
                yield effect
    # Where a shader reads a byte in both ways, the surer access counts, which is made last.
    for key, spans in sorted(joined.items(), key=lambda item: item[0][5] is Certainty.EXACT):
        access_kind, space, resource, atomic, order, certainty = key
        yield Access(access_kind, space, tuple(merge(spans)), resource, atomic, order, certainty=certainty)


def _stage_effects(
    objects: ObjectState, buffer: CommandBuffer, stage: Stage, sets: dict[int, BoundSet]
) -> Iterator[Effect]:
    from harness.shader.reflect import reflect  # a program without shaders does without it

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
            if held is not None and held.type == VkDescriptorType.INPUT_ATTACHMENT:
                yield from attachment_effects(objects, buffer, Targets(inputs=(held.resource,)))
            elif held is not None and held.type == VkDescriptorType.ACCELERATION_STRUCTURE_KHR:
                read = ACCESS_KIND[f"SYNC_{name}_ACCELERATION_STRUCTURE_READ"].index
                yield from structure(objects, read, held.resource)
            elif held is not None:
                offset = bound.offsets.get((use.binding, element), 0)
                yield from _descriptor_effects(objects, name, use, held, offset)


def _descriptor_effects(
    objects: ObjectState, stage: str, use: ResourceUse, held: Descriptor, dynamic_offset: int
) -> Iterator[Effect]:
    """The accesses through one descriptor. An address that is both read and written counts as written only.

    The shader orders its own accesses of one address.
    """
    target = _addresses(objects, held, dynamic_offset)
    if target is None:
        return
    resource, space, spans = target
    if held.type not in STORAGE_TYPES:
        access = "UNIFORM_READ" if held.type in UNIFORM_TYPES else "SHADER_SAMPLED_READ"
        sure = _certainty(held, use.read_ranges)
        yield from _access(stage, access, space, _narrowed(held, spans, use.read_ranges), resource, sure)
        return
    atomic = use.atomics and not use.plain_writes
    written = _narrowed(held, spans, use.write_ranges) if use.writes else []
    read = _narrowed(held, spans, use.read_ranges) if use.reads else []
    access = "SHADER_STORAGE_READ" if atomic else "SHADER_STORAGE_WRITE"
    yield from _access(stage, access, space, written, resource, _certainty(held, use.write_ranges), atomic)
    left = subtract(read, written)
    yield from _access(stage, "SHADER_STORAGE_READ", space, left, resource, _certainty(held, use.read_ranges))


def _access(
    stage: str, access: str, space: int, spans: list[Span], resource: int, certainty: Certainty, atomic: bool = False
) -> Iterator[Access]:
    if spans:
        kind = ACCESS_KIND[f"SYNC_{stage}_{access}"].index
        yield Access(kind, space, tuple(spans), resource, atomic, certainty=certainty)


def _certainty(held: Descriptor, ranges: tuple[Span, ...] | None) -> Certainty:
    """Whether the bytes that a shader touches are known, or it may touch any byte of the descriptor."""
    return Certainty.EXACT if ranges is not None and held.type in BUFFER_TYPES else Certainty.DECLARED


def _narrowed(held: Descriptor, spans: list[Span], ranges: tuple[Span, ...] | None) -> list[Span]:
    """The spans of a bound buffer range that a block's constant offsets reach; all spans when the offsets are not
    known.

    `ranges` are (offset, size) in bytes from the start of the range.
    """
    if ranges is None or held.type not in BUFFER_TYPES:
        return spans
    begin, end = spans[0]
    return merge([(begin + at, min(end, begin + at + size)) for at, size in ranges if begin + at < end])


def _addresses(objects: ObjectState, held: Descriptor, dynamic_offset: int) -> tuple[int, int, list[Span]] | None:
    """(resource, space, spans) behind one descriptor. None when the descriptor refers to nothing known, or
    to no bytes."""
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
