"""A capture of RenderDoc as it is (`.rdc`): only RenderDoc knows its chunks, so that its own tool converts it.

The tool is a program of its own, and is trusted as drivers are.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from vkharness.findings import UserError
from vkharness.temporary import temporary_folder
from vkharness.trace.calls import Block
from vkharness.trace.renderdoc.renderdoc_reader import RenderDocReader
from vkharness.trace.work_budget import begin_file

TOOL = "renderdoccmd"
SECONDS = 600
"""How long the tool may take, by the clock."""
MOST_BYTES = 1 << 30
"""Bytes of the XML."""
_MOST_SAID = 120
_MOST_READ = 1 << 12
"""Bytes of the end of what it says."""


def read_rdc(path: Path, notes: list[str]) -> Iterator[Block]:
    """The blocks of a `.rdc` file. Raises UserError where the tool is not there, or does not read it."""
    if shutil.which(TOOL) is None:
        raise UserError(
            f"{path}: a capture of RenderDoc, and {TOOL}, which reads it, is not installed: where it is, run "
            f"`{TOOL} convert -f {path.name} -c zip.xml -o {path.stem}.zip.xml`, and give {path.stem}.zip.xml"
        )
    with temporary_folder() as folder:
        made = folder / "capture.zip.xml"
        command = [TOOL, "convert", "-f", str(path.resolve()), "-i", "rdc", "-c", "zip.xml", "-o", str(made)]
        said = folder / "said"
        try:
            code = _ended(command, said)
        except subprocess.TimeoutExpired:
            raise UserError(f"{path}: {TOOL} gave no answer in {SECONDS} s") from None
        except OSError as error:
            raise UserError(f"{path}: {TOOL} cannot be run: {error.strerror or error}") from None
        if code or not made.is_file():
            told = next((line for line in reversed(_last_lines(said)) if line.strip()), f"exit code {code}")
            raise UserError(f"{path}: {TOOL} cannot convert it: {told.strip()[:_MOST_SAID]}")
        if made.stat().st_size > MOST_BYTES:
            raise UserError(f"{path}: more than {MOST_BYTES >> 20} MiB as XML: not read")
        begin_file(made.stat().st_size)
        yield from RenderDocReader(made, notes, path).read()


def _ended(command: list[str], said: Path) -> int:
    """The exit code of a program that writes what it says into a file. When it takes too long, or this process is
    interrupted, it is killed with all that it began. Raises TimeoutExpired and OSError."""
    with said.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    try:
        return process.wait(SECONDS)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def _last_lines(said: Path) -> list[str]:
    """Of what a program said, which may be much."""
    with said.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _MOST_READ))
        return file.read().decode("utf-8", "replace").split("\n")
