"""A folder that appears whole or not at all, and the same as one archive whose bytes follow from the files alone."""

from __future__ import annotations

import gzip
import os
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from vkharness.findings import UnwrittenError, UserError
from vkharness.temporary import temporary_folder

ARCHIVE = ".tar.gz"


def archive_of(folder: Path) -> Path:
    """The archive beside a folder."""
    return folder.with_name(folder.name + ARCHIVE)


def require_free(folder: Path) -> None:
    """Raises `UserError` where something is in the way of a folder or of its archive, or they cannot be there."""
    if folder.name in ("", ".."):
        raise UserError(f"{folder}: is no name of a new folder: choose one with -o")
    other = "choose another folder with -o, or remove it"
    try:
        if folder.is_dir() and not folder.is_symlink():
            if any(folder.iterdir()):
                raise UserError(f"{folder}: is there, and not empty: {other}")
        elif folder.exists() or folder.is_symlink():
            raise UserError(f"{folder}: is there, and no folder")
        if not folder.absolute().parent.is_dir():
            raise UserError(f"{folder}: cannot be made: {folder.parent} is no folder")
        archive_of(folder).lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise UserError(f"{folder}: cannot be made: {error.strerror or error}") from None
    raise UserError(f"{archive_of(folder)}: is there: {other}")


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `target` at the end of the context, with its archive beside it; an error drops
    it. Raises `UserError` where something is in the way, or the disk does not take it."""
    require_free(target)
    with ExitStack() as stack:
        with writing(target):
            folder = stack.enter_context(temporary_folder(target.absolute().parent)) / "folder"
            folder.mkdir()
        yield folder
        with writing(target):
            archive = folder.with_name("archive")
            _write_archive(archive, folder, target.name)
            os.rename(folder, target)
            os.rename(archive, archive_of(target))


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Names `path` in errors of the disk in this context. Raises `UnwrittenError` where it does not take the file."""
    try:
        yield
    except OSError as error:
        raise UnwrittenError(f"{path}: cannot be written: {error.strerror or error}") from None


def _write_archive(path: Path, folder: Path, name: str) -> None:
    """An archive of a folder, which has this name there."""
    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for each in sorted([folder, *folder.rglob("*")]):
            archive.add(each, str(Path(name) / each.relative_to(folder)), recursive=False, filter=_plain)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without who made it and when."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.isdir() else 0o644
    return member
