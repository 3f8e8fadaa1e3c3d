"""The user's settings of layers do not reach a layer that the harness asks, wherever they stand.

Without what `LayerListener` does about them, each of these settings but `VK_INSTANCE_LAYERS` takes messages from
1.3.239 or 1.4.364; a file in the current folder does so where a worker does not keep it out either.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.layer_jobs import FILLS
from vkharness.device.drivers import find_driver
from vkharness.device.layer_settings import NO_SETTINGS, put_aside
from vkharness.device.process import Worker
from vkharness.layer.manifest import KHRONOS_LAYER, LayerInfo, find_layers

ROOT = Path(__file__).parents[2]
JOBS = "tests.support.layer_jobs"
NOT_INSTALLED = pytest.param(None, marks=pytest.mark.skip("the Khronos layer is not installed"))
on_each_layer = pytest.mark.parametrize(
    "layer", [*find_layers()] or [NOT_INSTALLED], ids=lambda layer: layer.version_text if layer else "none"
)

ONE_CHECK = "VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT"
ALL = "VK_VALIDATION_FEATURE_DISABLE_ALL_EXT"
MUTED = "SYNC-HAZARD-READ-AFTER-WRITE,SYNC-HAZARD-WRITE-AFTER-WRITE"
VARIABLES = {
    "VK_LAYER_ENABLES": ONE_CHECK,
    "VK_LAYER_DISABLES": ALL,
    "VK_LAYER_VALIDATE_SYNC": "0",
    "VK_LAYER_DUPLICATE_MESSAGE_LIMIT": "1",
    "VK_LAYER_MESSAGE_ID_FILTER": MUTED,
    "VK_VALIDATION_ENABLES": ONE_CHECK,
    "VK_VALIDATION_DISABLES": ALL,
    "VK_VALIDATION_MESSAGE_ID_FILTER": MUTED,
    "VK_KHRONOS_VALIDATION_VALIDATE_SYNC": "0",
    "VK_KHRONOS_VALIDATION_SYNCVAL_FULL_VALIDATION": "0",
    "VK_KHRONOS_VALIDATION_MESSAGE_ID_FILTER": MUTED,
    "VK_INSTANCE_LAYERS": KHRONOS_LAYER,
}
FILE = f"""khronos_validation.disables = {ALL}
khronos_validation.validate_sync = false
khronos_validation.message_id_filter = {MUTED}
khronos_validation.report_flags =
"""


def written(folder: Path) -> Path:
    """A file of settings that silence every layer."""
    folder.mkdir(parents=True)
    (folder / "vk_layer_settings.txt").write_text(FILE)
    return folder


def speaks(layer: LayerInfo, **variables: str) -> None:
    """Asserts that the layer reports every hazard in a process that has those variables."""
    with Worker(find_driver("lavapipe"), packages=["tests"], variables=variables) as worker:
        said = worker.call(f"{JOBS}:count_hazards", {"layer": str(layer.manifest)})
    assert said == {"recorded": FILLS, "submitted": 1}


@on_each_layer
@pytest.mark.parametrize("name", VARIABLES)
def test_a_variable_of_the_user(layer: LayerInfo, name: str) -> None:
    speaks(layer, **{name: VARIABLES[name]})


@on_each_layer
@pytest.mark.parametrize("place", ["", "vk_layer_settings.txt"], ids=["folder", "file"])
def test_a_settings_path_of_the_user(layer: LayerInfo, place: str, tmp_path: Path) -> None:
    speaks(layer, VK_LAYER_SETTINGS_PATH=str(written(tmp_path / "mine") / place))


@on_each_layer
def test_a_settings_file_in_the_current_folder(
    layer: LayerInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(written(tmp_path / "mine"))
    speaks(layer)


@on_each_layer
@pytest.mark.parametrize(("variable", "below"), [("HOME", ".local/share"), ("XDG_DATA_HOME", "")])
def test_a_settings_file_of_a_configurator(layer: LayerInfo, variable: str, below: str, tmp_path: Path) -> None:
    written(tmp_path / below / "vulkan" / "settings.d")
    speaks(layer, **{variable: str(tmp_path)})


def test_a_worker_has_no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("VK_LAYER_PATH", "/layers")
    with Worker(packages=["tests"], variables={"VK_LAYER_ENABLES": "ours"}) as worker:
        found = worker.call(f"{JOBS}:variables")
    assert isinstance(found, dict)
    assert found.keys() & VARIABLES.keys() == {"VK_LAYER_ENABLES"}
    expected = {"VK_LAYER_ENABLES": "ours", "VK_LAYER_PATH": "/layers", **NO_SETTINGS}
    assert {name: found[name] for name in expected} == expected


def test_what_is_put_aside_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(written(tmp_path / "mine"))
    written(tmp_path / ".local/share/vulkan/settings.d")
    mine = {"VK_LOADER_LAYERS_DISABLE": "~all~", "VK_LOADER_LAYERS_ALLOW": "*", "VK_LAYER_PATH": "/layers"}
    found = put_aside({**VARIABLES, **mine, "HOME": str(tmp_path)})
    files = ["vk_layer_settings.txt", f"{tmp_path}/.local/share/vulkan/settings.d/vk_layer_settings.txt"]
    assert found == [*sorted({*VARIABLES, *mine} - {"VK_LAYER_PATH"}), *files]
    assert put_aside({**NO_SETTINGS, "VK_LOADER_LAYERS_DISABLE": "~implicit~", "HOME": "/nonexistent"}) == files[:1]


def test_the_head_of_a_run_says_what_is_put_aside(tmp_path: Path) -> None:
    words = ["-m", "pytest", "-p", "no:cacheprovider", str(ROOT / "examples" / "scenario_own.py")]
    ran = subprocess.run(
        [sys.executable, *words, "-k", "scenario", "--vk-device", "lavapipe"],
        cwd=ROOT,
        env={**os.environ, "VK_LAYER_ENABLES": "mine"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "note: put aside, so that layers do as the suite asks: VK_LAYER_ENABLES" in ran.stdout, ran.stdout
