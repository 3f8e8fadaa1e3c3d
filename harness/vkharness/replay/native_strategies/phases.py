"""A stream cut where the host waits for the device: within a part, what is submitted may be under way at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vkharness.spec.command_classes import HOST_POLLS, HOST_WAITS, is_submit
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call, HostRead

LOOKS = HOST_WAITS | HOST_POLLS | {"vkGetEventStatus", "vkGetQueryPoolResults"}
"""Calls from which the host knows what the device has done."""


def submits(block: Block) -> bool:
    """Whether a block gave command buffers to a queue."""
    return isinstance(block, Call) and block.succeeded and is_submit(block.name)


def phases(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """The blocks in parts, of which each but the first begins where the host learns what the device has done."""
    part: list[Block] = []
    for block in blocks:
        if isinstance(block, HostRead) or (isinstance(block, Call) and main_name(block.name) in LOOKS):
            yield part
            part = []
        part.append(block)
    yield part
