"""How many bytes the compressed parts of a capture may become, in proportion to its size.

A reader that keeps all blocks has as many in memory.
"""

from __future__ import annotations

from pathlib import Path

from vkharness.trace.work_budget import OverBudget

AT_FIRST = 128 << 20
"""Bytes that the compressed parts of any capture may have."""
A_BYTE = 256
"""Bytes of them that each byte of the file adds: as many as lz4 makes of a byte at most, which are zeros."""


class ExpandedRoom:
    """The bytes that may still be expanded of one capture."""

    def __init__(self, path: Path, size: int) -> None:
        """`size`: the bytes of its files."""
        self._path = path
        self._left = AT_FIRST + A_BYTE * size

    def take(self, block: int, size: int, compressed: int) -> None:
        """Takes the bytes that are about to be expanded. Raises OverBudget where there are not as many."""
        self._left -= size
        if self._left < 0:
            raise OverBudget(
                f"{self._path}: block {block}: out of proportion to the size of its stream: {size:,} bytes out of "
                f"{compressed:,}",
                located=True,
            )
