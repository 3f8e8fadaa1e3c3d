"""The file behind a descriptor through which a payload is exported or imported: the same in every process.

Drivers give out memory files, DMA buffers, anonymous files and device files. Each memory file and each DMA buffer has
an inode of its own. Anonymous files share one, and so do all that are opened of one device: these identify nothing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import Any

from vkharness.spec.command_classes import EXPORTS, IMPORTS
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import PAYLOAD, Call
from vkharness.trace.shared_payloads import memory_import

DMA_BUFFER = "/dmabuf"


def exports(name: str) -> bool:
    """Whether a command gives out a file descriptor."""
    return main_name(name) in EXPORTS and "Fd" in name


def imports(name: str) -> bool:
    """Whether a command may take a file descriptor over."""
    return name == "vkAllocateMemory" or (main_name(name) in IMPORTS and "Fd" in name)


def own_file(fd: int) -> dict[str, str]:
    """Our key for the file behind a descriptor of this process."""
    try:
        found = os.fstat(fd)
        plain = stat.S_ISREG(found.st_mode) or os.readlink(f"/proc/self/fd/{fd}").startswith(DMA_BUFFER)
    except (OSError, OverflowError):
        return {}
    return {PAYLOAD: f"{found.st_dev}:{found.st_ino}"} if plain else {}


FileKey = Callable[[int], dict[str, str]]


def exported_file(args: dict[str, Any], key: FileKey = own_file) -> dict[str, str]:
    """Our key for the arguments of an export that has succeeded; `key` is that of a descriptor."""
    return key(args["pFd"]) if args["pFd"] is not None else {}


def imported_file(name: str, args: dict[str, Any], key: FileKey = own_file) -> dict[str, str]:
    """Our key for the arguments of an import that is about to be made. Afterwards the descriptor is the driver's."""
    if name == "vkAllocateMemory":
        info = args["pAllocateInfo"]
        given = memory_import(Call(0, name, args)) if info and info["pNext"] is not None else None
        return {} if given is None or given.fd is None else key(given.fd)
    info = args[IMPORTS[main_name(name)]]
    return key(info["fd"]) if info else {}
