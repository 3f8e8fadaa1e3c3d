"""Effects of draws that differ from others in numbers alone: in counts, and in the first vertex, instance and index.

What such a draw accesses of vertex and index buffers lies elsewhere, or is longer, in proportion to these numbers, and
all else is the same, unless shaders ask which invocations run. So the native core gets to know what one draw does in
a state of its command buffer (`vkharness.commands.said_states`), and which number moves what (`MovedPlan`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from vkharness.commands.contents.content_steps import Deferred, OpenStep, ReadsBytes
from vkharness.commands.contents.known_memory import KnownMemory
from vkharness.commands.drawing.by_contents import (
    COUNT_BYTES,
    DRAW,
    INDEXED,
    INDIRECT_READ,
    MESH,
    IndexedDraw,
    IndirectDispatch,
    IndirectDraw,
    Part,
)
from vkharness.commands.drawing.shaders import stage_uses
from vkharness.commands.drawing.vertex import (
    INDEX_READ,
    VERTEX_READ,
    Elements,
    Source,
    VertexSource,
    index_reads,
    index_source,
    unclipped,
    vertex_reads,
    vertex_sources,
)
from vkharness.commands.flat_reaches import FlatPart, Writes, fixed_parts, moved_plan, reach_behind
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.commands.open_numbers import OpenPart, OpenPlaces
from vkharness.findings import Certainty
from vkharness.native import core
from vkharness.spans import ENDLESS, Span, merge
from vkharness.spec.enums import VkPipelineBindPoint
from vkharness.trace.effects import Access, EffectPlan, OpenEffects
from vkharness.trace.graphics_state import GraphicsPipeline

VERTICES = ("vertexCount", "instanceCount", "firstVertex", "firstInstance")
INDICES = ("indexCount", "instanceCount", "firstIndex", "firstInstance", "vertexOffset")
NUMBERED = {
    "vkCmdDraw": VERTICES,
    "vkCmdDrawMultiEXT": VERTICES,
    "vkCmdDrawIndexed": INDICES,
    "vkCmdDrawMultiIndexedEXT": INDICES,
    "vkCmdDrawIndirect": ("offset",),
    "vkCmdDrawIndexedIndirect": ("offset",),
    "vkCmdDispatchIndirect": ("offset",),
    "vkCmdDrawIndirectCount": ("offset", "countBufferOffset"),
    "vkCmdDrawIndexedIndirectCount": ("offset", "countBufferOffset"),
}
"""The commands that differ from others in these numbers alone: of draws, how many elements and instances there are, and
the first of both come first; or where that lies, and how many of these count."""
SEVERAL = {"vkCmdDrawMultiEXT": "pVertexInfo", "vkCmdDrawMultiIndexedEXT": "pIndexInfo"}
"""Those of them that have some of the numbers in the only element of a list; with more they are none of them."""
COUNT, INSTANCES, FIRST, FIRST_INSTANCE, OFFSET = range(5)
PARAMETERS, COUNTER = range(2)
LAYOUTS = ("", DRAW, INDEXED, MESH)
"""Of the numbers of a draw or dispatch in memory, as the native core numbers them; none where the command says them."""
Numbered = IndexedDraw | IndirectDraw | IndirectDispatch
NUMBERED_STEPS = (IndexedDraw, IndirectDraw, IndirectDispatch)
KnownPieces = Callable[[int, Span], list[Any] | None]
MOST = (1 << 32) - 1
MOST_STEPS = 1 << 12
"""The most steps of draws in one state that are remembered."""


class NumberedSteps:
    """Accesses that contents decide, of commands that differ in numbers alone. The native core finds those of several
    at once, where the indices of each draw mean vertices without a gap."""

    __slots__ = ("_is_open", "_known", "_native", "_numbers", "_said", "_spaces", "open", "step")

    def __init__(self, step: Numbered, numbers: Sequence[int], is_open: bool) -> None:
        """Those of commands like one, of which these are the step and the numbers. `is_open`: the last one says where
        the index buffer begins."""
        self.step = step
        self._said, self._is_open = tuple(numbers), is_open
        self._numbers = struct.Struct(f"={len(numbers)}Q")
        self.open = OpenEffects(undecided=step)
        """It may be any vertices of the same buffers."""
        self._known: dict[tuple[int, ...], OpenStep] = {}
        self._spaces = _spaces_asked(step)
        self._native = _native_draws(step, self._said, is_open)

    def __call__(self, numbers: tuple[int, ...]) -> OpenStep:
        """That of a command: one object for those that say the same."""
        found = self._known.get(numbers)
        if found is None:
            if len(self._known) >= MOST_STEPS:
                self._known.clear()
            found = self._known[numbers] = OpenStep.of(self._moved(numbers))
        return found

    def count(self, numbers: bytes) -> int:
        """How many commands have these numbers."""
        return len(numbers) // self._numbers.size

    def at(self, numbers: bytes, at: int) -> OpenStep:
        """That of one of these commands."""
        return self(self._numbers.unpack_from(numbers, at * self._numbers.size))

    def one(self, numbers: bytes, at: int) -> Deferred:
        """The step of one of these commands."""
        return self.at(numbers, at).step

    def all_run(self, numbers: bytes, memory: ReadsBytes) -> bool:
        """Whether none of the commands would run nothing if memory held this, as far as that is told at once."""
        if self.step.sure is None:
            return True
        pieces = self._pieces(numbers, memory.known_pieces, self._spaces[:2])
        return pieces is not None and not self._native.idles(numbers, pieces)

    def plans(
        self, plans: list[EffectPlan], first: int, numbers: bytes, memory: KnownMemory
    ) -> list[EffectPlan | None] | None:
        """See `OpenSeries.plans`."""
        pieces = self._pieces(numbers, partial(memory.pieces, is_needed=False), self._spaces)
        if pieces is None:
            return None
        found: list[EffectPlan | None] = self._native.plans(plans, first, numbers, pieces)
        return found

    def _pieces(self, numbers: bytes, pieces: KnownPieces, spaces: Sequence[int | None]) -> list[Any] | None:
        """The known bytes that decide, of each space; None where Python must look at each command."""
        found: list[Any] = []
        for which, space in enumerate(spaces if self._native is not None else ()):
            hull = None if space is None else self._native.hull(numbers, which, found)
            known = [] if hull is None or space is None else pieces(space, hull)
            if known is None:
                return None
            found.append(known)
        return found or None

    def _moved(self, numbers: tuple[int, ...]) -> Deferred:
        step, indices = self.step, None if isinstance(self.step, IndirectDispatch) else self.step.indices
        more = [now - before for before, now in zip(self._said, numbers, strict=True)]
        if indices is not None and self._is_open:
            indices = indices._replace(source=indices.source._replace(base=indices.source.base + more[-1]))
        if isinstance(step, IndexedDraw):
            return IndexedDraw(indices, (Part(numbers[FIRST], numbers[COUNT], numbers[OFFSET]),), step.sources)
        parameters = step.parameters._replace(base=step.parameters.base + more[PARAMETERS])
        if parameters.counter is not None:
            space, at = parameters.counter
            parameters = parameters._replace(counter=(space, at + more[COUNTER]))
        if isinstance(step, IndirectDispatch):
            return replace(step, parameters=parameters)
        return replace(step, parameters=parameters, indices=indices)


def _spaces_asked(step: Numbered) -> tuple[int | None, int | None, int | None]:
    """The spaces with the number of draws, with their parameters, and with indices; None where nobody asks."""
    indices = None if isinstance(step, IndirectDispatch) or step.indices is None else step.indices.source.space
    if isinstance(step, IndexedDraw):
        return None, None, indices
    counter = step.parameters.counter
    return None if counter is None else counter[0], step.parameters.space, indices


def _native_draws(step: Numbered, said: tuple[int, ...], is_open: bool) -> Any:
    """The `ContentDraws` of such commands, or None."""
    layout = "" if isinstance(step, IndexedDraw) else MESH if isinstance(step, IndirectDispatch) else step.layout
    parameters: tuple[int, ...] = ()
    counter: tuple[int, ...] = ()
    if not isinstance(step, IndexedDraw):
        held = step.parameters
        parameters = held.resource, held.space, held.base - said[PARAMETERS], held.limit
        if held.counter is not None:
            counter = held.resource, held.counter[0], held.counter[1] - said[COUNTER], held.counter[1] + COUNT_BYTES
    several = () if isinstance(step, IndirectDispatch) else step.sources
    indices = None if isinstance(step, IndirectDispatch) else step.indices
    is_one = isinstance(step, IndexedDraw) or step.parameters.most == 1
    if core is None or not is_one or (layout in ("", INDEXED) and indices is None):
        return None
    source, size, restart = (Source(0, 0, 0, 0), 1, False) if indices is None else indices
    bound = () if indices is None else source._replace(base=source.base - (said[-1] if is_open else 0))
    sources = tuple([(*each, held.stride, held.low, held.high, held.divisor, int(held.per_instance))
                     for each, held in several])  # fmt: skip
    try:
        return core.ContentDraws(_behind, LAYOUTS.index(layout), parameters, counter, tuple(bound),
                                 (size, int(restart)), sources, is_open)  # fmt: skip
    except ValueError:  # of a hostile trace
        return None


def _behind(plan: Any, numbers: int, indices: int, vertices: int) -> Any:
    """The `FlatReach` of a draw with so many reads before what its plan does; None where there is none."""
    kinds = (*(INDIRECT_READ,) * numbers, *(INDEX_READ,) * indices, *(VERTEX_READ,) * vertices)
    reads = tuple([(each, Certainty.EXACT) for each in kinds])
    return None if plan.parts is None else reach_behind(reads, plan.parts)


class _Moving(NamedTuple):
    """The bytes of one buffer that a draw reads."""

    part: Hashable
    """The part of the state that says where it is bound."""

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


def numbered_steps(deferred: Deferred | None, numbers: Sequence[int], is_open: bool) -> NumberedSteps | None:
    """The decisions of contents for commands like the one with these numbers; None where they decide nothing, or more
    than such a command."""
    return NumberedSteps(deferred, numbers, is_open) if isinstance(deferred, NUMBERED_STEPS) else None


def moved_draw(
    objects: ObjectState,
    buffer: CommandBuffer,
    name: str,
    numbers: tuple[int, ...],
    plan: EffectPlan,
    deferred: Deferred | None,
    opened: OpenPlaces,
) -> Any:
    """The `MovedPlan` of a command that says these numbers, the last of which are those of what is `opened`, and has
    this plan, and this step by which contents decide the rest; None where more decides what it does."""
    if any(not isinstance(each, Access) or each.aliases or not each.spans for each in plan.effects):
        return None
    if isinstance(deferred, IndirectDraw | IndirectDispatch):
        return _moved_indirect(objects, buffer, numbers, plan.effects, deferred, opened)
    pipeline, effects = buffer.pipelines.get(VkPipelineBindPoint.GRAPHICS), plan.effects
    if not isinstance(pipeline, GraphicsPipeline) or pipeline.unmodelled or buffer.drawing.feedback.active:
        return None
    varies = bool(pipeline.stages) and stage_uses(objects, pipeline).varies
    if not (numbers[COUNT] and numbers[INSTANCES]) or (varies and not opened.binds):
        return None
    moving = list(_moving(objects, buffer, pipeline, name, numbers))
    if not opened.reads <= {each.part for each in moving}:  # where this one has no buffer, others may have one
        return None
    reads = tuple(each.read for each in moving)
    if effects[: len(moving)] != reads or any(each.read is None or each.read.spans != (each.span,) for each in moving):
        return None
    return _moved(objects, moving, effects[len(moving) :], numbers, opened, varies)


def _moved_indirect(
    objects: ObjectState,
    buffer: CommandBuffer,
    numbers: tuple[int, ...],
    effects: Sequence[Any],
    step: IndirectDraw | IndirectDispatch,
    opened: OpenPlaces,
) -> Any:
    """That of a command whose first effect reads the numbers of draws, or how many of these count."""
    parameters, sure = step.parameters, effects[: step.sure]
    if parameters.counter is None:
        moving, spans = PARAMETERS, parameters._replace(limit=ENDLESS).spans(parameters.most)
    else:
        moving, spans = COUNTER, [(parameters.counter[1], parameters.counter[1] + COUNT_BYTES)]
    read = sure[0] if len(sure) == 1 else None
    held = None if read is None else objects.buffer(read.resource)
    if read is None or held is None or read.spans != tuple(merge(spans)) or buffer.drawing.feedback.active:
        return None
    begin = read.spans[0][0]
    bytes = tuple([(low - begin, high - begin) for low, high in read.spans])
    parts: list[FlatPart] = [(replace(read, space=0, spans=(), resource=0), 0, Writes.NOTHING, bytes)]
    places: list[Any] = []
    parts += [(access, 1 + at, writes, spans) for access, at, writes, spans in fixed_parts(effects[1:], places)]
    words = ((read.resource, read.space, begin, 0), *((*place, 0) for place in places))
    ranges = tuple([(said, 0, MOST) for said in numbers])
    return moved_plan(parts, words, ranges, ((0, moving, 1, 1),), ((0, held.offset + held.size),), opened.binds)


def _moved(
    objects: ObjectState,
    moving: Sequence[_Moving],
    others: Sequence[Any],
    numbers: tuple[int, ...],
    opened: OpenPlaces,
    varies: bool,
) -> Any:
    """`varies`: shaders ask which invocations run, so that only what is opened may differ."""
    words, parts = list[tuple[int, ...]](), list[FlatPart]()
    own = len(numbers) - len(opened.numbers)
    ranges = [(said, int(at in (COUNT, INSTANCES)), MOST) for at, said in enumerate(numbers)]
    ranges[:own] = [(said,) * 3 for said in numbers[:own]] if varies else ranges[:own]
    terms, places = [], list[tuple[int, int, int]]()
    for at, each in enumerate(moving):
        (begin, end), read = each.span, each.read
        assert read is not None
        words.append((read.resource, read.space, begin, end - begin - 1))
        parts.append((Access(read.access_kind, 0, (), 0, certainty=read.certainty), at, Writes.NOTHING, ((0, 1),)))
        terms.append((at, each.first, each.step, each.step))
        buffer = objects.buffer(read.resource)
        for number, said in enumerate(opened.said, own):
            if said == OpenPart(each.part):
                terms.append((at, number, 1, 1))
            elif said == OpenPart(each.part, True) and buffer is not None:
                places.append((at, number, buffer.offset))
        if each.more is None:
            ranges[each.length] = (numbers[each.length],) * 3
        else:
            terms.append((at, each.length, 0, each.more))
    fixed: list[Any] = []
    for access, memory, writes, bytes in fixed_parts(others, fixed):
        parts.append((access, len(moving) + memory, writes, bytes))
    words += [(*place, 0) for place in fixed]
    limits = tuple((at, each.limit) for at, each in enumerate(moving))
    buffers = tuple(places), objects.by_id
    return moved_plan(parts, tuple(words), tuple(ranges), tuple(terms), limits, opened.binds, *buffers)


def _moving(
    objects: ObjectState, buffer: CommandBuffer, pipeline: GraphicsPipeline, name: str, numbers: tuple[int, ...]
) -> Iterator[_Moving]:
    """The reads of index and vertex buffers by a draw that says where they begin."""
    state, sources = pipeline.state, vertex_sources(objects, buffer, pipeline.state)
    elements, instances = [(numbers[at], numbers[at] + numbers[at - FIRST]) for at in (FIRST, FIRST_INSTANCE)]
    indices = index_source(objects, buffer, state) if NUMBERED[name] is INDICES else None
    if indices is not None:
        source, size, _ = indices
        span = source.base + elements[0] * size, source.base + elements[1] * size
        yield _Moving(
            "indices", next(index_reads(indices, [elements]), None), span, source.limit, FIRST, size, COUNT, size
        )
    for each in sources:
        if each.binding.per_instance or NUMBERED[name] is VERTICES:
            yield _of_vertices(each, elements, instances)


def _of_vertices(each: VertexSource, vertices: Elements, instances: Elements) -> _Moving:
    binding = each.binding
    span = unclipped(each, vertices, instances)
    read = next(vertex_reads([each], [vertices], [instances]), None)
    first, count = (FIRST_INSTANCE, INSTANCES) if binding.per_instance else (FIRST, COUNT)
    more: int | None = binding.stride
    if binding.per_instance and binding.divisor != 1 and binding.stride:
        more = None if binding.divisor else 0
    return _Moving(("vertices", binding.binding), read, span, each.source.limit, first, binding.stride, count, more)
