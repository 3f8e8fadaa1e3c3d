"""A program that we did not write (numba-vulkan's own kernels), and one of ours, seen by two recorders in one run.

`vkharness run` records the run while GFXReconstruct's layer captures it: both must have seen the same calls, and the
mirror must say the same of both recordings.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.capture import capture_folder, capture_variables, convert
from vkharness.check import Analysis
from vkharness.device.drivers import environment, find_driver
from vkharness.findings import UserError
from vkharness.report.rules import rule_of
from vkharness.spec.enums import VkAccess2, VkPipelineStage2
from vkharness.trace.calls import Block, Call, HostWrite
from vkharness.trace.codec import load

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "programs"
CLEAN, HAZARDS = 0, 1
EXPECTED = {"numba_vulkan_kernel": HAZARDS, "many_shapes": HAZARDS}

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
    """One run of a program: exit code, what it printed, the verdict document, both recordings, and the capture of which
    one was converted."""

    code: int
    output: str
    document: dict[str, Any]
    trace: Path
    converted: Path | None
    capture: Path


def vkharness(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """The console script in a process of its own, on lavapipe where a driver is needed."""
    command = [sys.executable, "-c", "from vkharness.cli import main; main()", *map(str, arguments)]
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
        capture,
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
    calls = names(seen.trace)
    # One for each launch; on its first use of a driver the package launches probes of its own too.
    assert calls.count("vkCmdDispatch") >= 4
    assert calls.count("vkQueueSubmit") >= 4


def test_numba_vulkan_writes_where_no_dependency_included_the_host(tmp_path: Path) -> None:
    """The package keeps its buffers mapped and uses them again. Its only barriers are between copies and shaders.

    It waits for the queue before it overwrites what a kernel wrote. That write is then available to the device domain
    alone, and appendix "Memory Model", "Location-Ordered", wants a memory domain operation between two writes of device
    and host. A dependency with HOST_READ or HOST_WRITE in its second access scope performs one ("Availability,
    Visibility, and Domain Operations"). The same calls with such a dependency are clean.
    """
    seen = run("numba_vulkan_kernel", tmp_path, None)
    assert (seen.code, seen.document["verdict"]) == (HAZARDS, "hazards")
    found = {(each["hazard"], each["command"], each["prior_command"]) for each in seen.document["findings"]}
    assert found == {("WRITE_AFTER_WRITE", "host write", "vkCmdDispatch")}
    assert {tuple(each["judges"]) for each in seen.document["findings"]} == {("syncval", "model")}
    findings = Analysis().follow(load(seen.trace)).findings
    assert {rule_of(each) for each in findings} == {"a-host-write-needs-the-host-domain"}
    assert Analysis().follow(with_dependencies_to_the_host(load(seen.trace))).findings == []


def with_dependencies_to_the_host(blocks: list[Block]) -> Iterator[Block]:
    """The blocks, and at the end of each command buffer a barrier to the host like the program's own barriers."""
    own = next(each for each in blocks if isinstance(each, Call) and each.name == "vkCmdPipelineBarrier")
    memory = [own.args["pMemoryBarriers"][0] | {"dstAccessMask": VkAccess2.HOST_READ}]
    numbers = itertools.count()
    for block in blocks:
        if isinstance(block, Call) and block.name == "vkEndCommandBuffer":
            scopes = {"dstStageMask": VkPipelineStage2.HOST, "pMemoryBarriers": memory}
            yield replace(own, index=next(numbers), args=own.args | scopes | block.args)
        yield replace(block, index=next(numbers))


def test_both_recorders_saw_the_same_calls_in_the_same_order(captured: tuple[str, Run]) -> None:
    program, seen = captured
    assert seen.code == EXPECTED[program]
    assert seen.converted is not None
    ours = [name for name in names(seen.trace) if name not in BEFORE_THE_LAYER]
    assert len(ours) > 40
    assert differences(ours, names(seen.converted)) == []


def test_the_converted_capture_checks_with_the_same_findings(captured: tuple[str, Run], tmp_path: Path) -> None:
    _, seen = captured
    for number, recording in enumerate((seen.trace, seen.converted)):
        assert recording is not None
        findings = tmp_path / f"{number}.json"
        expected = said(seen.document)
        if not any(isinstance(block, HostWrite) for block in load(recording)):  # GFXReconstruct's converter has none
            expected = [each for each in expected if each[2] != "host write"]
        # Nothing that a loader or driver needs: a search path that leads nowhere.
        ended = vkharness("check", "--json", findings, recording, VK_DRIVER_FILES="none", VK_ICD_FILENAMES="none")
        assert ended.returncode == (HAZARDS if expected else CLEAN), ended.stderr
        document = json.loads(findings.read_text())
        assert said(document) == expected
        assert document["unmodelled"] == seen.document["unmodelled"] == {}


NOT_IN_THE_CONVERTED = {"pData", "pValues", "ppData", "lineWidthGranularity", "hostWritesFound"}
"""Members that the converter leaves out or rounds, and those that differ by nature: heap addresses."""


def same(ours: Any, theirs: Any) -> bool:
    """Whether two values are the same as far as the converter tells."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        keys = (ours.keys() | theirs.keys()) - NOT_IN_THE_CONVERTED
        return all(key in ours and key in theirs and same(ours[key], theirs[key]) for key in keys)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(same(a, b) for a, b in zip(ours, theirs, strict=True))
    return bool(ours == theirs)


def test_the_capture_as_it_is_has_every_call_of_the_converted_one(captured: tuple[str, Run]) -> None:
    _, seen = captured
    assert seen.converted is not None
    ours, theirs = ([each for each in load(path) if isinstance(each, Call)] for path in (seen.capture, seen.converted))
    assert len(ours) == len(theirs) > 40
    for a, b in zip(ours, theirs, strict=True):
        assert (a.index, a.name, a.result) == (b.index, b.name, b.result)
        assert same(a.args, b.args), a.name


def test_the_capture_as_it_is_has_the_verdict_of_the_program(captured: tuple[str, Run], tmp_path: Path) -> None:
    """Of host writes, a capture holds what memory held afterwards. What the program overwrote after the device is not
    told from what the device wrote, so that such a finding may be missing, and none is added."""
    _, seen = captured
    findings = tmp_path / "capture.json"
    ended = vkharness("check", "--json", findings, seen.capture, VK_DRIVER_FILES="none", VK_ICD_FILENAMES="none")
    document = json.loads(findings.read_text())
    assert document["unmodelled"] == {} and ended.returncode == HAZARDS, ended.stderr
    by_device = [[each for each in said(made) if each[2] != "host write"] for made in (document, seen.document)]
    assert by_device[0] == by_device[1]
    by_host = [
        {(each[0], each[4]) for each in said(made) if each[2] == "host write"} for made in (document, seen.document)
    ]
    assert by_host[0] <= by_host[1]


def test_a_difference_between_two_recordings_is_seen() -> None:
    calls = ["vkCreateInstance", "vkCmdFillBuffer", "vkCmdCopyBuffer"]
    assert differences(calls, ["vkCreateInstance", "vkGetPhysicalDeviceProperties", *calls[1:]]) == []
    assert differences(calls, calls[:2]) == ["only in ours, call 3: vkCmdCopyBuffer"]
    assert differences(calls[:1], calls[:2]) == ["only in the capture, before call 2 of ours: vkCmdFillBuffer"]
    swapped = [calls[0], calls[2], calls[1]]
    assert differences(calls, swapped) != []
