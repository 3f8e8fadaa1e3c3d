"""Packages of npm that the documentation site or a test needs, kept in .cache: none is in the repository."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

CACHE = Path(__file__).resolve().parents[1] / ".cache" / "npm"


class NotFetched(Exception):
    """Why a package is not here."""


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Alone with what has this name, among all processes of this machine."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """An empty folder that takes the place of this one when all is in it. After an exception this one is as it was."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as beside:
        made, old = Path(beside) / "made", Path(beside) / "old"
        made.mkdir()
        yield made
        if folder.exists():
            folder.rename(old)
        made.rename(folder)


def fetched(name: str, version: str, integrity: str) -> Path:
    """The folder of a package, which is fetched where it is not there; `integrity` is its hash, as npm has it.

    Raises `NotFetched`.
    """
    with locked(f"{name}-{version}"):
        return _fetched(name, version, integrity)


def _fetched(name: str, version: str, integrity: str) -> Path:
    package, folder = CACHE / f"{name}-{version}.tgz", CACHE / f"{name}-{version}"
    if not package.is_file():
        if shutil.which("npm") is None:
            raise NotFetched("npm is not installed")
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
        with replaced(folder) as made, tarfile.open(package) as archive:
            archive.extractall(made, filter="data")
    return folder / "package"
