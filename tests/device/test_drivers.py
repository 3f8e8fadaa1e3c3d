"""Drivers and layers by their manifests, and a real device made with each software driver."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from vkharness.device.drivers import chosen_drivers, environment, find_driver, find_drivers, software_devices
from vkharness.device.inventory import loader_lines
from vkharness.device.manifests import (
    MANIFEST_LIMIT,
    cache_folder,
    find_layers,
    layers_of,
    search_folders,
    when_it_loads,
)
from vkharness.device.process import Died, Worker
from vkharness.findings import UserError

SURVEY = "vkharness.device.survey:survey_job"


@pytest.fixture
def elsewhere(tmp_path: Path) -> dict[str, str]:
    """An environment whose search folders are all below tmp_path and empty."""
    names = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_DIRS")
    return {name: str(tmp_path / name.lower()) for name in names}


def icd(path: Path, library: str = "./lib.so", **more: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"file_format_version": "1.0.0", "ICD": {"library_path": library, **more}}))
    return path


def own(drivers: list[Any], root: Path) -> list[Any]:
    return [driver for driver in drivers if driver.manifest.is_relative_to(root)]


def test_known_stems_get_their_short_names(tmp_path: Path, elsewhere: dict[str, str]) -> None:
    folder = tmp_path / "xdg_data_dirs" / "vulkan" / "icd.d"
    for name in (
        "lvp_icd.x86_64.json",
        "nvidia_icd.json",
        "mine_icd.aarch64.json",
        "vk_swiftshader_icd.json",
        "lavapipe-25_icd.json",
    ):
        icd(folder / name, api_version="1.3.7")
    found = {driver.name: driver for driver in own(find_drivers(environ=elsewhere), tmp_path)}
    assert {name: driver.kind for name, driver in found.items()} == {
        "lavapipe": "software",
        "nvidia": "hardware",
        "mine": "unknown",
        "lavapipe-25": "software",
        "swiftshader": "software",
    }
    assert found["mine"].api_version == "1.3.7"
    assert found["mine"].library == str(folder / "lib.so")


def test_radv_is_also_a_driver_without_hardware(tmp_path: Path, elsewhere: dict[str, str]) -> None:
    icd(tmp_path / "xdg_data_home" / "vulkan" / "icd.d" / "radeon_icd.x86_64.json")
    drivers = own(find_drivers(environ=elsewhere), tmp_path)
    assert [driver.name for driver in drivers] == ["radv", "radv-null"]
    hardware, null = (environment(driver, elsewhere) for driver in drivers)
    assert "RADV_FORCE_FAMILY" not in hardware
    assert null["RADV_FORCE_FAMILY"]


@pytest.mark.parametrize("variable", ["VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES"])
def test_the_loaders_variables_come_first(tmp_path: Path, elsewhere: dict[str, str], variable: str) -> None:
    icd(tmp_path / "xdg_data_home" / "vulkan" / "icd.d" / "lvp_icd.json")
    mine = icd(tmp_path / "build" / "lvp_icd.json", library="liblvp.so")
    for place in (mine, mine.parent):
        driver = find_driver("lavapipe", {**elsewhere, variable: str(place)})
        assert (driver.manifest, driver.library) == (mine, "liblvp.so")


@pytest.mark.parametrize(
    ("name", "file"), [("swiftshader", "vk_swiftshader_icd.json"), ("lavapipe-25", "lavapipe-25_icd.json")]
)
def test_the_cache_folder_is_searched(name: str, file: str, elsewhere: dict[str, str]) -> None:
    path = icd(cache_folder(elsewhere) / name / file)
    assert find_driver(name, elsewhere).manifest == path


def test_two_builds_of_one_driver_are_two_drivers(tmp_path: Path, elsewhere: dict[str, str]) -> None:
    """Where no driver is named, scenarios run on each software driver that is there."""
    icd(tmp_path / "xdg_data_home" / "vulkan" / "icd.d" / "lvp_icd.x86_64.json")
    icd(cache_folder(elsewhere) / "lavapipe-25" / "lavapipe-25_icd.json")
    assert software_devices(elsewhere) == ("lavapipe", "lavapipe-25")
    assert [each.name for each in chosen_drivers((), elsewhere)] == ["lavapipe", "lavapipe-25"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ("{}", "no ICD object"),
        ('{"ICD": {}}', "no library_path"),
        ("[" * 100_000, "not JSON"),
        (" " * (MANIFEST_LIMIT + 1), "larger than"),
    ],
    ids=["truncated", "array", "empty", "no-library", "deep", "huge"],
)
def test_a_bad_manifest_is_a_problem_not_a_failure(
    tmp_path: Path, elsewhere: dict[str, str], text: str, reason: str
) -> None:
    path = tmp_path / "xdg_data_home" / "vulkan" / "icd.d" / "bad_icd.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    problems: list[str] = []
    assert own(find_drivers(problems, elsewhere), tmp_path) == []
    assert [problem for problem in problems if problem.startswith(f"{path}: ") and reason in problem]
    with pytest.raises(UserError, match=reason):
        find_driver(str(path), elsewhere)


def test_an_unknown_driver_says_what_there_is(tmp_path: Path, elsewhere: dict[str, str]) -> None:
    icd(tmp_path / "xdg_data_home" / "vulkan" / "icd.d" / "mine_icd.json")
    with pytest.raises(UserError, match=r"no Vulkan driver 'swiftshader' .*mine.*ci/setup") as caught:
        find_driver("swiftshader", elsewhere)
    assert "\n" not in str(caught.value)


def test_a_driver_can_be_given_by_its_manifest(tmp_path: Path) -> None:
    path = icd(tmp_path / "mine_icd.json")
    assert find_driver(str(path)).name == "mine"
    with pytest.raises(UserError, match="No such file"):
        find_driver(str(tmp_path / "none.json"))


def test_implicit_layers_are_kept_out_of_a_child(tmp_path: Path, elsewhere: dict[str, str]) -> None:
    folder = tmp_path / "xdg_data_home" / "vulkan" / "implicit_layer.d"
    folder.mkdir(parents=True)
    layer = {"name": "VK_LAYER_X_y", "library_path": "./x.so", "disable_environment": {"NO_X": "1"}}
    (folder / "x.json").write_text(json.dumps({"layers": [layer]}))
    driver = find_driver(str(icd(tmp_path / "mine_icd.json")))
    assert environment(driver, elsewhere)["NO_X"] == "1"
    assert environment(driver, elsewhere)["VK_LOADER_LAYERS_DISABLE"] == "~implicit~"


@pytest.mark.parametrize(
    ("said", "environ", "when"),
    [
        ({}, {}, "by itself"),
        ({"disable_environment": {"NO_X": "1"}}, {}, "by itself, without NO_X"),
        ({"disable_environment": {"NO_X": "1"}}, {"NO_X": "0"}, "not here: NO_X is set"),
        ({"disable_environment": {"NO_X": "1"}, "enable_environment": {"X": "1"}}, {}, "only with X=1"),
        ({"disable_environment": {"NO_X": "1"}, "enable_environment": {"X": "1"}}, {"X": "2"}, "only with X=1"),
        ({"disable_environment": {"NO_X": "1"}, "enable_environment": {"X": "1"}}, {"X": "1"}, "here with X=1"),
        ({"enable_environment": 3}, {}, "by itself"),
    ],
)
def test_an_implicit_layer_says_by_which_variables_it_loads(
    tmp_path: Path, said: dict[str, Any], environ: dict[str, str], when: str
) -> None:
    (tmp_path / "x.json").write_text(json.dumps({"layer": {"name": "VK_LAYER_X_y", "library_path": "./x.so", **said}}))
    (layer,) = layers_of(tmp_path / "x.json", True)
    assert when_it_loads(layer, environ) == when


def test_another_layer_loads_when_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps({"layer": {"name": "VK_LAYER_X_y", "library_path": "./x.so"}}))
    (layer,) = layers_of(tmp_path / "x.json", False)
    assert when_it_loads(layer, {"VK_INSTANCE_LAYERS": "VK_LAYER_X_z"}) == "when asked for"
    named = when_it_loads(layer, {"VK_INSTANCE_LAYERS": "VK_LAYER_X_z:VK_LAYER_X_y"})
    assert named == "here: VK_INSTANCE_LAYERS names it"


def test_no_pipeline_comes_from_another_program(tmp_path: Path, elsewhere: dict[str, str]) -> None:
    """NVIDIA's cache on disk forgets with which flags a pipeline was made. What Mesa keeps is right, and saves time."""
    driver = find_driver(str(icd(tmp_path / "nvidia_icd.json")))
    variables = environment(driver, {**elsewhere, "__GL_SHADER_DISK_CACHE": "1"})
    assert variables["__GL_SHADER_DISK_CACHE"] == "0"
    assert not any(name.startswith("MESA") for name in variables)


def test_relative_search_folders_are_passed_over(elsewhere: dict[str, str]) -> None:
    folders = search_folders("icd.d", {**elsewhere, "XDG_DATA_DIRS": f"relative{os.pathsep}/absolute"})
    assert Path("/absolute/vulkan/icd.d") in folders
    assert all(folder.is_absolute() for folder in folders)


def test_the_khronos_layer_is_found() -> None:
    assert "VK_LAYER_KHRONOS_validation" in {layer.name for layer in find_layers()}


@pytest.mark.parametrize("name", ["lavapipe", "swiftshader"])
def test_a_software_driver_can_do_what_streams_need(name: str) -> None:
    with Worker(find_driver(name)) as worker:
        answer = worker.call(SURVEY)
    assert not isinstance(answer, Died), answer
    (device,) = answer["devices"]
    assert device["executes"] and device["memory_types"]
    assert {"graphics", "compute", "synchronization2", "timeline semaphores"} <= set(device["abilities"])
    assert device["api_version"].startswith(("1.3.", "1.4."))


def test_the_driver_without_hardware_survives_being_asked() -> None:
    with Worker(find_driver("radv-null")) as worker:
        answer = worker.call(SURVEY)
    assert not isinstance(answer, Died), answer
    assert [device["executes"] for device in answer["devices"]] == [False]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"features": ["noSuchFeature"]}, "has no feature noSuchFeature"),
        ({"device_extensions": ["VK_GOOGLE_display_timing"]}, "has no device extension VK_GOOGLE_display_timing"),
        ({"layers": ["VK_LAYER_NO_such"]}, "has no layer VK_LAYER_NO_such"),
        ({"queues": [1, 1]}, "has no further queue"),
        ({"physical_device": 7}, "no physical device 7"),
    ],
)
def test_a_device_without_what_is_required_says_so(request_: dict[str, Any], message: str) -> None:
    with Worker(find_driver("lavapipe"), packages=["tests"]) as worker:
        answer = worker.call("tests.support.process_jobs:headless", {"request": request_})
    assert not isinstance(answer, Died), answer
    assert answer["device"] == ""
    assert message in answer["error"]


def test_a_device_with_what_is_required_opens() -> None:
    request = {"features": ["synchronization2"], "device_extensions": ["VK_KHR_push_descriptor"], "queues": [4]}
    with Worker(find_driver("lavapipe"), packages=["tests"]) as worker:
        answer = worker.call("tests.support.process_jobs:headless", {"request": request})
    assert isinstance(answer, dict)
    assert answer["device"].startswith("llvmpipe")


def test_a_machine_without_the_driver_says_so(tmp_path: Path) -> None:
    driver = find_driver(str(icd(tmp_path / "mine_icd.json", library="./absent.so", api_version="1.3.0")))
    with Worker(driver) as worker, pytest.raises(UserError, match="vkCreateInstance failed"):
        worker.call(SURVEY)


@pytest.mark.parametrize(
    "line",
    [
        "ERROR:             vkCreateInstance: Found no drivers!",
        "ERROR | DRIVER:    vkCreateInstance: Found no drivers!",
        "[Vulkan Loader] ERROR | DRIVER:           vkCreateInstance: Found no drivers!",  # 1.4.309
    ],
)
def test_lines_of_every_loader_are_told_from_what_a_driver_prints(line: str) -> None:
    ours = "[Vulkan Loader] WARNING | LAYER: Layer disabled through environment variable VK_LOADER_LAYERS_DISABLE"
    assert loader_lines(f"a driver speaks\n{ours}\n{line}\n{line}\n") == ["vkCreateInstance: Found no drivers!"]
