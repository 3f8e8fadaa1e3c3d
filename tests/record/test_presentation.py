"""Programs that present, under the mirror: to a surface with no display, and to a window in a virtual one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.support.capture import capture_folder, capture_variables
from vkharness.device.drivers import environment, find_driver
from vkharness.findings import UserError
from vkharness.trace.calls import Block, Call
from vkharness.trace.codec import load, save

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "programs"
FRAMES = 5
CLEAN, HAZARDS = 0, 1


@dataclass
class Run:
    """One run of a program under `vkharness run`: exit code, verdict document and trace."""

    code: int
    document: dict[str, Any]
    trace: Path

    @property
    def calls(self) -> list[Call]:
        """The recorded calls."""
        return [block for block in load(self.trace) if isinstance(block, Call)]

    def named(self, name: str) -> list[Call]:
        """The recorded calls of one command."""
        return [call for call in self.calls if call.name == name]


def vkharness(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from vkharness.cli import main; main()", *map(str, arguments)]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | variables, capture_output=True, text=True, timeout=120, check=False
    )


def run(folder: Path, program: str, variables: dict[str, str], *words: str) -> Run:
    trace, found = folder / "run.jsonl", folder / "found.json"
    done = vkharness("run", "--json", found, "--trace", trace, PROGRAMS / program, str(FRAMES), *words, **variables)
    assert f"presented {FRAMES} frames" in done.stdout, done.stderr
    assert "inside the mirror" not in done.stderr
    return Run(done.returncode, json.loads(found.read_text()), trace)


@pytest.fixture(scope="module")
def display() -> Iterator[str]:
    """A display that shows nothing."""
    if shutil.which("Xvfb") is None:
        pytest.skip("no Xvfb here (Debian package xvfb): windows need a display")
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", "320x240x24", "-nolisten", "tcp"]
    server = subprocess.Popen(command, pass_fds=[writing], stderr=subprocess.DEVNULL)
    os.close(writing)
    try:
        with os.fdopen(reading) as answer:
            number = answer.readline().strip()
        assert number, f"Xvfb ended with {server.wait()}"
        yield f":{number}"
    finally:
        server.terminate()
        server.wait()


@pytest.fixture(scope="module", params=["headless_present.py", "window_present.py"])
def presented(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    program = request.param
    try:
        variables = environment(find_driver("swiftshader" if program.startswith("headless") else "lavapipe"))
    except UserError as error:
        pytest.skip(str(error))
    if program.startswith("window"):
        variables["DISPLAY"] = request.getfixturevalue("display")
    return run(tmp_path_factory.mktemp("presented"), program, variables)


def test_nothing_is_wrong_with_it(presented: Run) -> None:
    assert presented.document["findings"] == []
    assert presented.document["unmodelled"] == {}
    assert presented.code == CLEAN


def test_a_transition_that_starts_before_the_acquire_is_over_is_found(tmp_path: Path) -> None:
    """The semaphore is waited for at the transfer stage, which a barrier from the top of the pipe does not wait for."""
    ran = run(tmp_path, "headless_present.py", swiftshader(), "wrong")
    assert ran.code == HAZARDS
    found = {(f["hazard"], f["command"], f["prior_command"]) for f in ran.document["findings"]}
    assert found == {("WRITE_AFTER_READ", "vkCmdPipelineBarrier", "vkAcquireNextImageKHR")}
    (once,) = ran.document["findings"]
    assert (once["count"], once["first_frame"], once["last_frame"]) == (FRAMES, 1, FRAMES)


class TestOnTheScreen:
    """The presented picture changes with the hazard, of the mirrored program and of a capture of it."""

    @pytest.mark.parametrize("words", [("wrong",), ()])
    def test_the_mirrored_program(self, tmp_path: Path, words: tuple[str, ...]) -> None:
        check_screen(run(tmp_path, "headless_present.py", swiftshader(), *words).trace, tmp_path, bool(words))

    @pytest.mark.parametrize("words", [("wrong",), ()])
    def test_the_captured_program(self, tmp_path: Path, words: tuple[str, ...]) -> None:
        capture = tmp_path / "frames.gfxr"
        variables = swiftshader() | capture_variables(capture_folder(), capture)
        command = [sys.executable, str(PROGRAMS / "headless_present.py"), str(FRAMES), *words]
        done = subprocess.run(
            command, env=os.environ | variables, capture_output=True, text=True, timeout=120, check=True
        )
        assert f"presented {FRAMES} frames" in done.stdout, done.stderr
        check_screen(capture, tmp_path, bool(words))


def swiftshader() -> dict[str, str]:
    """Environment that chooses SwiftShader, the driver with VK_EXT_headless_surface."""
    try:
        return environment(find_driver("swiftshader"))
    except UserError as error:
        pytest.skip(str(error))


def check_screen(trace: Path, folder: Path, wrong: bool) -> None:
    """Replays `trace`: the screen loses the frame before to the transition, or nothing is wrong with it."""
    found = folder / "shown.json"
    wanted = ("--artifacts", folder / "pictures", "--json", found)
    done = vkharness("replay", "--mode", "witness", "--device", "lavapipe", *wanted, trace)
    results = json.loads(found.read_text())["results"]
    if not wrong:
        assert (done.returncode, done.stdout, results) == (CLEAN, "no hazard to show\n", [])
        return
    (result,) = results
    assert done.returncode == HAZARDS and result["shown"], done.stdout + done.stderr
    finding, (screen,) = result["finding"], result["differences"]
    assert (screen["kind"], screen["resource"]) == ("screen of image", finding["resource"])
    assert screen["count"] == screen["total"] == 64 * 48
    assert finding["count"] == FRAMES and finding["prior_frame"] > 1, "in frame 1 no image is on a screen"
    pictures = [Path(each).name for each in result["pictures"]]
    kinds = ("expected", "observed", "difference")
    assert pictures == [
        *(f"screen-of-image-{finding['resource']}-{kind}.png" for kind in kinds),
        "values.npz",
        "record.json",
    ]
    expected, observed = (Image.open(folder / "pictures" / "finding-1" / name) for name in pictures[:2])
    shown = expected.getpixel((expected.width // 2, expected.height // 2))
    assert shown in {(0, 128, 64), (255, 128, 64)}, "one of the two colours of the frames"
    assert observed.getpixel((observed.width // 2, observed.height // 2)) == (0xCD, 0xCD, 0xCD)
    assert "undefined contents are filled with bytes cd" in done.stdout


def test_acquires_and_presents_are_in_the_trace(presented: Run) -> None:
    acquires, presents = presented.named("vkAcquireNextImageKHR"), presented.named("vkQueuePresentKHR")
    assert [call.result for call in (*acquires, *presents)] == [0] * 2 * FRAMES
    assert [call.args["pImageIndex"] for call in acquires] == [
        call.args["pPresentInfo"]["pImageIndices"][0] for call in presents
    ]
    submits = presented.named("vkQueueSubmit")
    assert [call.args["semaphore"] for call in acquires] == [
        call.args["pSubmits"][0]["pWaitSemaphores"][0] for call in submits
    ]
    assert [call.args["pPresentInfo"]["pWaitSemaphores"] for call in presents] == [
        call.args["pSubmits"][0]["pSignalSemaphores"] for call in submits
    ]


def test_handles_that_the_package_never_made_are_one_object_each(presented: Run) -> None:
    """GLFW creates the surface, and the driver the images, without the `vulkan` package."""
    (swapchain,) = presented.named("vkCreateSwapchainKHR")
    surfaces = {call.args["surface"] for call in presented.calls if "surface" in call.args}
    assert surfaces == {swapchain.args["pCreateInfo"]["surface"]}
    images = presented.named("vkGetSwapchainImagesKHR")[-1].args["pSwapchainImages"]
    assert len(set(images)) == len(images) > 1
    made = {call.args["pImage"] for call in presented.named("vkCreateImage")}
    used = {call.args["image"] for call in presented.named("vkCmdClearColorImage")}
    assert used <= set(images) and not made


def test_the_trace_goes_to_disk_and_back(presented: Run, tmp_path: Path) -> None:
    blocks: list[Block] = load(presented.trace)
    save(tmp_path / "again.jsonl", blocks)
    assert load(tmp_path / "again.jsonl") == blocks


def test_the_trace_is_judged_like_the_run(presented: Run, tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    done = vkharness("check", "--json", found, presented.trace)
    assert done.returncode == presented.code, done.stderr
    assert json.loads(found.read_text()) == presented.document
