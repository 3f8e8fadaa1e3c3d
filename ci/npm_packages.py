"""Packages of npm that the documentation site or a test needs, kept in .cache: none is in the repository."""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import tarfile
from pathlib import Path

CACHE = Path(__file__).resolve().parents[1] / ".cache" / "npm"


class NotFetched(Exception):
    """Why a package is not here."""


def fetched(name: str, version: str, integrity: str) -> Path:
    """The folder of a package, which is fetched where it is not there; `integrity` is its hash, as npm has it.

    Raises `NotFetched`.
    """
    package, folder = CACHE / f"{name}-{version}.tgz", CACHE / f"{name}-{version}"
    if not package.is_file():
        if shutil.which("npm") is None:
            raise NotFetched("npm is not installed")
        CACHE.mkdir(parents=True, exist_ok=True)
        command = ["npm", "pack", f"{name}@{version}", "--silent", "--pack-destination", str(CACHE)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        if ran.returncode or not package.is_file():
            raise NotFetched(
                f"npm cannot fetch {name} {version}: {(ran.stderr.strip().splitlines() or ['no reason'])[-1]}"
            )
    digest = base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode()
    if f"sha512-{digest}" != integrity:
        package.unlink()
        raise NotFetched(f"{name} {version} of npm has another hash than the one that is written here")
    if not folder.is_dir():
        with tarfile.open(package) as archive:
            archive.extractall(folder, filter="data")
    return folder / "package"
