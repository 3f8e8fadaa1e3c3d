"""Replays of any trace held against computed bytes: what a line says, and which promise a broken driver broke."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.capture_files import CAPTURE
from tests.support.drivers_here import on_each_driver
from tests.support.fault_drivers import built
from tests.support.streams import ALL_COMMANDS, READ_WRITE, struct, two_buffers
from vkharness.device.drivers import Driver
from vkharness.device.faults.broken_promises import BREAKS
from vkharness.device.process import Worker
from vkharness.judged_replay import replay_job
from vkharness.report.replay_text import result_lines
from vkharness.trace.codec import save

JOB = "vkharness.judged_replay:replay_job"
CONVERTED = Path(__file__).resolve().parents[1] / "data" / "gfxrecon" / "upstream-1.x.jsonl"


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    return built(tmp_path_factory.mktemp("driver"))


def copied(folder: Path) -> Path:
    """The trace of a fill and a copy that waits for it, and of a fill of another buffer, which may come at any time."""
    stream, a, b = two_buffers(64)
    c = stream.buffer(64)
    stream.begin()
    stream.fill(a, 7)
    stream.barrier()
    stream.copy(a, b, 64)
    stream.fill(c, 8)
    stream.submit()
    save(folder / "trace.jsonl", stream.blocks)
    return folder / "trace.jsonl"


def replayed(driver: Driver, trace: Path, mode: str, **more: object) -> dict[str, Any]:
    with Worker(driver) as worker:
        found = worker.call(JOB, {"trace": str(trace), "mode": mode, "device": driver.name, "iterations": 2, **more})
    assert isinstance(found, dict), found
    return found


@on_each_driver
@pytest.mark.parametrize("mode", ["serial", "native", "reorder"])
def test_what_was_computed_is_left_in_each_mode(driver: str, tmp_path: Path, mode: str) -> None:
    found = replay_job(str(copied(tmp_path)), mode, driver)
    said = found["bytes"]
    assert (said["known"], said["total"], said["left"], said["broken"], said["unknown"]) == (192, 192, True, "", ())
    assert "  192 of 192 bytes computed without the driver, and left so" in [*result_lines(mode, found)]


@on_each_driver
@pytest.mark.parametrize("trace", [CAPTURE, CONVERTED], ids=["capture", "converted"])
def test_captures_are_held_against_computed_bytes(driver: str, trace: Path) -> None:
    said = replay_job(str(trace), "native", driver, iterations=2)["bytes"]
    assert (said["known"], said["total"], said["left"], said["broken"]) == (512, 832, True, "")


@pytest.mark.driver
@pytest.mark.parametrize(
    ("breaks", "promise"), [("fill-of-a-wrong-value", "computation"), ("fill-past-a-barrier", "barrier")]
)
def test_a_replay_says_which_promise_a_driver_broke(
    broken: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks: str, promise: str
) -> None:
    monkeypatch.setenv(BREAKS, breaks)
    found = replayed(broken, copied(tmp_path), "serial", artifacts=str(tmp_path / "out"))
    assert (found["bytes"]["broken"], found["bytes"]["left"]) == (promise, False)
    assert (tmp_path / "out" / f"broken-{promise}" / "record.json").is_file()
    words = {"computation": "the driver computes wrongly: ", "barrier": "barriers are broken: "}
    assert any(line.startswith(f"  {words[promise]}") for line in result_lines("serial", found))


@pytest.mark.driver
def test_a_capture_shows_a_driver_that_computes_wrongly(broken: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other capture writes over what the device left: its mapped memory was written back at the end."""
    monkeypatch.setenv(BREAKS, "fill-of-a-wrong-value")
    said = replayed(broken, CONVERTED, "serial")["bytes"]
    assert (said["broken"], said["left"]) == ("computation", False)


@pytest.mark.driver
@pytest.mark.parametrize(("with_barrier", "promise"), [(True, "dependency"), (False, "")])
def test_only_a_clean_trace_shows_a_dependency_that_a_driver_breaks(
    broken: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_barrier: bool, promise: str
) -> None:
    monkeypatch.setenv(BREAKS, "buffer-barrier-ignored")
    stream, a, b = two_buffers(64)
    stream.begin()
    stream.fill(a, 7)
    if with_barrier:
        access = {"srcAccessMask": READ_WRITE, "dstAccessMask": READ_WRITE}
        families = {"srcQueueFamilyIndex": 0xFFFFFFFF, "dstQueueFamilyIndex": 0xFFFFFFFF}
        held = struct("VkBufferMemoryBarrier", **access, **families, buffer=a, size=64)
        stages = {"srcStageMask": ALL_COMMANDS, "dstStageMask": ALL_COMMANDS}
        stream.cmd("PipelineBarrier", **stages, pBufferMemoryBarriers=[held])
    stream.copy(a, b, 64)
    stream.submit()
    save(tmp_path / "trace.jsonl", stream.blocks)
    said = replayed(broken, tmp_path / "trace.jsonl", "native")["bytes"]
    assert (said["broken"], said["left"]) == (promise, True)
