"""Where the Khronos layer is and which version it has, read from layer manifests without a Vulkan loader.

The folders and their order are those of the loader's interface document ("Linux explicit layer discovery"):
`VK_LAYER_PATH` replaces the standard folders, `VK_ADD_LAYER_PATH` goes before them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KHRONOS_LAYER = "VK_LAYER_KHRONOS_validation"

LARGEST_MANIFEST = 4 << 20
"""Bytes. Today's manifest of the Khronos layer has about 200 kB; anything past this is not a manifest."""

Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class LayerInfo:
    """One layer as its manifest describes it."""

    name: str
    api_version: Version
    """Header version that the layer was built against; of the Khronos layer it is the release (1.3.239)."""
    implementation_version: str
    library: str
    """Absolute path when the library was found, else the name that the dynamic linker is to look up."""
    manifest: Path
    instance_extensions: tuple[str, ...] = ()

    @property
    def version(self) -> Version:
        """The version by which expected differences are selected."""
        return self.api_version

    @property
    def version_text(self) -> str:
        """The version as people write it: `1.3.239`."""
        return ".".join(map(str, self.api_version))


def parse_version(text: str) -> Version:
    """`"1.3.239"` as a tuple; missing parts are 0. Raises `ValueError` for anything else."""
    parts = [int(part) for part in text.split(".")]
    if not 1 <= len(parts) <= 3:
        raise ValueError(f"not a version: {text!r}")
    return tuple((*parts, 0, 0)[:3])  # type: ignore[return-value]


def explicit_layer_folders(environ: Mapping[str, str]) -> list[Path]:
    """Folders (or single manifests) that the loader reads for explicit layers, in its order, without repeats."""

    def split(text: str) -> list[Path]:
        return [Path(part) for part in text.split(os.pathsep) if part]

    if override := environ.get("VK_LAYER_PATH"):
        return list(dict.fromkeys(split(override)))
    home = environ.get("HOME", "")
    bases = split(environ.get("XDG_CONFIG_HOME") or (home and f"{home}/.config"))
    bases += split(environ.get("XDG_CONFIG_DIRS") or "/etc/xdg")
    bases += split("/usr/local/etc" + os.pathsep + "/etc")
    bases += split(environ.get("XDG_DATA_HOME") or (home and f"{home}/.local/share"))
    bases += split(environ.get("XDG_DATA_DIRS") or "/usr/local/share" + os.pathsep + "/usr/share")
    folders = split(environ.get("VK_ADD_LAYER_PATH", ""))
    folders += [base / "vulkan" / "explicit_layer.d" for base in bases]
    return list(dict.fromkeys(folders))


def find_layer(name: str = KHRONOS_LAYER, environ: Mapping[str, str] | None = None) -> LayerInfo | None:
    """The first layer of that name which the loader would see, None when there is none. Broken manifests are passed
    over, as the loader does."""
    environ = os.environ if environ is None else environ
    for folder in explicit_layer_folders(environ):
        for manifest in _manifests(folder):
            for layer in _layers(manifest):
                info = _layer_info(layer, manifest, environ) if layer.get("name") == name else None
                if info is not None:
                    return info
    return None


def _manifests(folder: Path) -> list[Path]:
    if folder.is_file():
        return [folder]
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except OSError:
        return []


def _layers(manifest: Path) -> Iterator[dict[str, Any]]:
    try:
        if manifest.stat().st_size > LARGEST_MANIFEST:
            return
        document = json.loads(manifest.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return
    if not isinstance(document, dict):
        return
    several = document.get("layers")
    for layer in several if isinstance(several, list) else [document.get("layer")]:
        if isinstance(layer, dict):
            yield layer


def _layer_info(layer: dict[str, Any], manifest: Path, environ: Mapping[str, str]) -> LayerInfo | None:
    library = layer.get("library_path")
    extensions = layer.get("instance_extensions", [])
    try:
        version = parse_version(str(layer["api_version"]))
        names = tuple(str(extension["name"]) for extension in extensions)
    except (KeyError, TypeError, ValueError):
        return None
    if not isinstance(library, str):
        return None
    return LayerInfo(
        name=str(layer["name"]),
        api_version=version,
        implementation_version=str(layer.get("implementation_version", "")),
        library=_library(library, manifest, environ),
        manifest=manifest,
        instance_extensions=names,
    )


def _library(path: str, manifest: Path, environ: Mapping[str, str]) -> str:
    """A path with a slash is relative to the manifest; a bare name is looked up as the dynamic linker would."""
    if "/" in path:
        return str((manifest.parent / path).resolve())
    folders = [Path(part) for part in environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if part]
    # Beside share/vulkan/explicit_layer.d of the same prefix, then the system's own folders.
    prefix = manifest.parent.parent.parent.parent
    for root in dict.fromkeys((prefix, Path("/usr"), Path("/usr/local"))):
        folders += [root / "lib", root / "lib64", *sorted((root / "lib").glob("*-linux-gnu*"))]
    return next((str(folder / path) for folder in folders if (folder / path).is_file()), path)
