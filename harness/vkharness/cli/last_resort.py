"""Failures of the `vkharness` command itself: one line, a file with all that is known, and an exit code of its own.
Also output that nobody can read."""

from __future__ import annotations

import errno
import platform
import sys
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

import vkharness
from vkharness.report.printable import printable_lines

MOST_SAID = 200
"""Characters of an error that its line shows."""
_UNWRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF)
DEEPEST = 60
"""Frames of a traceback that a report has, of each end."""


def echo(text: str = "", *, err: bool = False) -> None:
    """Prints lines on stdout or stderr. Characters that a terminal would obey come out as escapes."""
    click.echo(printable_lines(text), err=err)


def tell_of_internal_error(error: BaseException, arguments: Sequence[str]) -> None:
    """Says on stderr, in one line, that this is an error of vkharness, and where the report of it is."""
    said = f"{type(error).__name__}: {error}".partition("\n")[0][:MOST_SAID]
    try:
        where = f"a report is in {_write_report(error, arguments)}"
    except (OSError, MemoryError) as trouble:
        reason = getattr(trouble, "strerror", None) or str(trouble) or "no memory is left"
        where = f"no report could be written ({reason})"
    with suppress(OSError, ValueError):
        echo(f"vkharness: an error of vkharness itself, no verdict ({said}); {where}", err=True)


def _write_report(error: BaseException, arguments: Sequence[str]) -> Path:
    """A new file in the current folder, or in the folder of temporary files where that one takes none."""
    told = "\n".join(
        [
            f"vkharness {vkharness.__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"command: {' '.join(map(ascii, arguments))}",
            "",
            *traceback.format_exception(type(error), error, error.__traceback__),
        ]
    )
    lines = told.splitlines()
    if len(lines) > 4 * DEEPEST:
        lines = [*lines[: 2 * DEEPEST], f"  ... {len(lines) - 4 * DEEPEST} lines ...", *lines[-2 * DEEPEST :]]
    raw = ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")
    try:
        return _new_file(Path.cwd(), raw)
    except OSError:
        return _new_file(Path(tempfile.gettempdir()), raw)


def _new_file(folder: Path, raw: bytes) -> Path:
    """A file under a name that was free: it replaces nothing, follows no link, and is gone if it cannot be whole."""
    handle, name = tempfile.mkstemp(prefix="vkharness-error-", suffix=".txt", dir=folder)
    path = Path(name)
    try:
        with open(handle, "wb") as file:
            file.write(raw)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return path


def output_trouble(error: Exception) -> OSError | None:
    """The error, if it is one of a stream that does not take what is printed; None for any other."""
    if isinstance(error, BrokenPipeError):
        return error
    of_stream = isinstance(error, OSError) and error.filename is None and error.errno in _UNWRITTEN
    return error if of_stream else None  # type: ignore[return-value]


def stdout_trouble() -> OSError | None:
    """Why stdout does not take what was printed; None where it does, or where there is none."""
    try:
        if sys.stdout is not None and not sys.stdout.closed:
            sys.stdout.flush()
    except OSError as trouble:
        return trouble
    return None


def give_up_stdout() -> None:
    """Lets what is still to be written to stdout go nowhere, so that the interpreter does not fail at its end."""
    from vkharness.record.program_runner import send_nowhere

    with suppress(OSError, ValueError, AttributeError):
        send_nowhere(sys.stdout)
