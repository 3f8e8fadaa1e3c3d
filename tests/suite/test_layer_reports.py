"""A row at which a layer disagrees leaves a report for the layer's team, unless an expectation explains it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.suite_runs import suite
from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker
from vkharness.findings import UserError
from vkharness.layer.manifest import find_layer
from vkharness.suite.expectations import KnownDisagreement
from vkharness.suite.row import Row, settle, versions_of
from vkharness.trace.codec import load
from vkharness.verdicts import LayerVerdict, Status

ROOT = Path(__file__).resolve().parents[2]
CLAIM = '''"""Claims of a test."""

from vkharness.suite import Rig, scenario


@scenario(rule="buffer-regions-are-exact")
def scenario_tail(rig: Rig) -> None:
    """A fill of VK_WHOLE_SIZE leaves the last bytes."""
    a, b, c = rig.buffer(66), rig.buffer(66), rig.buffer()
    with rig.submission() as commands:
        commands.fill(c, 1)
        commands.fill(a, 2)
        commands.copy(a, b, (64, 0, 2))
'''
EXPECTATION = """[[expect]]
scenario = "{}/scenario_tail"
variant = "whole"
judge = "layer"
reason = "known"
"""
needs_layer = pytest.mark.skipif(find_layer("today") is None, reason="the Khronos layer is not installed")


def row(**layers: LayerVerdict) -> Row:
    return Row(
        "family/scenario_x", "whole", "lavapipe", [], layers={k[1:].replace("_", "."): v for k, v in layers.items()}
    )


def test_only_what_fails_a_row_is_reported() -> None:
    said = LayerVerdict(True, ("layer-only: x",))
    failing = row(v1_3_239=said, v1_4_364=LayerVerdict())
    settle(failing, [])
    assert [*versions_of(failing)] == ["1.3.239"]
    known = KnownDisagreement("family/scenario_x", "whole", "layer", "known")
    excused = row(v1_3_239=said)
    settle(excused, [known])
    assert [*versions_of(excused)] == [] and excused.status is Status.PASSED


@pytest.mark.driver
@pytest.mark.layer
@needs_layer
def test_the_run_writes_the_report(tmp_path: Path) -> None:
    arguments = ("--vk-device", "lavapipe", "--vk-layer", "today", "--vk-artifacts", "out")
    ran = suite(tmp_path, *arguments, text=CLAIM)
    layer = find_layer("today")
    assert layer is not None and ran.code == 1
    [name] = [path.parent.name for path in tmp_path.glob("out/*/scenario_tail")]
    folder = tmp_path / "out" / name / "scenario_tail" / "whole" / "lavapipe" / f"layer-{layer.version_text}"
    assert f"artifacts: {folder}" in ran.output
    report = (folder / "report.md").read_text(encoding="utf-8")
    assert report.startswith(f"# Khronos validation layer {layer.version_text}: {name}/scenario_tail [whole]\n")
    for line in ("A fill of VK_WHOLE_SIZE leaves the last bytes.", "Expected of it: no hazard.", "SYNC-HAZARD-READ"):
        assert line in report
    assert report.index("### Buffer regions are exact") < report.index("### Read after write")
    assert [each.name for each in load(folder / "trace.jsonl") if each.name.startswith("vkCmd")] == [  # type: ignore[union-attr]
        "vkCmdFillBuffer",
        "vkCmdCopyBuffer",
    ]
    lines = map(json.loads, (tmp_path / "out" / "results.jsonl").read_text(encoding="utf-8").splitlines())
    [told] = [line["row"] for line in lines if "row" in line]
    assert told["artifacts"] == [str(folder.relative_to(tmp_path / "out"))]
    (tmp_path / "expectations.toml").write_text(EXPECTATION.format(name))
    again = suite(tmp_path, *arguments[:-1], "again", text=CLAIM)
    assert again.code == 0, again.output
    assert list(tmp_path.glob("again/**/report.md")) == []


@needs_layer
def test_what_no_replay_plays_has_the_whole_trace(tmp_path: Path) -> None:
    """A swapchain is none below a replay: the report says so, and how the row is recorded anew."""
    try:
        driver = find_driver("swiftshader")
    except UserError:
        pytest.skip("SwiftShader is not installed")
    module = ROOT / "scenarios" / "presentation" / "scenario_frames.py"
    task = {
        "module": str(module),
        "scenario": "scenario_frame",
        "variant": "whole",
        "device": "swiftshader",
        "layer": "today",
        "folder": str(tmp_path),
        "repeat": "pytest the-row",
    }
    with Worker(driver) as worker:
        answer = worker.call("vkharness.suite.layer_reports:report_job", task)
    assert answer == {"report": str(tmp_path / "report.md")}
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "is not played below the layer: a replay does without swapchains" in report
    assert "```console\npytest the-row\n```" in report
    assert any(each.name == "vkQueuePresentKHR" for each in load(tmp_path / "trace.jsonl"))  # type: ignore[union-attr]
