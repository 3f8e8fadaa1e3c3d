"""Device addresses: which byte of which buffer an address means, as the program was told by the device.

Specification: "Device-Visible Buffer Addresses" (VK_KHR_buffer_device_address).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable

from harness.trace.resources import Buffer

PRUNE_AT = 256


class Addresses:
    """Buffers by the device address of their first byte.

    An address is looked up in O(log n), plus the buffers that begin within the largest buffer's size before it.
    """

    def __init__(self, live: Callable[[int], Buffer | None]) -> None:
        """`live` gives a buffer by id, None once it was destroyed."""
        self._live = live
        self._starts: list[int] = []
        self._buffers: dict[int, list[int]] = {}
        self._largest = 0
        self._prune_at = PRUNE_AT

    def add(self, address: int, buffer: Buffer) -> None:
        """The program was told the address of a buffer. An address may mean several buffers on the same memory."""
        held = [id for id in self._buffers.get(address, ()) if id != buffer.id and self._live(id) is not None]
        if address not in self._buffers:
            insort(self._starts, address)
        self._buffers[address] = [*held, buffer.id]
        self._largest = max(self._largest, buffer.size)
        if len(self._starts) >= self._prune_at:
            self._prune()

    def find(self, address: int) -> tuple[Buffer, int] | None:
        """(buffer, offset in it) that an address means, the buffer told of last first; None when nothing is known."""
        at = bisect_right(self._starts, address)
        while at and self._starts[at - 1] + self._largest > address:
            at -= 1
            start = self._starts[at]
            for id in reversed(self._buffers[start]):
                buffer = self._live(id)
                if buffer is not None and address < start + buffer.size:
                    return buffer, address - start
        return None

    def _prune(self) -> None:
        """Lets go of destroyed buffers, so that a program that runs for long does not grow."""
        kept = {
            start: alive
            for start, ids in self._buffers.items()
            if (alive := [id for id in ids if self._live(id) is not None])
        }
        self._buffers, self._starts = kept, sorted(kept)
        self._prune_at = max(PRUNE_AT, 2 * len(kept))
