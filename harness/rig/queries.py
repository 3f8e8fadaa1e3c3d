"""Queries, markers, conditional rendering and transform feedback in scenarios. `Commands` has these functions as its
methods, `Rig` has `queries`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.findings import UserError
from harness.spec.enums import VK_WHOLE_SIZE
from harness.spec.masks import scope
from harness.spec.names import enum_value, flags_value

if TYPE_CHECKING:
    from harness.rig.command_buffers import Commands
    from harness.rig.rig import Rig, RigBuffer

BUFFER_USAGE = {
    "VK_EXT_conditional_rendering": 0x200,
    "VK_EXT_transform_feedback": 0x800 | 0x1000,
    "VK_KHR_acceleration_structure": 0x20000 | 0x80000 | 0x100000,
}
"""The uses of buffers that extensions add, as VkBufferUsageFlags."""


@dataclass(slots=True)
class RigQueryPool:
    """A VkQueryPool of `count` queries; `ended` are those that a copy may wait for."""

    handle: Any
    count: int
    ended: set[int]


def buffer_usage(extensions: Iterable[str]) -> int:
    """The uses of buffers that these extensions add."""
    usage = 0
    for name in extensions:
        usage |= BUFFER_USAGE.get(name, 0)
    return usage


def queries(rig: Rig, kind: str = "OCCLUSION", count: int = 4) -> RigQueryPool:
    """A pool of queries, all reset; `kind` is a VkQueryType without VK_QUERY_TYPE_."""
    value = enum_value("VkQueryType", f"VK_QUERY_TYPE_{kind}")
    info = rig.vk.VkQueryPoolCreateInfo(queryType=value, queryCount=count)
    handle = rig._made("QueryPool", rig.vk.vkCreateQueryPool(rig.device, info, None))
    rig.vk.vkResetQueryPool(rig.device, handle, 0, count)
    return RigQueryPool(handle, count, set())


def reset_queries(commands: Commands, pool: RigQueryPool, first: int = 0, count: int | None = None) -> None:
    """vkCmdResetQueryPool."""
    count = pool.count - first if count is None else count
    commands.vk.vkCmdResetQueryPool(commands.handle, pool.handle, first, count)
    pool.ended -= set(range(first, first + count))


def query(commands: Commands, pool: RigQueryPool, *indices: int) -> None:
    """vkCmdBeginQuery and vkCmdEndQuery with nothing between: the results are zero."""
    vk = commands.vk
    for index in indices:
        vk.vkCmdBeginQuery(commands.handle, pool.handle, index, 0)
        vk.vkCmdEndQuery(commands.handle, pool.handle, index)
        pool.ended.add(index)


def copy_results(
    commands: Commands,
    pool: RigQueryPool,
    target: RigBuffer,
    *,
    first: int = 0,
    count: int = 1,
    offset: int = 0,
    stride: int = 4,
    flags: Sequence[str] = (),
) -> None:
    """vkCmdCopyQueryPoolResults, waiting for the results; `flags` are VkQueryResultFlagBits by name. UserError for a
    query that was not ended: the wait would not end either."""
    if not pool.ended >= set(range(first, first + count)):
        raise UserError("a copy of query results waits for a query that nothing ended")
    value = flags_value("VkQueryResultFlags", "VK_QUERY_RESULT_WAIT_BIT")
    for name in flags:
        value |= flags_value("VkQueryResultFlags", f"VK_QUERY_RESULT_{name}_BIT")
    commands.vk.vkCmdCopyQueryPoolResults(
        commands.handle, pool.handle, first, count, target.handle, offset, stride, value
    )


def write_marker(
    commands: Commands, target: RigBuffer, value: int, offset: int = 0, stage: str = "ALL_COMMANDS"
) -> None:
    """vkCmdWriteBufferMarkerAMD."""
    write = commands.rig.function("vkCmdWriteBufferMarkerAMD")
    write(commands.handle, scope(stage)[0], target.handle, offset, value)


def begin_condition(commands: Commands, buffer: RigBuffer, offset: int = 0) -> None:
    """vkCmdBeginConditionalRenderingEXT: what follows runs if the word is not zero."""
    info = commands.vk.VkConditionalRenderingBeginInfoEXT(buffer=buffer.handle, offset=offset)
    commands.rig.function("vkCmdBeginConditionalRenderingEXT")(commands.handle, info)


def end_condition(commands: Commands) -> None:
    """vkCmdEndConditionalRenderingEXT."""
    commands.rig.function("vkCmdEndConditionalRenderingEXT")(commands.handle)


def bind_feedback(commands: Commands, buffer: RigBuffer, offset: int = 0, size: int = VK_WHOLE_SIZE) -> None:
    """vkCmdBindTransformFeedbackBuffersEXT of binding 0."""
    bind = commands.rig.function("vkCmdBindTransformFeedbackBuffersEXT")
    bind(commands.handle, 0, 1, [buffer.handle], [offset], [size])


def begin_feedback(commands: Commands, counter: RigBuffer | None = None, offset: int = 0) -> None:
    """vkCmdBeginTransformFeedbackEXT; with a counter it goes on where that says."""
    _feedback(commands, "Begin", counter, offset)


def end_feedback(commands: Commands, counter: RigBuffer | None = None, offset: int = 0) -> None:
    """vkCmdEndTransformFeedbackEXT; a counter gets the bytes written so far."""
    _feedback(commands, "End", counter, offset)


def draw_byte_count(commands: Commands, counter: RigBuffer, stride: int = 4, offset: int = 0) -> None:
    """vkCmdDrawIndirectByteCountEXT of one instance: as many vertices as the counter has strides."""
    draw = commands.rig.function("vkCmdDrawIndirectByteCountEXT")
    draw(commands.handle, 1, 0, counter.handle, offset, 0, stride)


def _feedback(commands: Commands, which: str, counter: RigBuffer | None, offset: int) -> None:
    function = commands.rig.function(f"vkCmd{which}TransformFeedbackEXT")
    if counter is None:
        function(commands.handle, 0, 0, [], [])
    else:
        function(commands.handle, 0, 1, [counter.handle], [offset])
