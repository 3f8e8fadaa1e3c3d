"""Effects of draws that differ from others in numbers alone: in counts, and in the first vertex, instance and index.

What such a draw accesses of vertex and index buffers lies elsewhere, or is longer, in proportion to these numbers, and
all else is the same, unless shaders ask which invocations run. So the native core gets to know what one draw does in
a state of its command buffer (`vkharness.commands.said_states`), and which number moves what (`MovedPlan`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from vkharness.commands.contents.content_steps import Deferred, OpenStep
from vkharness.commands.contents.known_memory import KnownMemory
from vkharness.commands.drawing.by_contents import IndexedDraw, Part
from vkharness.commands.drawing.shaders import stage_uses
from vkharness.commands.drawing.vertex import (
    VERTEX_READ,
    Elements,
    VertexSource,
    index_reads,
    index_source,
    unclipped,
    vertex_reads,
    vertex_sources,
)
from vkharness.commands.flat_reaches import FlatPart, Writes, fixed_parts, moved_plan, reach_behind
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.findings import Certainty
from vkharness.native import core
from vkharness.spans import Span
from vkharness.spec.enums import VkPipelineBindPoint
from vkharness.trace.effects import Access, EffectPlan, OpenEffects
from vkharness.trace.graphics_state import GraphicsPipeline

NUMBERED = {
    "vkCmdDraw": ("vertexCount", "instanceCount", "firstVertex", "firstInstance"),
    "vkCmdDrawIndexed": ("indexCount", "instanceCount", "firstIndex", "firstInstance", "vertexOffset"),
}
"""The draws that differ from others in these numbers alone: how many elements and instances there are, and the first of
both come first."""
COUNT, INSTANCES, FIRST, FIRST_INSTANCE = range(4)
MOST = (1 << 32) - 1
_NUMBERS = struct.Struct("=5Q")
"""Those of a vkCmdDrawIndexed, as the native core has them."""
MOST_STEPS = 1 << 12
"""The most steps of draws in one state that are remembered."""


class NumberedSteps:
    """Accesses that contents decide, of indexed draws that differ in numbers alone. The native core finds those of
    several draws at once, where the indices of each mean vertices without a gap."""

    __slots__ = ("_known", "_native", "open", "step")

    def __init__(self, step: IndexedDraw) -> None:
        self.step = step
        """That of one of them."""
        self.open = OpenEffects(undecided=step)
        """It may be any vertices of the same buffers."""
        self._known: dict[tuple[int, int, int], OpenStep] = {}
        self._native = _native_draws(step)

    def __call__(self, numbers: tuple[int, ...]) -> OpenStep:
        """That of a draw: one object for draws of the same vertices."""
        count, _, first, _, offset = numbers
        found = self._known.get((count, first, offset))
        if found is None:
            made = IndexedDraw(self.step.indices, (Part(first, count, offset),), self.step.sources)
            if len(self._known) >= MOST_STEPS:
                self._known.clear()
            found = self._known[count, first, offset] = OpenStep(made, OpenEffects(undecided=made))
        return found

    def count(self, numbers: bytes) -> int:
        """How many draws have these numbers."""
        return len(numbers) // _NUMBERS.size

    def one(self, numbers: bytes, at: int) -> IndexedDraw:
        """The step of one of these draws."""
        step = self(_NUMBERS.unpack_from(numbers, at * _NUMBERS.size)).step
        assert isinstance(step, IndexedDraw)
        return step

    def plans(
        self, plans: list[EffectPlan], first: int, numbers: bytes, memory: KnownMemory
    ) -> list[EffectPlan | None] | None:
        """See `OpenSeries.plans`."""
        indices, native = self.step.indices, self._native
        hull = None if indices is None or native is None else native.hull(numbers)
        pieces = None if indices is None or hull is None else memory.pieces(indices.source.space, hull, is_needed=False)
        if pieces is None:
            return None
        found: list[EffectPlan | None] = native.plans(plans, first, numbers, pieces)
        return found


def _native_draws(step: IndexedDraw) -> Any:
    if core is None or step.indices is None:
        return None
    source, size, restart = step.indices
    sources = [(*each, binding.stride, binding.low, binding.high) for each, binding in step.sources]
    try:
        return core.IndexedDraws(_behind, (source.space, source.base, source.limit, size, int(restart)), tuple(sources))
    except ValueError:  # of a hostile trace
        return None


def _behind(plan: Any, reads: int) -> Any:
    """The `FlatReach` of a draw with so many reads of vertices before what its plan does; None where there is none."""
    return None if plan.parts is None else reach_behind(((VERTEX_READ, Certainty.EXACT),) * reads, plan.parts)


class _Moving(NamedTuple):
    """The bytes of one buffer that a draw reads."""

    read: Access | None
    span: Span
    """Where that lies, if no end cuts it."""
    limit: int
    first: int
    """The number that moves it."""
    step: int
    """By how many bytes."""
    length: int
    """The number that makes it longer."""
    more: int | None
    """By how many bytes; None where it does not do so in proportion."""


def numbered_steps(deferred: Deferred | None) -> NumberedSteps | None:
    """The decisions of contents for draws like this one; None where they decide nothing, or more than such a draw."""
    return NumberedSteps(deferred) if type(deferred) is IndexedDraw else None


def moved_draw(
    objects: ObjectState, buffer: CommandBuffer, name: str, numbers: tuple[int, ...], plan: EffectPlan
) -> Any:
    """The `MovedPlan` of a draw that says these numbers, and has this plan; None where more decides what it does."""
    pipeline, effects = buffer.pipelines.get(VkPipelineBindPoint.GRAPHICS), plan.effects
    if not isinstance(pipeline, GraphicsPipeline) or pipeline.unmodelled or buffer.drawing.feedback.active:
        return None
    if not (numbers[COUNT] and numbers[INSTANCES]) or (pipeline.stages and stage_uses(objects, pipeline).varies):
        return None
    moving = list(_moving(objects, buffer, pipeline, name, numbers))
    reads = tuple(each.read for each in moving)
    if effects[: len(moving)] != reads or any(each.read is None or each.read.spans != (each.span,) for each in moving):
        return None
    if any(not isinstance(each, Access) or each.aliases or not each.spans for each in effects):
        return None
    return _moved(moving, effects[len(moving) :], numbers)


def _moved(moving: Sequence[_Moving], others: Sequence[Any], numbers: tuple[int, ...]) -> Any:
    words, parts = list[tuple[int, ...]](), list[FlatPart]()
    ranges = [(said, int(at in (COUNT, INSTANCES)), MOST) for at, said in enumerate(numbers)]
    terms = []
    for at, each in enumerate(moving):
        (begin, end), read = each.span, each.read
        assert read is not None
        words.append((read.resource, read.space, begin, end - begin - 1))
        parts.append((Access(read.access_kind, 0, (), 0, certainty=read.certainty), at, Writes.NOTHING, ((0, 1),)))
        terms.append((at, each.first, each.step, each.step))
        if each.more is None:
            ranges[each.length] = (numbers[each.length],) * 3
        else:
            terms.append((at, each.length, 0, each.more))
    places: list[Any] = []
    for access, memory, writes, bytes in fixed_parts(others, places):
        parts.append((access, len(moving) + memory, writes, bytes))
    words += [(*place, 0) for place in places]
    limits = tuple((at, each.limit) for at, each in enumerate(moving))
    return moved_plan(parts, tuple(words), tuple(ranges), tuple(terms), limits)


def _moving(
    objects: ObjectState, buffer: CommandBuffer, pipeline: GraphicsPipeline, name: str, numbers: tuple[int, ...]
) -> Iterator[_Moving]:
    """The reads of index and vertex buffers by a draw that says where they begin."""
    state, sources = pipeline.state, vertex_sources(objects, buffer, pipeline.state)
    elements, instances = [(numbers[at], numbers[at] + numbers[at - FIRST]) for at in (FIRST, FIRST_INSTANCE)]
    indices = index_source(objects, buffer, state) if name == "vkCmdDrawIndexed" else None
    if indices is not None:
        source, size, _ = indices
        span = source.base + elements[0] * size, source.base + elements[1] * size
        yield _Moving(next(index_reads(indices, [elements]), None), span, source.limit, FIRST, size, COUNT, size)
    for each in sources:
        if each.binding.per_instance or name == "vkCmdDraw":
            yield _of_vertices(each, elements, instances)


def _of_vertices(each: VertexSource, vertices: Elements, instances: Elements) -> _Moving:
    binding = each.binding
    span = unclipped(each, vertices, instances)
    read = next(vertex_reads([each], [vertices], [instances]), None)
    first, count = (FIRST_INSTANCE, INSTANCES) if binding.per_instance else (FIRST, COUNT)
    more: int | None = binding.stride
    if binding.per_instance and binding.divisor != 1 and binding.stride:
        more = None if binding.divisor else 0
    return _Moving(read, span, each.source.limit, first, binding.stride, count, more)
