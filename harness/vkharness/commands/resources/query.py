"""Queries and markers: their operations on queries, and their writes to buffers (specification: "Queries";
rules.md#queries).

Pools of counters that take several passes and of video coding are not followed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from vkharness.commands.handlers import call, command
from vkharness.commands.object_state import NOTHING, CommandBuffer, ObjectState
from vkharness.commands.transfer import COPY_WRITE, buffer_access
from vkharness.spans import Span
from vkharness.spec.enums import VkQueryResult, VkQueryType, VkResult, VkStructureType
from vkharness.trace.calls import Call
from vkharness.trace.chain import chained
from vkharness.trace.effects import Access, Effect, StreamEvent
from vkharness.trace.query_effects import HostQueries, QueryUse, UseQueries
from vkharness.trace.resources import Buffer
from vkharness.trace.work_budget import spend

MARKER_BYTES = 4
APART = 4096
"""The most queries for which the bytes between results are left out of the range that is written."""


@dataclass(slots=True)
class QueryPool:
    """A VkQueryPool. Each query gives `values` numbers. Numbers of performance queries always have 8 bytes."""

    id: int
    values: int = 1
    counters: bool = False
    followed: bool = True
    """Whether the operations on its queries are followed."""


FOLLOWED = (
    VkQueryType.OCCLUSION,
    VkQueryType.PIPELINE_STATISTICS,
    VkQueryType.TIMESTAMP,
    VkQueryType.TRANSFORM_FEEDBACK_STREAM_EXT,
    VkQueryType.PRIMITIVES_GENERATED_EXT,
    VkQueryType.MESH_PRIMITIVES_GENERATED_EXT,
    VkQueryType.ACCELERATION_STRUCTURE_COMPACTED_SIZE_KHR,
    VkQueryType.ACCELERATION_STRUCTURE_SERIALIZATION_SIZE_KHR,
    VkQueryType.ACCELERATION_STRUCTURE_SERIALIZATION_BOTTOM_LEVEL_POINTERS_KHR,
    VkQueryType.ACCELERATION_STRUCTURE_SIZE_KHR,
    VkQueryType.MICROMAP_COMPACTED_SIZE_EXT,
    VkQueryType.MICROMAP_SERIALIZATION_SIZE_EXT,
    VkQueryType.TIME_ELAPSED_QCOM,
)
"""The types of queries of which each operation is a command that is known here."""
RESET_AT_CREATION = 0x1
"""VK_QUERY_POOL_CREATE_RESET_BIT_KHR, which the header of the binding lacks."""
TELLING = VkQueryResult.WITH_AVAILABILITY | VkQueryResult.WITH_STATUS_KHR | VkQueryResult.PARTIAL
"""With one of these, results of queries that are not available mean something."""


@command("vkCmdResetQueryPool", by_arguments=True)
def reset_query_pool(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Makes queries unavailable."""
    made = _use(objects, args, args["firstQuery"], args["queryCount"], QueryUse.RESET)
    return objects.plans.of(made) if made else NOTHING


@command("vkCmdBeginQuery", "vkCmdBeginQueryIndexedEXT")
def begin_query(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Begins one query, or one a view."""
    return _use(objects, args, args["query"], _views(buffer), QueryUse.BEGIN)


@command("vkCmdEndQuery", "vkCmdEndQueryIndexedEXT")
def end_query(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Ends what was begun."""
    return _use(objects, args, args["query"], _views(buffer), QueryUse.END)


@command("vkCmdWriteTimestamp", "vkCmdWriteTimestamp2")
def write_timestamp(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Writes a timestamp after earlier work of a stage, one a view."""
    stages = args["stage"] if "stage" in args else args["pipelineStage"]
    return _use(objects, args, args["query"], _views(buffer), QueryUse.TIMESTAMP, stages=stages)


def wrote_queries(objects: ObjectState, args: dict[str, Any], count: int) -> Iterable[Effect]:
    """The writes of properties of objects to queries, each in one operation as a timestamp, but of no stage."""
    return _use(objects, args, args["firstQuery"], count, QueryUse.TIMESTAMP)


def _views(buffer: CommandBuffer) -> int:
    """How many queries a query inside a render pass instance uses: one for each view of multiview."""
    return max(1, buffer.rendering.view_mask.bit_count()) if buffer.rendering is not None else 1


def _use(
    objects: ObjectState, args: dict[str, Any], first: int, count: int, use: QueryUse, **more: Any
) -> tuple[Effect, ...]:
    pool = objects.get(QueryPool, args["queryPool"])
    if pool is None or not pool.followed or not count:
        return ()
    return (UseQueries(pool.id, first, count, use, **more),)


@call("vkCreateQueryPool")
def create_query_pool(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Adds a query pool. The type of query decides how many numbers a result has."""
    info = call.args["pCreateInfo"]
    kind = info["queryType"]
    pool = QueryPool(
        call.args["pQueryPool"], _values(info), kind == VkQueryType.PERFORMANCE_QUERY_KHR, kind in FOLLOWED
    )
    objects.add(pool)
    if pool.followed:
        yield _by_host(call, pool, 0, info["queryCount"], QueryUse.CREATE)
        if info["flags"] & RESET_AT_CREATION:
            yield _by_host(call, pool, 0, info["queryCount"], QueryUse.RESET)


@call("vkResetQueryPool")
def host_reset_query_pool(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """The host makes queries unavailable."""
    pool = objects.get(QueryPool, call.args["queryPool"])
    if pool is not None and pool.followed:
        yield _by_host(call, pool, call.args["firstQuery"], call.args["queryCount"], QueryUse.RESET)


@call("vkGetQueryPoolResults")
def get_query_pool_results(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """The host has results that it waited for. VK_SUCCESS is as good as a wait, unless partial results may do."""
    pool = objects.get(QueryPool, call.args["queryPool"])
    if pool is not None and pool.followed:
        flags = call.args["flags"]
        known = bool(flags & VkQueryResult.WAIT) or (call.result == VkResult.SUCCESS and not flags & TELLING)
        where = call.args["firstQuery"], call.args["queryCount"]
        yield replace(_by_host(call, pool, *where, QueryUse.GET), known=known)


def _by_host(call: Call, pool: QueryPool, first: int, count: int, use: QueryUse) -> HostQueries:
    return HostQueries(call.index, call.name, call.site, pool.id, first, count, use)


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
    gone = objects.remove(call.args["queryPool"])
    if isinstance(gone, QueryPool):
        yield _by_host(call, gone, 0, 0, QueryUse.DESTROY)


@command("vkCmdCopyQueryPoolResults", by_arguments=True)
def copy_query_pool_results(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Writes one result every `stride` bytes. A single query needs no stride."""
    target = objects.buffer(args["dstBuffer"])
    count, flags = args["queryCount"], args["flags"]
    how = {"waits": bool(flags & VkQueryResult.WAIT), "tells": bool(flags & TELLING)}
    uses = _use(objects, args, args["firstQuery"], count, QueryUse.COPY, **how)
    if target is None or not count:
        return uses
    size = _result_bytes(objects.get(QueryPool, args["queryPool"]), flags)
    spans = _result_spans(target, args["dstOffset"], count, args["stride"], size)
    made = (*uses, *buffer_access(COPY_WRITE, target, spans))
    return objects.plans.of(made) if uses else made


def _result_bytes(pool: QueryPool | None, flags: int) -> int:
    """The bytes of one result: its numbers, and one more for the availability or the status."""
    number = 8 if flags & VkQueryResult.RESULT_64 or (pool is not None and pool.counters) else 4
    more = 1 if flags & (VkQueryResult.WITH_AVAILABILITY | VkQueryResult.WITH_STATUS_KHR) else 0
    return ((pool.values if pool is not None else 1) + more) * number


def _result_spans(target: Buffer, offset: int, count: int, stride: int, size: int) -> list[Span]:
    if stride <= size or count > APART:
        return [target.span(offset, (count - 1) * stride + size)]
    spend(count, "results of queries")
    return [target.span(offset + index * stride, size) for index in range(count)]


@command("vkCmdWriteBufferMarkerAMD", "vkCmdWriteBufferMarker2AMD")
def write_buffer_marker(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Writes 4 bytes in the COPY stage; markers do not conflict with one another (VK_AMD_buffer_marker)."""
    target = objects.buffer(args["dstBuffer"])
    if target is not None:
        span = target.span(args["dstOffset"], MARKER_BYTES)
        if span[0] < span[1]:
            yield Access(COPY_WRITE, target.space, (span,), target.id, marker=True)
