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

from harness.device.drivers import environment, find_driver
from harness.findings import UserError
from harness.trace.calls import Block, Call
from harness.trace.codec import load, save

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
    command = [sys.executable, "-c", "from harness.cli import main; main()", *map(str, arguments)]
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
    try:
        variables = environment(find_driver("swiftshader"))
    except UserError as error:
        pytest.skip(str(error))
    ran = run(tmp_path, "headless_present.py", variables, "wrong")
    assert ran.code == HAZARDS
    found = {(f["hazard"], f["command"], f["prior_command"]) for f in ran.document["findings"]}
    assert found == {("WRITE_AFTER_READ", "vkCmdPipelineBarrier", "vkAcquireNextImageKHR")}
    (once,) = ran.document["findings"]
    assert (once["count"], once["first_frame"], once["last_frame"]) == (FRAMES, 1, FRAMES)


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
