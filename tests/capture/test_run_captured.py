"""`vkharness run` of programs that are no Python source, or whose calls do not come through the `vulkan` package."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Log

from tests.support.capture import capture_folder
from tests.support.formats import require_documented
from vkharness.check import Analysis
from vkharness.device.drivers import environment, find_driver
from vkharness.trace.codec import read_trace

PROGRAMS = Path(__file__).parents[1] / "programs"
FILL_COPY = str(PROGRAMS / "fill_copy.py")
VKHARNESS = Path(sys.executable).with_name("vkharness")


def run(*arguments: str, **variables: str) -> tuple[int, str]:
    """Exit code and stderr of `vkharness run` on lavapipe."""
    own = {**environment(find_driver("lavapipe")), **variables}
    ended = subprocess.run(
        [VKHARNESS, "run", *arguments], env={**os.environ, **own}, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in ended.stderr
    return ended.returncode, ended.stderr


def document(path: Path) -> dict[str, Any]:
    """A JSON file."""
    read = json.loads(path.read_text())
    assert isinstance(read, dict)
    return read


def test_a_program_is_judged_by_what_it_did(tmp_path: Path) -> None:
    capture_folder()
    file, trace = tmp_path / "verdict.json", tmp_path / "calls.jsonl"
    own = ["--json", str(file), "--trace", str(trace), "--display", "none", "--"]
    code, printed = run(*own, "sh", "-c", f"{sys.executable} {FILL_COPY}", GFXRECON_MEMORY_TRACKING_MODE="unassisted")
    assert code == 1
    assert "READ_AFTER_WRITE" in printed
    written = document(file)
    assert written["verdict"] == "hazards"
    assert [each["verdict"] for each in written["processes"]] == ["hazards"]
    assert written["processes"][0]["process"] > 0
    assert Analysis().follow(read_trace(trace)).verdict == "hazards"


def test_each_process_has_its_verdict(tmp_path: Path) -> None:
    capture_folder()
    file = tmp_path / "verdict.json"
    both = f"{sys.executable} {FILL_COPY} --barrier && {sys.executable} {FILL_COPY}; exit 9"
    code, printed = run("--json", str(file), "--", "sh", "-c", both, GFXRECON_MEMORY_TRACKING_MODE="unassisted")
    assert code == 9
    assert printed.count("process ") == 2
    assert [each["verdict"] for each in document(file)["processes"]] == ["clean", "hazards"]
    assert document(file)["verdict"] == "hazards"


def test_findings_as_sarif_stand_in_the_executable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture_folder()
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "my app"
    program.write_text(f"#!/bin/sh\n{sys.executable} {FILL_COPY} --barrier && exec {sys.executable} {FILL_COPY}\n")
    program.chmod(0o755)
    own = ["--sarif", "out.sarif", "--json", "out.json", "--display", "none"]
    code, printed = run(*own, "./my app", GFXRECON_MEMORY_TRACKING_MODE="unassisted")
    assert code == 1, printed
    text = Path("out.sarif").read_text()
    Log.model_validate_json(text)
    clean, hazards = json.loads(text)["runs"]
    assert clean["results"] == [] and clean["invocations"][0]["properties"]["verdict"] == "clean"
    (found,) = hazards["results"]
    assert (found["ruleId"], found["level"]) == ("READ_AFTER_WRITE", "error")
    place = {"artifactLocation": {"uri": Path(sys.executable).resolve().as_uri()}}
    assert found["locations"][0]["physicalLocation"] == place
    assert found["relatedLocations"][0]["physicalLocation"] == place
    assert "vkCmdFillBuffer" in found["relatedLocations"][0]["message"]["text"]
    require_documented("findings", [document(Path("out.json"))])


def test_a_program_of_this_folder_is_named_with_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("app").write_text("#!/bin/sh\nexit 7\n")
    code, printed = run("./app")
    assert (code, printed.strip()) == (2, "vkharness: ./app: is not executable")
    Path("app").chmod(0o755)
    code, printed = run("app")
    assert code == 2 and "app: not on the path; write ./ before it" in printed
    capture_folder()
    assert run("./app")[0] == 7


def test_instances_that_submit_nothing_are_counted_together(tmp_path: Path) -> None:
    capture_folder()
    program = tmp_path / "program.py"
    program.write_text(
        "import subprocess, sys\nimport vulkan as vk\n"
        "for _ in range(2):\n"
        "    vk.vkDestroyInstance(vk.vkCreateInstance(vk.VkInstanceCreateInfo(), None), None)\n"
        "if sys.argv[1:]:\n    subprocess.run([sys.executable, *sys.argv[1:]])\n"
    )
    variables = {"GFXRECON_MEMORY_TRACKING_MODE": "unassisted"}
    code, printed = run("--", "sh", "-c", f"{sys.executable} {program}", **variables)
    assert code == 0
    assert printed.splitlines()[0] == "clean - no hazard; nothing was submitted to a queue"
    code, printed = run("--", "sh", "-c", f"{sys.executable} {program} {FILL_COPY}", **variables)
    assert code == 1
    assert "process " not in printed and "clean" not in printed, "only what was submitted has a verdict"
    assert re.search(r"\d more instances? submitted nothing$", printed.strip())


def test_python_source_runs_under_the_capture_layer_when_asked_to() -> None:
    capture_folder()
    code, printed = run("--capture", FILL_COPY, "--barrier")
    assert (code, "clean - no hazard" in printed) == (0, True)


def test_a_python_program_that_has_its_calls_from_elsewhere_runs_again(tmp_path: Path) -> None:
    capture_folder()
    program = tmp_path / "program.py"
    loader = "import ctypes; ctypes.CDLL('libvulkan.so.1').vkEnumerateInstanceVersion"
    made = "lib = ctypes.CDLL('libvulkan.so.1'); handle = ctypes.c_void_p()"
    call = "lib.vkCreateInstance(ctypes.byref((ctypes.c_uint32 * 16)(1)), None, ctypes.byref(handle))"
    program.write_text("\n".join([loader, made, call, "print('ran')"]))
    code, printed = run(str(program))
    assert "no call came through the vulkan package" in printed
    assert code == 0


@pytest.mark.parametrize("program", ["true", "nothing.py"])
def test_no_call_is_no_verdict(tmp_path: Path, program: str) -> None:
    capture_folder()
    (tmp_path / "nothing.py").write_text("print('nothing')")
    file = tmp_path / "verdict.json"
    code, printed = run("--json", str(file), program if program == "true" else str(tmp_path / program))
    assert (code, printed.strip()) == (3, "unknown - no Vulkan call was seen")
    assert document(file)["verdict"] == "unknown"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--frames", "5-2", "vkcube"], "is no number of frames"),
        (["--frames", "3", "program.py"], "goes with --headless or --capture"),
        (["--headless", "true"], "--headless is for Python programs"),
        (["there-is-no-such-program"], "no such program"),
    ],
)
def test_wrong_usage_is_one_line(arguments: list[str], said: str) -> None:
    code, printed = run(*arguments)
    assert code == 2
    assert said in printed
    assert len(printed.strip().splitlines()) == 1
