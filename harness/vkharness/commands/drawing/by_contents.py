"""Draws and dispatches whose accesses follow from the contents of memory: from indices, parameters and counts.

Where the contents are known when the command is executed, the accesses are exact. Otherwise what could be reached may
be accessed, and is counted. The parameters themselves are read in any case, and whether a command with unknown
parameters runs at all is not asked: it runs.
Specification: "Drawing Commands", "Dispatching Commands"; rules.md#what-draws-and-indirect-commands-read,
rules.md#what-may-be-read-makes-the-verdict-unknown.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from vkharness.commands.contents.content_steps import Deferred, Outcome, ReadsBytes
from vkharness.commands.contents.index_values import HeldPiece, Indices, held_indices, joined_runs, runs_of
from vkharness.commands.contents.known_memory import KnownMemory
from vkharness.commands.drawing.vertex import (
    EVERYTHING,
    Elements,
    IndexSource,
    VertexSource,
    access_of,
    index_reads,
    most_vertices,
    vertex_reads,
)
from vkharness.commands.object_state import ObjectState
from vkharness.findings import Certainty
from vkharness.spans import Span, merge
from vkharness.spec.enums import VK_WHOLE_SIZE
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.trace.effects import Access, Effect

INDIRECT_READ = ACCESS_KIND["SYNC_DRAW_INDIRECT_INDIRECT_COMMAND_READ"].index
COUNT_BYTES = 4
FORESEEN = 16
"""The most draws of an indirect command whose parameters are looked at while it is recorded."""
MOST_DRAWS = 4096
"""The most draws of one indirect command whose parameters are looked at."""

BY_INDICES = "vertices through indices whose contents are unknown"
BY_PARAMETERS = "vertices or indices by parameters whose contents are unknown"
BY_COUNT = "parameters up to a count whose contents are unknown"
BY_COUNTER = "vertices up to a counter whose contents are unknown"


Held = tuple[Indices, list[HeldPiece]]
"""Indices, and the known bytes that they are."""


class Part(NamedTuple):
    """A draw of indices: the first, how many, and what is added to each."""

    first: int
    number: int
    vertex_offset: int


def _held(memory: KnownMemory, indices: IndexSource, parts: Iterable[Part]) -> list[Held] | None:
    """The indices of draws, and the known bytes that they are; None when not all of these are known."""
    found = []
    source, size, restart = indices
    for first, count, _ in parts:
        each = Indices(source.space, source.span(first * size, (first + count) * size), size, restart)
        held = held_indices(memory, each)
        if held is None:
            return None
        found.append((each, held))
    return found


def _vertices(several: Iterable[Held], parts: Sequence[Part]) -> list[Span] | None:
    """The vertices that the indices of draws mean; None when that cannot be told."""
    found: list[Span] = []
    for (indices, held), (_, _, offset) in zip(several, parts, strict=True):
        runs = runs_of(held, indices)
        if runs is None:
            return None
        if len(parts) == 1 and offset >= 0:
            return [(low + offset, high + offset) for low, high in runs] if offset else runs
        found += [(max(0, low + offset), max(0, high + offset)) for low, high in runs]
    return joined_runs(found)


def _through_indices(
    memory: KnownMemory, indices: IndexSource | None, parts: Sequence[Part], sources: Sequence[VertexSource]
) -> Outcome:
    """The reads of the vertices behind indices."""
    held = None if indices is None or not sources else _held(memory, indices, parts)
    return _behind(None if held is None else _vertices(held, parts), indices, parts, sources)


def _behind(
    vertices: list[Span] | None, indices: IndexSource | None, parts: Sequence[Part], sources: Sequence[VertexSource]
) -> Outcome:
    """The reads of these vertices, which are None where the indices do not tell them."""
    if indices is None or not sources:
        return Outcome()
    if vertices is not None:
        return Outcome(tuple(vertex_reads(sources, vertices, ())))
    reached = [most_vertices(indices, offset) for offset in sorted({part.vertex_offset for part in parts})]
    return Outcome(unknown=BY_INDICES, most=tuple(vertex_reads(sources, reached, (), Certainty.BOUND)))


@dataclass(slots=True)
class IndexedDraw(Deferred):
    """The vertices of an indexed draw. Its other reads are known when it is recorded."""

    indices: IndexSource | None
    parts: tuple[Part, ...]
    sources: tuple[VertexSource, ...]
    """Those of vertex rate."""
    last: list[Any] = field(default_factory=list, compare=False, repr=False)
    """The known bytes that were the indices last, the vertices that these mean, and what followed from that."""

    def resources(self) -> set[int]:
        """The buffers that it may read."""
        found = {each.source.resource for each in self.sources}
        return found if self.indices is None else {*found, self.indices.source.resource}

    def outcome(self, memory: KnownMemory) -> Outcome:
        """Reads of vertices."""
        indices, last = self.indices, self.last
        held = None if indices is None else _held(memory, indices, self.parts)
        if held is None:
            return _behind(None, indices, self.parts, self.sources)
        if not last or last[0] != held:  # nobody changes bytes that are known
            vertices = _vertices(held, self.parts)
            same = last and vertices is not None and last[1] == vertices  # one object, which has its plan
            last[:] = held, vertices, last[2] if same else _behind(vertices, indices, self.parts, self.sources)
        return last[2]  # type: ignore[no-any-return]

    def most(self) -> tuple[Access, ...]:
        """Any vertices."""
        return tuple(vertex_reads(self.sources, [EVERYTHING], (), Certainty.BOUND))


@dataclass(slots=True)
class CountedDraw(Deferred):
    """The vertices of a draw whose number of bytes lies in a transform feedback counter."""

    counter: tuple[int, int]
    """Space and address."""
    counter_offset: int
    stride: int
    sources: tuple[VertexSource, ...]
    """Those of vertex rate."""

    def outcome(self, memory: KnownMemory) -> Outcome:
        """Reads of vertices."""
        space, at = self.counter
        data = memory.read(space, (at, at + COUNT_BYTES))
        if data is None or not self.stride:
            most = self.most()
            return Outcome(unknown=BY_COUNTER if most else "", most=most)
        count = max(0, int.from_bytes(data, "little") - self.counter_offset) // self.stride
        return Outcome(tuple(vertex_reads(self.sources, [(0, count)], ())) if count else ())

    def most(self) -> tuple[Access, ...]:
        """Any vertices."""
        return tuple(vertex_reads(self.sources, [EVERYTHING], (), Certainty.BOUND))


class Parameters(NamedTuple):
    """Parameter structures in a buffer: where they are, and the buffer that holds how many of them count, if any."""

    resource: int
    space: int
    base: int
    limit: int
    most: int
    size: int
    stride: int
    counter: tuple[int, int] | None = None

    def number(self, memory: ReadsBytes) -> int | None:
        """How many structures are read; None when that is not known."""
        if self.counter is None:
            return self.most
        space, at = self.counter
        data = memory.read(space, (at, at + COUNT_BYTES))
        return None if data is None else min(self.most, int.from_bytes(data, "little"))

    def spans(self, count: int) -> list[Span]:
        """The addresses of the first `count` structures, at most; those between them count where there are many."""
        size, stride = self.size, self.stride
        if count == 1 or stride <= size:
            spans = [(self.base, self.base + size + (count - 1) * (0 if count == 1 else stride))]
        elif min(count, -(-(self.limit - self.base) // stride)) > APART:
            spans = [(self.base, self.base + (count - 1) * stride + size)]
        else:
            places = range(self.base, min(self.limit, self.base + count * stride), stride)
            spans = [(at, at + size) for at in places]
        return [(begin, min(end, self.limit)) for begin, end in spans if begin < self.limit]

    def reads(self, count: int, certainty: Certainty = Certainty.EXACT) -> tuple[Access, ...]:
        """The reads of the first `count` structures."""
        merged = tuple(merge(self.spans(count))) if count else ()
        return (Access(INDIRECT_READ, self.space, merged, self.resource, certainty=certainty),) if merged else ()

    def values(self, memory: ReadsBytes, count: int, layout: str) -> list[tuple[int, ...]] | None:
        """The first `count` structures; None when they are not known, or too many."""
        if count > MOST_DRAWS or (count > 1 and not self.stride):
            return None
        found = []
        for at in range(self.base, self.base + count * self.stride, self.stride) if count > 1 else [self.base] * count:
            data = memory.read(self.space, (at, at + self.size))
            if data is None or at + self.size > self.limit:
                return None
            found.append(struct.unpack(layout, data))
        return found


APART = 65536
"""The most parameter structures for which the bytes between them are left out of the range that is read."""


def parameters_of(objects: ObjectState, args: dict[str, Any], count: int, layout: str) -> Parameters | None:
    """The parameters of an indirect command; None when their buffer is not known."""
    held, counter = objects.buffer(args["buffer"]), objects.buffer(args.get("countBuffer", 0))
    if held is None:
        return None
    number = None
    if counter is not None:
        number = counter.space, counter.span(args["countBufferOffset"], COUNT_BYTES)[0]
    place = held.span(args["offset"], VK_WHOLE_SIZE)
    return Parameters(held.id, held.space, *place, count, struct.calcsize(layout), args.get("stride", 0), number)


def counter_read(objects: ObjectState, args: dict[str, Any]) -> Iterator[Effect]:
    """The read of the number of parameters, if that is in a buffer."""
    counter = objects.buffer(args.get("countBuffer", 0))
    if counter is not None:
        yield from access_of(counter, INDIRECT_READ, [counter.span(args["countBufferOffset"], COUNT_BYTES)])


@dataclass(slots=True)
class IndirectDraw(Deferred):
    """All that an indirect draw reads but for parameters that it reads in any case."""

    parameters: Parameters
    layout: str
    """Of one structure, as `struct` spells it: VkDrawIndirectCommand, VkDrawIndexedIndirectCommand, or workgroups."""
    indices: IndexSource | None = None
    sources: tuple[VertexSource, ...] = ()

    def outcome(self, memory: KnownMemory) -> Outcome:
        """Reads of parameters up to a count, of indices and of vertices; whether anything is drawn."""
        number = self.parameters.number(memory)
        if number is None:
            return Outcome(unknown=BY_COUNT, most=self.most())
        counted = self.parameters.reads(number) if self.parameters.counter is not None else ()
        drawn = self.parameters.values(memory, number, self.layout)
        if drawn is None:
            most = self._most()
            return Outcome(counted, unknown=BY_PARAMETERS if most else "", most=most)
        made = self._of(memory, drawn)
        return made._replace(accesses=(*counted, *made.accesses))

    def resources(self) -> set[int]:
        """Those with the parameters, indices and vertices."""
        found = {self.parameters.resource, *(each.source.resource for each in self.sources)}
        return found if self.indices is None else {*found, self.indices.source.resource}

    def is_idle(self, memory: ReadsBytes) -> bool:
        """Whether nothing is drawn; of many draws nobody asks."""
        return self.parameters.most <= FORESEEN and not self._runs(memory)

    def _runs(self, memory: ReadsBytes) -> bool:
        """Whether anything is drawn, as far as it is known."""
        number = self.parameters.number(memory)
        drawn = None if number is None else self.parameters.values(memory, number, self.layout)
        return drawn is None or any(all(each[: _EXTENTS[self.layout]]) for each in drawn)

    def most(self) -> tuple[Access, ...]:
        """Parameters up to a count, indices and vertices that may be reached."""
        counted = (
            () if self.parameters.counter is None else self.parameters.reads(self.parameters.most, Certainty.BOUND)
        )
        return (*counted, *self._most())

    def _most(self) -> tuple[Access, ...]:
        """Indices and vertices that may be reached."""
        every = [EVERYTHING]
        reads: Iterator[Access] = vertex_reads(self.sources, every, every, Certainty.BOUND)
        return (*index_reads(self.indices, every, Certainty.BOUND), *reads)

    def _of(self, memory: KnownMemory, drawn: Sequence[tuple[int, ...]]) -> Outcome:
        """Gives the reads of draws with these parameters: of indices and vertices."""
        drawn = [each for each in drawn if all(each[: _EXTENTS[self.layout]])]
        if not drawn or self.layout not in (DRAW, INDEXED):
            return Outcome(runs=bool(drawn))
        instances: list[Span] = joined_runs((each[-1], each[-1] + each[1]) for each in drawn)
        by_instance = [each for each in self.sources if each.binding.per_instance]
        by_vertex = [each for each in self.sources if not each.binding.per_instance]
        known = tuple(vertex_reads(by_instance, (), _apart(drawn, instances)))
        if self.layout == DRAW:
            vertices = joined_runs((each[2], each[2] + each[0]) for each in drawn)
            return Outcome((*known, *vertex_reads(by_vertex, vertices, ())))
        parts = [Part(first, count, offset) for count, _, first, offset, _ in drawn]
        ranges = joined_runs((part.first, part.first + part.number) for part in parts)
        made = _through_indices(memory, self.indices, parts, by_vertex)
        return made._replace(accesses=(*index_reads(self.indices, ranges), *known, *made.accesses))


DRAW, INDEXED, MESH, MESH_NV = "<4I", "<3IiI", "<3I", "<I4x"
_EXTENTS = {DRAW: 2, INDEXED: 2, MESH: 3, MESH_NV: 1}
"""How many values of a structure, from the first, must not be zero for anything to be drawn."""


def _apart(drawn: Sequence[tuple[int, ...]], joined: Sequence[Span]) -> Sequence[Elements]:
    """The instances of each draw, since a divisor counts from the first one of its own draw."""
    return [(each[-1], each[-1] + each[1]) for each in drawn] if len(drawn) <= 256 else list(joined)


@dataclass(slots=True)
class IndirectDispatch(Deferred):
    """Dispatches whose numbers of workgroups lie in a buffer: one, or several of generated commands."""

    parameters: Parameters

    def resources(self) -> set[int]:
        """That with the numbers."""
        return {self.parameters.resource}

    def is_idle(self, memory: ReadsBytes) -> bool:
        """Whether there are no workgroups."""
        return not self._runs(memory)

    def _runs(self, memory: ReadsBytes) -> bool:
        """Whether there are workgroups, as far as it is known."""
        number = self.parameters.number(memory)
        groups = None if number is None else self.parameters.values(memory, number, MESH)
        return groups is None or any(map(all, groups))

    def outcome(self, memory: KnownMemory) -> Outcome:
        """Whether the shader runs, and the reads of parameters up to a count."""
        number = self.parameters.number(memory)
        if number is None:
            return Outcome(unknown=BY_COUNT, most=self.most())
        counted = self.parameters.reads(number) if self.parameters.counter is not None else ()
        return Outcome(counted, runs=self._runs(memory))

    def most(self) -> tuple[Access, ...]:
        """Parameters up to a count."""
        counted = self.parameters.counter is not None
        return self.parameters.reads(self.parameters.most, Certainty.BOUND) if counted else ()
