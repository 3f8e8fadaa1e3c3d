"""The capture layer and the mirror layer: which there are, and the environment that makes a program run under one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from vkharness.device.manifests import Layer, find_layers
from vkharness.findings import UserError
from vkharness.mirror_layer import manifest
from vkharness.mirror_layer.layer_build import NAME as MIRROR

NAME = "VK_LAYER_LUNARG_gfxreconstruct"
KEPT = ("GFXRECON_MEMORY_TRACKING_MODE", "GFXRECON_LOG_LEVEL")
"""Settings of the layer that are the user's if the environment has them."""


def capture_layer(environ: Mapping[str, str] = os.environ) -> Layer:
    """The newest capture layer of this machine. `UserError` when there is none.

    Its manifest may lie in the loader's places or in the cache folder that `ci/setup` fills.
    """
    found = [layer for layer in find_layers(environ=environ) if layer.name == NAME]
    if not found:
        raise UserError(f"no capture layer ({NAME}) on this machine: install GFXReconstruct, or run ci/setup")
    return max(found, key=_version)


def mirror_layer(environ: Mapping[str, str] = os.environ) -> Layer | None:
    """The mirror layer of this installation; None where it was not built of these sources."""
    file = manifest()
    found = () if file is None else find_layers(environ={**environ, "VK_ADD_LAYER_PATH": str(file)})
    return next((layer for layer in found if layer.name == MIRROR), None)


def mirror_environment(layer: Layer, folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` with what makes every process of a program write its stream to `folder`."""
    layers = _joined(MIRROR, environ.get("VK_INSTANCE_LAYERS", ""))
    return _with_layer(layer, {**environ, "VKHARNESS_OUT": str(folder), "VK_INSTANCE_LAYERS": layers})


def _with_layer(layer: Layer, environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` with the place of the layer's manifest."""
    path = "VK_LAYER_PATH" if environ.get("VK_LAYER_PATH") else "VK_ADD_LAYER_PATH"
    return {**environ, path: _joined(str(layer.manifest.parent), environ.get(path, ""))}


def _version(layer: Layer) -> int:
    text = layer.implementation_version
    return int(text) if text.isdecimal() else 0


def capture_environment(
    layer: Layer, file: Path, environ: Mapping[str, str], frames: str = "", page_faults: bool = True
) -> dict[str, str]:
    """`environ` with what makes every process of a program write its calls beside `file`.

    `frames` is a range such as `2-5`; empty for all. With `page_faults` the layer follows writes to mapped memory
    through page faults, which programs that handle such faults themselves (Python, Java, Go) do not survive; without,
    it sees what is flushed or unmapped.
    """
    wanted = {
        "GFXRECON_MEMORY_TRACKING_MODE": "page_guard" if page_faults else "unassisted",
        "GFXRECON_LOG_LEVEL": "error",
        **{name: environ[name] for name in KEPT if name in environ},
        "GFXRECON_CAPTURE_FILE": str(file),
        "GFXRECON_CAPTURE_FILE_TIMESTAMP": "true",
        # A program that crashes leaves whole blocks.
        "GFXRECON_CAPTURE_FILE_FLUSH": "true",
        # Messages of the layer go to a file, apart from the program's output.
        "GFXRECON_LOG_OUTPUT_TO_CONSOLE": "false",
        "GFXRECON_LOG_FILE": str(file.with_name("layer.log")),
        "VK_INSTANCE_LAYERS": _joined(NAME, environ.get("VK_INSTANCE_LAYERS", "")),
    }
    if frames:
        wanted["GFXRECON_CAPTURE_FRAMES"] = frames
    return _with_layer(layer, {**environ, **wanted})


def _joined(first: str, rest: str) -> str:
    return f"{first}{os.pathsep}{rest}" if rest else first
