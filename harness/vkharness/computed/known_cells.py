"""Bytes of buffers and texel blocks of images, each known or unknown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Cells:
    """Units of memory: bytes of a memory object, with shape (bytes,), or texel blocks of a subresource, with shape
    (depth, height, width, bytes). `known` has one flag for each unit: shape (bytes,) or (depth, height, width)."""

    data: Bytes
    known: Mask

    @classmethod
    def of_memory(cls, size: int) -> Cells:
        """Unknown bytes."""
        return cls(np.zeros(size, np.uint8), np.zeros(size, np.bool_))

    @classmethod
    def of_texels(cls, blocks: tuple[int, int, int], block_bytes: int) -> Cells:
        """Unknown texel blocks; `blocks` are width, height and depth."""
        shape = (blocks[2], blocks[1], blocks[0])
        return cls(np.zeros((*shape, block_bytes), np.uint8), np.zeros(shape, np.bool_))

    def grow(self, size: int) -> None:
        """Bytes of memory up to `size`; new ones are unknown."""
        more = size - len(self.data)
        if more > 0:
            self.data = np.pad(self.data, (0, more))
            self.known = np.pad(self.known, (0, more))

    def forget(self, begin: int, end: int) -> None:
        """Units [begin, end), in order, are unknown from now on."""
        self.known.reshape(-1)[begin:end] = False

    def put(self, offset: int, data: Bytes, known: Mask | bool = True) -> None:
        """Bytes of memory at `offset`; what lies outside is dropped."""
        end = min(offset + len(data), len(self.data))
        if offset < end:
            self.data[offset:end] = data[: end - offset]
            self.known[offset:end] = known if isinstance(known, bool) else known[: end - offset]

    def take(self, offset: int, size: int) -> Cells:
        """A copy of bytes [offset, offset + size) of memory; those outside are unknown."""
        found = Cells.of_memory(size)
        inside = self.data[offset : offset + size]
        found.put(0, inside, self.known[offset : offset + size])
        return found
