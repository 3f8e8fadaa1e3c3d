"""Where Khronos layers are and which versions they have, read from layer manifests without a Vulkan loader."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vkharness.device import manifests
from vkharness.findings import UserError

KHRONOS_LAYER = "VK_LAYER_KHRONOS_validation"

OLD, TODAY = "old", "today"
"""Names for the oldest and the newest layer of a machine."""
AUTO, OFF = "auto", "off"
"""Words for all layers of a machine, and for none."""

Version = tuple[int, int, int]
KNOWN_SINCE: dict[str, Version] = {"VK_EXT_descriptor_buffer": (1, 3, 235), "VK_EXT_shader_object": (1, 3, 246)}
"""Extensions with objects and commands of their own, with the version of Vulkan's header that has them first: an older
layer hands its own handles to the driver, which crashes."""


@dataclass(frozen=True, slots=True)
class LayerInfo:
    """One layer as its manifest describes it."""

    name: str
    version: Version
    """Header version that the layer was built against; of the Khronos layer it is the release (1.3.239)."""
    library: str
    """Absolute path when the library was found, else the name that the dynamic linker is to look up."""
    manifest: Path
    instance_extensions: tuple[str, ...] = ()
    silenced: tuple[str, ...] = ()
    """Identifiers of messages that it is to keep to itself: a layer that is broken on purpose."""

    @property
    def version_text(self) -> str:
        """The version as people write it: `1.3.239`."""
        return ".".join(map(str, self.version))

    def knows(self, extensions: Iterable[str]) -> bool:
        """Whether calls of these extensions can be made through it."""
        return all(KNOWN_SINCE.get(each, self.version) <= self.version for each in extensions)


def parse_version(text: str) -> Version:
    """`"1.3.239"` as a tuple; missing parts are 0. Raises `ValueError` for anything else."""
    parts = [int(part) for part in text.split(".")]
    if not 1 <= len(parts) <= 3:
        raise ValueError(f"not a version: {text!r}")
    return (*parts, 0, 0)[0], (*parts, 0, 0)[1], (*parts, 0, 0)[2]


def find_layers(environ: Mapping[str, str] | None = None) -> list[LayerInfo]:
    """The Khronos layers of this machine, one a version, oldest first.

    Looked for in the loader's places and, unless `VK_LAYER_PATH` says where to look, in the cache folder that
    `ci/setup` fills. Of two of one version the first wins; broken manifests are passed over, as the loader does.
    """
    return sorted(_found(environ), key=lambda layer: layer.version)


def find_layer(version: str | None = None, environ: Mapping[str, str] | None = None) -> LayerInfo | None:
    """One of `find_layers`: the one of that version (`1.3.239`), the oldest (`old`), the newest (`today`), the one of
    that manifest or folder of manifests, or by default the first one in the loader's places, which it takes by itself.

    None when there is none. Raises `UserError` for a text that is no version, and for a path without a Khronos layer.
    """
    if version is None:
        return next(iter(_found(environ)), None)
    if "/" in version or version.endswith(".json"):
        return _layer_at(Path(version), environ)
    layers = find_layers(environ)
    if version in (OLD, TODAY):
        return layers[0 if version == OLD else -1] if layers else None
    try:
        wanted = parse_version(version)
    except ValueError:
        raise UserError(f"layer {version!r}: neither {OLD!r}, {TODAY!r} nor a version such as 1.3.239") from None
    return next((layer for layer in layers if layer.version == wanted), None)


def chosen_layers(*choices: str, environ: Mapping[str, str] | None = None) -> list[LayerInfo]:
    """The layers to ask: for `auto` every version on this machine, for `off` none, else as `find_layer` takes it.

    Raises `UserError` for one that is not there, and for two of one version, which would be one column of the table.
    """
    chosen: dict[str, LayerInfo] = {}
    for choice in choices:
        several = [] if choice == OFF else find_layers(environ) if choice == AUTO else [_named(choice, environ)]
        for layer in several:
            other = chosen.setdefault(layer.version_text, layer)
            if other.manifest != layer.manifest:
                raise UserError(
                    f"two layers of version {layer.version_text}: {other.manifest} and {layer.manifest}; ask one a run"
                )
    return list(chosen.values())


def contradictions(layers: Sequence[LayerInfo], environ: Mapping[str, str] | None = None) -> list[str]:
    """A line for each layer that is asked although `VK_LAYER_PATH` says where to look, and not there."""
    environ = os.environ if environ is None else environ
    places = manifests.manifest_files(manifests.named_places("VK_LAYER_PATH", environ))
    listed = {os.path.realpath(path) for path in places}
    return [
        f"layer {layer.version_text} is asked from {layer.manifest}, which VK_LAYER_PATH does not list"
        for layer in layers
        if environ.get("VK_LAYER_PATH") and os.path.realpath(layer.manifest) not in listed
    ]


def _named(choice: str, environ: Mapping[str, str] | None) -> LayerInfo:
    found = find_layer(choice, environ)
    if found is None:
        known = ", ".join(layer.version_text for layer in find_layers(environ)) or "none"
        path = (os.environ if environ is None else environ).get("VK_LAYER_PATH")
        where = f"in VK_LAYER_PATH={path}" if path else "on this machine"
        raise UserError(f"no Khronos layer {choice} {where} (found: {known})")
    return found


def _layer_at(path: Path, environ: Mapping[str, str] | None) -> LayerInfo:
    path = path.absolute()
    try:
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        found = [
            each
            for file in manifests.manifest_files([path])
            for each in manifests.layers_of(file, False)
            if each.name == KHRONOS_LAYER
        ]
        version = parse_version(found[0].api_version) if found else None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"layer manifest {path}: {reason}") from None
    if version is None:
        raise UserError(f"layer manifest {path}: no layer {KHRONOS_LAYER} in it")
    return _info(found[0], version, os.environ if environ is None else environ)


def _info(layer: manifests.Layer, version: Version, environ: Mapping[str, str]) -> LayerInfo:
    library = _found_library(layer.library, layer.manifest, environ)
    return LayerInfo(layer.name, version, library, layer.manifest, layer.instance_extensions)


def _found(environ: Mapping[str, str] | None) -> list[LayerInfo]:
    environ = os.environ if environ is None else environ
    found: dict[Version, LayerInfo] = {}
    for each in manifests.find_layers(environ=environ, cached=() if environ.get("VK_LAYER_PATH") else ("khronos",)):
        try:
            version = parse_version(each.api_version)
        except ValueError:
            continue
        if each.name == KHRONOS_LAYER and not each.implicit:
            found.setdefault(version, _info(each, version, environ))
    return list(found.values())


def _found_library(library: str, manifest: Path, environ: Mapping[str, str]) -> str:
    """A bare name is looked up roughly as the dynamic linker would, so that people see which file it is."""
    if "/" in library:
        return library
    folders = manifests.named_places("LD_LIBRARY_PATH", environ)
    # Beside share/vulkan/explicit_layer.d of the same prefix, then the system's own folders.
    prefix = manifest.parent.parent.parent.parent
    for root in dict.fromkeys((prefix, Path("/usr"), Path("/usr/local"))):
        folders += [root / "lib", root / "lib64", *sorted((root / "lib").glob("*-linux-gnu*"))]
    return next((str(folder / library) for folder in folders if (folder / library).is_file()), library)
