"""Points that transform feedback captures, and the counters that it writes ("Transform Feedback").

Of lines and triangles an implementation may write any vertex first, so that they are not followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vkharness.computed.followed_transfers import KnownContents
from vkharness.findings import UserError
from vkharness.shader.execution.float_bits import InexactBits
from vkharness.shader.execution.stage_invocations import Bits, CapturedOutput, StageSlot
from vkharness.trace.calls import Call
from vkharness.trace.graphics_state import BoundBuffer

BIND = "vkCmdBindTransformFeedbackBuffersEXT"
BEGIN, END = "vkCmdBeginTransformFeedbackEXT", "vkCmdEndTransformFeedbackEXT"
WORD = 4
"""Bytes of a component, and of a counter."""
Vertex = Mapping[StageSlot, Bits]


@dataclass(slots=True)
class PointCapture:
    """The state of transform feedback in one execution of a command buffer."""

    buffers: dict[int, BoundBuffer] = field(default_factory=dict)
    active: bool = False
    places: dict[int, int] = field(default_factory=dict)
    """By binding, where the next vertex is written from the start of the bound range; none where that is unknown."""

    def bind(self, args: Mapping[str, Any]) -> None:
        """vkCmdBindTransformFeedbackBuffersEXT."""
        sizes, offsets = args["pSizes"], args["pOffsets"] or ()
        for at, (buffer, offset) in enumerate(zip(args["pBuffers"] or (), offsets, strict=False)):
            self.buffers[args["firstBinding"] + at] = BoundBuffer(buffer, offset, *([sizes[at]] if sizes else ()))

    def follow(self, contents: KnownContents, call: Call) -> bool:
        """Takes a begin or an end in, whose counters are read or written; whether the call is one of these."""
        if call.name == BEGIN:
            self.active, self.places = True, dict.fromkeys(self.buffers, 0)
            for binding, buffer, offset in _counters(call.args):
                place = contents.word(buffer, offset)
                self.places.pop(binding, None)
                if place is not None:
                    self.places[binding] = place
        elif call.name == END:
            self.active = False
            for binding, buffer, offset in _counters(call.args):
                self._count(contents, binding, buffer, offset)
        return call.name in (BEGIN, END)

    def _count(self, contents: KnownContents, binding: int, buffer: int, offset: int) -> None:
        if buffer in contents.buffers:
            cells, base, _ = contents.cells(buffer)
            cells.forget(base + offset, base + offset + WORD)
            if binding in self.places:
                cells.put(base + offset, np.array([self.places[binding]], "<u4").view(np.uint8))

    def capture(self, contents: KnownContents, points: Iterable[Vertex], outputs: Sequence[CapturedOutput]) -> None:
        """Appends points, each a vertex. Raises `UserError`, with nothing written, where a buffer is not followed."""
        strides = {each.buffer: each.stride for each in outputs}
        room = {}
        for binding in strides:
            held = self.buffers.get(binding)
            if held is None or held.buffer not in contents.buffers or binding not in self.places:
                raise UserError("where transform feedback writes is not known")
            room[binding] = min(held.size, contents.cells(held.buffer)[2] - held.offset)
        for point in points:
            if any(self.places[binding] + stride > room[binding] for binding, stride in strides.items()):
                return
            for each in outputs:
                self._write(contents, each, point)
            for binding, stride in strides.items():
                self.places[binding] += stride

    def _write(self, contents: KnownContents, output: CapturedOutput, point: Vertex) -> None:
        held = self.buffers[output.buffer]
        cells, base, _ = contents.cells(held.buffer)
        place = base + held.offset + self.places[output.buffer] + output.offset
        cells.forget(place, place + WORD * output.words)
        for at, bits in enumerate(point.get(output.slot, ())):
            if not isinstance(bits, InexactBits):
                cells.put(place + WORD * at, np.array([bits], "<u4").view(np.uint8))

    def lose(self, contents: KnownContents) -> None:
        """A draw was not followed: what it captured, and how far, is unknown."""
        for binding, held in self.buffers.items() if self.active else ():
            if held.buffer in contents.buffers:
                cells, base, size = contents.cells(held.buffer)
                cells.forget(base + held.offset, base + min(size, held.offset + held.size))
            self.places.pop(binding, None)


def _counters(args: Mapping[str, Any]) -> Iterator[tuple[int, int, int]]:
    """(binding, buffer, offset) of the counters that a begin or an end names."""
    buffers = args["pCounterBuffers"] or ()
    offsets = args["pCounterBufferOffsets"] or [0] * len(buffers)
    pairs = enumerate(zip(buffers, offsets, strict=False), args["firstCounterBuffer"])
    return ((binding, buffer, offset) for binding, (buffer, offset) in pairs if buffer)
