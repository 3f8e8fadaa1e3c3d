"""Which parts of accesses 1.3.239 loses: those past the last address that a command buffer tracks.

When an access meets a tracked range and ends after the last tracked one of its map, the layer records it only up to
there. An access that meets nothing tracked is recorded whole, and so is one that ends before the last tracked address.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from harness.layer.stream import UNHOOKED_BEFORE, Address, Stream, Touch
from harness.spans import Span, SpanMap
from harness.trace.calls import Call

DRAW_INDIRECT = 0x2
"""VK_PIPELINE_STAGE_2_DRAW_INDIRECT_BIT"""

Key = tuple[int, int, int]
"""(memory, offset of the resource, address) as the layer orders what it tracks."""


PASSED_OVER = tuple(name for name, _ in UNHOOKED_BEFORE)
"""Commands that are nothing to the layers that lose parts: all were hooked later than those were mended."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Addresses of a resource that a command touches and the layer does not record."""

    call: int
    resource: int
    span: Span


def lost_parts(stream: Stream, commands: Iterable[Call]) -> Iterator[Lost]:
    """What the layer loses of one command buffer's commands, given in order."""
    tracked: dict[int, SpanMap[bool]] = {}
    last: dict[bool, tuple[Key, int]] = {}
    for call in commands:
        if call.name.startswith(PASSED_OVER):
            continue
        for touch in _in_order(stream, call):
            address = stream.address_of(touch.resource)
            ranges = tracked.setdefault(touch.space, SpanMap())
            for begin, end in touch.spans:
                kept = _kept(ranges, begin, end, touch.space, last.get(address.linear))
                if kept < end:
                    yield Lost(call.index, touch.resource, (kept, end))
                ranges.assign(begin, kept, True)
                key = _key(address, kept)
                if address.linear not in last or key > last[address.linear][0]:
                    last[address.linear] = (key, touch.space)


def _in_order(stream: Stream, call: Call) -> Iterator[Touch]:
    """Touches of one region after the other: effects merge the regions of a buffer copy, which the layer does not."""
    if call.name == "vkCmdDispatchIndirect":
        yield from sorted(stream.touches(call), key=lambda touch: touch.stage == DRAW_INDIRECT)  # descriptors first
        return
    info = call.args.get("pCopyBufferInfo") or call.args
    if not call.name.startswith("vkCmdCopyBuffer") or "srcBuffer" not in info or "dstBuffer" not in info:
        yield from stream.touches(call)
        return
    spaces = {touch.resource: touch.space for touch in stream.touches(call)}
    for region in info["pRegions"] or ():
        for buffer, offset, write in (("srcBuffer", "srcOffset", False), ("dstBuffer", "dstOffset", True)):
            resource = info[buffer]
            begin = stream.address_of(resource).offset + region[offset]
            if resource in spaces:
                yield Touch(resource, spaces[resource], ((begin, begin + region["size"]),), write)


def _kept(ranges: SpanMap[bool], begin: int, end: int, space: int, last: tuple[Key, int] | None) -> int:
    """The address up to which [begin, end) is recorded."""
    if last is None or last[1] != space or not ranges.pieces(begin, end):
        return end
    return min(end, last[0][2])


def _key(address: Address, end: int) -> Key:
    # A buffer's addresses are those of its memory already.
    return (address.memory, 0 if address.linear else address.offset, end)
