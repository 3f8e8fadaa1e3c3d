"""Files that appear whole or not at all.

What is being written is beside its target, under a name that nobody can foresee, and takes the target's place when it
is whole: a full disk, a kill or an error leaves the target as it was. Who writes holds a lock on it, so that the next
one who writes the same target can tell what a killed process has left, and removes that.
"""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from vkharness.findings import UnwrittenError


def write_whole(path: Path, text: str) -> None:
    """Writes `text` to `path`: a good file there is never half overwritten.

    What is no plain file (a pipe, a terminal) is written to directly. Raises `UnwrittenError`.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
        else:
            with replacing(Path(os.path.realpath(path))) as part:
                part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UnwrittenError(f"{path}: cannot be written: {error.strerror}") from None


@contextmanager
def replacing(target: Path, *, cleans: bool = True) -> Iterator[Path]:
    """A file to write, which takes the place of the target at the end of the context; an error in it drops the file.

    Then what others have left of this target goes, which takes a look at each name of the folder. `cleans` is False
    where many files are written to one folder."""
    handle, part = open_part(target)
    try:
        yield part
        os.replace(part, target)
        if cleans:
            remove_left(target.parent, target.name)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    finally:
        os.close(handle)


def open_part(target: Path) -> tuple[int, Path]:
    """A new empty file beside the target, open for writing, and its path. It has the mode that the target has or would
    get. As long as it is open nobody takes it for one that was left. Raises `OSError`."""
    while True:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f"{target.name}.partial-{os.getpid()}-")
        with suppress(OSError):  # a file system without locks: then nobody removes anything
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:  # else somebody took it for one that was left, before it was locked
            break
        os.close(handle)
    os.fchmod(handle, target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
    return handle, Path(name)


def remove_left(folder: Path, name: str = "", keep: int = 0) -> None:
    """Removes what killed processes have left of the file `name` in a folder, of all files there without a name; the
    newest `keep` stay. What cannot be removed stays."""
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            part = _PART.fullmatch(entry.name)
            if part is not None and name in ("", part[1]):
                found.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.path))
    for _, path in sorted(found, reverse=True)[keep:]:
        with suppress(OSError):
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)
            finally:
                os.close(handle)


def part_of(target: Path, process: int) -> Path | None:
    """Returns the partial copy of a file that a process left when it was killed; None where it left none."""
    named = f"{target.name}.partial-{process}-"
    with suppress(OSError):
        return next((target.parent / each for each in os.listdir(target.parent) if each.startswith(named)), None)
    return None


_PART = re.compile(r"(.+)\.partial-\d+-\w{8}", re.DOTALL)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
