"""A vertex buffer of which a copy writes one part while draws read another, as ring buffers are used."""

from __future__ import annotations

from typing import Any

from tests.support import drawing
from tests.support.drawing import attribute, binding, vertex_input
from tests.support.streams import Stream
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.spec.enums import VkIndexType

BYTES = 1024
ONE = vertex_input([binding()], [attribute()])
HALVES = ((0, 512), (512, 512))
"""(offset, size) of two parts of a vertex buffer of 64 and 64 vertices."""


class Ring(Stream):
    """A vertex buffer of which a copy writes one part while an indexed draw reads another."""

    def __init__(self, input: dict[str, Any] = ONE, **more: Any) -> None:
        super().__init__()
        self.vertices, self.source = self.buffer(BYTES), self.buffer(BYTES)
        self.index_memory, self.parameter_memory = self.memory(BYTES), self.memory(BYTES)
        self.indices = self.buffer(BYTES, self.index_memory)
        self.parameters = self.buffer(BYTES, self.parameter_memory)
        self.pipeline = drawing.pipeline(self, None, input=input, colors=None, discard=True, **more)

    def overwrites(self, part: tuple[int, int]) -> Ring:
        """Begins commands with a copy to a part of the vertices."""
        self.begin()
        self.copy(self.source, self.vertices, part[1], to=part[0])
        return self

    def draws(self, name: str = "DrawIndexed", kind: int = VkIndexType.UINT32, **args: Any) -> Ring:
        """Any draw, in rendering of its own."""
        drawing.render(self)
        drawing.bind(self, self.pipeline)
        drawing.bind_vertices(self, self.vertices)
        drawing.bind_indices(self, self.indices, kind=kind)
        self.cmd(name, **args)
        self.cmd("EndRendering")
        return self

    def judged(self, bounds: bool = False) -> Analysis:
        """Submits the commands and judges the stream."""
        self.submit()
        assert agreement(self.blocks).disagreements == ()
        return Analysis(bounds=bounds).follow(self.blocks)
