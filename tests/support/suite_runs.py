"""Runs of the suite in a folder of its own, as a user starts them: `python -m pytest` in a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FILE = "".join(["scena", "rio_copies.py"])
"""Not in one piece: `-k` with the whole word selects the suite and nothing else."""

CLAIM = '''"""Claims of a test."""

from vkharness.suite import Rig, read_after_write, scenario


@scenario(without={"fill before copy": [read_after_write("vkCmdCopyBuffer", "vkCmdFillBuffer")]})
def scenario_copy(rig: Rig) -> None:
    """A copy that reads what a fill wrote needs a memory dependency."""
    a, b = rig.buffer(), rig.buffer()
    with rig.submission() as commands:
        commands.fill(a, 0x11223344)
        commands.barrier("fill before copy", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")
        commands.copy(a, b)
'''


class Ran(NamedTuple):
    """How a run ended, and what it printed."""

    code: int
    output: str


def suite(folder: Path, *arguments: object, text: str = CLAIM, **variables: str) -> Ran:
    """Runs the claims of `text` in `folder`. `variables` are set in the environment."""
    (folder / FILE).write_text(text)
    (folder / "pytest.ini").touch()
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *map(str, arguments), FILE]
    environ = {**os.environ, "COLUMNS": "180", **variables}
    ran = subprocess.run(
        command, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return Ran(ran.returncode, ran.stdout)


def manifest(path: Path, library: str = "/nonexistent/libvk_mine.so") -> Path:
    """Writes a driver's manifest."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps({"file_format_version": "1.0.0", "ICD": {"library_path": library, "api_version": "1.3.0"}})
    )
    return path


def layer_manifest(path: Path, of: Path, **changed: str) -> Path:
    """Writes the manifest of a layer as `of` has it, with some members changed and its library by its whole path."""
    value = json.loads(of.read_text())
    path.parent.mkdir(parents=True, exist_ok=True)
    for layer in value.get("layers", [value.get("layer")]):
        if "/" in layer["library_path"]:
            layer["library_path"] = str((of.parent / layer["library_path"]).resolve())
        layer.update(changed)
    path.write_text(json.dumps(value))
    return path
