"""What ci/distributions notes of a run on a bare distribution, and the table of it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from bench.distributions import LINES, line_of, table

ROOT = Path(__file__).resolve().parents[2]
XML = '<testsuites><testsuite tests="9" failures="1" errors="1" skipped="2" time="90.4"/></testsuites>'
DRIVERS = {
    "drivers": [
        {"name": "lavapipe", "status": "ok", "devices": [{"driver_version": "llvmpipe Mesa 25.0.7-2 (LLVM 19.1.7)"}]},
        {"name": "radv", "status": "no device", "devices": []},
    ],
    "layers": [{"name": "VK_LAYER_KHRONOS_validation", "api_version": "1.4.309"}],
}


def test_the_line_of_a_run(tmp_path: Path) -> None:
    for folder in ("etc", "root"):
        (tmp_path / folder).mkdir()
    (tmp_path / "etc" / "os-release").write_text('NAME="Debian GNU/Linux"\nVERSION_ID="13"\n')
    (tmp_path / "root" / "tests.xml").write_text(XML)
    (tmp_path / "root" / "drivers.json").write_text(json.dumps(DRIVERS))
    (tmp_path / "root" / "drivers.txt").write_text("vkharness 0.1.0, Python 3.13.5, loader 1.4.309\n")
    made = line_of(tmp_path, "")
    wanted = {"distribution": "Debian 13", "asked": "all", "python": "3.13.5", "loader": "1.4.309", "mesa": "25.0.7"}
    wanted |= {"layers": "1.4.309", "drivers": "lavapipe"}
    assert wanted.items() <= made.items()
    assert [made[key] for key in ("passed", "failed", "skipped", "minutes")] == [5, 2, 2, 2]


def test_the_newest_run_of_a_distribution_is_in_the_table() -> None:
    lines = [json.loads(line) for line in LINES.read_text(encoding="utf-8").splitlines()]
    made = table([*lines, {**lines[-1], "passed": 123456}])
    assert len(made) == len(table(lines)) and made[0].startswith("distribution ")
    assert sum("123456" in line for line in made) == 1


def test_a_distribution_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    script = (ROOT / "ci" / "distributions").read_text()
    code = script[script.index("own_sources()") : script.index("# Runs a command in a root")]
    shell = f'here=bookworm roots={tmp_path}; apt-get() {{ :; }}; debootstrap() {{ echo "E: no"; false; }}; {code}'
    no_keys = "ubuntu_keys() { false; }"
    for name, why in (("noble", "lacks the keys of its archive"), ("trixie", "cannot be had here: E: no")):
        ended = subprocess.run(
            ["bash", "-uc", f"{shell}\n{no_keys}\nmake_root {name} {tmp_path}/{name}"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 1 and why in ended.stderr, ended.stderr


@pytest.mark.parametrize(("writes", "added"), [("touch", True), (":", False)])
def test_results_of_an_earlier_run_are_not_those_of_this_one(writes: str, added: bool, tmp_path: Path) -> None:
    text = (ROOT / "ci" / "distributions").read_text(encoding="utf-8")
    tested = text[text.index("tested() {") :].partition("\n}\n")[0] + "\n}\n"
    home = tmp_path / "one" / "root"
    for folder in (home, tmp_path / "one" / "etc", tmp_path / ".venv" / "bin"):
        folder.mkdir(parents=True)
    (tmp_path / "one" / "etc" / "os-release").touch()
    (home / "tests.xml").write_text("of yesterday")
    adds = tmp_path / ".venv" / "bin" / "python"
    adds.write_text(f"#!/bin/sh\ntouch {tmp_path}/added\n")
    adds.chmod(0o755)
    stubs = f"""
        roots=$1 root=$1
        set_up() {{ :; }}
        inside() {{ [[ $2 != bash ]] || {{ {writes} "$1/root/tests.xml"; return 3; }}; }}
    """
    command = ["bash", "-uc", f"{stubs}\n{tested}\ntested one", "bash", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode and (tmp_path / "added").exists() == added, ran.stderr
    assert added or "pytest wrote no results (exit code 3)" in ran.stderr
