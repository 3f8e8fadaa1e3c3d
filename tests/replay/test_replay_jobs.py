"""Replay jobs: trace files in a child process bound to one driver, with JSON in and out and pictures on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import vkharness
from tests.support.drivers_here import on_each_driver
from tests.support.streams import Stream, hazard, two_buffers
from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker
from vkharness.findings import UserError
from vkharness.judged_replay import replay_job
from vkharness.replay.objects.recreation import as_wait
from vkharness.rig.rig import Rig
from vkharness.trace.calls import Call
from vkharness.trace.codec import save

JOB = "vkharness.judged_replay:replay_job"


def raced() -> tuple[Stream, dict[str, object]]:
    """A fill and a copy with nothing between, and the hazard."""
    stream, a, b = two_buffers(64)
    stream.begin()
    prior, current = stream.fill(a, 7), stream.copy(a, b, 64)
    stream.submit()
    return stream, hazard(stream, "READ_AFTER_WRITE", prior, current, a, ((0, 64),)).to_dict()


@on_each_driver
def test_a_saved_trace_in_a_child_process(driver: str, tmp_path: Path) -> None:
    stream, finding = raced()
    trace = tmp_path / "race.jsonl"
    save(trace, stream.blocks)
    with Worker(find_driver(driver)) as worker:
        common = {"trace": str(trace), "device": driver}
        serial = worker.call(JOB, {**common, "mode": "serial"})
        native = worker.call(JOB, {**common, "mode": "native", "iterations": 3})
        shown = worker.call(JOB, {**common, "mode": "witness", "finding": finding, "artifacts": str(tmp_path / "out")})
    assert isinstance(serial, dict) and len(serial["surfaces"]) == 2 and serial["unobserved"] == {}
    assert isinstance(native, dict) and native["runs"] == [[], [], []] and native["differing_runs"] == 0
    assert isinstance(shown, dict) and shown["shown"] is True
    assert [Path(path).name for path in shown["pictures"]][-1] == "record.json"
    record = json.loads((tmp_path / "out" / "record.json").read_text())
    assert record["outcome"] == shown["outcome"] and record["finding"]["hazard"] == "READ_AFTER_WRITE"


def record_addresses(trace: str) -> dict[str, int]:
    """Records a dispatch that copies 256 bytes between two buffers by their device addresses."""
    with vkharness.attach(keep_trace=True) as session, Rig(("VK_KHR_buffer_device_address",), None) as rig:
        source, target, pipeline = rig.buffer(data=bytes(range(256))), rig.buffer(), rig.compute("address_copy")
        with rig.submission() as commands:
            commands.bind(pipeline)
            commands.push_constants(pipeline, *rig.address(source), *rig.address(target), 64)
            commands.dispatch()
    blocks = session.blocks or []
    save(Path(trace), blocks)
    return {"addresses": sum(isinstance(each, Call) and each.name == "vkGetBufferDeviceAddress" for each in blocks)}


def test_a_native_run_takes_the_addresses_of_its_own_buffers(tmp_path: Path) -> None:
    trace, driver = str(tmp_path / "addresses.jsonl"), find_driver("lavapipe")
    with Worker(driver, packages=["tests"]) as worker:
        assert worker.call("tests.replay.test_replay_jobs:record_addresses", {"trace": trace}) == {"addresses": 2}
    with Worker(driver) as worker:  # another process, where the buffers lie elsewhere
        native = worker.call(JOB, {"trace": trace, "device": "lavapipe", "mode": "native", "iterations": 1})
    assert isinstance(native, dict) and native["runs"] == [[]]


def test_modes_and_findings_that_make_no_sense_are_one_line(tmp_path: Path) -> None:
    stream, _ = raced()
    trace = tmp_path / "race.jsonl"
    save(trace, stream.blocks)
    with pytest.raises(UserError, match="unknown replay mode 'sideways'"):
        replay_job(str(trace), "sideways", "lavapipe")
    with pytest.raises(UserError, match="replay mode witness needs a finding"):
        replay_job(str(trace), "witness", "lavapipe")
    with pytest.raises(UserError, match="no Vulkan driver 'no-such-driver'"):
        replay_job(str(trace), "serial", "no-such-driver")
    with pytest.raises(UserError, match="the finding is malformed"):
        replay_job(str(trace), "witness", "lavapipe", finding={"hazard": 5})


def test_what_the_program_saw_and_went_on_from_is_waited_for() -> None:
    fence = as_wait(Call(1, "vkGetFenceStatus", {"device": 1, "fence": 7}, 0))
    assert (fence.name, fence.args["pFences"], fence.args["waitAll"]) == ("vkWaitForFences", [7], 1)
    value = as_wait(Call(2, "vkGetSemaphoreCounterValueKHR", {"device": 1, "semaphore": 8, "pValue": 3}, 0))
    assert value.name == "vkWaitSemaphores"
    assert (value.args["pWaitInfo"]["pSemaphores"], value.args["pWaitInfo"]["pValues"]) == ([8], [3])
    for nothing in (
        Call(3, "vkGetFenceStatus", {"device": 1, "fence": 7}, 1),
        Call(4, "vkGetSemaphoreCounterValue", {"device": 1, "semaphore": 8, "pValue": 0}, 0),
        Call(5, "vkDeviceWaitIdle", {"device": 1}, 0),
    ):
        assert as_wait(nothing) is nothing
