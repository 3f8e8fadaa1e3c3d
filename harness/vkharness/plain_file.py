"""Files of the user's that are read: plain ones only. A pipe would block before anybody could say so, and a device may
have no end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_plain(path: Path) -> BinaryIO:
    """The file, opened for reading. Raises `OSError`, also of what is no plain file."""
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115 (returned)
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise OSError(errno.EINVAL, "it is no plain file: save it to one first")


def read_plain(path: Path) -> str:
    """The text of a file in UTF-8. Raises `OSError`, and `UnicodeDecodeError`."""
    with open_plain(path) as file:
        return file.read().decode("utf-8")
