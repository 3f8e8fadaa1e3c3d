"""`run --break` and `--break-at`: the program stops in the call."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.live.test_source_lines import line_of
from tests.support.mirror_streams import CPP, compiled
from vkharness.capture.layer import mirror_layer
from vkharness.cli.run import run
from vkharness.device.drivers import environment, find_driver
from vkharness.findings import UserError

pytestmark = pytest.mark.driver
VKHARNESS = Path(sys.executable).with_name("vkharness")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if mirror_layer() is None:
        pytest.skip("the mirror layer is not built")
    return compiled(CPP, tmp_path_factory.mktemp("program"), "-lvulkan", compiler="c++")


def stopped(options: list[str], command: list[str], folder: Path) -> tuple[int, str, dict[str, Any]]:
    """The exit code, what is printed, and the document."""
    found = folder / "found.json"
    line = [str(VKHARNESS), "run", "--recorder", "mirror", *options, "--json", str(found), "--", *command]
    own = environment(find_driver("lavapipe"))
    ended = subprocess.run(line, env={**os.environ, **own}, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout + ended.stderr, json.loads(found.read_text())


def test_the_program_stops_in_the_call_of_a_finding(program: Path, tmp_path: Path) -> None:
    trace = tmp_path / "calls.jsonl"
    code, printed, found = stopped(["--break", "--trace", str(trace)], [str(program)], tmp_path)
    (finding,) = found["findings"]
    assert code == 128 + signal.SIGTRAP, printed
    assert finding["site"] == line_of(CPP, "the copy")
    calls = [each["function"]["name"] for each in map(json.loads, trace.read_text().splitlines()) if "function" in each]
    assert calls[-1] == "vkCmdCopyBuffer", "nothing follows"


def test_the_program_stops_at_a_call_by_its_number(program: Path, tmp_path: Path) -> None:
    """The fill is the call before the copy: there is no finding yet. A program without that number does not stop."""
    code, printed, found = stopped(["--break-at", "1000000"], [str(program)], tmp_path)
    assert code == 1, printed
    (finding,) = found["findings"]
    code, printed, found = stopped(["--break-at", str(finding["prior_call"])], [str(program)], tmp_path)
    assert (code, found["findings"]) == (128 + signal.SIGTRAP, []), printed
    code, printed, found = stopped(["--break-at", str(finding["call"])], [str(program)], tmp_path)
    assert code == 128 + signal.SIGTRAP and len(found["findings"]) == 1, printed


def test_a_debugger_stands_on_the_line_of_the_call(program: Path, tmp_path: Path) -> None:
    if shutil.which("gdb") is None:
        pytest.skip("no gdb")
    debugged = ["gdb", "-q", "-batch", "-ex", "run", "-ex", "bt", "-ex", "continue", "--args", str(program)]
    code, printed, found = stopped(["--break"], debugged, tmp_path)
    if "received signal SIGTRAP" not in printed and "ptrace" in printed:
        pytest.skip("processes may not be traced here")
    frames = [line for line in printed.splitlines() if line.startswith("#")]
    own = next(line for line in frames if CPP in line)
    assert own.endswith(Path(line_of(CPP, "the copy")).name), printed
    assert code == 1 and len(found["findings"]) == 1, "it goes on, and the rest is judged"


@pytest.mark.parametrize("option", [["--break"], ["--break-at", "3"]])
def test_what_cannot_wait_for_its_verdict_is_refused(option: list[str], tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("")
    for given in ([str(script)], ["--recorder", "gfxreconstruct", "true"], ["--frames", "2-3", "true"]):
        refused = CliRunner().invoke(run, [*option, *given])
        assert isinstance(refused.exception, UserError) and "--break" in str(refused.exception)
