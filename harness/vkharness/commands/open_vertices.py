"""Vertex buffers that the state of a command buffer leaves open, as nobody said before which they are.

A program that streams vertices binds them at an offset that no call had before. What such a bind sets is no part of
the state (`vkharness.commands.said_states`), but that it sets these bindings is. The command buffer has the buffers,
and what a vkCmdDraw does that reads only open ones is known by what they refer to (`PlansBySets`). The native core
binds them itself once it has seen `AllOpen.bind` do so (`OpenVertices` of `native/open_vertices.hpp`).
"""

from __future__ import annotations

from typing import Any

from vkharness.commands.drawing.dynamic_state import vertex_input
from vkharness.commands.drawing.plans_by_sets import VERTICES, PlansBySets
from vkharness.commands.drawing.set_contents import BoundVertices, contents_of
from vkharness.commands.drawing.vertices_anywhere import reached_behind_vertices
from vkharness.commands.known_saying import OpenSaying
from vkharness.commands.object_state import BoundSet, CommandBuffer, ObjectState
from vkharness.commands.said_state import SaidState
from vkharness.spec.enums import VkPipelineBindPoint
from vkharness.trace.effects import EffectPlan
from vkharness.trace.graphics_state import BoundBuffer, GraphicsPipeline

MOST_OPEN = 1 << 10
"""The most `OpenVertices` that are remembered at a time."""
OPENS = "vkCmdBindVertexBuffers"
"""The command whose sayings may be `OpenVertices` together."""


class OpenVertices(OpenSaying):
    """Stands for all binds of so many vertex buffers from one binding on that nobody said before. Which buffers these
    are is no part of the state: the command buffer has them (`plans_by_sets.VERTICES`)."""

    __slots__ = ("bindings",)

    def __init__(self, buffer: CommandBuffer, bindings: range, era: int) -> None:
        super().__init__(OPENS, {}, buffer, era)
        self.bindings = bindings

    def bring(self, objects: ObjectState, buffer: CommandBuffer) -> None:
        """Binds the vertex buffers that the command buffer has."""
        places = buffer.sets.get(VERTICES, {})
        for binding in self.bindings:
            bound: Any = places[VERTICES - binding].set
            buffer.drawing.vertex_buffers[binding] = BoundBuffer(bound.buffer, bound.offset)
        buffer.drawing.sources = None


class AllOpen:
    """All `OpenVertices` that states know."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, range], OpenVertices] = {}
        """By the id of the command buffer, and bindings."""

    def clear(self) -> None:
        """Forgets them."""
        self._known.clear()

    def bind(self, objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any], era: int) -> OpenVertices | None:
        """Notes which vertex buffers are bound; what stands for that in states. None where that is a rare one."""
        first, ids, offsets = args["firstBinding"], args["pBuffers"], args["pOffsets"]
        if not ids or not offsets or len(ids) != len(offsets):
            return None
        bindings = range(first, first + len(ids))
        opened = self._known.get((buffer.id, bindings))
        if opened is None or opened.buffer is not buffer:
            if len(self._known) >= MOST_OPEN:  # a program that takes fresh command buffers for each frame
                self._known.clear()
            opened = self._known[buffer.id, bindings] = OpenVertices(buffer, bindings, era)
        places = buffer.sets.setdefault(VERTICES, {})
        for binding, id, offset in zip(bindings, ids, offsets, strict=True):
            held: Any = BoundVertices(id, offset)
            contents_of(objects, held)
            places[VERTICES - binding] = BoundSet(held)
        return opened


def leaves_open(state: SaidState) -> bool:
    """Whether it does so with any vertex buffer."""
    return any(type(each) is OpenVertices for each in state.parts.values())


def plans_by_open(buffer: CommandBuffer, before: SaidState, saying: Any, used: tuple[int, ...]) -> PlansBySets | None:
    """The table in which a state has what a vkCmdDraw does there, or a fresh one. `used` are the indices of the sets
    that decide. None where the draw reads a vertex buffer that is not open."""
    pipeline = buffer.pipelines.get(VkPipelineBindPoint.GRAPHICS)
    if not isinstance(pipeline, GraphicsPipeline):
        return None
    bindings = [each.binding for each in vertex_input(pipeline.state, buffer.drawing)]
    if any(type(before.parts.get(("vertices", each))) is not OpenVertices for each in bindings):
        return None
    known = before.get(saying)
    if known is not None:
        return known[0] if isinstance(known[0], PlansBySets) else None
    places = sorted((VERTICES - each for each in bindings), reverse=True)
    return PlansBySets(VkPipelineBindPoint.GRAPHICS, (*used, *places))


def keep_drawn(objects: ObjectState, buffer: CommandBuffer, table: PlansBySets, plan: EffectPlan) -> None:
    """Notes what a draw does with the vertex buffers and sets that are bound, and with others like them."""
    bound = table.bound(buffer)
    table.keep(table.key(objects, bound), plan)
    shapes = table.shapes(objects, bound)
    reached = None if shapes in table.reaches else reached_behind_vertices(objects, bound, plan, table.used)
    if reached is not None:
        table.reach(shapes, reached)
