"""A record as memory, for the readers of `vkharness.record.decode`: an address is a place in the record."""

from __future__ import annotations

from vkharness.record.struct_layout import ReadMemory

ARGUMENTS = 40
"""Where the arguments of a call begin, behind the head of its record and its result."""
OUT_OF_PROPORTION = 8
"""How many times the bytes of a record may be read: members of several structs may lead to one place, and so on."""


class RecordMemory(ReadMemory):
    """The record that is read now. It is copied first: the program could change it while it is read."""

    def __init__(self) -> None:
        self._bytes = bytearray(1 << 16)
        self._begin = self._end = self._left = 0

    @property
    def view(self) -> bytearray:
        """The same object for all records."""
        return self._bytes

    def load(self, source: memoryview, arguments: int) -> None:
        """Takes a record with so many arguments."""
        size = len(source)
        if size > len(self._bytes):
            self._bytes.extend(bytes(size - len(self._bytes)))
        self._bytes[:size] = source
        self._begin, self._end = ARGUMENTS + 8 * arguments, size
        self._left = OUT_OF_PROPORTION * size

    def is_readable(self, address: int, size: int) -> bool:
        """Whether a record has so many bytes at a place, behind its arguments. 1 stands for no memory."""
        if size <= 0:
            return not size
        self._left -= size
        if self._left < 0:
            raise BufferError("what it leads to is out of proportion to its record")
        return self._begin <= address and address + size <= self._end

    def text(self, address: int) -> str:
        """Text that ends with NUL."""
        end = self._bytes.find(0, address, self._end)
        if end < 0 or not self.is_readable(address, end - address):
            raise BufferError("a text does not end in its record")
        return self._bytes[address:end].decode("utf-8", "surrogateescape")

    def blob(self, address: int, size: int) -> bytes:
        """A copy of `size` bytes."""
        return bytes(self._bytes[address : address + size])
