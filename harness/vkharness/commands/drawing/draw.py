"""Draws: reads of vertices and parameters, accesses of shaders, and accesses of attachments.

Specification: "Drawing Commands", "Mesh Shading"; rules.md#what-draws-and-indirect-commands-read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from vkharness.commands.contents.content_steps import NOTHING, overwritten
from vkharness.commands.drawing.by_contents import (
    COUNT_BYTES,
    DRAW,
    INDEXED,
    INDIRECT_READ,
    MESH,
    MESH_NV,
    CountedDraw,
    IndexedDraw,
    IndirectDraw,
    Parameters,
    Part,
    counter_read,
    parameters_of,
)
from vkharness.commands.drawing.by_loads import LoadingCommand, defer_loads, loading_command
from vkharness.commands.drawing.fragments import shades_none
from vkharness.commands.drawing.graphics import UNSEEN
from vkharness.commands.drawing.invocations import UNKNOWN_INVOCATIONS, Invocations, drawn
from vkharness.commands.drawing.plans_by_sets import Drawn, PlansBySets
from vkharness.commands.drawing.shaders import StageUses, shader_effects, stage_uses
from vkharness.commands.drawing.transform_feedback import feedback_effects
from vkharness.commands.drawing.vertex import (
    EVERYTHING,
    Elements,
    access_of,
    index_reads,
    index_source,
    vertex_reads,
    vertex_sources,
)
from vkharness.commands.handlers import CommandHandler, command
from vkharness.commands.object_state import BoundSet, CommandBuffer, LateEffects, ObjectState
from vkharness.commands.rendering.attachment_access import attached_depth_stencil, attachment_effects, targets_for
from vkharness.spec.enums import VkPipelineBindPoint, VkShaderStage
from vkharness.trace.effects import Effect, Unmodelled
from vkharness.trace.graphics_state import GraphicsPipeline, Targets
from vkharness.trace.rendering_state import RenderingState

Reads = Callable[[GraphicsPipeline], Iterable[Effect]]
"""The reads of a draw before shaders run, given the bound pipeline."""


NO_SETS: dict[int, BoundSet] = {}


class LastDraw(NamedTuple):
    """The bindings of the last draw, and those of its effects that depend on nothing else."""

    pipeline: GraphicsPipeline
    targets: Targets
    rendering: RenderingState | None
    sets: tuple[tuple[int, BoundSet, Any], ...]
    """By set index, with what it referred to, where anybody asked for that."""
    uses: StageUses | None
    """The uses of resources by its stages; None without stages."""
    key: tuple[Any, ...]
    """The values on which its effects depend beside the bindings (`_key`)."""
    effects: tuple[Effect, ...]
    late: LateEffects | None
    shaders: PlansBySets | None
    """The accesses of its shaders, by the resources of the sets; None where more than these decides them."""
    attached: tuple[Effect, ...]
    """Its accesses of attachments, the last of its effects then."""
    loading: LoadingCommand | None
    """The deferred step that gives the last of its effects, if values that its shaders load decide them."""


def draw_effects(
    objects: ObjectState, buffer: CommandBuffer, reads: Reads, run: Invocations = UNKNOWN_INVOCATIONS
) -> Iterable[Effect]:
    """All effects of a draw with the bound pipeline. `run` says which vertices and instances are drawn."""
    objects.shaders.drawn = None
    pipeline = buffer.pipelines.get(VkPipelineBindPoint.GRAPHICS)
    if not isinstance(pipeline, GraphicsPipeline) or pipeline.unmodelled:
        return (Unmodelled(pipeline.unmodelled if isinstance(pipeline, GraphicsPipeline) else UNSEEN),)
    first = tuple(reads(pipeline))
    bound = _effects_of_bindings(objects, buffer, pipeline, run)
    effects = (*first, *bound)
    if buffer.drawing.feedback.active:
        return (*first, *bound, *feedback_effects(objects, buffer))
    last: LastDraw | None = buffer.drawing.last_draw
    if last is not None and last.shaders is not None and buffer.late is None:
        objects.shaders.drawn = Drawn(effects, last.shaders, first, last.attached)
    return effects


def _effects_of_bindings(
    objects: ObjectState, buffer: CommandBuffer, pipeline: GraphicsPipeline, run: Invocations
) -> tuple[Effect, ...]:
    """The accesses of shaders and attachments, which are the same for every draw until something else is bound, or
    until a draw differs in what the shaders depend on.

    Descriptors of a layout that may be written after they are bound come with `CommandBuffer.late`.
    """
    drawing, sets = buffer.drawing, buffer.sets.get(VkPipelineBindPoint.GRAPHICS) or NO_SETS
    targets = targets_for(pipeline, drawing)
    last: LastDraw | None = drawing.last_draw
    if (
        last is not None
        and last.pipeline is pipeline
        and last.targets is targets
        and last.rendering is buffer.rendering
        and len(last.sets) == len(sets)
        and (not sets or all(_is_as_before(sets.get(number), *held) for number, *held in last.sets))
        and last.key == _key(objects, last.uses, buffer, run)
    ):
        buffer.late = last.late
        _defer(objects, buffer, last.loading)
        return last.effects
    idle = VkShaderStage.FRAGMENT if shades_none(pipeline, drawing, attached_depth_stencil(objects, buffer)) else 0
    objects.shaders.source = None
    shaded = shader_effects(objects, buffer, VkPipelineBindPoint.GRAPHICS, run, idle)
    loading = None
    if not drawing.feedback.active:
        loading = loading_command(objects, buffer, VkPipelineBindPoint.GRAPHICS, run, shaded, idle)
    source = objects.shaders.source
    attached = tuple(attachment_effects(objects, buffer, targets))
    effects = (*shaded, *attached) if loading is None else (*attached, *loading.declared)
    uses = stage_uses(objects, pipeline) if pipeline.stages else None
    key = _key(objects, uses, buffer, run)
    if loading is not None:
        loading.writes = overwritten(effects) or NOTHING
    bound = tuple([(number, each, each.set.contents) for number, each in sets.items()])
    given = (pipeline, targets, buffer.rendering, bound, uses, key)
    shaders = None if source is None or loading is not None else source[1]
    drawing.last_draw = LastDraw(*given, effects, buffer.late, shaders, attached, loading)
    _defer(objects, buffer, loading)
    return effects


def _key(objects: ObjectState, uses: StageUses | None, buffer: CommandBuffer, run: Invocations) -> tuple[Any, ...]:
    """The values on which the accesses of shaders depend beside the bindings, and counts of moves of bound objects."""
    key = () if uses is None else uses.key(buffer, run)
    return (*key, objects.moved, objects.addresses.changes)


def _is_as_before(bound: BoundSet | None, before: BoundSet, contents: Any) -> bool:
    return bound is before and bound.set.contents is contents


def _defer(objects: ObjectState, buffer: CommandBuffer, loading: LoadingCommand | None) -> None:
    """Lets what the shaders of a draw load decide what they access, if it does."""
    if loading is not None:
        defer_loads(objects, buffer, replace(loading))


def _draw(
    objects: ObjectState, buffer: CommandBuffer, vertices: Sequence[Elements], args: dict[str, Any]
) -> Iterable[Effect]:
    """A draw of ranges of vertices. A draw without vertices or instances does nothing."""
    chosen = tuple([each for each in vertices if each[1] is None or each[0] < each[1]])
    if not chosen or not args["instanceCount"]:
        return ()
    instances = _instances(args)
    run = drawn(chosen[0] if len(chosen) == 1 else EVERYTHING, instances)

    def reads(pipeline: GraphicsPipeline) -> Iterable[Effect]:
        return vertex_reads(vertex_sources(objects, buffer, pipeline.state), chosen, [instances])

    return draw_effects(objects, buffer, reads, run)


def _draw_indexed(
    objects: ObjectState, buffer: CommandBuffer, parts: Sequence[tuple[int, int, int]], args: dict[str, Any]
) -> Iterable[Effect]:
    """A draw of (first index, index count, vertex offset) each. A draw without indices or instances does nothing."""
    chosen = tuple(Part(*part) for part in parts if part[1])
    if not chosen or not args["instanceCount"]:
        return ()
    instances = _instances(args)

    def reads(pipeline: GraphicsPipeline) -> Iterator[Effect]:
        state = pipeline.state
        indices, sources = index_source(objects, buffer, state), vertex_sources(objects, buffer, state)
        yield from index_reads(indices, [(first, first + count) for first, count, _ in chosen])
        by_vertex = tuple(each for each in sources if not each.binding.per_instance)
        if len(by_vertex) < len(sources):
            yield from vertex_reads([each for each in sources if each.binding.per_instance], (), [instances])
        if by_vertex:
            buffer.defer(IndexedDraw(indices, chosen, by_vertex), objects.contents)

    return draw_effects(objects, buffer, reads, drawn(EVERYTHING, instances))


def _instances(args: dict[str, Any]) -> Elements:
    return args["firstInstance"], args["firstInstance"] + args["instanceCount"]


@command("vkCmdDraw")
def draw(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """A draw that reads exactly its vertices and instances."""
    first = args["firstVertex"]
    return _draw(objects, buffer, [(first, first + args["vertexCount"])], args)


@command("vkCmdDrawMultiEXT")
def draw_multi(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """A draw of several ranges of vertices, with the same instances."""
    parts = args["pVertexInfo"] or ()
    return _draw(
        objects, buffer, [(each["firstVertex"], each["firstVertex"] + each["vertexCount"]) for each in parts], args
    )


@command("vkCmdDrawIndexed")
def draw_indexed(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """A draw that reads exactly its indices, and the vertices that these may stand for."""
    return _draw_indexed(objects, buffer, [(args["firstIndex"], args["indexCount"], args["vertexOffset"])], args)


@command("vkCmdDrawMultiIndexedEXT")
def draw_multi_indexed(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """A draw of several ranges of indices. pVertexOffset, if given, replaces the offset of each."""
    shared = args["pVertexOffset"]
    return _draw_indexed(
        objects,
        buffer,
        [
            (each["firstIndex"], each["indexCount"], each["vertexOffset"] if shared is None else shared)
            for each in args["pIndexInfo"] or ()
        ],
        args,
    )


def _indirect(layout: str) -> CommandHandler:
    """The handler of a draw whose parameters, structures of this layout, lie in a buffer. Their number may lie in a
    buffer, too."""

    def handler(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
        count = args["drawCount"] if "drawCount" in args else args["maxDrawCount"]
        if not count:
            return ()
        parameters = parameters_of(objects, args, count, layout)
        return draw_by_parameters(objects, buffer, layout, parameters, counter_read(objects, args))

    return handler


def draw_by_parameters(
    objects: ObjectState, buffer: CommandBuffer, layout: str, parameters: Parameters | None, counter: Iterable[Effect]
) -> Iterable[Effect]:
    """A draw by parameters in memory, after the read of their number."""

    def reads(pipeline: GraphicsPipeline) -> Iterator[Effect]:
        state = pipeline.state
        if parameters is None:
            return
        first = () if parameters.counter is not None else parameters.reads(parameters.most)
        sure = (*counter, *first)
        yield from sure
        sources = vertex_sources(objects, buffer, state) if layout in (DRAW, INDEXED) else ()
        indices = index_source(objects, buffer, state) if layout == INDEXED else None
        draw = IndirectDraw(parameters, layout, indices, sources, sure=len(sure))
        foreseen = buffer.steps.foresight(objects.contents.memory)
        draw.idle = foreseen is not None and draw.is_idle(foreseen)
        buffer.defer(draw, objects.contents)

    return draw_effects(objects, buffer, reads)


command("vkCmdDrawIndirect", "vkCmdDrawIndirectCount")(_indirect(DRAW))
command("vkCmdDrawIndexedIndirect", "vkCmdDrawIndexedIndirectCount")(_indirect(INDEXED))
command("vkCmdDrawMeshTasksIndirectEXT", "vkCmdDrawMeshTasksIndirectCountEXT")(_indirect(MESH))
command("vkCmdDrawMeshTasksIndirectNV", "vkCmdDrawMeshTasksIndirectCountNV")(_indirect(MESH_NV))


@command("vkCmdDrawIndirectByteCountEXT")
def draw_indirect_byte_count(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """A draw that reads its number of vertices from a transform feedback counter, as indirect parameters are read.

    Specification: "the destination access is VK_ACCESS_INDIRECT_COMMAND_READ_BIT" ("Drawing Transform Feedback").
    """
    if not args["instanceCount"]:
        return ()

    def reads(pipeline: GraphicsPipeline) -> Iterator[Effect]:
        state = pipeline.state
        counter = objects.buffer(args["counterBuffer"])
        sources = vertex_sources(objects, buffer, state)
        yield from vertex_reads([each for each in sources if each.binding.per_instance], (), [_instances(args)])
        if counter is not None:
            span = counter.span(args["counterBufferOffset"], COUNT_BYTES)
            yield from access_of(counter, INDIRECT_READ, [span])
            by_vertex = tuple(each for each in sources if not each.binding.per_instance)
            where = counter.space, span[0]
            read = CountedDraw(where, args["counterOffset"], args["vertexStride"], by_vertex)
            buffer.defer(read, objects.contents)

    return draw_effects(objects, buffer, reads)


@command("vkCmdDrawMeshTasksEXT", "vkCmdDrawMeshTasksNV")
def draw_mesh_tasks(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """A draw without vertex input. A draw without workgroups runs nothing."""
    if not all(value for name, value in args.items() if name.startswith("groupCount") or name == "taskCount"):
        return ()
    return draw_effects(objects, buffer, lambda pipeline: ())
