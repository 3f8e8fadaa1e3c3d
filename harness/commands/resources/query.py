"""Queries and markers: their writes to buffers (specification: "Queries"; rules.md#queries).

Other commands cannot reach the memory of a query pool, so that it is not tracked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from harness.commands.handlers import call, command
from harness.commands.object_state import NOTHING, CommandBuffer, ObjectState
from harness.commands.transfer import COPY_WRITE, buffer_access
from harness.spans import Span
from harness.spec.enums import VkQueryResult, VkQueryType, VkStructureType
from harness.trace.calls import Call
from harness.trace.chain import chained
from harness.trace.effects import Access, Effect, StreamEvent
from harness.trace.resources import Buffer

MARKER_BYTES = 4
APART = 4096
"""The most queries for which the bytes between results are left out of the range that is written."""


@dataclass(slots=True)
class QueryPool:
    """A VkQueryPool. Each query gives `values` numbers. Numbers of performance queries always have 8 bytes."""

    id: int
    values: int = 1
    counters: bool = False


TOUCHES_NOTHING = (
    "vkCmdBeginQuery",
    "vkCmdBeginQueryIndexedEXT",
    "vkCmdEndQuery",
    "vkCmdEndQueryIndexedEXT",
    "vkCmdResetQueryPool",
    "vkCmdWriteTimestamp",
    "vkCmdWriteTimestamp2",
)
"""Commands that reach no memory but the query pool's."""


@command(*TOUCHES_NOTHING)
def touch_nothing(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """A command with no effect on memory that others reach."""
    return NOTHING


@call("vkCreateQueryPool")
def create_query_pool(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Adds a query pool. The type of query decides how many numbers a result has."""
    info = call.args["pCreateInfo"]
    objects.add(
        QueryPool(call.args["pQueryPool"], _values(info), info["queryType"] == VkQueryType.PERFORMANCE_QUERY_KHR)
    )
    return ()


def _values(info: dict[str, Any]) -> int:
    kind = info["queryType"]
    if kind == VkQueryType.PIPELINE_STATISTICS:
        return int(info["pipelineStatistics"]).bit_count()
    if kind == VkQueryType.TRANSFORM_FEEDBACK_STREAM_EXT:
        return 2
    if kind == VkQueryType.RESULT_STATUS_ONLY_KHR:
        return 0
    if kind == VkQueryType.VIDEO_ENCODE_FEEDBACK_KHR:
        chosen = chained(info, VkStructureType.QUERY_POOL_VIDEO_ENCODE_FEEDBACK_CREATE_INFO_KHR)
        return int(chosen["encodeFeedbackFlags"]).bit_count() if chosen else 1
    if kind == VkQueryType.PERFORMANCE_QUERY_KHR:
        chosen = chained(info, VkStructureType.QUERY_POOL_PERFORMANCE_CREATE_INFO_KHR)
        return int(chosen["counterIndexCount"]) if chosen else 1
    return 1


@call("vkDestroyQueryPool")
def destroy_query_pool(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Removes a query pool. Commands that were recorded with it stay as they are."""
    objects.remove(call.args["queryPool"])
    return ()


@command("vkCmdCopyQueryPoolResults")
def copy_query_pool_results(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Writes one result every `stride` bytes. A single query needs no stride."""
    target = objects.buffer(args["dstBuffer"])
    count = args["queryCount"]
    if target is None or not count:
        return NOTHING
    size = _result_bytes(objects.get(QueryPool, args["queryPool"]), args["flags"])
    return buffer_access(COPY_WRITE, target, _result_spans(target, args["dstOffset"], count, args["stride"], size))


def _result_bytes(pool: QueryPool | None, flags: int) -> int:
    """The bytes of one result: its numbers, and one more for the availability or the status."""
    number = 8 if flags & VkQueryResult.RESULT_64 or (pool is not None and pool.counters) else 4
    more = 1 if flags & (VkQueryResult.WITH_AVAILABILITY | VkQueryResult.WITH_STATUS_KHR) else 0
    return ((pool.values if pool is not None else 1) + more) * number


def _result_spans(target: Buffer, offset: int, count: int, stride: int, size: int) -> list[Span]:
    if stride <= size or count > APART:
        return [target.span(offset, (count - 1) * stride + size)]
    return [target.span(offset + index * stride, size) for index in range(count)]


@command("vkCmdWriteBufferMarkerAMD", "vkCmdWriteBufferMarker2AMD")
def write_buffer_marker(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Writes 4 bytes in the COPY stage; markers do not conflict with one another (VK_AMD_buffer_marker)."""
    target = objects.buffer(args["dstBuffer"])
    if target is not None:
        span = target.span(args["dstOffset"], MARKER_BYTES)
        if span[0] < span[1]:
            yield Access(COPY_WRITE, target.space, (span,), target.id, marker=True)
