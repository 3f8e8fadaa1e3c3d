"""The memory of this process, in bytes, as Linux tells it."""

from __future__ import annotations

import resource
from pathlib import Path


def address_space_bytes() -> int:
    """Bytes of this process's address space, used or not, which RLIMIT_AS limits."""
    return _pages(0)


def resident_bytes() -> int:
    """Bytes of this process's memory that are in RAM now."""
    return _pages(1)


def _pages(place: int) -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[place]) * resource.getpagesize()
