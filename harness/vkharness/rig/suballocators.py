"""Allocators of ranges of bytes, without Vulkan: linear and buddy.

Both give offsets and know nothing of what lies there. `_check()` verifies what must always hold; tests call it after
each operation.
"""

from __future__ import annotations


def aligned(offset: int, alignment: int) -> int:
    """The first multiple of `alignment` from `offset` on, in bytes."""
    return -(-offset // alignment) * alignment


class LinearAllocator:
    """Gives ranges one after another, and takes them back all at once.

    >>> scratch = LinearAllocator(1024)
    >>> scratch.take(100), scratch.take(4, alignment=256), scratch.take(1000)
    (0, 256, None)
    >>> scratch.reset()
    >>> scratch.take(1000)
    0
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.end = 0
        """Where the next range begins at the earliest."""

    def take(self, size: int, alignment: int = 1) -> int | None:
        """The offset of a new range of `size` bytes. None when there is no room. O(1)."""
        offset = aligned(self.end, alignment)
        if size < 1 or offset + size > self.size:
            return None
        self.end = offset + size
        return offset

    def reset(self) -> None:
        """Takes all ranges back. O(1)."""
        self.end = 0

    def _check(self) -> None:
        assert 0 <= self.end <= self.size


class BuddyAllocator:
    """Gives blocks of a power of two of bytes, each at a multiple of its size.

    A block is split into two buddies. Buddies that are both free become one block again.

    >>> allocator = BuddyAllocator(1024, smallest=64)
    >>> allocator.take(100), allocator.take(64), allocator.take(300)
    (0, 128, 512)
    >>> allocator.give_back(0), allocator.give_back(128), allocator.give_back(512)
    (128, 64, 512)
    >>> allocator.take(1024)
    0
    """

    def __init__(self, size: int, smallest: int = 256) -> None:
        """`size` and `smallest` are powers of two. `ValueError` for others."""
        if size & size - 1 or smallest & smallest - 1 or not 0 < smallest <= size:
            raise ValueError(f"a buddy allocator of {size} bytes with blocks from {smallest}: not powers of two")
        self.size, self.smallest = size, smallest
        self._free: dict[int, set[int]] = {size: {0}}
        """Offsets of free blocks by their size."""
        self._taken: dict[int, int] = {}
        """Sizes of the blocks that were given, by offset."""

    def take(self, size: int, alignment: int = 1) -> int | None:
        """The offset of a block of at least `size` bytes: the lowest one of the smallest free size that fits.

        None when there is none. O(number of sizes).
        """
        needed = max(size, alignment, self.smallest)
        block = 1 << (needed - 1).bit_length()
        fitting = [each for each, offsets in self._free.items() if offsets and each >= block]
        if size < 1 or not fitting:
            return None
        found = min(fitting)
        offset = min(self._free[found])
        self._free[found].remove(offset)
        while found > block:
            found //= 2
            self._free.setdefault(found, set()).add(offset + found)
        self._taken[offset] = block
        return offset

    def give_back(self, offset: int) -> int:
        """Frees the block at an offset; its size in bytes. `KeyError` when none was given there."""
        given = block = self._taken.pop(offset)
        while block < self.size and offset ^ block in self._free.get(block, ()):
            self._free[block].remove(offset ^ block)
            offset &= ~block
            block *= 2
        self._free.setdefault(block, set()).add(offset)
        return given

    @property
    def empty(self) -> bool:
        """Whether no block is given."""
        return not self._taken

    def _check(self) -> None:
        free = [(offset, size) for size, offsets in self._free.items() for offset in offsets]
        blocks = sorted([*free, *self._taken.items()])
        assert [offset for offset, _ in blocks] == [0, *(sum(each) for each in blocks[:-1])]
        assert sum(blocks[-1]) == self.size
        for offset, size in blocks:
            assert size >= self.smallest and not size & size - 1 and offset % size == 0
        for offset, size in free:
            assert size == self.size or offset ^ size not in self._free[size], "two buddies are free"
