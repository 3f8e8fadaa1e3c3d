"""Files that appear whole or not at all.

What is being written is beside its target, under a name that nobody can foresee, and takes the target's place when it
is whole: a full disk, a kill or an error leaves the target as it was.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.findings import UserError


def write_whole(path: Path, text: str) -> None:
    """Writes `text` to `path`: a good file there is never half overwritten.

    What is no plain file (a pipe, a terminal) is written to directly. Raises `UserError` when it cannot be written.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
        else:
            with replacing(Path(os.path.realpath(path))) as part:
                part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A file to write, which takes the place of the target at the end of the context; an error in it drops the file."""
    handle, part = open_part(target)
    os.close(handle)
    try:
        yield part
        os.replace(part, target)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def open_part(target: Path) -> tuple[int, Path]:
    """A new empty file beside the target, open for writing, and its path. It has the mode that the target has or would
    get. Raises `OSError`."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f"{target.name}.partial-{os.getpid()}-")
    os.fchmod(handle, target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
    return handle, Path(name)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
