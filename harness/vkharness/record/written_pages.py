"""Which parts of mapped memory may have been written since the last look: by the kernel's word where it gives it.

The native core follows the pages of each mapping (`native/dirty_pages.hpp`): a look costs what is written, not what is
mapped. All of a mapping counts as written at each look where the kernel protects no pages (before Linux 6.7, or where
userfaultfd is forbidden, as in many containers), where the pages are not of a kind that it protects (a device's), in
pure Python, and with `VKHARNESS_MAPPED_MEMORY=comparison`.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vkharness.native import core
from vkharness.record import struct_layout as layout
from vkharness.spans import Span

CHOICE = "VKHARNESS_MAPPED_MEMORY"
"""The environment variable that chooses; without it, pages are protected where they can be."""
COMPARISON, PROTECTION = "comparison", "userfaultfd"


class FollowedPages:
    """One range of this process's memory whose writes are followed."""

    def __init__(self, held: list[Span], take: Callable[[], list[Span]], number: int | None = None) -> None:
        self.held = held
        """Bytes of the range outside of which all is zero; of a fresh one, outside of which nobody has looked."""
        self.take = take
        """Gives the ranges written since the last call, in bytes from the start, in order. `written_numbers` is to be
        called before."""
        self.number = number
        """None where all counts as written at each look."""

    def hold(self) -> bool:
        """Whether the kernel still follows the range: nobody has unmapped it meanwhile."""
        return core is not None and self.number is not None and core.pages_hold(self.number)


def follow(address: int, size: int, fresh: bool = False, trusted: bool = True) -> FollowedPages:
    """Follows the writes to a range of memory, as long as the answer lives.

    `fresh` says that nobody has written it before. Of what is not `trusted` all counts as written: others may write it
    where this process's pages do not tell.
    """
    everything = [(0, size)]
    if core is None or not trusted or why_compared() is not None:
        return FollowedPages(everything, lambda: everything)
    number, is_protected, held = core.follow_pages(address, size, fresh)
    if not is_protected:
        core.forget_pages(number)
        return FollowedPages(everything, lambda: everything)
    made = FollowedPages(held, lambda: core.take_pages(number), number)
    weakref.finalize(made, core.forget_pages, number)
    return made


def written_numbers() -> list[int]:
    """Looks. The numbers of the ranges in which something is to be taken, in the order in which they came."""
    return [] if core is None else core.written_pages()


class MappedPages(Protocol):
    """Where mapped memory is read, and who says what is written in it."""

    @property
    def small(self) -> int:
        """Bytes below which a mapping is not followed before it outlives a look."""

    def view(self, memory: int, offset: int, address: int, size: int) -> NDArray[np.uint8]:
        """What is mapped at an address: `size` bytes of a memory object, from `offset` on."""

    def follow(
        self, memory: int, offset: int, view: NDArray[np.uint8], fresh: bool = False, trusted: bool = True
    ) -> FollowedPages:
        """Follows the writes to a view, as long as the answer lives; `fresh`, `trusted`: see `follow`."""

    def written(self) -> list[int]:
        """Looks. The numbers of the views in which something is to be taken."""

    def freed(self, memory: int) -> None:
        """A memory object is gone."""


class OwnPages:
    """Mapped memory of this process, and what is written in it."""

    small = 64 << 10
    """To begin to follow pages costs more than a comparison of these."""

    @staticmethod
    def view(memory: int, offset: int, address: int, size: int) -> NDArray[np.uint8]:
        """What is mapped at an address."""
        return np.frombuffer(layout.memory()[address : address + size], dtype=np.uint8)

    @staticmethod
    def follow(
        memory: int, offset: int, view: NDArray[np.uint8], fresh: bool = False, trusted: bool = True
    ) -> FollowedPages:
        """See `follow`."""
        return follow(view.ctypes.data, len(view), fresh, trusted)

    @staticmethod
    def written() -> list[int]:
        """See `written_numbers`."""
        return written_numbers()

    @staticmethod
    def freed(memory: int) -> None:
        """Nothing: a mapping goes with its memory."""


OWN_PAGES = OwnPages()


def why_compared() -> str | None:
    """Why all mapped memory is compared; None where pages that can be are protected."""
    if os.environ.get(CHOICE, PROTECTION) == COMPARISON:
        return f"{CHOICE} is {COMPARISON}"
    if core is None:
        return "pure Python"
    refused: str | None = core.pages_refused()
    return refused


def in_use() -> str:
    """Names the way by which this process finds writes to mapped memory, and for a comparison the reason."""
    why = why_compared()
    return "written pages (userfaultfd)" if why is None else f"comparison with a copy ({why})"
