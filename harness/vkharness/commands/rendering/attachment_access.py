"""The accesses of attachments by draws (rules.md#attachments-and-rasterization-order).

A draw names its targets by role, and the render pass instance says which addresses these are. In a secondary only
vkCmdExecuteCommands knows the instance: `inherited` resolves there what the secondary left open. Specification:
"Fragment Operations", "Blending".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from vkharness.commands.drawing import dynamic_state, fragments
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.commands.rendering.attachments import COLOR_READ, COLOR_WRITE, find_attachment
from vkharness.spec.enums import VkImageAspect, VkPipelineBindPoint, VkStructureType
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.trace.attachment_operations import AttachmentOperation, RasterizationOrder
from vkharness.trace.chain import chained
from vkharness.trace.effects import Access, Command, Effect, Unmodelled
from vkharness.trace.graphics_state import LOGIC_OPS_THAT_IGNORE, DepthStencil, DrawState, GraphicsPipeline, Targets
from vkharness.trace.inherited import InheritedTargets
from vkharness.trace.render_passes import RenderPass
from vkharness.trace.rendering_state import Attachment, RenderingState
from vkharness.trace.resources import ImageView

INPUT_READ = ACCESS_KIND["SYNC_FRAGMENT_SHADER_INPUT_ATTACHMENT_READ"].index

NO_TARGETS = Targets()


def targets_for(pipeline: GraphicsPipeline, drawing: DrawState) -> Targets:
    """The attachments that a draw with this pipeline would access. Kept until another pipeline or dynamic
    state is set."""
    if drawing.targets is None or drawing.targets[0] is not pipeline:
        drawing.targets = (pipeline, targets_of(pipeline, drawing))
    return drawing.targets[1]


def attachment_effects(objects: ObjectState, buffer: CommandBuffer, targets: Targets) -> Iterator[Effect]:
    """The accesses of the targets, or `InheritedTargets` in a secondary that inherits its render pass instance."""
    if targets == NO_TARGETS and not (targets.rasterizes and _reads_by_fragments(buffer)):
        return
    pipeline = buffer.pipelines.get(VkPipelineBindPoint.GRAPHICS)
    if targets.inputs and isinstance(pipeline, GraphicsPipeline) and pipeline.state.raster_ordered:
        targets = replace(targets, raster_ordered=pipeline.state.raster_ordered)
    if buffer.inheritance is not None:
        yield InheritedTargets(targets)
    elif buffer.rendering is not None:
        yield from accesses(objects, buffer.rendering, targets)
    else:
        yield Unmodelled("a draw outside a render pass instance that was seen")


def _reads_by_fragments(buffer: CommandBuffer) -> bool:
    """Whether fragments read attachments by being made, or may where the instance is inherited."""
    return buffer.inheritance is not None or (buffer.rendering is not None and bool(buffer.rendering.read_by_fragments))


def attached_depth_stencil(objects: ObjectState, buffer: CommandBuffer) -> tuple[bool, bool] | None:
    """Whether there is a depth, and a stencil attachment where a draw is recorded; None where that is not known.

    A secondary that continues a render pass instance knows it from what it inherits (specification:
    VkCommandBufferInheritanceInfo; VUID-vkCmdExecuteCommands-pDepthAttachment-06774).
    """
    if buffer.rendering is not None:
        return buffer.rendering.depth is not None, buffer.rendering.stencil is not None
    if buffer.inheritance is None:
        return None
    made = objects.get(RenderPass, buffer.inheritance["renderPass"] or 0)
    if made is not None:
        return made.has_depth_stencil(buffer.inheritance["subpass"])
    formats = chained(buffer.inheritance, VkStructureType.COMMAND_BUFFER_INHERITANCE_RENDERING_INFO)
    if formats is None:
        return None
    return bool(formats["depthAttachmentFormat"]), bool(formats["stencilAttachmentFormat"])


def targets_of(pipeline: GraphicsPipeline, drawing: DrawState) -> Targets:
    """The attachments that a draw with this pipeline would access."""
    if fragments.makes_none(pipeline, drawing):
        return NO_TARGETS
    tests = fragments.tests_of(pipeline, drawing)
    if tests.may_pass:
        return _targets(pipeline, drawing, tests)
    several = [fragments.attached_tests(tests, depth, stencil) for stencil in (False, True) for depth in (False, True)]
    return Targets(by_attached=tuple(_targets(pipeline, drawing, each) for each in several), rasterizes=True)


def _targets(pipeline: GraphicsPipeline, drawing: DrawState, tests: DepthStencil) -> Targets:
    """Colours are written by fragments that pass the tests. Rule: rules.md#a-test-that-never-passes-discards-all."""
    state = pipeline.state
    entry = fragments.fragment_entry(pipeline)
    logic = dynamic_state.logic_op(state, drawing)
    written, blended = [], []
    for index, color in dynamic_state.colors(state, drawing) if tests.may_pass else ():
        location = dynamic_state.location(state, drawing, index)
        # Without a fragment shader, undefined values may be written to every attachment that has a location.
        if color.writes and location is not None and (entry is None or location in entry.declared_outputs):
            written.append(index)
            if color.blend_reads if logic is None else logic not in LOGIC_OPS_THAT_IGNORE:
                blended.append(index)
    return Targets(
        tuple(written),
        tuple(blended),
        fragments.test_accesses(entry, tests, stencil=False),
        fragments.test_accesses(entry, tests, stencil=True),
        raster_ordered=state.raster_ordered,
        rasterizes=True,
    )


def accesses(objects: ObjectState, rendering: RenderingState, targets: Targets) -> Iterator[Effect]:
    """The accesses of the targets in a render pass instance: within the render area, in the layers rendered to."""
    targets = targets.attached(rendering.depth is not None, rendering.stencil is not None)
    if targets.rasterizes:
        yield from rendering.read_by_fragments
    colors = dict(enumerate(rendering.colors))
    for index in targets.blended:
        yield from _access(rendering, targets, colors.get(index), COLOR_READ, RasterizationOrder.COLOR)
    for index in targets.written:
        yield from _access(rendering, targets, colors.get(index), COLOR_WRITE, RasterizationOrder.COLOR)
    for access_kind in targets.depth:
        yield from _access(rendering, targets, rendering.depth, access_kind, RasterizationOrder.DEPTH_STENCIL)
    for access_kind in targets.stencil:
        yield from _access(rendering, targets, rendering.stencil, access_kind, RasterizationOrder.DEPTH_STENCIL)
    for view in targets.inputs:
        held = objects.get(ImageView, view)
        attachment = find_attachment(objects, view, held.aspects if held is not None else 0)
        yield from _access(rendering, targets, attachment, INPUT_READ, RasterizationOrder.RASTER)


def _access(
    rendering: RenderingState,
    targets: Targets,
    attachment: Attachment | None,
    access_kind: int,
    order: RasterizationOrder,
) -> Iterator[Access]:
    spans = rendering.spans(attachment) if attachment is not None else ()
    if attachment is not None and spans:
        image = attachment.image.id
        ordered = targets.raster_ordered & (VkImageAspect.COLOR if attachment.is_color else attachment.aspects)
        operation = AttachmentOperation.RASTER_ORDERED if ordered else AttachmentOperation.ORDINARY
        yield Access(access_kind, image, spans, image, order=order, operation=operation)


def inherited(objects: ObjectState, commands: Iterable[Command], rendering: RenderingState) -> tuple[Command, ...]:
    """The commands of a secondary with the accesses of the render pass instance in which it is executed."""
    return tuple(
        command.with_effects(tuple(_resolved(objects, command, rendering)))
        if any(isinstance(effect, InheritedTargets) for effect in command.effects)
        else command
        for command in commands
    )


def _resolved(objects: ObjectState, command: Command, rendering: RenderingState) -> Iterator[Effect]:
    for effect in command.effects:
        if isinstance(effect, InheritedTargets):
            yield from accesses(objects, rendering, effect.targets)
        else:
            yield effect
