"""Drivers (ICDs): which ones this machine has, under which short name, and how a process is bound to one.

Discovery reads manifests only, so it works without a loader. A process sees exactly one driver: the loader reads
its environment once, at the first instance, so `environment(driver)` is for a child (`vkharness.device.process`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from vkharness.device.layer_settings import DISABLING
from vkharness.device.manifests import (
    cache_folder,
    find_layers,
    library_of,
    manifest_files,
    named_places,
    read_manifest,
    search_folders,
)
from vkharness.findings import UserError

Kind = Literal["software", "null", "hardware", "unknown"]

STEMS: dict[str, tuple[str, Kind]] = {
    "lvp_icd": ("lavapipe", "software"),
    "lavapipe-25_icd": ("lavapipe-25", "software"),
    "vk_swiftshader_icd": ("swiftshader", "software"),
    "radeon_icd": ("radv", "hardware"),
    "intel_icd": ("intel", "hardware"),
    "intel_hasvk_icd": ("intel-hasvk", "hardware"),
    "nvidia_icd": ("nvidia", "hardware"),
}
"""Manifest stem, less the machine's suffix, to our name and what runs the commands."""

HOW_TO_GET = {
    "lavapipe": "ci/setup installs it (Debian package mesa-vulkan-drivers)",
    "lavapipe-25": "ci/setup unpacks it (Debian package mesa-vulkan-drivers of bookworm-backports)",
    "swiftshader": "ci/setup unpacks it (Debian package chromium-common)",
    "radv-null": "ci/setup installs it (Debian package mesa-vulkan-drivers)",
    "nvidia": "it comes with the NVIDIA driver",
}

NULL_FAMILY = "navi21"
"""The GPU that RADV pretends to drive when it records without executing."""

SOFTWARE_DEVICES = ("lavapipe", "lavapipe-25", "swiftshader")
"""Drivers on which scenarios run where nobody names one."""

UNPACKED = ("lavapipe-25", "swiftshader")
"""Folders of the cache folder, each with the manifest and the library of a driver."""

NO_SHADER_CACHE = {"__GL_SHADER_DISK_CACHE": "0"}
"""Keeps NVIDIA's driver from the pipelines that other programs left on disk: it takes one that was made without
VK_PIPELINE_CREATE_DISPATCH_BASE_BIT for one that was made with it, and then dispatches from 0 (seen on an H200).
Mesa's cache stays. No such fault was seen of it, and without it scenarios that draw cost lavapipe 1.7 times as much."""

BOUND = "VKHARNESS_DRIVER"
"""Environment variable of a child process: `NAME=MANIFEST` of the driver that it is bound to."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
"""Names of drivers: they are parts of test ids, folders and files."""

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
    places += [*(cache_folder(environ) / each for each in UNPACKED), *search_folders("icd.d", environ)]
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
    """The driver called `name`, or the one whose manifest is the file `name`, or for `NAME=FILE` that one, so called.

    Raises `UserError` naming what was found and how to get what was not.
    """
    bound = environ.get(BOUND, "")
    if bound.partition("=")[0] == name:
        name = bound
    label, _, file = name.rpartition("=")
    if file.endswith(".json"):
        if label and not NAME.fullmatch(label):
            raise UserError(f"driver {name}: {label!r} is no name; letters, digits and . _ + - may stand in one")
        try:
            drivers = _drivers_of(Path(file).absolute())
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise UserError(f"driver manifest {file}: {reason}") from None
        driver = next((each for each in drivers if each.name == label), drivers[0])
        return replace(driver, name=label) if label else driver
    drivers = find_drivers(environ=environ)
    for driver in drivers:
        if driver.name == name:
            return driver
    found = ", ".join(sorted(driver.name for driver in drivers)) or "none"
    advice = HOW_TO_GET.get(name, "give one of these or a manifest's path ending in .json")
    raise UserError(f"no Vulkan driver '{name}' on this machine (found: {found}); {advice}")


def chosen_drivers(names: Sequence[str], environ: Mapping[str, str] = os.environ) -> list[Driver]:
    """The drivers called `names`, as `find_driver` takes them, each under a name of its own.

    Without names: those that `VK_DRIVER_FILES` lists, else the software drivers of this machine; those of
    `VK_ADD_DRIVER_FILES` in addition. Of two drivers of one name the second is called `NAME-2`. Raises `UserError` as
    `find_driver`, and where there is no driver at all.
    """
    several = [find_driver(name, environ) for name in names or _unnamed(environ)]
    if not several:
        raise UserError(
            f"no driver to run on: neither {' nor '.join(SOFTWARE_DEVICES)} is on this machine; "
            f"{HOW_TO_GET[SOFTWARE_DEVICES[0]]}, and --vk-device names another one"
        )
    chosen: dict[str, Driver] = {}
    for driver in several:
        if not any(each.manifest == driver.manifest and each.name == driver.name for each in chosen.values()):
            name, number = driver.name, 1
            while name in chosen:
                number += 1
                name = f"{driver.name}-{number}"
            chosen[name] = replace(driver, name=name)
    return list(chosen.values())


def software_devices(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Those of `SOFTWARE_DEVICES` that this machine has, by name."""
    here = {driver.name for driver in find_drivers(environ=environ)}
    return tuple(name for name in SOFTWARE_DEVICES if name in here)


def _unnamed(environ: Mapping[str, str]) -> list[str]:
    only, added = _listed(environ)
    if only is None:
        return [*software_devices(environ), *map(str, added)]
    return [*map(str, only), *map(str, added)]


def _listed(environ: Mapping[str, str]) -> tuple[list[Path] | None, list[Path]]:
    """The manifests that the loader's variables list: the only ones, None without such a variable; those to add."""
    only = named_places("VK_DRIVER_FILES", environ) or named_places("VK_ICD_FILENAMES", environ)
    added = named_places("VK_ADD_DRIVER_FILES", environ)
    return (list(manifest_files(only)) if only else None), list(manifest_files(added))


def contradictions(drivers: Sequence[Driver], environ: Mapping[str, str] = os.environ) -> list[str]:
    """A line for each driver that runs although the loader's variables leave it out, and for each that they add and
    that does not run."""
    only, added = _listed(environ)
    files = {os.path.realpath(driver.manifest) for driver in drivers}
    listed = {os.path.realpath(path) for path in [*(only or ()), *added]}
    lines = [
        f"{driver.name} runs from {driver.manifest}, which VK_DRIVER_FILES does not list"
        for driver in drivers
        if only is not None and os.path.realpath(driver.manifest) not in listed
    ]
    return lines + [
        f"{path} is listed by VK_ADD_DRIVER_FILES and does not run: no --vk-device names it"
        for path in added
        if os.path.realpath(path) not in files
    ]


def environment(driver: Driver, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables that bind a child process to `driver` alone, and keep implicit layers and old pipelines out of it.

    Only what is to be set is returned; merge it over the parent's environment.
    """
    manifest = str(driver.manifest)
    variables = dict([DISABLING])
    for layer in find_layers(environ=environ):
        if layer.implicit:
            variables.update(layer.disable_environment)
    variables.update({"VK_DRIVER_FILES": manifest, "VK_ICD_FILENAMES": manifest, "VK_ADD_DRIVER_FILES": ""})
    variables[BOUND] = f"{driver.name}={manifest}"
    variables.update(NO_SHADER_CACHE)
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
