"""The set-up of a nightly run: a broken driver, layer or claim is red, and the parts that were found are named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.suite_runs import CLAIM, layer_manifest, manifest, suite
from vkharness.device.drivers import find_driver
from vkharness.layer.manifest import find_layers
from vkharness.results.read_results import read_results
from vkharness.results.states import RowState

pytestmark = pytest.mark.driver
LAYERS = find_layers()
needs_layer = pytest.mark.skipif(
    not LAYERS, reason="the Khronos validation layer is not installed (ci/setup installs it)"
)
ON_LAVAPIPE = ("--vk-device", "lavapipe")
QUICK = (*ON_LAVAPIPE, "--vk-layer", "off")


def states(folder: Path) -> list[RowState]:
    return [each.state for each in read_results(folder / "artifacts").rows.values()]


@pytest.mark.parametrize("processes", [(), ("-n", "2")], ids=["one process", "several"])
def test_a_named_driver_that_does_not_start_is_an_error_before_collection(
    tmp_path: Path, processes: tuple[str, ...]
) -> None:
    broken = manifest(tmp_path / "mine_icd.json")
    ran = suite(tmp_path, *QUICK, "--vk-device", broken, *processes, text="raise RuntimeError('collected')")
    assert ran.code == pytest.ExitCode.USAGE_ERROR
    assert (
        f"ERROR: device mine ({broken}) cannot start: vkCreateInstance failed: VK_ERROR_INCOMPATIBLE_DRIVER"
        in ran.output
    )
    assert "the loader says: /nonexistent/libvk_mine.so: cannot open shared object file" in ran.output
    assert "collected" not in ran.output and not (tmp_path / "artifacts").exists()


@pytest.mark.parametrize("processes", [(), ("-n", "2")], ids=["one process", "several"])
def test_a_driver_that_nobody_named_and_that_does_not_start_is_an_error(
    tmp_path: Path, processes: tuple[str, ...]
) -> None:
    broken = manifest(tmp_path / "mine_icd.json")
    ran = suite(tmp_path, *processes, VK_DRIVER_FILES=str(broken))
    assert ran.code == pytest.ExitCode.USAGE_ERROR, ran.output
    assert f"device mine ({broken}) cannot start: vkCreateInstance failed: VK_ERROR_INCOMP" in ran.output
    assert "Traceback" not in ran.output and not (tmp_path / "artifacts").exists()


@pytest.mark.parametrize(
    "option", ["--vk-retries=-1", "--vk-native=x", "--vk-min-rows=1.5", "--vk-timeout=0", "--vk-time-limit=nan"]
)
def test_a_number_that_is_none(tmp_path: Path, option: str) -> None:
    ran = suite(tmp_path, *QUICK, option)
    assert ran.code == pytest.ExitCode.USAGE_ERROR and " is not a " in ran.output


@pytest.mark.parametrize(
    ("named", "message"),
    [
        (("--vk-device", "lavapip"), "no Vulkan driver 'lavapip' on this machine (found: "),
        (("--vk-device", "none/mine_icd.json"), "driver manifest none/mine_icd.json: No such file or directory"),
        (("--vk-device", "my driver=mine_icd.json"), "'my driver' is no name"),
        (("--vk-layer", "1.2.3"), "no Khronos layer 1.2.3 on this machine (found: "),
        (("--vk-layer", "newest"), "layer 'newest': neither 'old', 'today' nor a version such as 1.3.239"),
        (("--vk-layer", "none/layer.json"), "none/layer.json: No such file or directory"),
        (("--vk-layer", "./"), "no layer VK_LAYER_KHRONOS_validation in it"),
    ],
    ids=lambda value: value[1].split("/")[0] if isinstance(value, tuple) else "",
)
def test_what_is_not_there_is_one_line_before_collection(tmp_path: Path, named: tuple[str, ...], message: str) -> None:
    ran = suite(tmp_path, *ON_LAVAPIPE, *named, text="raise RuntimeError('collected')")
    assert ran.code == pytest.ExitCode.USAGE_ERROR
    assert [line for line in ran.output.splitlines() if line.startswith("ERROR: ") and message in line], ran.output
    assert "collected" not in ran.output


def test_a_path_that_pytest_takes_for_a_place_of_tests(tmp_path: Path) -> None:
    """The project's settings would be lost, and a second run would not find what the first one found."""
    project, kept = tmp_path / "project", tmp_path / "kept"
    project.mkdir()
    kept.mkdir()
    (project / "pytest.ini").write_text("[pytest]\npython_files = check_*.py\n")
    (project / "check_it.py").write_text("def test_it(): pass\n")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
        return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)

    refused = run("--vk-artifacts", str(kept))
    assert refused.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: pytest takes {kept} for a place of tests: write --vk-artifacts={kept}\n" in refused.stderr
    for arguments in ([f"--vk-artifacts={kept}"], ["--vk-artifacts", str(kept), "check_it.py"]):
        assert run(*arguments).returncode == pytest.ExitCode.OK


@needs_layer
@pytest.mark.parametrize("how", ["by its path", "by VK_LAYER_PATH"])
def test_a_layer_whose_library_is_missing_is_an_error(tmp_path: Path, how: str) -> None:
    path = layer_manifest(tmp_path / "layers" / "a.json", LAYERS[-1].manifest, library_path="/nonexistent/layer.so")
    if how == "by its path":
        ran = suite(tmp_path, *ON_LAVAPIPE, "--vk-layer", path)
    else:
        ran = suite(tmp_path, *ON_LAVAPIPE, VK_LAYER_PATH=str(path.parent))
    assert ran.code == pytest.ExitCode.USAGE_ERROR
    assert f"layer {LAYERS[-1].version_text} ({path}) cannot start on lavapipe: " in ran.output
    assert "the loader says: /nonexistent/layer.so: cannot open shared object file" in ran.output


def test_a_misspelt_dependency_is_an_error(tmp_path: Path) -> None:
    ran = suite(tmp_path, *QUICK, text=CLAIM.replace('without={"fill before', 'without={"fil before'))
    assert ran.code == pytest.ExitCode.TESTS_FAILED
    assert "no dependency 'fil before copy' was recorded (there are: fill before copy)" in ran.output
    assert states(tmp_path) == [RowState.PASS, RowState.FAIL]


LACKS = '''
@scenario(needs=["VK_GOOGLE_display_timing"])
def scenario_lacks(rig: Rig) -> None:
    """No device without a screen has what this needs."""
'''


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("VK_KHR_synchronisation2", "VK_KHR_synchronisation2; did you mean VK_KHR_synchronization2?"),
        ("no VK_KHR_maintenence7", "VK_KHR_maintenence7; did you mean VK_KHR_maintenance7?"),
        ("VK_EXT_debug_utils", "VK_EXT_debug_utils\n"),
    ],
)
def test_an_extension_that_no_device_can_have_is_an_error(tmp_path: Path, named: str, message: str) -> None:
    ran = suite(tmp_path, *QUICK, "-k", "lacks", text=CLAIM + LACKS.replace("VK_GOOGLE_display_timing", named))
    assert ran.code == pytest.ExitCode.TESTS_FAILED and states(tmp_path) == [RowState.FAIL]
    assert f"no device extension is called {message}" in ran.output


def test_what_a_device_lacks_is_skipped_and_counted(tmp_path: Path) -> None:
    ran = suite(tmp_path, *QUICK, "-k", "lacks", text=CLAIM + LACKS)
    assert ran.code == 0 and states(tmp_path) == [RowState.SKIP]
    name = read_results(tmp_path / "artifacts").header.devices[0].name
    assert f"skipped: 1 rows: {name} has no device extension VK_GOOGLE_display_timing" in ran.output


@pytest.mark.parametrize(("floor", "code"), [(2, 0), (3, 1)])
def test_a_floor_of_rows_that_ran(tmp_path: Path, floor: int, code: int) -> None:
    ran = suite(tmp_path, *QUICK, "--vk-min-rows", floor, text=CLAIM + LACKS)
    assert ran.code == code
    assert ("FAILED: 2 rows ran, and --vk-min-rows asks for 3" in ran.output) == bool(code)
    end = read_results(tmp_path / "artifacts").end
    assert end is not None and (end.rows, end.exit) == (3, code)


def test_drivers_by_path_by_name_and_twice(tmp_path: Path) -> None:
    lavapipe = find_driver("lavapipe")
    other = manifest(tmp_path / "build" / lavapipe.manifest.name, lavapipe.library)
    named = ["--vk-device", other, "--vk-device", "lavapipe", "--vk-device", f"mine={other}"]
    ran = suite(tmp_path, *named, "--vk-layer", "off")
    assert ran.code == 0, ran.output
    found = read_results(tmp_path / "artifacts")
    assert [(each.device, each.manifest) for each in found.header.devices] == [
        ("lavapipe", str(other)),
        ("lavapipe-2", str(lavapipe.manifest)),
        ("mine", str(other)),
    ]
    shown = tmp_path / "artifacts" / tmp_path.name
    for name in ("lavapipe", "lavapipe-2", "mine"):
        kept = {path.parents[1].name for path in shown.glob(f"*/*/{name}/trace.jsonl")}
        assert kept == {"without_fill_before_copy", *(["whole"] if name == "lavapipe" else [])}, "the first keeps both"
        assert f"device {name}: llvmpipe" in ran.output
    assert states(tmp_path) == [RowState.PASS] * 6


@needs_layer
def test_a_layer_by_path_and_two_of_one_version(tmp_path: Path) -> None:
    mine = layer_manifest(tmp_path / "mine" / "layer.json", LAYERS[0].manifest)
    ran = suite(tmp_path, *ON_LAVAPIPE, "--vk-layer", mine)
    assert ran.code == 0, ran.output
    found = read_results(tmp_path / "artifacts")
    assert [(each.version, each.manifest) for each in found.header.layers] == [(LAYERS[0].version_text, str(mine))]
    assert all(LAYERS[0].version_text in each.row["layers"] for each in found.rows.values())
    ran = suite(tmp_path, *ON_LAVAPIPE, "--vk-layer", mine, "--vk-layer", LAYERS[0].manifest)
    assert ran.code == pytest.ExitCode.USAGE_ERROR
    assert f"two layers of version {LAYERS[0].version_text}: {mine} and {LAYERS[0].manifest}" in ran.output


def test_the_loaders_variables_choose_the_drivers(tmp_path: Path) -> None:
    lavapipe = find_driver("lavapipe")
    mine = manifest(tmp_path / "mine_icd.json", lavapipe.library)
    ran = suite(tmp_path, "--vk-layer", "off", VK_DRIVER_FILES=str(mine))
    assert ran.code == 0, ran.output
    assert [each.device for each in read_results(tmp_path / "artifacts").header.devices] == ["mine"]
    ran = suite(tmp_path, "--vk-layer", "off", "--vk-device", lavapipe.manifest, VK_DRIVER_FILES=str(mine))
    assert f"note: lavapipe runs from {lavapipe.manifest}, which VK_DRIVER_FILES does not list" in ran.output
    ran = suite(tmp_path, *QUICK, VK_ADD_DRIVER_FILES=str(mine))
    assert f"note: {mine} is listed by VK_ADD_DRIVER_FILES and does not run: no --vk-device names it" in ran.output
    added = suite(tmp_path, "--vk-layer", "off", VK_ADD_DRIVER_FILES=str(mine))
    assert added.code == 0
    assert "mine" in [each.device for each in read_results(tmp_path / "artifacts").header.devices]


@needs_layer
def test_a_layer_that_the_loaders_variable_leaves_out_is_asked_aloud(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    path = LAYERS[0].manifest
    ran = suite(tmp_path, *ON_LAVAPIPE, "--vk-layer", path, VK_LAYER_PATH=str(tmp_path / "none"))
    said = f"note: layer {LAYERS[0].version_text} is asked from {path}, which VK_LAYER_PATH does not list"
    assert said in ran.output and ran.code == 0


def test_the_head_of_a_run_says_what_it_runs_on(tmp_path: Path) -> None:
    ran = suite(tmp_path, *QUICK, VKHARNESS_SEED="7")
    header = read_results(tmp_path / "artifacts").header
    (device,) = header.devices
    assert f"vkharness {header.harness}, Python {header.python}, loader {header.loader}, seed 7" in ran.output
    assert (
        f"device lavapipe: {device.name}, API {device.api_version}, {device.driver_version}, UUID {device.uuid} ("
        in ran.output
    )
    assert len(device.uuid) == 32 and "layer: none is asked" in ran.output
