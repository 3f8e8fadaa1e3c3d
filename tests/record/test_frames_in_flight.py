"""Frames in flight in a window: who waits for whom is read out of the recorded stream, headless and on a display."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ci import frame_table, gen_systems
from vkharness.capture.display import XVFB, display
from vkharness.device.drivers import environment, find_driver
from vkharness.device.process import Worker
from vkharness.findings import UserError
from vkharness.trace.codec import load

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "systems" / "frames_in_flight.md"
PROGRAM = ROOT / "tests" / "programs" / "window_frames.py"
FRAMES = 6
COMPLETE, IMAGE = 3, 2
"""Columns of the table."""


def run(trace: Path, *words: str | int | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs `vkharness run` with these words, and with the trace beside them."""
    command = [sys.executable, "-c", "from vkharness.cli import main; main()", "run", "--trace", trace, *words]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DISPLAY", "WAYLAND", "VK_"))}
    return subprocess.run(
        [str(each) for each in command], env=kept | variables, capture_output=True, text=True, timeout=120, check=False
    )


def driver(name: str) -> dict[str, str]:
    try:
        return environment(find_driver(name))
    except UserError as error:
        pytest.skip(str(error))


def rows(trace: Path) -> list[list[str]]:
    """The cells of the table of a trace, row by row."""
    return [line.strip("| ").split(" | ") for line in frame_table.table(load(trace)).splitlines()[2:]]


def complete_until(frame: int) -> str:
    return frame_table.NONE if frame < 0 else "0" if frame == 0 else f"0 to {frame}"


@pytest.mark.parametrize("images", [2, 3])
@pytest.mark.parametrize("in_flight", [1, 2, 3])
def test_the_host_waits_for_as_many_frames_ago_as_are_in_flight(tmp_path: Path, in_flight: int, images: int) -> None:
    driver("swiftshader")
    trace = tmp_path / "frames.jsonl"
    done = run(trace, "--headless", PROGRAM, in_flight, images, FRAMES)
    assert (done.returncode, done.stdout) == (0, f"presented {FRAMES} frames with 1 swapchains of {images} images\n")
    found = rows(trace)
    assert [each[1] for each in found] == [str(number % in_flight) for number in range(FRAMES)]
    assert [each[COMPLETE] for each in found] == [complete_until(number - in_flight) for number in range(FRAMES)]


def test_the_tables_of_the_page_are_read_out_of_recorded_streams(tmp_path: Path) -> None:
    driver("swiftshader")
    marked = [each for each in gen_systems.marks(PAGE.read_text(encoding="utf-8")) if each[0] == "frames"]
    assert len(marked) > 3
    with Worker(find_driver("swiftshader")) as worker:
        for _, name, shown in marked:
            path, _ = gen_systems.claims()[name]
            told = {"module": str(ROOT / path), "scenario": name, "variant": "whole", "device": "swiftshader"}
            more = {"artifacts": str(tmp_path), "layers": [], "native": 0, "keep": True}
            row = worker.call("vkharness.suite.judge_scenario:run", told | more)
            assert isinstance(row, dict) and not row["problem"], row
            trace = tmp_path / row["scenario"] / "whole" / "swiftshader" / "trace.jsonl"
            assert shown.strip() == frame_table.table(load(trace)).strip(), f"{name}: run ci/gen_systems.py {PAGE}"


@pytest.fixture(scope="module")
def screen() -> dict[str, str]:
    """The environment of a program on lavapipe."""
    if shutil.which("Xvfb") is None:
        pytest.skip("no Xvfb here (Debian package xvfb): windows need a display")
    return driver("lavapipe")


def test_a_window_that_is_resized_has_a_new_swapchain(tmp_path: Path, screen: dict[str, str]) -> None:
    trace = tmp_path / "frames.jsonl"
    with display(XVFB, os.environ) as there:
        done = run(trace, PROGRAM, 2, 3, FRAMES, "resize", DISPLAY=there["DISPLAY"], **screen)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"presented {FRAMES} frames with 2 swapchains of ")
    complete = [each[COMPLETE] for each in rows(trace)]
    assert complete == ["-", "-", "0", "0 to 2", "0 to 2", "0 to 3"], "the device is idle before frame 3"


def test_a_buffer_that_all_frames_in_flight_share_is_written_too_early(tmp_path: Path, screen: dict[str, str]) -> None:
    with display(XVFB, os.environ) as there:
        done = run(tmp_path / "frames.jsonl", PROGRAM, 2, 3, FRAMES, "shared", DISPLAY=there["DISPLAY"], **screen)
    assert done.returncode == 1, done.stderr
    assert "WRITE_AFTER_READ" in done.stderr and "rules.md#a-host-write-waits-for-the-device" in done.stderr
    assert f"found {FRAMES - 1} times" in done.stderr
