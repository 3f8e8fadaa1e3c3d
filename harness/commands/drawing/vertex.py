"""Vertex and index buffers: their bindings, and the bytes that draws read of them.

A draw reads elements of vertex buffers: vertices, or instances for bindings of that rate. Only the device knows which
when indices or the parameters of indirect draws lie in memory. Then everything that is bound and may be reached counts.
Specification: "Fixed-Function Vertex Processing", "Index Buffers"; rules.md#what-draws-and-indirect-commands-read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from harness.commands.drawing.dynamic_state import BINDING_STRIDE, vertex_input
from harness.commands.handlers import command
from harness.commands.object_state import NOTHING, CommandBuffer, ObjectState
from harness.spans import Span, merge
from harness.spec.enums import VK_WHOLE_SIZE, VkIndexType
from harness.spec.scopes import ACCESS_KIND
from harness.trace.effects import Access, Effect
from harness.trace.graphics_state import BoundBuffer, BoundIndices, GraphicsState, VertexBinding
from harness.trace.resources import Buffer

VERTEX_READ = ACCESS_KIND["SYNC_VERTEX_ATTRIBUTE_INPUT_VERTEX_ATTRIBUTE_READ"].index
INDEX_READ = ACCESS_KIND["SYNC_INDEX_INPUT_INDEX_READ"].index

INDEX_BYTES = {VkIndexType.UINT16: 2, VkIndexType.UINT32: 4, VkIndexType.UINT8: 1}
"""The size of an index in bytes by VkIndexType. VK_INDEX_TYPE_NONE_KHR has none."""

Elements = tuple[int, int | None]
"""(first, end) of elements that are read. `end` is None when it is not known."""
EVERYTHING: Elements = (0, None)


@command("vkCmdBindVertexBuffers", "vkCmdBindVertexBuffers2")
def bind_vertex_buffers(_: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Binds vertex buffers. vkCmdBindVertexBuffers2 may also limit their sizes and set the strides."""
    drawing = buffer.drawing
    sizes, strides = args.get("pSizes"), args.get("pStrides")
    offsets = args["pOffsets"] or ()
    for at, (id, offset) in enumerate(zip(args["pBuffers"] or (), offsets, strict=False)):
        binding = args["firstBinding"] + at
        drawing.vertex_buffers[binding] = BoundBuffer(id, offset, sizes[at] if sizes else VK_WHOLE_SIZE)
        if strides:
            drawing.dynamic[BINDING_STRIDE, binding] = strides[at]
    return NOTHING


@command("vkCmdBindIndexBuffer", "vkCmdBindIndexBuffer2KHR")
def bind_index_buffer(_: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Binds an index buffer. vkCmdBindIndexBuffer2KHR may also limit its size."""
    size = INDEX_BYTES.get(args["indexType"], 0)
    buffer.drawing.indices = BoundIndices(args["buffer"], args["offset"], args.get("size", VK_WHOLE_SIZE), size)
    return NOTHING


def bound_span(buffer: Buffer, offset: int, size: int, begin: int, end: int | None) -> Span:
    """The addresses of bytes [begin, end) of a range of a buffer, clipped to the range. `end` None is the end of the
    range."""
    limit = max(0, buffer.size - offset) if size == VK_WHOLE_SIZE else size
    end = limit if end is None else min(end, limit)
    return buffer.span(offset + begin, max(0, end - begin))


def vertex_effects(
    objects: ObjectState, buffer: CommandBuffer, state: GraphicsState, vertices: Sequence[Elements], instances: Elements
) -> Iterator[Effect]:
    """The reads of vertex buffers by a draw of these vertices and instances, one access for each buffer."""
    drawing = buffer.drawing
    found: dict[int, tuple[Buffer, list[Span]]] = {}
    for binding in vertex_input(state, drawing):
        bound = drawing.vertex_buffers.get(binding.binding)
        held = objects.buffer(bound.buffer) if bound is not None else None
        if bound is None or held is None:
            continue
        _, spans = found.setdefault(held.id, (held, []))
        for first, end in [_instances(binding, instances)] if binding.per_instance else vertices:
            spans.append(bound_span(held, bound.offset, bound.size, *_bytes(binding, first, end)))
    for held, spans in found.values():
        yield from access_of(held, VERTEX_READ, spans)


def _bytes(binding: VertexBinding, first: int, end: int | None) -> tuple[int, int | None]:
    """From the first byte of the first element to the last of the last; what lies between two elements counts."""
    stride, low, high = binding.stride, binding.low, binding.high
    if stride == 0:
        return low, high
    return first * stride + low, None if end is None else max(0, (end - 1) * stride + high)


def _instances(binding: VertexBinding, instances: Elements) -> Elements:
    """Elements that a binding of instance rate reads: one for `divisor` instances, counted from the first instance."""
    first, end = instances
    if binding.divisor == 0:
        return first, None if end is None else first + 1
    return first, None if end is None else first + -(-(end - first) // binding.divisor)


def reached_by_indices(buffer: CommandBuffer, vertex_offset: int) -> Elements:
    """The vertices for which an index can stand: those that its type can count to, plus the offset.

    The indices themselves are in device memory, which the mirror does not hold.
    """
    indices = buffer.drawing.indices
    if indices is None or not 0 < indices.index_bytes < 4:
        return max(0, vertex_offset), None
    return max(0, vertex_offset), max(0, vertex_offset + (1 << 8 * indices.index_bytes))


def index_effects(objects: ObjectState, buffer: CommandBuffer, ranges: Sequence[Elements]) -> Iterator[Effect]:
    """The reads of the index buffer by a draw of these ranges of indices."""
    bound = buffer.drawing.indices
    held = objects.buffer(bound.buffer) if bound is not None else None
    if bound is None or held is None or not bound.index_bytes:
        return
    size = bound.index_bytes
    spans = [
        bound_span(held, bound.offset, bound.size, first * size, None if end is None else end * size)
        for first, end in ranges
    ]
    yield from access_of(held, INDEX_READ, spans)


def access_of(buffer: Buffer, access_kind: int, spans: list[Span]) -> Iterator[Effect]:
    """One access of a buffer, or none when no spans are left."""
    merged = tuple(merge(spans))
    if merged:
        yield Access(access_kind, buffer.space, merged, buffer.id)
