"""ci/setup says in a few lines what it does. What apt and pip say is in a log, of which the end is shown on failure."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
NOISE = "for at in $(seq 200); do echo noise $at; echo noise $at >&2; done"
STAND_INS = {
    "apt-get": f"{NOISE}; exit ${{APT_STATUS:-0}}",
    "apt-cache": "echo '  Candidate: (none)'",
    "dpkg-query": "exit 1",
    "sudo": 'exec "$@"',
    "python3": f"""case "$1 $2" in
-c*) exit 0 ;;
"-m venv") mkdir -p "$4/bin"; cp "$0" "$4/bin/python"; echo "#!$4/bin/python" >"$4/bin/pip" ;;
*) touch "$(dirname "$0")"/{{vkharness,pytest}}; {NOISE}; echo "asked: $*"
   echo "the last words of pip"; exit ${{PIP_STATUS:-0}} ;;
esac""",
}
"""Programs that ci/setup calls, as short scripts that do nothing and say much."""


SHARED = ("harness/vkharness/device/bring_drivers.bash", "harness/vkharness/device/layer_manifest.py")
"""Files that ci/setup and `vkharness setup` both use."""


def bare_machine(folder: Path) -> dict[str, str]:
    """The environment of a machine that lacks everything."""
    programs = folder / "programs"
    programs.mkdir()
    for name, text in STAND_INS.items():
        (programs / name).write_text(f"#!/usr/bin/env bash\n{text}\n")
        (programs / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(folder / "cache")}
    environment.pop("PYTHON", None)
    return environment


def set_up(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a copy of ci/setup in a folder of its own, on such a machine."""
    environment = bare_machine(folder)
    for name in ("ci/setup", "ci/constraints.txt", *SHARED, "pyproject.toml", "hatch_build.py"):
        (folder / "checkout" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / "checkout" / name)
    return subprocess.run(
        [folder / "checkout" / "ci" / "setup"], env=environment | variables, capture_output=True, text=True, check=False
    )


def test_it_says_ten_lines_at_most(tmp_path: Path) -> None:
    ran = set_up(tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == ""
    lines = ran.stderr.splitlines()
    assert len(lines) <= 10, ran.stderr
    assert all(line.startswith("ci/setup: ") for line in lines)
    log = (tmp_path / "cache" / "vkharness" / "setup.log").read_text()
    assert "the last words of pip" in log
    packages, project = (line for line in log.splitlines() if line.startswith("asked: -m pip install"))
    assert "--require-hashes" in packages and "--only-binary :all:" in packages and packages.endswith("constraints.txt")
    assert "--no-deps" in project and "--no-build-isolation" in project, "what has no hash is not brought"


def test_all_that_the_project_needs_is_pinned_with_hashes() -> None:
    pinned: dict[str, Requirement] = {}
    for each in re.split(r"\n(?=[a-z])", (ROOT / "ci" / "constraints.txt").read_text())[1:]:
        pin, *hashes = each.partition("\n    #")[0].split(" \\\n    --hash=")
        found = Requirement(pin)
        assert hashes and all(re.fullmatch("sha256:[0-9a-f]{64}", one) for one in hashes), pin
        assert [one.operator for one in found.specifier] == ["=="], pin
        if found.marker is None or found.marker.evaluate():
            assert pinned.setdefault(found.name, found) is found, "one version for one Python"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        needed += extra
    for requirement in map(Requirement, needed):
        if requirement.name != "vkharness":
            (pin,) = pinned[requirement.name].specifier
            assert requirement.specifier.contains(pin.version), requirement


@pytest.mark.parametrize("failing", ["APT_STATUS", "PIP_STATUS"])
def test_the_end_of_the_log_is_shown_on_failure(tmp_path: Path, failing: str) -> None:
    ran = set_up(tmp_path, **{failing: "7"})
    assert ran.returncode != 0
    assert "ci/setup: the end of " in ran.stderr
    assert ("noise 200" if failing == "APT_STATUS" else "the last words of pip") in ran.stderr
    assert len(ran.stderr.splitlines()) < 50


@pytest.mark.parametrize("status", ["0", "7"])
def test_the_command_brings_the_same_without_a_checkout(tmp_path: Path, status: str) -> None:
    program = Path(sys.executable).with_name("vkharness")
    environment = bare_machine(tmp_path) | {"APT_STATUS": status}
    ran = subprocess.run([program, "setup"], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == (2 if status == "7" else 0), ran.stderr
    lines = ran.stderr.splitlines()
    assert lines[0].startswith("vkharness setup: installing libvulkan1 mesa-vulkan-drivers vulkan-validationlayers")
    assert ("noise 200" in lines) == (status == "7")
    assert status == "7" or len(lines) <= 10


@pytest.mark.parametrize(
    ("release", "said"),
    [
        ("ID=fedora\n", "run dnf install vulkan-loader mesa-vulkan-drivers "),
        ('ID=nobara\nID_LIKE="rhel fedora"\n', "run dnf install "),
        ("ID=arch\n", "run pacman -S vulkan-icd-loader vulkan-swrast "),
        ('ID=opensuse-leap\nID_LIKE="suse opensuse"\n', "run zypper install "),
        ("ID=void\n", "install a Vulkan loader, "),
        (None, "install a Vulkan loader, "),
    ],
)
def test_without_apt_one_line_says_what_is_needed(tmp_path: Path, release: str | None, said: str) -> None:
    file = tmp_path / "os-release"
    if release is not None:
        file.write_text(release)
    code = f'source "{ROOT / SHARED[0]}" && has_apt() {{ false; }} && bring_packages && bring_files'
    environment = {**os.environ, "OS_RELEASE": str(file), "XDG_CACHE_HOME": str(tmp_path)}
    ended = subprocess.run(["bash", "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"vkharness setup: no apt here: {said}")
