"""Resources that a run has left behind: processes, files, file descriptors, threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple


class Held(NamedTuple):
    """File descriptors, threads and temporary files of this process."""

    descriptors: frozenset[str]
    """Numbers with what they lead to."""
    threads: int
    files: frozenset[str]
    """In the folder for temporary files."""

    @classmethod
    def now(cls, folder: Path) -> Held:
        """Lists the resources of this moment; `folder` is that for temporary files."""
        descriptors = frozenset(f"{number}: {_target(number)}" for number in os.listdir("/proc/self/fd"))
        files = frozenset(str(path.relative_to(folder)) for path in folder.rglob("*"))
        return cls(frozenset(each for each in descriptors if "/proc/" not in each), threading.active_count(), files)

    def beyond(self, before: Held) -> list[str]:
        """Gives a line for each resource that was not held before, and one for the number of new threads."""
        found = [f"descriptor {each} is left" for each in sorted(self.descriptors - before.descriptors)]
        found += [f"file {each} is left" for each in sorted(self.files - before.files)]
        if self.threads > before.threads:
            found.append(f"{self.threads - before.threads} threads are left")
        return found


def _target(number: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        return "/proc/ of the listing itself"


def processes_with(variable: str, value: str, apart_from: Collection[int]) -> list[int]:
    """Other processes whose environment began with this variable, zombies among them; but not those given."""
    wanted, found = f"{variable}={value}".encode(), []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) not in {os.getpid(), *apart_from}:
            try:
                parts = Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if wanted in parts:
                found.append(int(entry))
    return found
