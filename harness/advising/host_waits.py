"""Waits of the host that wait for nothing: a wait before them is over, and nothing was submitted since."""

from __future__ import annotations

from collections.abc import Sequence

from harness.report.advice import Advice, AdviceKind
from harness.spec.command_classes import is_submit
from harness.trace.calls import Block, Call

_WAITS = ("vkDeviceWaitIdle", "vkQueueWaitIdle")


def idle_waits(blocks: Sequence[Block]) -> list[Advice]:
    """Every vkDeviceWaitIdle and vkQueueWaitIdle after which a queue is as idle as before: its own queue, or the
    device, was waited for, and no call since could give it work. One advice for each name and source line."""
    idle: set[int | None] = set()
    found: dict[tuple[str, str | None, int], list[Call]] = {}
    for number, block in enumerate(blocks):
        if not isinstance(block, Call):
            continue
        if block.name in _WAITS:
            device = block.name == "vkDeviceWaitIdle"
            thing = None if device else block.args.get("queue")
            if thing in idle or None in idle:
                key = (block.name, block.site, 0 if block.site else number)
                found.setdefault(key, []).append(block)
            idle.add(thing)
        elif is_submit(block.name) or block.name.startswith(("vkQueue", "vkAcquire", "vkSignal", "vkCreateDevice")):
            idle.clear()
    line = "nothing was submitted since the last wait for the same queues"
    return [
        Advice(AdviceKind.WAITS_FOR_NOTHING, several[0], tuple(each.index for each in several), (line,))
        for several in found.values()
    ]
