"""Where the drivers, layers and tools that `ci/setup` and `vkharness setup` brought came from.

Setup unpacks files of packages into folders of the cache folder. `origin` in such a folder names the package with its
SHA-256, and then each file as sha256sum does. What apt installed is in `installed`, a line each. (Both are written by
bring_drivers.bash.)
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from vkharness.device.manifests import cache_folder

LIMIT = 1 << 20
"""Bytes of a record; there are some dozen lines in one."""
PACKAGE = re.compile(r"([a-z0-9][a-z0-9+.-]*) (\S+) (\w+) ([0-9a-f]{64}|)")
FILE = re.compile(r"([0-9a-f]{64})  ([^/]+)")


@dataclass(frozen=True, slots=True)
class BroughtPackage:
    """A package whose files are here."""

    package: str
    version: str
    architecture: str
    sha256: str
    """Of the package; empty where the lists of apt do not have this version any more."""
    folder: str = ""
    """Where its files were unpacked; empty for what apt installed."""
    files: tuple[tuple[str, str], ...] = ()
    """Their names, each with its SHA-256."""
    changed: tuple[str, ...] = ()
    """Those that are others now, or gone."""


def find_origins(problems: list[str] | None = None, environ: Mapping[str, str] = os.environ) -> list[BroughtPackage]:
    """Lists packages that were unpacked, by folder, and installed ones. Unreadable files are added to `problems`."""
    cache = cache_folder(environ)
    found: list[BroughtPackage] = []
    for path in (*sorted(cache.glob("*/origin")), cache / "installed"):
        try:
            found += _read(path)
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            if problems is not None:
                problems.append(f"{path}: {error}")
    return found


def _read(path: Path) -> list[BroughtPackage]:
    with path.open("rb") as file:
        lines = file.read(LIMIT).decode("ascii").splitlines()
    if path.name == "installed":
        return [_origin(line) for line in lines]
    files = tuple((name, digest) for digest, name in (_fields(FILE, line) for line in lines[1:]))
    changed = tuple(name for name, digest in files if _sha256(path.parent / name) != digest)
    return [replace(_origin(lines[0] if lines else ""), folder=str(path.parent), files=files, changed=changed)]


def _origin(line: str) -> BroughtPackage:
    package, version, architecture, sha256 = _fields(PACKAGE, line)
    return BroughtPackage(package, version, architecture, sha256)


def _fields(kind: re.Pattern[str], line: str) -> tuple[str, ...]:
    found = kind.fullmatch(line)
    if found is None:
        raise ValueError(f"not a line of a record: {line[:80]!r}")
    return found.groups()


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
