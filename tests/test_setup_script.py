"""ci/setup says in a few lines what it does. What apt and pip say is in a log, of which the end is shown on failure."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
*) touch "$(dirname "$0")"/{{vkharness,pytest}}; {NOISE}; echo "the last words of pip"; exit ${{PIP_STATUS:-0}} ;;
esac""",
}
"""Programs that ci/setup calls, as short scripts that do nothing and say much."""


SHARED = ("harness/vkharness/device/bring_drivers.bash", "harness/vkharness/device/layer_manifest.py")
"""What ci/setup and `vkharness setup` both use."""


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
    assert "the last words of pip" in (tmp_path / "cache" / "vkharness" / "setup.log").read_text()


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
