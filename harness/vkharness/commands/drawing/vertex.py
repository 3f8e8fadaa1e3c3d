"""Vertex and index buffers: their bindings, and the bytes that draws read of them.

A draw reads elements of vertex buffers: vertices, or instances for bindings of that rate. Which ones, may follow from
memory: from indices, or from the parameters of an indirect draw (`by_contents`).
Specification: "Fixed-Function Vertex Processing", "Index Buffers"; rules.md#what-draws-and-indirect-commands-read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from vkharness.commands.drawing.dynamic_state import BINDING_STRIDE, restarts, vertex_input
from vkharness.commands.handlers import command
from vkharness.commands.object_state import NOTHING, CommandBuffer, ObjectState
from vkharness.findings import Certainty
from vkharness.spans import Span, merge
from vkharness.spec.enums import VK_WHOLE_SIZE, VkIndexType
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.trace.effects import Access, Effect
from vkharness.trace.graphics_state import BoundBuffer, BoundIndices, GraphicsState, VertexBinding
from vkharness.trace.resources import Buffer

VERTEX_READ = ACCESS_KIND["SYNC_VERTEX_ATTRIBUTE_INPUT_VERTEX_ATTRIBUTE_READ"].index
INDEX_READ = ACCESS_KIND["SYNC_INDEX_INPUT_INDEX_READ"].index

INDEX_BYTES = {VkIndexType.UINT16: 2, VkIndexType.UINT32: 4, VkIndexType.UINT8: 1}
"""The size of an index in bytes by VkIndexType. VK_INDEX_TYPE_NONE_KHR has none."""

Elements = tuple[int, int | None]
"""(first, end) of elements that are read. `end` is None when it is not known."""
EVERYTHING: Elements = (0, None)


@command("vkCmdBindVertexBuffers", "vkCmdBindVertexBuffers2")
def bind_vertex_buffers(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Binds vertex buffers. vkCmdBindVertexBuffers2 may also limit their sizes and set the strides."""
    drawing = buffer.drawing
    sizes, strides = args.get("pSizes"), args.get("pStrides")
    offsets = args["pOffsets"] or ()
    for at, (id, offset) in enumerate(zip(args["pBuffers"] or (), offsets, strict=False)):
        binding = args["firstBinding"] + at
        drawing.vertex_buffers[binding] = BoundBuffer(id, offset, sizes[at] if sizes else VK_WHOLE_SIZE)
        if strides:
            drawing.dynamic[BINDING_STRIDE, binding] = strides[at]
    drawing.sources = None
    objects.note_missing(Buffer, args["pBuffers"] or ())
    return NOTHING


@command("vkCmdBindIndexBuffer", "vkCmdBindIndexBuffer2KHR")
def bind_index_buffer(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Binds an index buffer. vkCmdBindIndexBuffer2KHR may also limit its size."""
    size = INDEX_BYTES.get(args["indexType"], 0)
    buffer.drawing.indices = BoundIndices(args["buffer"], args["offset"], args.get("size", VK_WHOLE_SIZE), size)
    objects.note_missing(Buffer, (args["buffer"],))
    return NOTHING


def bound_span(buffer: Buffer, offset: int, size: int, begin: int, end: int | None) -> Span:
    """The addresses of bytes [begin, end) of a range of a buffer, clipped to the range. `end` None is the end of the
    range."""
    limit = max(0, buffer.size - offset) if size == VK_WHOLE_SIZE else size
    end = limit if end is None else min(end, limit)
    return buffer.span(offset + begin, max(0, end - begin))


class Source(NamedTuple):
    """A part of a buffer from which draws read: the space, and the addresses where it begins and ends."""

    resource: int
    space: int
    base: int
    limit: int

    def span(self, begin: int, end: int | None) -> Span:
        """The addresses of bytes [begin, end) of it, clipped to it; `end` None is its end."""
        limit = self.limit
        return min(self.base + begin, limit), limit if end is None else min(self.base + end, limit)


class VertexSource(NamedTuple):
    """A vertex buffer as bound, and how draws read it."""

    source: Source
    binding: VertexBinding


class IndexSource(NamedTuple):
    """An index buffer as bound, the bytes of one index, and whether the largest index restarts the primitive."""

    source: Source
    size: int
    restart: bool


def _source(objects: ObjectState, bound: BoundBuffer | BoundIndices | None) -> Source | None:
    held = objects.buffer(bound.buffer) if bound is not None else None
    if bound is None or held is None:
        return None
    return Source(held.id, held.space, *bound_span(held, bound.offset, bound.size, 0, None))


def vertex_sources(objects: ObjectState, buffer: CommandBuffer, state: GraphicsState) -> tuple[VertexSource, ...]:
    """The vertex buffers that a draw reads. They are kept until something else is bound, or a buffer moves."""
    drawing = buffer.drawing
    if drawing.sources is not None and drawing.sources[0] is state and drawing.sources[1] == objects.moved:
        kept: tuple[VertexSource, ...] = drawing.sources[2]
        return kept
    bound = drawing.vertex_buffers
    read = ((_source(objects, bound.get(each.binding)), each) for each in vertex_input(state, drawing))
    found = tuple(VertexSource(source, each) for source, each in read if source is not None)
    drawing.sources = (state, objects.moved, found)
    return found


def index_source(objects: ObjectState, buffer: CommandBuffer, state: GraphicsState) -> IndexSource | None:
    """The index buffer that a draw reads. None when there is none, or its indices have no bytes."""
    bound = buffer.drawing.indices
    source = _source(objects, bound)
    if source is None or bound is None or not bound.index_bytes:
        return None
    return IndexSource(source, bound.index_bytes, restarts(state, buffer.drawing))


def vertex_reads(
    sources: Iterable[VertexSource],
    vertices: Sequence[Elements],
    instances: Sequence[Elements],
    certainty: Certainty = Certainty.EXACT,
) -> Iterator[Access]:
    """The reads of vertex buffers by a draw of these vertices and instances, one access for each buffer."""
    found: dict[tuple[int, int], list[Span]] = {}
    for source, binding in sources:
        if binding.per_instance:
            spans = [source.span(*_bytes(binding, *_elements(binding, each))) for each in instances]
        else:
            spans = [source.span(*_bytes(binding, *each)) for each in vertices]
        found.setdefault((source.space, source.resource), []).extend(spans)
    for (space, resource), spans in found.items():
        merged = tuple(merge(spans))
        if merged:
            yield Access(VERTEX_READ, space, merged, resource, certainty=certainty)


def unclipped(each: VertexSource, vertices: Elements, instances: Elements) -> Span:
    """The addresses of a vertex buffer that a draw of known elements reads, if no end cuts them."""
    source, binding = each
    begin, end = _bytes(binding, *(_elements(binding, instances) if binding.per_instance else vertices))
    assert end is not None
    return source.base + begin, source.base + end


def _bytes(binding: VertexBinding, first: int, end: int | None) -> tuple[int, int | None]:
    """From the first byte of the first element to the last of the last; what lies between two elements counts."""
    stride, low, high = binding.stride, binding.low, binding.high
    if stride == 0:
        return low, high
    return first * stride + low, None if end is None else max(0, (end - 1) * stride + high)


def _elements(binding: VertexBinding, instances: Elements) -> Elements:
    """Elements that a binding of instance rate reads: one for `divisor` instances, counted from the first instance."""
    first, end = instances
    if binding.divisor == 0:
        return first, None if end is None else first + 1
    return first, None if end is None else first + -(-(end - first) // binding.divisor)


def most_vertices(indices: IndexSource | None, vertex_offset: int) -> Elements:
    """The vertices for which an index can stand: those that its type can count to, plus the offset."""
    if indices is None or indices.size == 4:
        return max(0, vertex_offset), None
    return max(0, vertex_offset), max(0, vertex_offset + (1 << 8 * indices.size))


def index_reads(
    indices: IndexSource | None, ranges: Sequence[Elements], certainty: Certainty = Certainty.EXACT
) -> Iterator[Access]:
    """The reads of the index buffer by a draw of these ranges of indices."""
    if indices is None:
        return
    source, size, _ = indices
    merged = tuple(merge(source.span(first * size, None if end is None else end * size) for first, end in ranges))
    if merged:
        yield Access(INDEX_READ, source.space, merged, source.resource, certainty=certainty)


def access_of(buffer: Buffer, access_kind: int, spans: list[Span]) -> Iterator[Access]:
    """One access of a buffer, or none when no spans are left."""
    merged = tuple(merge(spans))
    if merged:
        yield Access(access_kind, buffer.space, merged, buffer.id)
