"""Loader manifests: where the Vulkan loader looks for the JSON files of drivers and layers, and what they say.

Reads files only: no loader, driver or layer is opened. Follows the Linux search order of the loader's
`LoaderDriverInterface.md` and `LoaderLayerInterface.md`, with the cache folder that `ci/setup` fills put first.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MANIFEST_LIMIT = 1 << 20
"""Bytes; a larger file is not a manifest."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer as its manifest describes it."""

    name: str
    manifest: Path
    library: str
    api_version: str
    implementation_version: str
    description: str
    implicit: bool
    instance_extensions: tuple[str, ...] = ()
    disable_environment: tuple[tuple[str, str], ...] = ()
    """Variables that keep an implicit layer from loading, with their values."""
    enable_environment: tuple[tuple[str, str], ...] = ()
    """Variables without which an implicit layer does not load, with their values."""


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder that `ci/setup` fills: `$XDG_CACHE_HOME/vkharness`, by default `~/.cache/vkharness`."""
    base = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".cache")
    return Path(base) / "vkharness"


def search_folders(leaf: str, environ: Mapping[str, str] = os.environ) -> list[Path]:
    """The loader's standard folders for `leaf` ('icd.d', 'explicit_layer.d', 'implicit_layer.d'), first one first."""
    home = environ.get("HOME") or os.path.expanduser("~")
    bases = [environ.get("XDG_CONFIG_HOME") or f"{home}/.config"]
    bases += (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)
    bases += ["/usr/local/etc", "/etc"]
    bases += [environ.get("XDG_DATA_HOME") or f"{home}/.local/share"]
    bases += (environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share").split(os.pathsep)
    folders = [Path(base) / "vulkan" / leaf for base in bases if os.path.isabs(base)]
    return list(dict.fromkeys(folders))


def manifest_files(places: list[Path]) -> Iterator[Path]:
    """Every `.json` file of `places`, each a manifest or a folder of manifests; absent places are passed over."""
    for place in places:
        if place.is_dir():
            try:
                yield from sorted(entry for entry in place.iterdir() if entry.suffix == ".json" and entry.is_file())
            except OSError:
                continue
        elif place.is_file():
            yield place


def named_places(variable: str, environ: Mapping[str, str]) -> list[Path]:
    """The manifests and folders that a loader variable such as `VK_DRIVER_FILES` lists."""
    return [Path(entry) for entry in environ.get(variable, "").split(os.pathsep) if entry]


def read_manifest(path: Path) -> dict[str, Any]:
    """The JSON object in `path`. Raises `ValueError` (one line) for anything else, `OSError` when unreadable."""
    with path.open("rb") as file:
        text = file.read(MANIFEST_LIMIT + 1)
    if len(text) > MANIFEST_LIMIT:
        raise ValueError(f"larger than {MANIFEST_LIMIT} bytes")
    try:
        value = json.loads(text)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def library_of(manifest: Path, value: object) -> str:
    """A manifest's `library_path` as the loader takes it: relative to the manifest when it has a slash, else bare."""
    if not isinstance(value, str) or not value:
        raise ValueError("no library_path")
    if "/" not in value:
        return value
    return os.path.normpath(manifest.parent / value)


def keep_loaded(library: str) -> None:
    """Keeps a driver's or layer's library in this process after the loader has let go of it.

    Some, SwiftShader and Chromium's build of the Khronos layer among them, lose a thread-specific key each time that
    they are unloaded; a process has 1024, and the next load without one aborts it. What cannot be loaded is left to
    the loader, which says so.
    """
    if library:
        with contextlib.suppress(OSError):
            ctypes.CDLL(library, mode=os.RTLD_LOCAL | os.RTLD_NOW)


def find_layers(
    problems: list[str] | None = None,
    environ: Mapping[str, str] = os.environ,
    cached: Sequence[str] = ("khronos", "gfxreconstruct"),
) -> list[Layer]:
    """Layers by manifest, in the loader's order (the first of a name is the one it takes).

    Those in the `cached` folders of the cache folder come last. What could not be read is appended to `problems`, one
    line each.
    """
    explicit = named_places("VK_ADD_LAYER_PATH", environ)
    explicit += named_places("VK_LAYER_PATH", environ) or search_folders("explicit_layer.d", environ)
    explicit += [cache_folder(environ) / name for name in cached]
    found: dict[tuple[str, Path], Layer] = {}
    for places, implicit in ((explicit, False), (search_folders("implicit_layer.d", environ), True)):
        for path in manifest_files(places):
            try:
                for layer in layers_of(path, implicit):
                    found.setdefault((layer.name, layer.manifest), layer)
            except (OSError, ValueError) as error:
                if problems is not None:
                    problems.append(f"{path}: {error}")
    return list(found.values())


def layers_of(path: Path, implicit: bool) -> Iterator[Layer]:
    """The layers that a manifest describes. Raises `ValueError` (one line) and `OSError` as `read_manifest`."""
    value = read_manifest(path)
    entries = value.get("layers", [value.get("layer")])
    if not isinstance(entries, list):
        raise ValueError("no layer object")
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise ValueError("no layer object")
        yield Layer(
            name=entry["name"],
            manifest=path,
            library="" if "component_layers" in entry else library_of(path, entry.get("library_path")),
            api_version=str(entry.get("api_version", "")),
            implementation_version=str(entry.get("implementation_version", "")),
            description=str(entry.get("description", "")),
            implicit=implicit,
            instance_extensions=_names(entry.get("instance_extensions")),
            disable_environment=_variables(entry.get("disable_environment")),
            enable_environment=_variables(entry.get("enable_environment")),
        )


def _variables(values: object) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(value)) for name, value in values.items()) if isinstance(values, dict) else ()


def when_it_loads(layer: Layer, environ: Mapping[str, str] = os.environ) -> str:
    """When the loader takes a layer into an instance, in words: by which variables, and whether the environment has
    them. As the loader does, an enabling variable is asked for its value, a disabling one only for being there."""
    if not layer.implicit:
        named = layer.name in environ.get("VK_INSTANCE_LAYERS", "").split(os.pathsep)
        return "here: VK_INSTANCE_LAYERS names it" if named else "when asked for"
    without = [name for name, _ in layer.disable_environment]
    if kept_out := [name for name in without if name in environ]:
        return f"not here: {kept_out[0]} is set"
    wanted = [f"{name}={value}" for name, value in layer.enable_environment]
    if not wanted:
        return f"by itself, without {' or '.join(without)}" if without else "by itself"
    is_wanted = all(environ.get(name) == value for name, value in layer.enable_environment)
    return f"{'here' if is_wanted else 'only'} with {' and '.join(wanted)}"


def _names(extensions: object) -> tuple[str, ...]:
    several = extensions if isinstance(extensions, list) else []
    return tuple(str(each.get("name")) for each in several if isinstance(each, dict))
