"""Which parts of the state of a command buffer the commands set that bind, push or change dynamic state
(`vkharness.commands.said_states`)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from vkharness.commands.drawing.bind import bound_sets
from vkharness.commands.drawing.descriptors import BUFFER_TYPES, IMAGE_TYPES, TEXEL_TYPES
from vkharness.commands.drawing.dynamic_state import (
    BINDING_STRIDE,
    BY_ATTACHMENT,
    BY_FACE,
    VALUES,
    VERTEX_INPUT,
    given_vertex_input,
)
from vkharness.commands.drawing.plans_by_sets import MOST_PLANS, PlansBySets
from vkharness.commands.drawing.set_contents import MOST_BY_VALUE, contents_of
from vkharness.commands.handlers import folded
from vkharness.commands.known_shaders import MOST_CONTENTS
from vkharness.commands.object_state import BoundSet, CommandBuffer, ObjectState
from vkharness.commands.said_states import BINDS_SETS, LASTS, PUSHES, SETS, KnownBind, Setter
from vkharness.native import core
from vkharness.spec.command_classes import CHANGES_NO_ACCESS
from vkharness.spec.enums import VkDescriptorType, VkStencilFace
from vkharness.spec.shapes import main_name
from vkharness.trace.effects import Access, EffectPlan
from vkharness.trace.resources import Buffer, Descriptor, DescriptorSet, Pipeline, PipelineLayout, SetLayout
from vkharness.trace.templates import BIND_POINT, PUSH

TOLD_BY_THE_SET = frozenset(range(VkDescriptorType.SAMPLER, VkDescriptorType.INPUT_ATTACHMENT + 1))
"""Types of descriptors that refer to what the set and the render pass instance tell."""
FACES = (VkStencilFace.FRONT, VkStencilFace.BACK)


def _nothing(args: dict[str, Any]) -> Iterable[Hashable]:
    return ()


def _pipeline(args: dict[str, Any]) -> Iterable[Hashable]:
    return (("pipeline", args["pipelineBindPoint"]),)


def _sets(args: dict[str, Any]) -> Iterable[Hashable]:
    point, first = args["pipelineBindPoint"], args["firstSet"]
    return [("set", point, index) for index in range(first, first + len(args["pDescriptorSets"] or ()))]


def _is_seen(objects: ObjectState, args: dict[str, Any]) -> bool:
    return objects.get(Pipeline, args["pipeline"]) is not None


def tells_all(layout: SetLayout) -> bool:
    """Whether what sets of this layout refer to when a command is recorded, and the state, say all that they mean."""
    return not layout.late and layout.types <= TOLD_BY_THE_SET


def _known_bind(objects: ObjectState, args: dict[str, Any]) -> KnownBind | None:
    buffer, found = objects.get(CommandBuffer, args["commandBuffer"]), []
    for index, bound in bound_sets(objects, args):
        if bound is None or not tells_all(bound.set.layout):
            return None
        found.append((index, bound.set.id, bound))
    return None if buffer is None else KnownBind(buffer, args["pipelineBindPoint"], tuple(found))


def _pushed(objects: ObjectState, args: dict[str, Any]) -> tuple[Hashable, bool]:
    layout, index = objects.get(PipelineLayout, args["layout"]), args["set"]
    held = layout.sets[index] if layout is not None and index < len(layout.sets) else None
    return ("set", args.get(BIND_POINT), index), held is not None and tells_all(held)


def new_bound_sets(objects: ObjectState) -> Any:
    """Makes the object that binds sets and finds plans by them natively (`BoundSets` of the native core); None without
    it."""
    if core is None:
        return None
    by_id = objects.by_id
    writes = core.SetWrites(by_id, written_infos(), DescriptorSet, Descriptor)
    limits = MOST_BY_VALUE, MOST_CONTENTS
    contents = core.NumberedContents(objects.shaders, by_id, contents_of, Descriptor, Buffer(0, 0), *limits)
    types = KnownBind, BoundSet, DescriptorSet, PlansBySets
    like = Access(0, 0, (), 0), EffectPlan(())
    return core.BoundSets(objects, by_id, _dynamic_offsets, contents, writes, *types, *like, MOST_PLANS)


def written_infos() -> dict[int, tuple[str, tuple[str, ...]]]:
    """By VkDescriptorType, the member of a VkWriteDescriptorSet that says what is written, and the members of its
    elements that say so, in the order of `Descriptor`; none where an element says it itself."""
    several = (
        (IMAGE_TYPES, "pImageInfo", ("imageView",)),
        (BUFFER_TYPES, "pBufferInfo", ("buffer", "offset", "range")),
        (TEXEL_TYPES, "pTexelBufferView", ()),
    )
    return {int(kind): (info, members) for kinds, info, members in several for kind in kinds}


def _dynamic_offsets(layout: SetLayout) -> int:
    """How many dynamic offsets a set takes; negative where sets of this layout tell more or less."""
    return len(layout.dynamic) if tells_all(layout) else -1


def _vertex_buffers(args: dict[str, Any]) -> Iterable[Hashable]:
    first = args["firstBinding"]
    several = range(first, first + min(len(args["pBuffers"] or ()), len(args["pOffsets"] or ())))
    strides = [("dynamic", BINDING_STRIDE, each) for each in several] if args.get("pStrides") else []
    return [*(("vertices", each) for each in several), *strides]


def _index_buffer(args: dict[str, Any]) -> Iterable[Hashable]:
    return ("indices",)


def _push_constants(args: dict[str, Any]) -> Iterable[Hashable] | None:
    given = folded(args, "pPushConstantsInfo")
    data = given.get("pValues")
    return (("pushed", given["offset"], len(data)),) if isinstance(data, bytes) else None


def _value(state: int) -> Setter:
    return lambda args: (("dynamic", state, 0),)


def _by_face(state: int) -> Setter:
    return lambda args: [("dynamic", state, face) for face in FACES if args["faceMask"] & face]


def _by_attachment(state: int, parameter: str) -> Setter:
    def parts(args: dict[str, Any]) -> Iterable[Hashable]:
        first = args.get("firstAttachment", 0)
        return [("dynamic", state, each) for each in range(first, first + len(args[parameter] or ()))]

    return parts


def _vertex_input(args: dict[str, Any]) -> Iterable[Hashable]:
    strides = [("dynamic", BINDING_STRIDE, each.binding) for each in given_vertex_input(args)]
    return [("dynamic", VERTEX_INPUT, 0), *strides]


_BINDS: dict[str, Setter] = {
    "vkCmdBindPipeline": _pipeline,
    "vkCmdBindDescriptorSets": _sets,
    "vkCmdBindVertexBuffers": _vertex_buffers,
    "vkCmdBindVertexBuffers2": _vertex_buffers,
    "vkCmdBindIndexBuffer": _index_buffer,
    "vkCmdPushConstants": _push_constants,
    "vkCmdSetVertexInputEXT": _vertex_input,
}
SETS.update(dict.fromkeys(CHANGES_NO_ACCESS, _nothing))
SETS.update(_BINDS)
SETS.update({name: _value(state) for name, (state, _) in VALUES.items()})
SETS.update({name: _by_face(state) for name, (state, _) in BY_FACE.items()})
SETS.update({name: _by_attachment(*each) for name, each in BY_ATTACHMENT.items()})
LASTS["vkCmdBindPipeline"] = _is_seen
PUSHES.update(dict.fromkeys((main_name("vkCmdPushDescriptorSet"), PUSH), _pushed))
BINDS_SETS["vkCmdBindDescriptorSets"] = _known_bind
