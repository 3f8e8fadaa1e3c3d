"""The recorded stream: one `Call` a C call, one `HostWrite` a change that the host made to mapped memory, one
`HostRead` a read of it that the program declared.

Values are in normal form, whatever the caller's style: handles are ids that are never reused (0 is
`VK_NULL_HANDLE`), structs are dictionaries, arrays are lists, byte blobs are `bytes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Call:
    """One C call. `args` maps C parameter names to values; output parameters hold what the call returned."""

    index: int
    name: str
    args: dict[str, Any]
    result: int | None = None
    site: str | None = None
    thread: int = 0

    @property
    def succeeded(self) -> bool:
        """True unless the call returned an error (a negative VkResult); positive results are successes."""
        return self.result is None or self.result >= 0


@dataclass(slots=True)
class HostWrite:
    """Bytes that the host wrote to mapped memory; `offset` is in bytes from the start of the memory object."""

    index: int
    memory: int
    offset: int
    data: bytes
    site: str | None = None
    initial: bool = False
    """What non-coherent memory held when the host first saw it: where a replay starts, and nothing that was written."""


@dataclass(slots=True)
class HostRead:
    """The host reads bytes of mapped memory here, as the program says; in bytes from the start of the memory object."""

    index: int
    memory: int
    offset: int
    size: int
    site: str | None = None


Block = Call | HostWrite | HostRead


def block_name(block: Block) -> str:
    """The C function, or what the host did."""
    return block.name if isinstance(block, Call) else "host write" if isinstance(block, HostWrite) else "host read"
