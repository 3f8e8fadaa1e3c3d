"""Drivers (ICDs): which ones this machine has, under which short name, and how a process is bound to one.

Discovery reads manifests only, so it works without a loader. A process sees exactly one driver: the loader reads
its environment once, at the first instance, so `environment(driver)` is for a child (`harness.device.process`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.device.manifests import (
    cache_folder,
    find_layers,
    library_of,
    manifest_files,
    named_places,
    read_manifest,
    search_folders,
)
from harness.findings import UserError

Kind = Literal["software", "null", "hardware", "unknown"]

STEMS: dict[str, tuple[str, Kind]] = {
    "lvp_icd": ("lavapipe", "software"),
    "vk_swiftshader_icd": ("swiftshader", "software"),
    "radeon_icd": ("radv", "hardware"),
    "intel_icd": ("intel", "hardware"),
    "intel_hasvk_icd": ("intel-hasvk", "hardware"),
    "nvidia_icd": ("nvidia", "hardware"),
}
"""Manifest stem, less the machine's suffix, to our name and what runs the commands."""

HOW_TO_GET = {
    "lavapipe": "ci/setup installs it (Debian package mesa-vulkan-drivers)",
    "swiftshader": "ci/setup unpacks it (Debian package chromium-common)",
    "radv-null": "ci/setup installs it (Debian package mesa-vulkan-drivers)",
    "nvidia": "it comes with the NVIDIA driver",
}

NULL_FAMILY = "navi21"
"""The GPU that RADV pretends to drive when it records without executing."""

ARCHITECTURE_SUFFIX = re.compile(r"\.(x86_64|i[3-6]86|aarch64|armv7l?|riscv64|ppc64le)$")


@dataclass(frozen=True, slots=True)
class Driver:
    """One driver: a short name, its manifest and what the manifest says."""

    name: str
    manifest: Path
    library: str
    api_version: str
    """As the manifest says; the device may report more (lavapipe's manifest says 1.1 for a 1.3 device)."""
    kind: Kind
    variables: tuple[tuple[str, str], ...] = ()
    """Environment that this driver needs beside the manifest's path."""


def find_drivers(problems: list[str] | None = None, environ: Mapping[str, str] = os.environ) -> list[Driver]:
    """Drivers by manifest, the loader's variables first, then the cache folder, then the standard folders.

    The first of a name wins. What could not be read is appended to `problems`, a line each.
    """
    places = named_places("VK_ADD_DRIVER_FILES", environ)
    places += named_places("VK_DRIVER_FILES", environ) or named_places("VK_ICD_FILENAMES", environ)
    places += [cache_folder(environ) / "swiftshader", *search_folders("icd.d", environ)]
    found: dict[str, Driver] = {}
    for path in manifest_files(places):
        try:
            drivers = _drivers_of(path)
        except (OSError, ValueError) as error:
            if problems is not None:
                problems.append(f"{path}: {error}")
            continue
        for driver in drivers:
            found.setdefault(driver.name, driver)
    return list(found.values())


def find_driver(name: str, environ: Mapping[str, str] = os.environ) -> Driver:
    """The driver called `name`, or the one whose manifest is the file `name`.

    Raises `UserError` naming what was found and how to get what was not.
    """
    if name.endswith(".json"):
        path = Path(name).absolute()
        try:
            return _drivers_of(path)[0]
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise UserError(f"driver manifest {name}: {reason}") from None
    drivers = find_drivers(environ=environ)
    for driver in drivers:
        if driver.name == name:
            return driver
    found = ", ".join(sorted(driver.name for driver in drivers)) or "none"
    advice = HOW_TO_GET.get(name, "give one of these or a manifest's path ending in .json")
    raise UserError(f"no Vulkan driver '{name}' on this machine (found: {found}); {advice}")


def environment(driver: Driver, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables that bind a child process to `driver` alone and keep implicit layers out of it.

    Only what is to be set is returned; merge it over the parent's environment.
    """
    manifest = str(driver.manifest)
    variables = {"VK_LOADER_LAYERS_DISABLE": "~implicit~"}
    for layer in find_layers(environ=environ):
        if layer.implicit:
            variables.update(layer.disable_environment)
    variables.update({"VK_DRIVER_FILES": manifest, "VK_ICD_FILENAMES": manifest, "VK_ADD_DRIVER_FILES": ""})
    variables.update(driver.variables)
    return variables


def driver_library(manifest: Path) -> str:
    """The library that a driver manifest names; empty when the manifest is broken, which the loader will say."""
    try:
        return _drivers_of(manifest)[0].library
    except (OSError, ValueError):
        return ""


def _drivers_of(path: Path) -> list[Driver]:
    """The driver that a manifest describes; RADV's makes two, the second one needing no hardware."""
    icd = read_manifest(path).get("ICD")
    if not isinstance(icd, dict):
        raise ValueError("no ICD object")
    library = library_of(path, icd.get("library_path"))
    stem = ARCHITECTURE_SUFFIX.sub("", path.stem)
    name, kind = STEMS.get(stem, (stem.removesuffix("_icd"), "unknown"))
    driver = Driver(name, path, library, str(icd.get("api_version", "")), kind)
    if name != "radv":
        return [driver]
    null = Driver("radv-null", path, library, driver.api_version, "null", (("RADV_FORCE_FAMILY", NULL_FAMILY),))
    return [driver, null]
