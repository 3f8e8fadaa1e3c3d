"""Layers that keep one class of messages to themselves: rows notice, and say which rule is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.suite_runs import FILE
from vkharness.findings import Hazard
from vkharness.layer.compare import Comparison
from vkharness.layer.enable import environment
from vkharness.layer.manifest import KHRONOS_LAYER, LayerInfo, find_layer, find_layers
from vkharness.suite.mutation import layer_mutants
from vkharness.suite.mutation.layer_mutants import CLASSES, ENOUGH, MessageClass, SilentLayer, silence, suite_rows

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "scenarios"
CLEAN = '''"""Claims of a test."""

from vkharness.suite import Rig, scenario


@scenario()
def scenario_fill(rig: Rig) -> None:
    """One fill needs no dependency."""
    with rig.submission() as commands:
        commands.fill(rig.buffer(), 1)
'''
BY_NAME = {each.name: each for each in CLASSES}
NOT_INSTALLED = pytest.param(None, marks=pytest.mark.skip("the Khronos layer is not installed"))
on_each_layer = pytest.mark.parametrize(
    "layer", [*find_layers()] or [NOT_INSTALLED], ids=lambda layer: layer.version_text if layer else "none"
)


def said_by(layer: LayerInfo, silenced: MessageClass, *paths: Path) -> SilentLayer:
    [told] = silence([(layer, silenced)], paths, "lavapipe", 1)
    return told


def mutate_layers(file: Path) -> subprocess.CompletedProcess[str]:
    """`vkharness mutate --layers` on the rows of one file."""
    words = [sys.executable, "-m", "vkharness", "mutate", "--layers", "--layer", "today", "--jobs", "1", str(file)]
    return subprocess.run(words, cwd=ROOT / "harness", capture_output=True, text=True, check=False)


def test_each_class_has_hazards_of_ours_and_a_message_of_its_own() -> None:
    known = {*map(str, Hazard)}
    assert all(known.intersection(each.hazards) for each in CLASSES)
    ids = [id for each in CLASSES for id in each.ids]
    assert len(ids) == len({*ids}) and all(id.startswith("SYNC-") for id in ids) and len(BY_NAME) == len(CLASSES)
    assert "SYNC-vkCmdSetEvent2KHR-missingbarrier-set" in BY_NAME["set-event-set-race"].ids


@pytest.mark.parametrize(
    ("extension", "list_of_two"), [("VK_EXT_layer_settings", "a,b"), ("VK_EXT_validation_features", "a:b")]
)
def test_a_layer_is_told_in_its_own_words(extension: str, list_of_two: str) -> None:
    layer = LayerInfo(KHRONOS_LAYER, (1, 4, 364), "lib.so", Path("x.json"), (extension,), ("a", "b"))
    assert environment(layer)["VK_LAYER_MESSAGE_ID_FILTER"] == list_of_two
    whole = LayerInfo(KHRONOS_LAYER, (1, 4, 364), "lib.so", Path("x.json"), (extension,))
    assert "VK_LAYER_MESSAGE_ID_FILTER" not in environment(whole)


def test_rows_are_those_with_hazards_from_each_file_in_turn() -> None:
    files = [SCENARIOS / "access" / f"scenario_{name}.py" for name in ("buffers", "images")]
    rows = [*suite_rows(files)]
    assert [Path(file) for (file, _, _), _ in rows[:4]] == [*files, *files]
    assert all(variant != "whole" and expected for (_, _, variant), expected in rows[:4])
    assert any("WRITE_AFTER_READ" in expected for _, expected in rows)


@pytest.mark.driver
@pytest.mark.layer
@on_each_layer
def test_a_lost_class_is_noticed_and_its_rule_named(layer: LayerInfo) -> None:
    told = said_by(layer, BY_NAME["write-after-read"], SCENARIOS / "access" / "scenario_buffers.py")
    assert (told.version, told.problem, told.lives) == (layer.version_text, "", False)
    assert 0 < len(told.noticed) <= min(told.asked, ENOUGH)
    assert told.rules == ["write-after-read"]
    assert all(line.startswith("ours-only at record") and "WRITE_AFTER_READ" in line for line in told.noticed.values())
    counted = f"{len(told.noticed)} of {told.asked} rows notice, first access/"
    assert f"without write-after-read: lost docs/rules.md#write-after-read: {counted}" in str(told)


@pytest.mark.driver
@pytest.mark.layer
@on_each_layer
def test_an_event_rule_has_other_names_in_each_version(layer: LayerInfo) -> None:
    told = said_by(layer, BY_NAME["reset-event-set-race"], SCENARIOS / "event")
    assert told.rules == ["a-reset-must-come-after-a-set"] and len(told.noticed) == ENOUGH


@pytest.mark.skipif(find_layer("today") is None, reason="the Khronos layer is not installed")
def test_a_layer_that_speaks_all_the_same_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"SYNC-HAZARD-WRITE-AFTER-READ"}, Comparison(agreed=1)
    monkeypatch.setattr(layer_mutants, "_recorded", lambda claim, variant, layer: said)
    rows = [row for row, of in suite_rows([SCENARIOS / "access" / "scenario_buffers.py"]) if "WRITE_AFTER_READ" in of]
    told = layer_mutants.run("today", "write-after-read", rows)
    assert (told["asked"], told["noticed"], told["problem"]) == (0, {}, "it does not keep the messages to itself")


def test_the_words() -> None:
    told = SilentLayer("1.4.364", "read-racing-write", 2)
    assert str(told) == "layer 1.4.364 without read-racing-write: no row notices of 2" and told.lives
    told.explained.append("an-entry")
    assert str(told).endswith("no row notices of 2, as differences are known: an-entry")
    never = SilentLayer("1.4.364", "read-racing-write")
    assert str(never).endswith("nothing is lost, as it says this at no row") and not never.lives
    dead = SilentLayer("1.4.364", "read-racing-write", problem="died")
    assert str(dead).endswith("not judged: died") and dead.lives


@pytest.mark.driver
@pytest.mark.layer
@pytest.mark.skipif(find_layer("today") is None, reason="the Khronos layer is not installed")
def test_the_command() -> None:
    ran = mutate_layers(SCENARIOS / "access" / "scenario_buffers.py")
    lines = ran.stdout.splitlines()
    assert (ran.returncode, ran.stderr) == (0, "") and len(lines) == len(CLASSES) + 1
    assert lines[-1] == "3 of 3 classes that layers lost are noticed"


@pytest.mark.skipif(find_layer("today") is None, reason="the Khronos layer is not installed")
def test_no_row_at_all_is_a_failure(tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_text(CLEAN)
    ran = mutate_layers(file)
    assert (ran.returncode, ran.stdout.splitlines()[-1]) == (1, "0 of 0 classes that layers lost are noticed")
