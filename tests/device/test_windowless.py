"""`vkharness run --headless`: programs with windows, unmodified, on a machine with no display."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from vkharness.cli.run import split_arguments
from vkharness.device.drivers import environment, find_driver
from vkharness.device.process import Worker
from vkharness.findings import UserError
from vkharness.trace.calls import Call
from vkharness.trace.codec import load

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "programs"


@pytest.fixture(autouse=True, scope="module")
def swiftshader() -> None:
    try:
        find_driver("swiftshader")
    except UserError as error:
        pytest.skip(str(error))


def headless(*words: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from vkharness.cli import main; main()", "run", "--headless", *map(str, words)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DISPLAY", "WAYLAND", "VK_"))}
    return subprocess.run(
        command, cwd=ROOT, env=kept | variables, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("words", [["cffi"], ["ctypes"], ["wait"], ["silent"]])
def test_a_loop_ends_after_so_many_frames(words: list[str]) -> None:
    done = headless("--frames", "3", PROGRAMS / "window_loop.py", *words)
    assert (done.returncode, done.stdout) == (0, "presented 3 frames of 2 images\n"), done.stderr
    assert done.stderr.strip().endswith("clean - no hazard")


def test_what_the_window_did_is_in_the_trace(tmp_path: Path) -> None:
    done = headless("--frames=2", "--trace", tmp_path / "t.jsonl", PROGRAMS / "window_loop.py")
    assert done.returncode == 0, done.stderr
    calls = [block for block in load(tmp_path / "t.jsonl") if isinstance(block, Call)]
    (made,) = [call for call in calls if call.name == "vkCreateHeadlessSurfaceEXT"]
    (swapchain,) = [call for call in calls if call.name == "vkCreateSwapchainKHR"]
    assert swapchain.args["pCreateInfo"]["surface"] == made.args["pSurface"] > 0
    extent = swapchain.args["pCreateInfo"]["imageExtent"]
    assert (extent["width"], extent["height"]) == (96, 64)
    assert [call.name for call in calls].count("vkQueuePresentKHR") == 2


def test_a_program_that_counts_its_own_frames(tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    done = headless("--json", found, PROGRAMS / "window_present.py", "4")
    assert (done.returncode, done.stdout) == (0, "presented 4 frames of 2 images\n"), done.stderr
    done = headless("--json", found, PROGRAMS / "window_present.py", "4", "wrong")
    assert done.returncode == 1
    assert {finding["hazard"] for finding in json.loads(found.read_text())["findings"]} == {"WRITE_AFTER_READ"}


def test_a_driver_without_headless_surfaces(tmp_path: Path) -> None:
    """A driver that the environment names is kept; what it lacks, the program is told."""
    with Worker(find_driver("lavapipe")) as worker:
        answer = worker.call("vkharness.device.survey:survey_job")
    assert isinstance(answer, dict)
    if "headless surface" in answer["devices"][0]["abilities"]:
        pytest.skip("lavapipe of this Mesa has headless surfaces, as each driver here")
    done = headless(PROGRAMS / "window_loop.py", **environment(find_driver("lavapipe")))
    assert done.returncode != 0
    assert "VkErrorExtensionNotPresent" in done.stderr
    assert "presented" not in done.stdout


def test_surfaces_of_an_instance_without_the_extension(tmp_path: Path) -> None:
    program = tmp_path / "bare.py"
    program.write_text(
        "import glfw, vulkan as vk\n"
        "assert glfw.init() and glfw.get_platform() == glfw.PLATFORM_NULL\n"
        "window = glfw.create_window(width=8, height=8, title='bare', monitor=None, share=None)\n"
        "instance = vk.vkCreateInstance(vk.VkInstanceCreateInfo(), None)\n"
        "print(glfw.create_window_surface(instance, window, None, vk.ffi.new('VkSurfaceKHR *')))\n"
    )
    done = headless(program)
    assert (done.returncode, done.stdout) == (0, "-7\n"), done.stderr


def test_a_program_without_windows(tmp_path: Path) -> None:
    done = headless(PROGRAMS / "headless_present.py", "2")
    assert (done.returncode, done.stdout) == (0, "presented 2 frames of 2 images\n"), done.stderr


def test_options_before_the_program_are_ours() -> None:
    ours = ["--headless", "--frames", "3", "--json", "f"]
    assert split_arguments([*ours, "p.py", "--frames", "5", "--headless", "--trace", "t"]) == (
        [*ours, "--trace", "t"],
        ["p.py", "--frames", "5", "--headless"],
    )


def test_frames_must_be_some() -> None:
    done = headless("--frames", "0", PROGRAMS / "window_loop.py")
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1


def test_no_limit_of_images_is_told_as_one(tmp_path: Path) -> None:
    """SwiftShader says 0, for no limit; a program that takes that for the most there may be would get no image."""
    program = tmp_path / "images.py"
    program.write_text(
        "import glfw, vulkan as vk\n"
        "glfw.init()\n"
        "window = glfw.create_window(8, 8, 'images', None, None)\n"
        "names = glfw.get_required_instance_extensions()\n"
        "instance = vk.vkCreateInstance(vk.VkInstanceCreateInfo(ppEnabledExtensionNames=names), None)\n"
        "surface = vk.ffi.new('VkSurfaceKHR *')\n"
        "glfw.create_window_surface(instance, window, None, surface)\n"
        "ask = vk.vkGetInstanceProcAddr(instance, 'vkGetPhysicalDeviceSurfaceCapabilitiesKHR')\n"
        "told = vk.ffi.new('VkSurfaceCapabilitiesKHR *')\n"
        "physical = vk.vkEnumeratePhysicalDevices(instance)[0]\n"
        "ask(physical, surface[0], told)\n"
        "print(ask(physical, surface[0]).maxImageCount, told.maxImageCount)\n"
    )
    done = headless(program)
    assert (done.returncode, done.stdout) == (0, "8 8\n"), done.stderr
