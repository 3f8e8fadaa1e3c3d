"""Facts that a package index and a type checker look for in the distribution."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import vkharness
from vkharness.cli import main

ROOT = Path(__file__).resolve().parents[2]


def test_the_command_and_the_changelog_name_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        main(["--version"])
    assert (leaving.value.code, capsys.readouterr().out) == (0, f"vkharness {vkharness.__version__}\n")
    assert re.search(
        rf"^## .*\b{re.escape(vkharness.__version__)}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )


def test_what_the_build_names_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    named = [
        *project["project"]["license-files"],
        project["project"]["readme"],
        project["tool"]["hatch"]["version"]["path"],
    ]
    named += [name.lstrip("/") for name in project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]]
    assert [name for name in [*named, "harness/vkharness/py.typed"] if not (ROOT / name).exists()] == []
