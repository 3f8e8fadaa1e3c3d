"""The barriers of one command, each with its scopes as the call gives them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from vkharness.trace.calls import Call


class BarrierScope(NamedTuple):
    """One barrier of a barrier command. `what` is `memory`, `buffer` or `image`."""

    what: str
    src_stages: int
    src_accesses: int
    dst_stages: int
    dst_accesses: int
    transition: bool
    sync2: bool
    """From a VkDependencyInfo, with stages of its own."""
    resource: int = 0
    """The buffer or image, 0 for a memory barrier."""


def barrier_scopes(call: Call) -> Iterator[BarrierScope]:
    """The barriers of a vkCmdPipelineBarrier or vkCmdWaitEvents in any spelling; nothing for other commands."""
    if call.name.startswith("vkCmdPipelineBarrier"):
        yield from _scopes_of(call, call.args.get("pDependencyInfo") or call.args)
    elif call.name.startswith("vkCmdWaitEvents"):
        for info in call.args.get("pDependencyInfos") or (call.args,):
            yield from _scopes_of(call, info)


def _scopes_of(call: Call, info: dict[str, Any]) -> Iterator[BarrierScope]:
    lists = (("memory", "pMemoryBarriers"), ("buffer", "pBufferMemoryBarriers"), ("image", "pImageMemoryBarriers"))
    several = [(what, barrier) for what, member in lists for barrier in info.get(member) or ()]
    for what, barrier in several:
        yield BarrierScope(
            what,
            barrier.get("srcStageMask", info.get("srcStageMask", 0)),
            barrier["srcAccessMask"],
            barrier.get("dstStageMask", info.get("dstStageMask", 0)),
            barrier["dstAccessMask"],
            what == "image" and barrier["oldLayout"] != barrier["newLayout"],
            info is not call.args,
            barrier.get(what, 0),
        )
    if not several and info is call.args:
        yield BarrierScope("memory", info["srcStageMask"], 0, info["dstStageMask"], 0, False, False)
