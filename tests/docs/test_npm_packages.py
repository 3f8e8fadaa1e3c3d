"""Packages of npm, and what is built of them: there as a whole, or not at all."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from ci import build_playground, npm_packages


def test_an_interrupted_extraction_leaves_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npm_packages, "CACHE", tmp_path)
    package = tmp_path / "some-1.tgz"
    with tarfile.open(package, "w:gz") as archive:
        for name in ("package/first", "package/second"):
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode()
    extract = tarfile.TarFile.extractall

    def interrupted(archive: Any, path: Path, **named: Any) -> None:
        extract(archive, path, members=archive.getmembers()[:1], **named)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(tarfile.TarFile, "extractall", interrupted)
        npm_packages.fetched("some", "1", integrity)
    assert {each.name for each in tmp_path.iterdir()} == {"some-1.tgz", "some-1.lock"}
    found = npm_packages.fetched("some", "1", integrity)
    assert {each.name for each in found.iterdir()} == {"first", "second"}


def test_a_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    folder = tmp_path / "built"
    for text in ("first", "second"):
        with npm_packages.replaced(folder) as made:
            (made / text).touch()
    assert [each.name for each in folder.iterdir()] == ["second"] and list(tmp_path.iterdir()) == [folder]


def test_the_playground_is_made_of_the_tables_too() -> None:
    assert set(build_playground.DATA.iterdir()) <= set(build_playground.sources())


def test_modules_that_python_compiled_are_no_part_of_the_playground(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "worker.js").touch()
    monkeypatch.setattr(build_playground, "modules", dict)
    monkeypatch.setattr(build_playground, "PARTS", tmp_path)
    assert set(build_playground.sources()) - set(build_playground.DATA.iterdir()) == {
        tmp_path / "worker.js",
        Path(build_playground.__file__),
    }
