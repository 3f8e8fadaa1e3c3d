"""Random programs that stream: each command uses the next part of a buffer, so that there are many ranges.

Vertices, indices, uniform data and what is copied come from rings: an offset comes again when its ring is through,
some frames later. Copies, fills and barriers of parts join some of these ranges, cut others, and leave most alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hunts.frame_programs import READ_WRITE
from hunts.shader_frames import ShaderFrames
from vkharness.fuzz.filled_calls import struct
from vkharness.spec.enums import VkPipelineStage2

RINGS = (1 << 11, 1 << 12, 1 << 14)
"""Bytes after which offsets come again."""
STEPS = (8, 8, 16, 24, 40)
"""Bytes from one part of a ring to the next one."""


class DenseFrames(ShaderFrames):
    """The calls of one seed's program."""

    buffer_size = RINGS[-1]
    sizes = (4, 4, 8, 8, 16, 16, 24, 64, 256, 512, 1 << 10)
    lengths = range(5, 12)
    frame_counts = (8, 12)
    changes = (0, 0, 0.003, 0.02)
    freshness = (0, 0, 0.1)
    draws = (4, 8, 16)
    _ring = RINGS[0]
    _next = 0

    def _begin(self) -> None:
        self._ring, self._apart = self._random.choice(RINGS), self._random.choice(STEPS)
        self._streams_indices = self._random.random() < 0.3
        super()._begin()

    def _image_memory(self) -> int:
        """Mostly where no buffer lies: what is known of commands by what they say, is known then."""
        return self._memory(4096) if self._random.random() < 0.9 else super()._image_memory()

    # -- where commands access

    def _streamed(self, alignment: int = 4) -> int:
        """The next part of the ring."""
        at = self._next
        self._next = (at + max(self._apart, alignment)) % self._ring
        return at - at % alignment

    def _near(self) -> int:
        chosen = self._chosen
        if chosen.random() < 0.6:
            return self._streamed()
        return chosen.choice((0, 4 * chosen.randrange(self._ring // 4), super()._near()))

    def _described_from(self) -> int:
        return 16 * self._random.randrange(self._ring // 16)

    def _dynamic_offset(self) -> int:
        return self._streamed(16)

    def _first_index(self) -> int:
        return self._streamed() if self._streams_indices else super()._first_index()

    # -- commands

    def _some_buffer(self) -> int:
        """Mostly the same one, which gets the more ranges."""
        return self._buffers[0] if self._chosen.random() < 0.7 else super()._some_buffer()

    def _more(self) -> list[Callable[[], None]]:
        streaming = [self._render, self._render, self._copies, self._parts, self._copy, self._fill, self._update]
        return super()._more() + streaming * self._random.choice((1, 3, 5))

    def _draw(self) -> None:
        """Mostly behind a bind of the next vertices."""
        if self._chosen.random() < 0.8:
            self._bind_next()
        super()._draw()

    def _bind_next(self) -> None:
        bound = {"bindingCount": 2, "pBuffers": [self._some_buffer() for _ in range(2)]}
        self._command("BindVertexBuffers", **bound, pOffsets=[self._streamed(), self._streamed()])

    def _copies(self) -> None:
        """Many regions."""
        sizes = self._chosen.choices(self.sizes[:-2], k=self._chosen.choice((4, 8, 20)))
        regions = [struct("VkBufferCopy", srcOffset=self._near(), dstOffset=self._near(), size=size) for size in sizes]
        between = {"srcBuffer": self._some_buffer(), "dstBuffer": self._some_buffer()}
        self._command("CopyBuffer", **between, pRegions=regions)

    def _parts(self) -> None:
        """A barrier of parts of a buffer."""
        stages = dict.fromkeys(("srcStageMask", "dstStageMask"), VkPipelineStage2.ALL_COMMANDS)
        scope: dict[str, Any] = dict.fromkeys(("srcAccessMask", "dstAccessMask"), READ_WRITE)
        scope |= dict.fromkeys(("srcQueueFamilyIndex", "dstQueueFamilyIndex"), 0xFFFFFFFF)
        scope["buffer"] = self._some_buffer()
        several = [
            struct("VkBufferMemoryBarrier", **scope, offset=self._near(), size=self._size())
            for _ in range(self._chosen.choice((1, 2, 4)))
        ]
        self._command("PipelineBarrier", **stages, pBufferMemoryBarriers=several)
