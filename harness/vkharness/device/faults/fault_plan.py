"""Which call of a driver is to fail, and how; kept in a file that the fault driver reads in every process."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from vkharness.spec.enums import VkResult

FAULT = "VKHARNESS_FAULT"
"""Environment variable: the fault of each process, as `Fault` is written."""
FAULT_FILE = "VKHARNESS_FAULT_FILE"
"""Environment variable: the file of a `FaultPlan`, in place of the other variable."""


@dataclass(frozen=True, slots=True)
class FaultKind:
    """A fault of a call in place of its work: `action` is a value of `enum action` in driver.c, `result` a VkResult."""

    action: str
    result: int = 0
    told: str = ""
    """The reason that is given for a process that does not answer then (`Died.reason`)."""


KINDS = {
    "out-of-host-memory": FaultKind("FAIL", VkResult.ERROR_OUT_OF_HOST_MEMORY),
    "out-of-device-memory": FaultKind("FAIL", VkResult.ERROR_OUT_OF_DEVICE_MEMORY),
    "initialization-failed": FaultKind("FAIL", VkResult.ERROR_INITIALIZATION_FAILED),
    "device-lost": FaultKind("FAIL", VkResult.ERROR_DEVICE_LOST),
    "hang": FaultKind("HANG", told="gave no answer in time"),
    "abort": FaultKind("ABORT", told="killed by SIGABRT"),
    "crash": FaultKind("CRASH", told="killed by SIGSEGV"),
    "leave": FaultKind("LEAVE", told="exited with 3"),
}
"""The kinds of fault by name. The calls after a lost device are lost, too, where the specification lets them be."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault: its kind, the number of the call at which it strikes, from 1, and the command, empty for any one."""

    kind: str
    at: int
    command: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.at}" + (f":{self.command}" if self.command else "")


class FaultPlan:
    """The file of `VKHARNESS_FAULT_FILE`, `struct plan` of driver.c. A fault strikes once, in whichever process comes
    to its call first."""

    _NUMBER = struct.Struct("=I")
    _CALLS = struct.Struct("=Q")
    _FAULT, _STRUCK, _SIZE = 16, 128, 256

    def __init__(self, path: Path) -> None:
        """Begins an empty plan in a file."""
        self.path = path
        path.write_bytes(bytes(self._SIZE))
        self._file = path.open("r+b")
        self._shared = mmap.mmap(self._file.fileno(), self._SIZE)
        self._number = 0

    def plan(self, fault: Fault | None) -> None:
        """Puts this fault in place of the last one; None for no more. No process may be at work meanwhile."""
        self._number += 1
        text = str(fault or "").encode()
        self._shared[8 : self._SIZE] = bytes(8) + text.ljust(self._SIZE - self._FAULT, b"\0")
        self._shared[:4] = self._NUMBER.pack(self._number)

    @property
    def calls(self) -> int:
        """The number of calls so far that could have had the fault."""
        (count,) = self._CALLS.unpack(self._shared[8:16])
        return int(count)

    @property
    def struck(self) -> str:
        """The command in which the fault has struck; empty before."""
        return self._shared[self._STRUCK : self._SIZE].partition(b"\0")[0].decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._shared.close()
        self._file.close()
