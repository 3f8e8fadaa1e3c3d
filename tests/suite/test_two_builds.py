"""A night of two builds of a driver, of which one breaks barriers: one page and one comparison name that first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.suite.test_broken_drivers import CLAIMS
from tests.support.fault_drivers import built
from tests.support.suite_runs import suite
from vkharness.cli.compare import compare
from vkharness.cli.report import report
from vkharness.device.faults.broken_promises import BREAKS


@pytest.mark.driver
def test_the_broken_build_is_told_from_the_other_in_the_first_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BREAKS, "fill-past-a-barrier")
    folders = [tmp_path / each for each in ("good", "bad")]
    manifest = built(tmp_path).manifest
    for folder, device in zip(folders, ("lavapipe", f"lavapipe={manifest}"), strict=True):
        folder.mkdir()
        ran = suite(folder, "--vk-device", device, "--vk-layer", "off", text=CLAIMS)
        assert ran.code == (device != "lavapipe"), ran.output
    good, bad = (str(each / "artifacts") for each in folders)
    changes = tmp_path / "changes.json"
    told = CliRunner().invoke(compare, [good, bad, "--json", str(changes)])
    start = "scenario_copy_reads_a_fill[whole-lavapipe"
    line = "the driver breaks barriers on lavapipe, always with vkCmdCopyBuffer, vkCmdFillBuffer: 2 rows, first "
    assert told.output.startswith(f"worse: {line}") and start in told.output.splitlines()[0]
    (story,) = json.loads(changes.read_text())["stories"]
    assert (story["promise"], story["devices"], len(story["rows"])) == ("barrier", ["lavapipe"], 2)
    page = tmp_path / "page"
    ran_report = CliRunner().invoke(report, [good, bad, "-o", str(page), "--sources", str(tmp_path)])
    assert ran_report.exit_code == 0, ran_report.output
    data = json.loads((page / "data" / "run.js").read_text().removeprefix("vkharness.take_run(").removesuffix(");\n"))
    ((heading, count, first),) = data["stories"]
    assert heading == line.replace("lavapipe", "lavapipe-2").partition(": ")[0]
    assert count == 2 and f"{start}-2]" in first
