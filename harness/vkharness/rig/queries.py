"""Queries, markers, conditional rendering and transform feedback."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from vkharness.findings import UserError
from vkharness.rig.core import RigBuffer, RigCommandBuffer, RigDevice
from vkharness.spec.enums import VK_WHOLE_SIZE
from vkharness.spec.masks import scope
from vkharness.spec.names import enum_value, flags_value


@dataclass(slots=True)
class RigQueryPool:
    """A VkQueryPool of `count` queries. `ended` are the queries for whose results a copy may wait."""

    handle: Any
    count: int
    ended: set[int]


class Queries(RigDevice):
    """Query pools of one device."""

    def queries(self, kind: str = "OCCLUSION", count: int = 4) -> RigQueryPool:
        """A pool of queries, all reset. `kind` is a VkQueryType without VK_QUERY_TYPE_."""
        value = enum_value("VkQueryType", f"VK_QUERY_TYPE_{kind}")
        info = self.vk.VkQueryPoolCreateInfo(queryType=value, queryCount=count)
        handle = self.own("QueryPool", self.vk.vkCreateQueryPool(self.device, info, None))
        made = RigQueryPool(handle, count, set())
        self.host_reset(made)
        return made

    def host_reset(self, pool: RigQueryPool) -> None:
        """vkResetQueryPool of all queries."""
        self.vk.vkResetQueryPool(self.device, pool.handle, 0, pool.count)
        pool.ended.clear()

    def host_results(self, pool: RigQueryPool, first: int = 0, count: int = 1) -> list[int]:
        """vkGetQueryPoolResults of 32 bits each, which waits for them.

        Raises `UserError` for a query that was not ended, since the wait would never end.
        """
        if not pool.ended >= set(range(first, first + count)):
            raise UserError("the host waits for the results of a query that nothing ended")
        vk, results = self.vk, self.vk.ffi.new("uint32_t[]", count)
        wait = flags_value("VkQueryResultFlags", "VK_QUERY_RESULT_WAIT_BIT")
        vk.vkGetQueryPoolResults(self.device, pool.handle, first, count, 4 * count, results, 4, wait)
        return list(results)


class QueryCommands(RigCommandBuffer):
    """Commands for queries, markers, conditional rendering and transform feedback."""

    def timestamp(self, pool: RigQueryPool, index: int = 0, stage: str = "ALL_COMMANDS") -> None:
        """vkCmdWriteTimestamp2 after earlier work of a stage."""
        self.vk.vkCmdWriteTimestamp2(self.handle, scope(stage)[0], pool.handle, index)
        pool.ended.add(index)

    def reset_queries(self, pool: RigQueryPool, first: int = 0, count: int | None = None) -> None:
        """vkCmdResetQueryPool."""
        count = pool.count - first if count is None else count
        self.vk.vkCmdResetQueryPool(self.handle, pool.handle, first, count)
        pool.ended -= set(range(first, first + count))

    def query(self, pool: RigQueryPool, *indices: int, inside: Callable[[], object] = lambda: None) -> None:
        """vkCmdBeginQuery and vkCmdEndQuery of each. Without commands that `inside` records between them the results
        are zero."""
        vk = self.vk
        for index in indices:
            vk.vkCmdBeginQuery(self.handle, pool.handle, index, 0)
            inside()
            vk.vkCmdEndQuery(self.handle, pool.handle, index)
            pool.ended.add(index)

    def copy_results(
        self,
        pool: RigQueryPool,
        target: RigBuffer,
        *,
        first: int = 0,
        count: int = 1,
        offset: int = 0,
        stride: int = 4,
        flags: Sequence[str] = (),
        wait: bool = True,
    ) -> None:
        """vkCmdCopyQueryPoolResults, which waits for the results or not. `flags` are VkQueryResultFlagBits by name.

        Raises `UserError` for a query that was not ended, since a wait for it would never end.
        """
        if wait and not pool.ended >= set(range(first, first + count)):
            raise UserError("a copy of query results waits for a query that nothing ended")
        value = flags_value("VkQueryResultFlags", "VK_QUERY_RESULT_WAIT_BIT") if wait else 0
        for name in flags:
            value |= flags_value("VkQueryResultFlags", f"VK_QUERY_RESULT_{name}_BIT")
        self.vk.vkCmdCopyQueryPoolResults(self.handle, pool.handle, first, count, target.handle, offset, stride, value)

    def write_marker(self, target: RigBuffer, value: int, offset: int = 0, stage: str = "ALL_COMMANDS") -> None:
        """vkCmdWriteBufferMarkerAMD."""
        write = self.rig.function("vkCmdWriteBufferMarkerAMD")
        write(self.handle, scope(stage)[0], target.handle, offset, value)

    def begin_condition(self, buffer: RigBuffer, offset: int = 0) -> None:
        """vkCmdBeginConditionalRenderingEXT. The commands that follow run if the word in the buffer is not zero."""
        info = self.vk.VkConditionalRenderingBeginInfoEXT(buffer=buffer.handle, offset=offset)
        self.rig.function("vkCmdBeginConditionalRenderingEXT")(self.handle, info)

    def end_condition(self) -> None:
        """vkCmdEndConditionalRenderingEXT."""
        self.rig.function("vkCmdEndConditionalRenderingEXT")(self.handle)

    def bind_feedback(self, buffer: RigBuffer, offset: int = 0, size: int = VK_WHOLE_SIZE) -> None:
        """vkCmdBindTransformFeedbackBuffersEXT of binding 0."""
        bind = self.rig.function("vkCmdBindTransformFeedbackBuffersEXT")
        bind(self.handle, 0, 1, [buffer.handle], [offset], [size])

    def begin_feedback(self, counter: RigBuffer | None = None, offset: int = 0) -> None:
        """vkCmdBeginTransformFeedbackEXT. With a counter, writing resumes where the counter says."""
        self._feedback("Begin", counter, offset)

    def end_feedback(self, counter: RigBuffer | None = None, offset: int = 0) -> None:
        """vkCmdEndTransformFeedbackEXT. A counter receives the number of bytes written so far."""
        self._feedback("End", counter, offset)

    def draw_byte_count(self, counter: RigBuffer, stride: int = 4, offset: int = 0) -> None:
        """vkCmdDrawIndirectByteCountEXT of one instance. The number of vertices is the counter's value divided by the
        stride."""
        draw = self.rig.function("vkCmdDrawIndirectByteCountEXT")
        draw(self.handle, 1, 0, counter.handle, offset, 0, stride)

    def _feedback(self, which: str, counter: RigBuffer | None, offset: int) -> None:
        function = self.rig.function(f"vkCmd{which}TransformFeedbackEXT")
        if counter is None:
            function(self.handle, 0, 0, [], [])
        else:
            function(self.handle, 0, 1, [counter.handle], [offset])
