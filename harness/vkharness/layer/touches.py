"""Accesses of a recorded command, and those that a layer may take it for: data, from the interpreter's knowledge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from vkharness.commands.drawing.dynamic_state import CULL_MODE, TESTS, TOPOLOGY, depth_stencil, vertex_input
from vkharness.commands.drawing.invocations import UNKNOWN_INVOCATIONS
from vkharness.commands.drawing.shaders import shader_effects, whole_ranges
from vkharness.commands.drawing.vertex import EVERYTHING, vertex_reads, vertex_sources
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.commands.rendering import attachment_access
from vkharness.findings import Certainty
from vkharness.spans import Span, merge, subtract
from vkharness.spec.enums import VkCompareOp, VkCullMode, VkPipelineBindPoint, VkPrimitiveTopology, VkShaderStage
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.trace.attachment_operations import AttachmentOperation
from vkharness.trace.calls import Call
from vkharness.trace.effects import Access, Alias, Barrier, Command, Effect, PassEnd, SubpassBegin, WaitEvents
from vkharness.trace.graphics_state import GraphicsPipeline, StencilFace
from vkharness.trace.rendering_state import Attachment, RenderingState

TRANSITION = "SYNC_IMAGE_LAYOUT_TRANSITION"
COLOR_WRITE = "SYNC_COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE"


@dataclass(frozen=True, slots=True)
class Touch:
    """Addresses that a command reads or writes."""

    resource: int
    space: int
    spans: tuple[Span, ...]
    access: str
    """`SYNC_COPY_TRANSFER_READ`, or that of a layout transition."""
    write: bool
    stage: int = 0
    """VkPipelineStageFlagBits2 of the access; 0 for a layout transition."""
    atomic: bool = False
    """Part of an update in one piece, which is a read and a write."""
    rewrite: bool = False
    """Whether an attachment operation may do this to the aspect with which it has nothing to do."""
    declared: bool = False
    """Whether it is not known to happen."""


class RenderedPart(NamedTuple):
    """One aspect of an attachment: the addresses of the render area, and those of all layers of its view."""

    space: int
    area: tuple[Span, ...]
    whole: tuple[Span, ...]
    later_layer: bool = False
    """Whether the view begins at another layer than the first."""


class Facts(NamedTuple):
    """The interpreter's knowledge of one recorded command."""

    effects: tuple[Effect, ...] = ()
    touches: tuple[Touch, ...] = ()
    instanced: frozenset[int] = frozenset()
    """Vertex buffers of which a draw reads elements of instance rate alone."""
    attached: tuple[RenderedPart, ...] = ()
    """The attachments of the render pass instance that the command begins."""
    if_written: tuple[Touch, ...] = ()
    """Writes by the store operations NONE of that instance, if something wrote to their attachments."""
    culled: tuple[Touch, ...] = ()
    """Further accesses of a draw if no face were culled, the tests might pass and no mask were 0."""
    declared: tuple[Touch, ...] = ()
    """Accesses of shaders if each reached all of the range of its buffer descriptor."""
    vertices: tuple[Touch, ...] = ()
    """All of the vertex buffers that an indexed or indirect draw may reach. Of other draws, what bindings of instance
    rate would read at vertex rate."""
    left_out: tuple[Touch, ...] = ()
    """Accesses of an indirect command if its parameters were others."""
    loads: bool = False
    is_open: bool = False
    """Whether values that its shaders load, or any contents of memory, decide what it accesses."""
    undefined: tuple[Touch, ...] = ()
    """Writes to colour that a draw without a fragment shader may make."""

    @property
    def aliases(self) -> Iterator[Alias]:
        """Other resources on the memory that the command touches."""
        for effect in self.effects:
            if isinstance(effect, Access):
                yield from effect.aliases
            for barrier in barriers_of(effect):
                yield from (alias for part in barrier.ranges for alias in part.aliases)


def common(one: Iterable[Touch], other: Iterable[Touch]) -> list[Touch]:
    """The parts of `one` whose addresses are in `other` too."""
    others = list(other)
    found: list[Touch] = []
    for touch in one:
        spans = tuple(
            (max(begin, start), min(end, until))
            for mate in others
            if mate.space == touch.space
            for begin, end in touch.spans
            for start, until in mate.spans
            if begin < until and start < end
        )
        if spans:
            found.append(replace(touch, spans=spans))
    return found


def apart(one: Touch, other: Touch) -> Touch:
    """The part of `one` whose addresses are not in `other`."""
    return replace(one, spans=tuple(subtract(one.spans, other.spans))) if one.space == other.space else one


def with_effects(one: Facts, made: Command) -> Facts:
    """Facts with what a command does for certain, and apart what it may do by contents of memory."""
    sure = made.effects[: made.sure]
    left = tuple(touches_of(made.effects[len(sure) :]))
    return one._replace(effects=sure, touches=tuple(touches_of(sure)), left_out=left)


def touches_of(effects: Iterable[Effect]) -> Iterator[Touch]:
    """The reads and writes of effects, layout transitions included."""
    for effect in effects:
        if isinstance(effect, Access):
            kind = ACCESS_KINDS[effect.access_kind]
            where = (effect.resource, effect.space, effect.spans)
            declared = effect.certainty is not Certainty.EXACT
            yield Touch(*where, kind.name, kind.write, kind.stage, effect.atomic, effect.rewrite, declared)
            if effect.atomic:
                yield Touch(*where, kind.name.removesuffix("READ") + "WRITE", True, kind.stage, True)
        for barrier in barriers_of(effect):
            for part in barrier.ranges:
                if part.transition:
                    yield Touch(part.resource, part.space, part.spans, TRANSITION, True)
        if isinstance(effect, SubpassBegin | PassEnd):
            for moved in effect.transitions:
                yield Touch(moved.resource, moved.space, moved.spans, TRANSITION, True)


def barriers_of(effect: Effect) -> tuple[Barrier, ...]:
    """The barriers of an effect: itself, or those of a wait for events."""
    if isinstance(effect, Barrier):
        return (effect,)
    return effect.barriers if isinstance(effect, WaitEvents) else ()


def facts_of(
    objects: ObjectState, call: Call, effects: tuple[Effect, ...], conceivable: tuple[Effect, ...] = ()
) -> Facts:
    """The facts of a command, directly after it was interpreted. `conceivable` are all effects that it may have."""
    touches = tuple(touches_of(effects))
    buffer = objects.get(CommandBuffer, call.args["commandBuffer"])
    rendering = buffer.rendering if buffer is not None else None
    begins = "pRenderingInfo" in call.args or "pRenderPassBegin" in call.args
    if buffer is not None and call.name.startswith("vkCmdDraw"):
        return Facts(
            effects,
            touches,
            instanced=_instanced(buffer),
            culled=tuple(_culled(objects, buffer, touches)),
            declared=tuple(touches_of(whole_ranges(objects, buffer, VkPipelineBindPoint.GRAPHICS))),
            vertices=tuple(_vertices(objects, buffer, call)),
            undefined=()
            if _shaded(buffer)
            else tuple(one for one in touches_of(conceivable) if one.access == COLOR_WRITE),
        )
    if buffer is not None and call.name.startswith("vkCmdDispatch"):
        return Facts(
            effects, touches, declared=tuple(touches_of(whole_ranges(objects, buffer, VkPipelineBindPoint.COMPUTE)))
        )
    if rendering is None or not begins:
        return Facts(effects, touches)
    subpasses = list(_subpasses(rendering))
    attached = [(each, it) for each in subpasses for it in (*each.colors, each.depth, each.stencil, *each.inputs) if it]
    parts = [part for each, one in attached for part in _rendered_parts(each, one)]
    parts += [part for each in subpasses for part in _resolved_parts(objects, each)]
    if_written = tuple(touches_of(one for each in subpasses for stored in each.stores_if_written for one in stored))
    return Facts(effects, touches, attached=tuple(dict.fromkeys(parts)), if_written=if_written)


def _rendered_parts(rendering: RenderingState, attachment: Attachment) -> Iterator[RenderedPart]:
    for aspect in attachment.image.split_aspects(attachment.aspects):
        one = replace(attachment, aspects=aspect)
        whole, later = one.subresources(range(len(one.view.layers))), one.view.layers.start > 0
        yield RenderedPart(one.image.id, rendering.spans(one), whole, later)


def _resolved_parts(objects: ObjectState, rendering: RenderingState) -> Iterator[RenderedPart]:
    """The targets of the resolves at the end of a subpass."""
    x, y, width, height = rendering.area
    for each in rendering.at_end:
        image = objects.image(each.resource) if isinstance(each, Access) else None
        if isinstance(each, Access) and image is not None and each.operation == AttachmentOperation.RESOLVE_WRITE:
            boxes = [box for span in each.spans for box in image.boxes(span)]
            area = [
                span
                for box in boxes
                for span in image.region(box.aspect, box.mip, (box.layer,), (x, y, 0), (width, height, 1))
            ]
            yield RenderedPart(each.space, tuple(merge(area)), each.spans)


def _vertices(objects: ObjectState, buffer: CommandBuffer, call: Call) -> Iterator[Touch]:
    pipeline = buffer.pipelines.get(VkPipelineBindPoint.GRAPHICS)
    if not isinstance(pipeline, GraphicsPipeline):
        return
    sources = vertex_sources(objects, buffer, pipeline.state)
    if "Ind" in call.name:
        yield from touches_of(vertex_reads(sources, [EVERYTHING], [EVERYTHING]))
    elif call.name == "vkCmdDraw":
        first, count = call.args["firstVertex"], call.args["vertexCount"]
        instanced = [each for each in sources if each.binding.per_instance]
        alike = [each._replace(binding=replace(each.binding, per_instance=False)) for each in instanced]
        yield from touches_of(vertex_reads(alike, [(first, first + count)] if count else [], []))


def _instanced(buffer: CommandBuffer) -> frozenset[int]:
    pipeline, drawing = buffer.pipelines.get(VkPipelineBindPoint.GRAPHICS), buffer.drawing
    if not isinstance(pipeline, GraphicsPipeline):
        return frozenset()
    rates: dict[int, list[bool]] = {}
    for binding in vertex_input(pipeline.state, drawing):
        bound = drawing.vertex_buffers.get(binding.binding)
        if bound is not None:
            rates.setdefault(bound.buffer, []).append(binding.per_instance)
    return frozenset(held for held, several in rates.items() if all(several))


def _shaded(buffer: CommandBuffer) -> bool:
    pipeline = buffer.pipelines.get(VkPipelineBindPoint.GRAPHICS)
    return pipeline is not None and any(stage.stage == VkShaderStage.FRAGMENT for stage in pipeline.stages)


def _culled(objects: ObjectState, buffer: CommandBuffer, touches: tuple[Touch, ...]) -> Iterator[Touch]:
    pipeline = buffer.pipelines.get(VkPipelineBindPoint.GRAPHICS)
    if not isinstance(pipeline, GraphicsPipeline) or buffer.rendering is None:
        return
    state = pipeline.state
    fixed = state.dynamic - {CULL_MODE, TOPOLOGY, *TESTS}
    tests = depth_stencil(state, buffer.drawing)
    tests = replace(tests, depth_compare=VkCompareOp.LESS, front=_may_pass(tests.front), back=_may_pass(tests.back))
    triangles = VkPrimitiveTopology.TRIANGLE_LIST
    colors = tuple(replace(each, write_mask=each.write_mask or 0xF) for each in state.colors)
    whole = replace(state, cull=VkCullMode.NONE, topology=triangles, depth_stencil=tests, dynamic=fixed, colors=colors)
    targets = attachment_access.targets_of(replace(pipeline, state=whole), buffer.drawing)
    accesses = attachment_access.accesses(objects, buffer.rendering, targets)
    shaders = shader_effects(objects, buffer, VkPipelineBindPoint.GRAPHICS, UNKNOWN_INVOCATIONS)
    yield from (touch for touch in touches_of((*shaders, *accesses)) if touch not in touches)


def _may_pass(face: StencilFace) -> StencilFace:
    return replace(face, compare=VkCompareOp.ALWAYS) if face.compare == VkCompareOp.NEVER else face


def _subpasses(rendering: RenderingState | None) -> Iterator[RenderingState]:
    while rendering is not None:
        yield rendering
        rendering = rendering.following
