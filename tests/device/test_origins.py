"""Files that setup unpacks are recorded with versions and hashes, and one that has changed since is named."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from vkharness.cli import drivers as command
from vkharness.cli import setup
from vkharness.device.origins import find_origins

STAND_INS = {"apt-get": 'case "$*" in *download*) cp "$PACKAGE_FILE" . ;; esac', "apt-cache": "echo '  Candidate: 1.5'"}


def unpacked(folder: Path) -> Path:
    """A cache folder with a tool that the functions of setup unpacked from a package which apt has."""
    if shutil.which("dpkg-deb") is None:
        pytest.skip("no dpkg-deb here: setup unpacks packages of Debian")
    tree, programs = folder / "tree", folder / "programs"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN" / "control").write_text(
        "Package: a-tool\nVersion: 1:1.5-2~x\nArchitecture: all\nMaintainer: nobody\nDescription: nothing\n"
    )
    (tree / "usr").mkdir()
    (tree / "usr" / "tool").write_text("a tool")
    (tree / "usr" / "other").write_text("not wanted")
    subprocess.run(["dpkg-deb", "--build", tree, folder / "a-tool.deb"], check=True, stdout=subprocess.DEVNULL)
    programs.mkdir()
    for name, text in STAND_INS.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    environ = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PACKAGE_FILE": str(folder / "a-tool.deb"),
    }
    asks = 'source "$1"; begin; unpack a-tool "$cache/tools" tool; seal "$cache/tools"'
    subprocess.run(["bash", "-c", asks, "bash", setup.SCRIPT], env=environ, check=True)
    return folder / "cache" / "vkharness"


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_what_was_unpacked_is_known_again(tmp_path: Path) -> None:
    cache = unpacked(tmp_path)
    (cache / "installed").write_text(f"lib+x 2:1 amd64 {'0' * 64}\nold 1 amd64 \n")
    environ = {"XDG_CACHE_HOME": str(cache.parent)}
    found = find_origins(environ=environ)
    assert [(each.package, each.version, each.architecture) for each in found] == [
        ("a-tool", "1:1.5-2~x", "all"),
        ("lib+x", "2:1", "amd64"),
        ("old", "1", "amd64"),
    ]
    assert [each.sha256 for each in found] == [sha256(tmp_path / "a-tool.deb"), "0" * 64, ""]
    assert found[0].files == (("tool", sha256(cache / "tools" / "tool")),) and not found[0].changed
    (cache / "tools" / "tool").write_text("another")
    assert [each.changed for each in find_origins(environ=environ)] == [("tool",), (), ()]
    (cache / "tools" / "tool").unlink()
    assert find_origins(environ=environ)[0].changed == ("tool",)


@pytest.mark.parametrize("text", ["", "a b", f"a 1 all {'0' * 64}\n../../etc/passwd", "\udcff\x1b[2J"])
def test_a_record_that_is_none_is_said_to_be(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "vkharness" / "tools"
    folder.mkdir(parents=True)
    (folder / "origin").write_text(text, encoding="utf-8", errors="surrogateescape")
    problems: list[str] = []
    assert not find_origins(problems, {"XDG_CACHE_HOME": str(tmp_path)})
    (problem,) = problems
    assert problem.startswith(f"{folder}/origin: ") and problem.isprintable()


def test_the_command_shows_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = unpacked(tmp_path)
    (cache / "tools" / "tool").write_text("another")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))
    monkeypatch.setattr(command, "find_drivers", lambda problems: [])
    told = CliRunner().invoke(command.drivers, ["--json", str(tmp_path / "found.json")])
    assert told.exit_code == 0 and "1:1.5-2~x" in told.output
    assert f"{cache}/tools/tool is not the file that a-tool has" in told.output
    (package,) = json.loads((tmp_path / "found.json").read_text())["packages"]
    assert package["sha256"] == sha256(tmp_path / "a-tool.deb") and package["changed"] == ["tool"]
