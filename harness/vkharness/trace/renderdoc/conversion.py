"""A capture of RenderDoc as it is (`.rdc`): only RenderDoc knows its chunks, so that its own tool converts it.

The tool is a program of its own, and is trusted as drivers are.
"""

from __future__ import annotations

import shutil
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
        try:
            ended = subprocess.run(command, capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL, check=False)
        except subprocess.TimeoutExpired:
            raise UserError(f"{path}: {TOOL} gave no answer in {SECONDS} s") from None
        except OSError as error:
            raise UserError(f"{path}: {TOOL} cannot be run: {error.strerror or error}") from None
        if not made.is_file():
            said = (ended.stdout + ended.stderr).decode("utf-8", "replace").split("\n")
            told = next((line for line in reversed(said) if line.strip()), f"exit code {ended.returncode}")
            raise UserError(f"{path}: {TOOL} cannot convert it: {told.strip()[:_MOST_SAID]}")
        if made.stat().st_size > MOST_BYTES:
            raise UserError(f"{path}: more than {MOST_BYTES >> 20} MiB as XML: not read")
        begin_file(made.stat().st_size)
        yield from RenderDocReader(made, notes, path).read()
