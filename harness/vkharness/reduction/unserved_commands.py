"""What commands of a stream use or wait for without anything that gives it to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from vkharness.reduction.paths import DESCRIPTORS
from vkharness.reduction.shader_state import NOT_KNOWN, ShaderStates
from vkharness.spec.command_classes import DRAWS, RUNS_SHADERS, TRACES_RAYS
from vkharness.spec.enums import VkPipelineBindPoint
from vkharness.spec.names import flags_value
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call

_WAIT = flags_value("VkQueryResultFlags", "VK_QUERY_RESULT_WAIT_BIT")
_SETS_DESCRIPTORS_OTHERWISE = (
    "vkCmdPushDescriptorSet",
    "vkCmdBindDescriptorSets2",
    "vkCmdBindDescriptorBuffer",
    "vkCmdSetDescriptorBufferOffsets",
    "vkCmdBindShaders",
)
_MOST = 64
"""Bindings that one write of descriptors goes on into, and queries that one command writes or waits for."""


def unwritten_descriptors(blocks: Iterable[Block], states: ShaderStates) -> set[tuple[int, int, int]]:
    """(call, set, binding) of each descriptor that the shaders of a command statically use, in a set that is bound,
    and that nothing wrote before."""
    written: set[tuple[int, int]] = set()
    by_template: set[int] = set()
    buffers: dict[int, _Bound] = defaultdict(_Bound)
    found: set[tuple[int, int, int]] = set()
    for call in (block for block in blocks if isinstance(block, Call)):
        name, args = main_name(call.name), call.args
        if name == "vkUpdateDescriptorSets":
            for each in (each for array in DESCRIPTORS for each in args[array] or ()):
                written.update((each["dstSet"], each["dstBinding"] + at) for at in range(_few(each["descriptorCount"])))
        elif name == "vkUpdateDescriptorSetWithTemplate":
            by_template.add(args["descriptorSet"])
        elif name == "vkBeginCommandBuffer" or name.startswith(_SETS_DESCRIPTORS_OTHERWISE):
            buffers.pop(args["commandBuffer"], None)
        elif name in ("vkCmdBindPipeline", "vkCmdBindDescriptorSets"):
            buffers[args["commandBuffer"]].bind(args)
        elif name.startswith(RUNS_SHADERS):
            for held, number, binding in buffers[args["commandBuffer"]].used(_bind_point(name), states):
                if (held, binding) not in written and held not in by_template:
                    found.add((call.index, number, binding))
    return found


def _bind_point(action: str) -> int:
    if action.startswith(DRAWS):
        return VkPipelineBindPoint.GRAPHICS
    return VkPipelineBindPoint.RAY_TRACING_KHR if action.startswith(TRACES_RAYS) else VkPipelineBindPoint.COMPUTE


class _Bound:
    """The pipelines and descriptor sets that are bound in a command buffer."""

    def __init__(self) -> None:
        self._pipelines: dict[int, int] = {}
        self._sets: dict[tuple[int, int], int] = {}

    def bind(self, args: dict[str, Any]) -> None:
        """A call of vkCmdBindPipeline or vkCmdBindDescriptorSets."""
        point = args["pipelineBindPoint"]
        if "pipeline" in args:
            self._pipelines[point] = args["pipeline"]
        for at, each in enumerate(args.get("pDescriptorSets") or ()):
            self._sets[point, args["firstSet"] + at] = each

    def used(self, point: int, states: ShaderStates) -> Iterator[tuple[int, int, int]]:
        """Yields (descriptor set, its number, binding) of what the bound pipeline's shaders statically use."""
        state = states.of(self._pipelines[point]) if point in self._pipelines else NOT_KNOWN
        for number, binding in state.bindings:
            if held := self._sets.get((point, number)):
                yield held, number, binding


def unwritten_queries(blocks: Iterable[Block]) -> set[tuple[int, int]]:
    """(call, query) of each query whose result a copy waits for, and that nothing wrote since it was reset."""
    written: dict[int, set[int]] = defaultdict(set)
    found: set[tuple[int, int]] = set()
    for call in (block for block in blocks if isinstance(block, Call)):
        name, args = main_name(call.name), call.args
        if not args.get("queryPool"):
            continue
        pool = written[args["queryPool"]]
        first = args.get("query", args.get("firstQuery", 0))
        count = args.get("queryCount", args.get("accelerationStructureCount", args.get("micromapCount", 1)))
        if name in ("vkCmdResetQueryPool", "vkResetQueryPool"):
            pool.difference_update({each for each in pool if first <= each < first + count})
        elif name.startswith(("vkCmdEndQuery", "vkCmdWrite")):
            pool.update(range(first, first + _few(count)))
        elif name == "vkCmdCopyQueryPoolResults" and args["flags"] & _WAIT:
            found.update((call.index, each) for each in range(first, first + _few(count)) if each not in pool)
    return found


def _few(count: int) -> int:
    return min(count, _MOST)
