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
    return load(Path(__file__).parents[1] / "data" / "structures" / "h100.jsonl")


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


def run(driver: Driver, folder: Path, *words: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """The program on a driver: how it ended, and what was found."""
    found = folder / "found.json"
    program = str(ROOT / "tests" / "programs" / "structures.py")
    command = [sys.executable, "-c", "from vkharness.cli import main; main()", "run", "--json", str(found), program]
    variables = os.environ | environment(driver)
    done = subprocess.run(
        [*command, *words], cwd=ROOT, env=variables, capture_output=True, text=True, timeout=120, check=False
    )
    return done, json.loads(found.read_text()) if found.exists() else {}


def test_on_a_driver_here(tmp_path: Path) -> None:
    """Software drivers have no acceleration structures. RADV without hardware offers them, but that of Mesa 22.3 has no
    memory types, and dies in vkBeginCommandBuffer."""
    reasons = []
    for driver in find_drivers():
        if driver.kind == "software":
            continue
        done, document = run(driver, tmp_path)
        if done.stdout.startswith("built and cloned"):
            assert (document["findings"], document["unmodelled"]) == ([], {})
            _, document = run(driver, tmp_path, "wrong")
            keys = ("hazard", "command", "access", "prior_command", "prior_access")
            assert [tuple(each[key] for key in keys) for each in document["findings"]] == [HAZARD]
            return
        lines = [line for line in done.stderr.splitlines() if not line.startswith(("clean", "unknown"))]
        reasons.append(f"{driver.name}: {lines[-1] if lines else f'died ({done.returncode})'}")
    pytest.skip("no driver here builds acceleration structures: " + ("; ".join(reasons) or "none has a GPU"))
