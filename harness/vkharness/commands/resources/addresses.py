"""Device addresses: the byte of a buffer for which an address stands, as the device told the program.

Specification: "Device-Visible Buffer Addresses" (VK_KHR_buffer_device_address).
"""

from __future__ import annotations

from collections.abc import Callable

from sortedcontainers import SortedDict

from vkharness.trace.resources import Buffer

PRUNE_AT = 256


class Addresses:
    """Buffers by the device address of their first byte.

    An address is looked up in O(log n), plus the buffers that begin within the largest buffer's size before it.
    """

    def __init__(self, live: Callable[[int], Buffer | None]) -> None:
        """`live` returns the buffer of an id, or None after it was destroyed."""
        self._live = live
        self._buffers: SortedDict[int, list[int]] = SortedDict()
        """Ids of the buffers that begin at an address, the one told of last at the end."""
        self.changes = 0
        """How often anything was noted that was not known."""
        self._largest = 0
        self._prune_at = PRUNE_AT

    def add(self, address: int, buffer: Buffer) -> bool:
        """Notes the address of a buffer. Several buffers on the same memory may have one address. Whether addresses of
        another buffer stand for this one from now on."""
        known = self._buffers.get(address, [])
        held = [id for id in known if id != buffer.id and self._live(id) is not None]
        is_new = known != [*held, buffer.id]
        covers = is_new and self._covers(address, buffer)
        if is_new:
            self._buffers[address] = [*held, buffer.id]
            self.changes += 1
        self._largest = max(self._largest, buffer.size)
        if len(self._buffers) >= self._prune_at:
            self._prune()
        return covers

    def _covers(self, address: int, buffer: Buffer) -> bool:
        """Whether another buffer has any of the addresses of a buffer."""
        end = address + buffer.size
        for start in self._buffers.irange(address - self._largest, end, (True, False)):
            for id in self._buffers[start]:
                other = self._live(id)
                if other is not None and id != buffer.id and address < start + other.size:
                    return True
        return False

    def find(self, address: int, size: int = 1) -> tuple[Buffer, int] | None:
        """(buffer, offset) of an address, for the buffer that was noted last. One that holds all of `size` bytes from
        there comes before others. None when nothing is known."""
        first = None
        for start in self._buffers.irange(address - self._largest, address, reverse=True):
            for id in reversed(self._buffers[start]):
                buffer = self._live(id)
                if buffer is not None and address < start + buffer.size:
                    if address + size <= start + buffer.size:
                        return buffer, address - start
                    first = first or (buffer, address - start)
        return first

    def every(self) -> list[Buffer]:
        """The live buffers of which the device told the address."""
        known = dict.fromkeys(id for ids in self._buffers.values() for id in ids)
        return [buffer for id in known if (buffer := self._live(id)) is not None]

    def _prune(self) -> None:
        """Drops destroyed buffers, so that a long run does not need ever more memory."""
        alive = ((start, [id for id in ids if self._live(id) is not None]) for start, ids in self._buffers.items())
        self._buffers = SortedDict((start, ids) for start, ids in alive if ids)
        self._prune_at = max(PRUNE_AT, 2 * len(self._buffers))
