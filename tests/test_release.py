"""What `ci/release` builds of: the changelog's section of a version, and the links of the project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="hatchling, which builds the wheel, is not installed (ci/setup installs it)")

from hatch_build import PAGES, ProjectLinks

ROOT = Path(__file__).resolve().parents[1]
RELEASE = ROOT / "ci" / "release"
NEWER = "## 0.2.0 - 2027-01-01\n\n- New.\n\n### Fixed\n\n- Old.\n\n"
OLDER = "## 0.1.0 - 2026-12-01\n\n- First.\n"


@pytest.mark.parametrize(
    ("heading", "section"),
    [("## 0.2.0 - ", NEWER), ("## 0.1.0 - ", OLDER), ("## 0.2 - ", ""), ("## Unreleased (0.2.0)", "")],
)
def test_the_notes_of_a_release_are_the_section_of_its_version(heading: str, section: str, tmp_path: Path) -> None:
    text = RELEASE.read_text(encoding="utf-8")
    code = text[text.index("changelog() {") :].partition("\n}\n")[0] + "\n}\n"
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "CHANGELOG.md").write_text(f"# Changelog\n\n{NEWER}{OLDER}")
    command = ["bash", "-euc", f'work=$1\n{code}\nchangelog "$2"', "bash", str(tmp_path), heading]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == section


def test_an_option_that_is_not_known_is_one_line() -> None:
    ran = subprocess.run([RELEASE, "--upload"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (2, "ci/release: no such option: --upload\n")


def test_a_name_that_is_no_newer_cpython_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "older").write_text("#!/bin/sh\necho\n")
    (tmp_path / "older").chmod(0o755)
    for name in ("./older", "./none"):
        ran = subprocess.run([RELEASE, name], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (1, f"ci/release: no CPython of 3.11 or newer: {name}\n")


def test_an_interpreter_that_is_named_from_this_folder_is_known_by_its_path(tmp_path: Path) -> None:
    text = RELEASE.read_text(encoding="utf-8")
    code = text[text.index("cpython_of() {") :].partition("\n}\n")[0] + "\n}\n"
    (tmp_path / "python").symlink_to(sys.executable)
    command = ["bash", "-euc", f"{code}\ncpython_of ./python"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == str(Path(sys.executable).resolve())


@pytest.mark.parametrize("address", ["", "https://docs.example/vkharness/"])
def test_the_project_has_links_where_the_site_has_an_address(address: str, tmp_path: Path) -> None:
    rules = tmp_path / "harness" / "vkharness" / "report" / "rules.py"
    rules.parent.mkdir(parents=True)
    source = (ROOT / rules.relative_to(tmp_path)).read_text(encoding="utf-8")
    assert source.count("\nSITE = ") == 1
    before, _, after = source.partition("\nSITE = ")
    rules.write_text(f'{before}\nSITE = "{address}"\n{after.partition(chr(10))[2]}')
    metadata: dict[str, object] = {}
    ProjectLinks(str(tmp_path), {}).update(metadata)
    assert metadata == ({"urls": {name: address + page for name, page in PAGES.items()}} if address else {})
