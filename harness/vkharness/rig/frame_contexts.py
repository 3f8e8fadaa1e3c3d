"""Frames in flight: what belongs to a frame is used again, and deleted, when the device is done with that frame.

A frame context is a place for everything that must happen later: fences to wait for, memory to give back, objects to
destroy. Nothing is tracked object by object. Whatever is handed to a frame stays until the same context begins again,
and that begin waits for the fences of all that the frame submitted.

Nothing else is implied: the wait is a named dependency of the scenario like any other, and a submit is an ordinary one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from vkharness.findings import UserError
from vkharness.rig.core import RigBuffer, RigCommandBuffer
from vkharness.rig.rig import Rig
from vkharness.rig.suballocators import LinearAllocator

ALIGNMENT = 256
"""Bytes. Scratch ranges begin at multiples of it: no device asks for more (minUniformBufferOffsetAlignment)."""


class ScratchRange(NamedTuple):
    """A range of the scratch ring, in bytes, as descriptors take it."""

    buffer: RigBuffer
    offset: int
    size: int

    @property
    def start(self) -> tuple[RigBuffer, int]:
        """Buffer and offset, as `bind_vertices` and `bind_indices` take them."""
        return self.buffer, self.offset


class FrameContext:
    """One frame in flight: its fences, its part of the scratch ring, and what is deleted when it is complete."""

    def __init__(self, ring: RigBuffer, begin: int, size: int) -> None:
        self.ring, self.begin = ring, begin
        self.scratch = LinearAllocator(size)
        self.fences: list[Any] = []
        """Of everything that this frame submitted."""
        self.deletions: list[Callable[[], object]] = []

    def later(self, deletion: Callable[[], object]) -> None:
        """Does this when the device is done with the frame: destroys an object, gives memory back."""
        self.deletions.append(deletion)

    def complete(self) -> None:
        """Does what was deferred, in order, and takes all scratch ranges back."""
        for deletion in self.deletions:
            deletion()
        self.deletions.clear()
        self.fences.clear()
        self.scratch.reset()


class FrameContexts:
    """`count` frame contexts of a device, which take turns, and a ring of host memory that they share.

    `scratch` are the bytes of the ring that each frame has. The ring is one buffer for vertices, indices, uniform
    blocks and staging data, and stays mapped.
    """

    def __init__(self, rig: Rig, count: int = 2, scratch: int = 4096) -> None:
        self.rig = rig
        ring = rig.buffer(count * scratch)
        ring.mapped = rig.vk.vkMapMemory(rig.device, ring.memory, 0, ring.size, 0)
        self._contexts = [FrameContext(ring, number * scratch, scratch) for number in range(count)]
        self.number = -1
        """The number of the frame, from 0 on."""
        self._fences: list[Any] = []
        """Fences that nothing waits for any more."""

    @property
    def current(self) -> FrameContext:
        """The context of this frame."""
        return self._contexts[self.number % len(self._contexts)]

    def begin(self, name: str = "") -> FrameContext:
        """Begins a frame with the next context: the host waits for the fences of its last frame, then deletes.

        The wait is a named dependency (`Submits.host_wait`): a twin leaves it out, or waits for "the first alone".
        """
        self.number += 1
        context = self.current
        fences = list(context.fences)
        if fences:
            for fence in self.rig.host_wait(name, "all", *fences, weaker={"the first alone": {"fences": fences[:1]}}):
                self.rig.reset_fence(fence)
                self._fences.append(fence)
        context.complete()
        return context

    def wait_idle(self, name: str = "") -> None:
        """Waits for the device, as a named dependency, and deletes everything: no frame is in flight after that."""
        self.rig.host_wait(name, "device")
        for context in self._contexts:
            context.complete()

    def submit(self, *recorded: RigCommandBuffer, **options: Any) -> Any:
        """`Submits.submit` with a fence of this frame, which is returned."""
        fence = self._fences.pop() if self._fences else self.rig.fence()
        self.rig.submit(*recorded, fence=fence, **options)
        self.current.fences.append(fence)
        return fence

    def scratch(self, data: bytes) -> ScratchRange:
        """Writes data to a new range of this frame's scratch memory. `UserError` when the frame has no room left."""
        context = self.current
        offset = context.scratch.take(len(data), ALIGNMENT)
        if offset is None:
            raise UserError(f"frame {self.number} has no {len(data)} bytes of scratch memory left")
        place = ScratchRange(context.ring, context.begin + offset, len(data))
        self.rig.host_write(place.buffer, data, place.offset)
        return place
