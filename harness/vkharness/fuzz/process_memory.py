"""The memory of this process, in bytes, as Linux tells it."""

from __future__ import annotations

import resource
from contextlib import suppress
from pathlib import Path


def address_space_bytes() -> int:
    """Bytes of this process's address space, used or not, which RLIMIT_AS limits."""
    return _pages(0)


def resident_bytes() -> int:
    """Bytes of this process's memory that are in RAM now."""
    return _pages(1)


def reset_peak() -> None:
    """The peak is what is in RAM now. Systems that cannot do so (no `clear_refs`) keep the peak of the process."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_bytes() -> int:
    """The most bytes that were in RAM at once since the last `reset_peak`."""
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _pages(place: int) -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[place]) * resource.getpagesize()
