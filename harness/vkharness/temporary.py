"""Folders of temporary files that a kill leaves only until the next one is made.

Who uses such a folder holds a lock on it. Captures of a program may take gigabytes, so that what nobody holds goes.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "vkharness-tmp-"
_OURS = re.compile(rf"{PREFIX}[a-z0-9_]{{8}}")


@contextmanager
def temporary_folder(place: Path | None = None) -> Iterator[Path]:
    """A new folder that is gone at the end of the context; where temporary files are, or in `place`. A process that was
    forked in the context leaves the folder to the one that made it."""
    place = Path(tempfile.gettempdir()) if place is None else place
    _remove_left(place)
    handle, folder = _new_folder(place)
    process = os.getpid()
    try:
        yield folder
    finally:
        if os.getpid() == process:
            shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def _new_folder(place: Path) -> tuple[int, Path]:
    """A folder, and what holds its lock."""
    while True:
        folder = tempfile.mkdtemp(prefix=PREFIX, dir=place)
        with suppress(FileNotFoundError):  # somebody took it for one that was left, before it was locked
            handle = _locked(folder, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(handle), os.stat(folder)):
                return handle, Path(folder)


def _remove_left(place: Path) -> None:
    """Removes the folders of processes of this user that have ended without doing so."""
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            with suppress(OSError):
                if _OURS.fullmatch(entry.name) and entry.stat(follow_symlinks=False).st_uid == os.geteuid():
                    handle = _locked(entry.path, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(entry.path, ignore_errors=True)
                    os.close(handle)


def _locked(folder: str, how: int) -> int:
    """A folder, open and locked. Raises `OSError`."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, how)
    except OSError:
        os.close(handle)
        raise
    return handle
