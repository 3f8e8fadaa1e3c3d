"""Acceleration structures built and copied by real drivers, under the mirror: recorded before, and recorded here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.device.drivers import Driver, environment, find_drivers
from vkharness.findings import Finding
from vkharness.trace.calls import Block, Call
from vkharness.trace.codec import load

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data" / "structures"
BUILD, COPY = "vkCmdBuildAccelerationStructuresKHR", "vkCmdCopyAccelerationStructureKHR"
HAZARD = (
    "READ_AFTER_WRITE",
    COPY,
    "SYNC_ACCELERATION_STRUCTURE_COPY_ACCELERATION_STRUCTURE_READ",
    BUILD,
    "SYNC_ACCELERATION_STRUCTURE_BUILD_ACCELERATION_STRUCTURE_WRITE",
)


def recorded() -> list[Block]:
    """A stream that an NVIDIA driver took."""
    return load(DATA / "h100.jsonl")


def without(blocks: list[Block], name: str) -> list[Block]:
    return [block for block in blocks if not (isinstance(block, Call) and block.name == name)]


def what(finding: Finding) -> tuple[str, ...]:
    return (finding.hazard, finding.place.command, finding.access, finding.prior.command, finding.prior_access)


def test_a_recorded_build_and_copy() -> None:
    blocks = recorded()
    mirror = Analysis().follow(blocks)
    assert (mirror.findings, mirror.unmodelled, mirror.verdict) == ([], {}, "clean")
    assert agreement(blocks).disagreements == ()


def test_the_same_without_its_barrier() -> None:
    blocks = without(recorded(), "vkCmdPipelineBarrier")
    (finding,) = Analysis().follow(blocks).findings
    assert what(finding) == HAZARD
    sizes = next(b for b in blocks if isinstance(b, Call) and b.name == "vkGetAccelerationStructureBuildSizesKHR")
    assert finding.ranges == ((0, sizes.args["pSizeInfo"]["accelerationStructureSize"]),)
    assert (finding.place.site, finding.prior.site) == ("structures.py:111", "structures.py:107")
    assert agreement(blocks).disagreements == ()


def test_a_barrier_for_other_accesses_is_not_enough() -> None:
    blocks = recorded()
    (barrier,) = [b for b in blocks if isinstance(b, Call) and b.name == "vkCmdPipelineBarrier"]
    barrier.args["pMemoryBarriers"][0]["dstAccessMask"] = 0x20  # SHADER_READ: the build's inputs alone
    (finding,) = Analysis().follow(blocks).findings
    assert what(finding) == HAZARD


def barriers(blocks: list[Block]) -> list[Call]:
    return [each for each in blocks if isinstance(each, Call) and each.name == "vkCmdPipelineBarrier"]


def found_in(blocks: list[Block]) -> list[tuple[str, str, str | None, str | None]]:
    """Of each finding the hazard, the certainty and the lines of the two calls; both judges have the same."""
    assert agreement(blocks).disagreements == ()
    findings = Analysis().follow(blocks).findings
    return [(each.hazard, each.certainty, each.place.command, each.access) for each in findings]


READ = "ACCELERATION_STRUCTURE_READ"


def test_a_recorded_top_level_build_and_a_traversal() -> None:
    """The structures that were built, with the instances that the host wrote and the addresses of a driver."""
    blocks = load(DATA / "top_level.jsonl")
    after_bottom, after_top = barriers(blocks)
    assert Analysis().follow(blocks).verdict == "clean" and agreement(blocks).disagreements == ()
    assert found_in([each for each in blocks if each is not after_bottom]) == [
        ("READ_AFTER_WRITE", "exact", BUILD, f"SYNC_ACCELERATION_STRUCTURE_BUILD_{READ}")
    ]
    traced = ("READ_AFTER_WRITE", "declared", "vkCmdDispatch", f"SYNC_COMPUTE_SHADER_{READ}")
    assert found_in([each for each in blocks if each is not after_top]) == [traced, traced]


def run(driver: Driver, folder: Path, name: str, *words: str) -> tuple[str, list[dict[str, Any]], str]:
    """A program on a driver: what it printed, what was found, and the last line of why it failed."""
    found = folder / "found.json"
    program = str(ROOT / "tests" / "programs" / name)
    command = [sys.executable, "-c", "from vkharness.cli import main; main()", "run", "--json", str(found), program]
    variables = os.environ | environment(driver)
    done = subprocess.run(
        [*command, *words], cwd=ROOT, env=variables, capture_output=True, text=True, timeout=120, check=False
    )
    document = json.loads(found.read_text()) if found.exists() else {"findings": [], "unmodelled": {}}
    assert document["unmodelled"] == {} or done.returncode
    lines = [line for line in done.stderr.splitlines() if not line.startswith(("clean", "unknown"))]
    return done.stdout, document["findings"], lines[-1] if lines else f"died ({done.returncode})"


def test_on_a_driver_here(tmp_path: Path) -> None:
    """RADV without hardware offers acceleration structures, but that of Mesa 22.3 has no memory types, and dies in
    vkBeginCommandBuffer."""
    reasons = []
    for driver in find_drivers():
        said, findings, why = run(driver, tmp_path, "structures.py")
        if not said.startswith("built and cloned"):
            reasons.append(f"{driver.name}: {why}")
            continue
        assert findings == []
        _, findings, _ = run(driver, tmp_path, "structures.py", "wrong")
        keys = ("hazard", "command", "access", "prior_command", "prior_access")
        assert [tuple(each[key] for key in keys) for each in findings] == [HAZARD]
        shader = str(ROOT / "shaders" / "trace_ray.comp.spv")
        said, findings, why = run(driver, tmp_path, "top_level.py", shader)
        assert (said, findings) == ("hits 1 0 1 0\n", []), why
        for missing, count in (("bottom", 1), ("top", 2)):
            _, findings, _ = run(driver, tmp_path, "top_level.py", "without", missing, shader)
            assert [each["hazard"] for each in findings] == ["READ_AFTER_WRITE"] * count
        return
    pytest.skip("no driver here builds acceleration structures: " + "; ".join(reasons))


def test_a_replay_says_why_it_cannot_build() -> None:
    """The instances of a top level structure hold addresses of the run that was recorded."""
    if "lavapipe-25" not in [each.name for each in find_drivers()]:
        pytest.skip("no driver here has acceleration structures")
    words = ["replay", str(DATA / "h100.jsonl"), "--device", "lavapipe-25"]
    command = [sys.executable, "-c", "from vkharness.cli import main; main()", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert f"block 38: {BUILD} cannot be replayed: structures have other addresses" in done.stderr
