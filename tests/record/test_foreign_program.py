"""A program that we did not write (numba-vulkan's own kernels), and one of ours, seen by two recorders in one run.

`vkharness run` records the run while GFXReconstruct's layer captures it: both must have seen the same calls, and the
mirror must say the same of both recordings.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.device.drivers import environment, find_driver
from harness.findings import UserError
from harness.trace.calls import Call
from harness.trace.codec import load
from tests.support.capture import capture_folder, capture_variables, convert

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "programs"
CLEAN, HAZARDS = 0, 1
EXPECTED = {"numba_vulkan_kernel": CLEAN, "many_shapes": HAZARDS}

BEFORE_THE_LAYER = (
    "vkEnumerateInstanceVersion",
    "vkEnumerateInstanceLayerProperties",
    "vkEnumerateInstanceExtensionProperties",
    "vkEnumerateDeviceLayerProperties",
    "vkEnumerateDeviceExtensionProperties",
    "vkGetInstanceProcAddr",
    "vkGetDeviceProcAddr",
)
"""Calls that GFXReconstruct does not write down: the loader answers them, or the layer answers for itself."""

LAYERS_OWN = ("vkEnumeratePhysicalDevices", "vkGetPhysicalDevice")
"""How the queries begin that the capture layer makes for itself, and writes down among the program's."""


@dataclass
class Run:
    """One run of a program: exit code, what it printed, the verdict document, and both recordings."""

    code: int
    output: str
    document: dict[str, Any]
    trace: Path
    converted: Path | None


def vkharness(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """The console script in a process of its own, on lavapipe where a driver is needed."""
    command = [sys.executable, "-c", "from harness.cli import main; main()", *map(str, arguments)]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | variables, capture_output=True, text=True, timeout=300, check=False
    )


def lavapipe() -> dict[str, str]:
    """Environment that binds a process to lavapipe; skips the test where it is not installed."""
    try:
        return environment(find_driver("lavapipe"))
    except UserError as error:
        pytest.skip(str(error))


def run(program: str, folder: Path, layer: Path | None) -> Run:
    """Runs a program under the mirror, and inside the capture layer if `layer` is its folder."""
    variables = lavapipe() | {
        "XDG_CACHE_HOME": str(folder / "cache")
    }  # what numba-vulkan found out earlier is not used
    capture = folder / f"{program}.gfxr"
    if layer is not None:
        variables |= capture_variables(layer, capture)
    trace, findings = folder / f"{program}.trace.jsonl", folder / f"{program}.json"
    ended = vkharness("run", "--json", findings, "--trace", trace, PROGRAMS / f"{program}.py", **variables)
    assert findings.exists(), ended.stderr
    return Run(
        ended.returncode,
        ended.stdout,
        json.loads(findings.read_text()),
        trace,
        None if layer is None else convert(layer, capture),
    )


@pytest.fixture(scope="module", params=EXPECTED)
def captured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Run]:
    """Each program run once, under the mirror and inside the capture layer at the same time."""
    layer = capture_folder()
    return request.param, run(request.param, tmp_path_factory.mktemp(request.param), layer)


def names(path: Path) -> list[str]:
    """The C functions called, in order."""
    return [block.name for block in load(path) if isinstance(block, Call)]


def said(document: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The findings without what differs between recordings by nature: object ids, block indices, call sites."""
    keys = ("hazard", "vuid", "command", "access", "prior_command", "prior_access", "range", "subresource", "missing")
    return [tuple(str(finding[key]) for key in keys) for finding in document["findings"]]


def differences(ours: list[str], theirs: list[str]) -> list[str]:
    """Where two sequences of calls part, the layer's own queries aside: one line a call that only one of them has."""
    found: list[str] = []
    place = 0
    for name in theirs:
        if place < len(ours) and ours[place] == name:
            place += 1
        elif not name.startswith(LAYERS_OWN):
            found.append(f"only in the capture, before call {place + 1} of ours: {name}")
    return found + [f"only in ours, call {place + 1}: {name}" for name in ours[place:]]


def test_numba_vulkan_computes_under_the_mirror_with_nothing_unmodelled(tmp_path: Path) -> None:
    seen = run("numba_vulkan_kernel", tmp_path, None)
    assert seen.output == "computed\n"
    assert seen.document["unmodelled"] == {}
    assert seen.document["verdict"] == "clean"
    assert seen.code == CLEAN
    calls = names(seen.trace)
    # One for each launch; on its first use of a driver the package launches probes of its own too.
    assert calls.count("vkCmdDispatch") >= 4
    assert calls.count("vkQueueSubmit") >= 4


def test_both_recorders_saw_the_same_calls_in_the_same_order(captured: tuple[str, Run]) -> None:
    program, seen = captured
    assert seen.code == EXPECTED[program]
    assert seen.converted is not None
    ours = [name for name in names(seen.trace) if name not in BEFORE_THE_LAYER]
    assert len(ours) > 40
    assert differences(ours, names(seen.converted)) == []


def test_the_converted_capture_checks_with_the_same_findings(captured: tuple[str, Run], tmp_path: Path) -> None:
    program, seen = captured
    for number, recording in enumerate((seen.trace, seen.converted)):
        assert recording is not None
        findings = tmp_path / f"{number}.json"
        # Nothing that a loader or driver needs: a search path that leads nowhere.
        ended = vkharness("check", "--json", findings, recording, VK_DRIVER_FILES="none", VK_ICD_FILENAMES="none")
        assert ended.returncode == EXPECTED[program], ended.stderr
        document = json.loads(findings.read_text())
        assert said(document) == said(seen.document)
        assert document["unmodelled"] == seen.document["unmodelled"] == {}


def test_a_difference_between_two_recordings_is_seen() -> None:
    calls = ["vkCreateInstance", "vkCmdFillBuffer", "vkCmdCopyBuffer"]
    assert differences(calls, ["vkCreateInstance", "vkGetPhysicalDeviceProperties", *calls[1:]]) == []
    assert differences(calls, calls[:2]) == ["only in ours, call 3: vkCmdCopyBuffer"]
    assert differences(calls[:1], calls[:2]) == ["only in the capture, before call 2 of ours: vkCmdFillBuffer"]
    swapped = [calls[0], calls[2], calls[1]]
    assert differences(calls, swapped) != []
