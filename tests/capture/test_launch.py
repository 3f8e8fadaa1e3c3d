"""Programs under the capture layer: which files they leave, how they end, on which display."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.capture import capture_folder
from vkharness.capture.display import display
from vkharness.capture.launch import CapturedProcess, _Gatherer, number_instances, run_captured
from vkharness.capture.layer import NAME, capture_environment, capture_layer
from vkharness.device.drivers import environment, find_driver
from vkharness.findings import UserError

PROGRAM = Path(__file__).parents[1] / "programs" / "fill_copy.py"


def captured_in(folder: Path, command: list[str], **more: str) -> dict[str, str]:
    """The environment in which a program's calls go to `folder`, on lavapipe."""
    capture_folder()
    own = {**environment(find_driver("lavapipe")), **more}
    layer = capture_layer()
    return capture_environment(layer, folder / "calls.gfxr", {**os.environ, **own}, page_faults=False)


def run_in(folder: Path, command: list[str]) -> tuple[int, list[CapturedProcess]]:
    """Exit status and captures of a command."""
    ended = run_captured(command, folder, captured_in(folder, command))
    return ended.end.exit_code, ended.captures


def test_each_process_leaves_its_calls(tmp_path: Path) -> None:
    one = f"{sys.executable} {PROGRAM}"
    status, captures = run_in(tmp_path, ["sh", "-c", f"{one} && {one}; exit 7"])
    assert status == 7
    assert len({each.path for each in captures}) == len(captures) == 2
    for each in captures:
        assert each.path.read_bytes().startswith(b"GFXR")


def test_a_program_that_is_killed_leaves_what_came_before(tmp_path: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(PROGRAM.parent)!r}); import rig, os; rig.Rig(); os.abort()"
    folder = tmp_path / "files"
    folder.mkdir()
    command = [sys.executable, "-c", code]
    ended = run_captured(command, folder, captured_in(folder, command))
    assert (ended.end.exit_code, ended.end.signal) == (134, "SIGABRT")
    assert [each.path.stat().st_size > 1000 for each in ended.captures] == [True]


def test_a_program_without_calls_leaves_nothing(tmp_path: Path) -> None:
    assert run_in(tmp_path, ["true"]) == (0, [])


def test_a_program_that_does_not_start_is_one_line(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF but not really")
    program.chmod(0o755)
    with pytest.raises(UserError, match="program: cannot be started: Exec format error"):
        run_captured([str(program)], tmp_path, os.environ)


def test_files_of_one_name_are_kept_apart(tmp_path: Path) -> None:
    gatherer = _Gatherer()
    for content in (b"one", b"two"):
        file = tmp_path / "calls_20261122T120000.gfxr"
        file.write_bytes(content)
        gatherer.take(file)
    assert [each.path.read_bytes() for each in gatherer.captures] == [b"one", b"two"]


def test_a_file_that_two_processes_hold_is_shared(tmp_path: Path) -> None:
    import subprocess

    file = tmp_path / "calls_20261122T120000.gfxr"
    file.touch()
    with file.open("wb") as held:
        both = [subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=held) for _ in range(2)]
        gatherer = _Gatherer()
        gatherer.take(file)
        for each in both:
            each.communicate()
    assert gatherer.captures[0].shared


def test_settings_of_the_user_stay(tmp_path: Path) -> None:
    capture_folder()
    own = {
        "GFXRECON_MEMORY_TRACKING_MODE": "assisted",
        "VK_INSTANCE_LAYERS": "VK_LAYER_OTHER",
        "HOME": os.environ["HOME"],
    }
    made = capture_environment(capture_layer(), tmp_path / "calls.gfxr", own)
    assert made["GFXRECON_MEMORY_TRACKING_MODE"] == "assisted"
    assert made["VK_INSTANCE_LAYERS"] == f"{NAME}{os.pathsep}VK_LAYER_OTHER"


def test_a_missing_layer_is_one_line(tmp_path: Path) -> None:
    nowhere = {"HOME": str(tmp_path), "VK_LAYER_PATH": str(tmp_path), "XDG_DATA_DIRS": str(tmp_path)}
    with pytest.raises(UserError, match="no capture layer"):
        capture_layer(nowhere)


def test_a_display_is_made_where_there_is_none() -> None:
    if not any(os.access(Path(each) / "Xvfb", os.X_OK) for each in os.get_exec_path()):
        pytest.skip("no Xvfb on this machine; ci/setup installs it")
    with display("auto", {"PATH": os.environ["PATH"]}) as made:
        assert made["DISPLAY"].startswith(":")
    with display("auto", {"DISPLAY": ":7"}) as made:
        assert made["DISPLAY"] == ":7"
    with display("none", {"DISPLAY": ":7", "WAYLAND_DISPLAY": "w", "HOME": "h"}) as made:
        assert made == {"HOME": "h"}


def test_instances_of_one_process_are_told_apart() -> None:
    captures = [
        CapturedProcess(Path("a"), 7, "mpv"),
        CapturedProcess(Path("b"), 8, "sh"),
        CapturedProcess(Path("c"), 7, "mpv"),
    ]
    number_instances(captures)
    assert list(map(str, captures)) == ["process 7 (mpv), instance 1", "process 8 (sh)", "process 7 (mpv), instance 2"]
