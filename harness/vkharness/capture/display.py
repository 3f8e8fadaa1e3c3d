"""A display for programs that open windows on a machine without one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from vkharness.device.parent_death import start_that_dies
from vkharness.findings import UserError

AUTO, XVFB, NONE = "auto", "xvfb", "none"
CHOICES = (AUTO, XVFB, NONE)
SCREEN = "1280x1024x24"
SHOWS = ("DISPLAY", "WAYLAND_DISPLAY")


@contextmanager
def display(choice: str, environ: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The environment of a program with the chosen display, which lives as long as the context.

    `auto`: the display that there is; else Xvfb, an X server that shows nothing, if it is installed. `xvfb`: Xvfb.
    `none`: no display, whatever there is. `UserError` when Xvfb is asked for and does not start.
    """
    if choice == NONE:
        yield {name: value for name, value in environ.items() if name not in SHOWS}
        return
    server = shutil.which("Xvfb")
    if choice == AUTO and (server is None or any(environ.get(name) for name in SHOWS)):
        yield dict(environ)
        return
    if server is None:
        raise UserError("--display xvfb needs Xvfb, which is not installed (Debian: xvfb)")
    with _xvfb(server) as number:
        yield {**{name: value for name, value in environ.items() if name not in SHOWS}, "DISPLAY": f":{number}"}


@contextmanager
def _xvfb(server: str) -> Iterator[str]:
    """A server on a display number that is free; it is ended with the context."""
    reader, writer = os.pipe()
    command = [server, "-displayfd", str(writer), "-screen", "0", SCREEN, "-nolisten", "tcp", "-noreset"]
    # In a session of its own, so that an interrupt from the terminal ends the program and not its display.
    nowhere = subprocess.DEVNULL
    process = start_that_dies(command, keep=[writer], stdout=nowhere, stderr=nowhere, start_new_session=True)
    os.close(writer)
    try:
        with os.fdopen(reader) as told:
            number = told.readline().strip()
        if not number:
            raise UserError("Xvfb ended before it had a display")
        yield number
    finally:
        process.terminate()
        process.wait()
