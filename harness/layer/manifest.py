"""Where Khronos layers are and which versions they have, read from layer manifests without a Vulkan loader."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.device.manifests import (
    cache_folder,
    library_of,
    manifest_files,
    named_places,
    read_manifest,
    search_folders,
)
from harness.findings import UserError

KHRONOS_LAYER = "VK_LAYER_KHRONOS_validation"

OLD, TODAY = "old", "today"
"""Names for the oldest and the newest layer of a machine."""

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
    return (*parts, 0, 0)[0], (*parts, 0, 0)[1], (*parts, 0, 0)[2]


def loader_places(environ: Mapping[str, str]) -> list[Path]:
    """Folders and single manifests that the loader reads for explicit layers: `VK_LAYER_PATH` replaces the standard
    folders, `VK_ADD_LAYER_PATH` goes before them."""
    places = named_places("VK_ADD_LAYER_PATH", environ)
    places += named_places("VK_LAYER_PATH", environ) or search_folders("explicit_layer.d", environ)
    return list(dict.fromkeys(places))


def find_layers(environ: Mapping[str, str] | None = None) -> list[LayerInfo]:
    """The Khronos layers of this machine, one a version, oldest first.

    Looked for in the loader's places and, unless `VK_LAYER_PATH` says where to look, in the cache folder that
    `ci/setup` fills. Of two of one version the first wins; broken manifests are passed over, as the loader does.
    """
    return sorted(_found(environ), key=lambda layer: layer.version)


def find_layer(version: str | None = None, environ: Mapping[str, str] | None = None) -> LayerInfo | None:
    """One of `find_layers`: the one of that version (`1.3.239`), the oldest (`old`), the newest (`today`), or by
    default the first one in the loader's places, which it takes by itself.

    None when there is none. Raises `UserError` for a text that is no version.
    """
    if version is None:
        return next(iter(_found(environ)), None)
    layers = find_layers(environ)
    if version in (OLD, TODAY):
        return layers[0 if version == OLD else -1] if layers else None
    try:
        wanted = parse_version(version)
    except ValueError:
        raise UserError(f"layer {version!r}: neither {OLD!r}, {TODAY!r} nor a version such as 1.3.239") from None
    return next((layer for layer in layers if layer.version == wanted), None)


def _found(environ: Mapping[str, str] | None) -> list[LayerInfo]:
    environ = os.environ if environ is None else environ
    places = loader_places(environ)
    if not environ.get("VK_LAYER_PATH"):
        places.append(cache_folder(environ) / "khronos")
    found: dict[Version, LayerInfo] = {}
    for manifest in manifest_files(places):
        for layer in _layers(manifest):
            info = _layer_info(layer, manifest, environ) if layer.get("name") == KHRONOS_LAYER else None
            if info is not None:
                found.setdefault(info.version, info)
    return list(found.values())


def _layers(manifest: Path) -> Iterator[dict[str, Any]]:
    try:
        document = read_manifest(manifest)
    except (OSError, ValueError):
        return
    several = document.get("layers")
    for layer in several if isinstance(several, list) else [document.get("layer")]:
        if isinstance(layer, dict):
            yield layer


def _layer_info(layer: dict[str, Any], manifest: Path, environ: Mapping[str, str]) -> LayerInfo | None:
    try:
        version = parse_version(str(layer["api_version"]))
        library = library_of(manifest, layer.get("library_path"))
        names = tuple(str(extension["name"]) for extension in layer.get("instance_extensions", []))
    except (KeyError, TypeError, ValueError):
        return None
    return LayerInfo(
        name=str(layer["name"]),
        api_version=version,
        implementation_version=str(layer.get("implementation_version", "")),
        library=_found_library(library, manifest, environ),
        manifest=manifest,
        instance_extensions=names,
    )


def _found_library(library: str, manifest: Path, environ: Mapping[str, str]) -> str:
    """A bare name is looked up roughly as the dynamic linker would, so that people see which file it is."""
    if "/" in library:
        return library
    folders = named_places("LD_LIBRARY_PATH", environ)
    # Beside share/vulkan/explicit_layer.d of the same prefix, then the system's own folders.
    prefix = manifest.parent.parent.parent.parent
    for root in dict.fromkeys((prefix, Path("/usr"), Path("/usr/local"))):
        folders += [root / "lib", root / "lib64", *sorted((root / "lib").glob("*-linux-gnu*"))]
    return next((str(folder / library) for folder in folders if (folder / library).is_file()), library)
