"""GFXReconstruct as a second recorder: its capture layer around a program, and its converter."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from vkharness.device.manifests import cache_folder

FILES = ("libVkLayer_gfxreconstruct.so", "VkLayer_gfxreconstruct.json", "gfxrecon-convert", "gfxrecon-extract")


def capture_folder() -> Path:
    """Where ci/setup unpacked the Debian package; skips the test, saying what is missing, where it did not."""
    folder = cache_folder() / "gfxreconstruct"
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        pytest.skip(f"no {', '.join(missing)} in {folder}: ci/setup unpacks Debian's package gfxreconstruct there")
    return folder


def capture_variables(folder: Path, capture: Path) -> dict[str, str]:
    """Environment that enables the capture layer, writing to `capture`.

    Memory tracking is left to flushes and unmaps: the default one handles page faults, which ends Python.
    """
    return {
        "VK_LAYER_PATH": str(folder),
        "VK_INSTANCE_LAYERS": "VK_LAYER_LUNARG_gfxreconstruct",
        "GFXRECON_CAPTURE_FILE": str(capture),
        "GFXRECON_CAPTURE_FILE_TIMESTAMP": "false",
        "GFXRECON_MEMORY_TRACKING_MODE": "unassisted",
        "GFXRECON_LOG_LEVEL": "error",
    }


def convert(folder: Path, capture: Path) -> Path:
    """The capture as JSON Lines, with its shaders in a folder beside it."""
    converted = capture.with_suffix(".jsonl")
    for command in (["gfxrecon-convert", "--output", str(converted)], ["gfxrecon-extract"]):
        tool = os.fspath(folder / command[0])
        subprocess.run([tool, *command[1:], capture.name], cwd=capture.parent, check=True, capture_output=True)
    return converted
