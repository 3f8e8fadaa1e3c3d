"""A trace replayed below each layer: what the layer says, in which call, and beside what we say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.streams import Stream, two_buffers
from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker
from vkharness.findings import UserError
from vkharness.layer.manifest import LayerInfo, find_layers
from vkharness.layered_replay import refuse_another_stream
from vkharness.trace.calls import Call
from vkharness.trace.codec import load, save

NOT_INSTALLED = pytest.param(None, marks=pytest.mark.skip("the Khronos layer is not installed"))
on_each_layer = pytest.mark.parametrize(
    "layer", [*find_layers()] or [NOT_INSTALLED], ids=lambda layer: layer.version_text if layer else "none"
)
WORD = 4
ROOT = Path(__file__).resolve().parents[2]


def hazard(folder: Path) -> tuple[Path, int]:
    """A trace in which a copy reads what a fill writes, and the call of the copy."""
    stream, a, b = two_buffers(64)
    commands = stream.begin()
    stream.fill(a, 1)
    copy = stream.copy(a, b, 64)
    stream.end()
    stream.submit(commands)
    save(folder / "trace.jsonl", stream.blocks)
    return folder / "trace.jsonl", copy


def odd_tail(folder: Path) -> tuple[Path, int]:
    """A clean trace that layers call hazardous: a fill with VK_WHOLE_SIZE leaves bytes that are no whole word."""
    stream, a, b = two_buffers(64 + WORD // 2)
    commands = stream.begin()
    stream.fill(a, 1)
    copy = stream.copy(a, b, WORD // 2, from_=64)
    stream.end()
    stream.submit(commands)
    save(folder / "trace.jsonl", stream.blocks)
    return folder / "trace.jsonl", copy


def asked(layer: LayerInfo, trace: Path, device: str = "lavapipe") -> dict[str, Any]:
    """The answer of the job in a worker."""
    with Worker(find_driver(device)) as worker:
        arguments = {"trace": str(trace), "device": device, "layer": str(layer.manifest)}
        answer = worker.call("vkharness.layered_replay:layer_job", arguments)
    assert isinstance(answer, dict)
    return answer


@on_each_layer
@pytest.mark.parametrize("device", ["lavapipe", "swiftshader"])
def test_a_layer_that_agrees_names_the_call(layer: LayerInfo, device: str, tmp_path: Path) -> None:
    trace, copy = hazard(tmp_path)
    said = asked(layer, trace, device)
    (message,) = said["messages"]
    assert (message["severity"], message["id"]) == ("error", "SYNC-HAZARD-READ-AFTER-WRITE")
    assert (message["call"], message["command"]) == (copy, "vkCmdCopyBuffer")
    assert (said["layer"], said["agreed"], said["ours"], said["disagreements"]) == (layer.version_text, 1, 1, [])
    assert (said["of_replay"], said["rules"], said["model"]) == ([], ["read-after-write"], "agrees")


@on_each_layer
def test_a_layer_that_disagrees(layer: LayerInfo, tmp_path: Path) -> None:
    trace, copy = odd_tail(tmp_path)
    said = asked(layer, trace)
    (line,) = said["disagreements"]
    assert line.startswith(f"layer-only at record (block {copy}): READ_AFTER_WRITE vkCmdCopyBuffer")
    assert (said["findings"], said["model"], [each["call"] for each in said["messages"]]) == ([], "agrees", [copy])


@on_each_layer
def test_one_process_asks_again_and_again(layer: LayerInfo, tmp_path: Path) -> None:
    """Each time below an instance of its own, which goes with the answer; then a replay without a layer works."""
    trace, _ = hazard(tmp_path)
    job = {"trace": str(trace), "device": "lavapipe"}
    with Worker(find_driver("lavapipe")) as worker:
        answers = [
            worker.call("vkharness.layered_replay:layer_job", {**job, "layer": str(layer.manifest)}) for _ in range(3)
        ]
        plain = worker.call("vkharness.judged_replay:replay_job", {**job, "mode": "native"})
    assert [len(each["messages"]) for each in answers if isinstance(each, dict)] == [1, 1, 1]
    assert isinstance(plain, dict) and plain["differing_runs"] == 0


def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """`python -m vkharness replay`."""
    words = [sys.executable, "-m", "vkharness", "replay", *map(str, arguments)]
    return subprocess.run(words, cwd=ROOT / "harness", capture_output=True, text=True, check=False)


@pytest.mark.driver
@pytest.mark.layer
@on_each_layer
@pytest.mark.parametrize("in_process", [(), ("--in-process",)], ids=["worker", "in process"])
def test_the_command(layer: LayerInfo, in_process: tuple[str, ...], tmp_path: Path) -> None:
    name = layer.version_text
    trace, copy = hazard(tmp_path)
    agrees = command(trace, "--layer", layer.manifest, *in_process)
    assert (agrees.returncode, agrees.stderr) == (0, "")
    first, second, *_, last = agrees.stdout.splitlines()
    assert first == f"layer {name} on lavapipe, as recorded: 1 message, 1 finding of ours"
    assert second == f"  error SYNC-HAZARD-READ-AFTER-WRITE at call {copy} vkCmdCopyBuffer"
    assert last == f"layer {name}: agrees"
    trace, copy = odd_tail(tmp_path)
    disagrees = command(trace, "--layer", name, "--mode", "native", *in_process)
    assert (disagrees.returncode, disagrees.stderr) == (1, "")
    assert f"  disagreement: layer-only at record (block {copy}): READ_AFTER_WRITE" in disagrees.stdout
    assert disagrees.stdout.splitlines()[-1] == f"layer {name}: disagrees"


@pytest.mark.driver
@pytest.mark.layer
@on_each_layer
def test_what_is_not_modelled_is_no_agreement(layer: LayerInfo, tmp_path: Path) -> None:
    """A command that no driver here has stands in a command buffer that is never submitted; the replay refuses it."""
    stream, a, _ = two_buffers(64)
    stream.begin()
    stream.fill(a, 1)
    stream.cmd("SubpassShadingHUAWEI")
    stream.end()
    save(tmp_path / "trace.jsonl", stream.blocks)
    result = command(tmp_path / "trace.jsonl", "--layer", layer.manifest)
    assert result.returncode == 2 and "has no vkCmdSubpassShadingHUAWEI" in result.stderr


@pytest.mark.driver
@pytest.mark.layer
@on_each_layer
def test_the_report_has_the_smallest_trace(layer: LayerInfo, tmp_path: Path) -> None:
    """Much that takes no part goes; what is left repeats the difference, and is no longer than the bare program."""
    name, bare = layer.version_text, len(load(odd_tail(tmp_path)[0]))
    stream, a, b = two_buffers(64 + WORD // 2)
    others = [stream.buffer(256) for _ in range(3)]
    commands = stream.begin()
    for each in (*others, a):
        stream.fill(each, 1)
    stream.barrier()
    stream.copy(others[0], others[1], 64)
    stream.end()
    stream.submit(commands)
    commands = stream.begin()
    stream.fill(others[2], 2)
    stream.fill(a, 1)
    copy = stream.copy(a, b, WORD // 2, from_=64)
    stream.end()
    stream.submit(commands)
    save(tmp_path / "trace.jsonl", stream.blocks)
    wrote = command(tmp_path / "trace.jsonl", "--layer", name, "--artifacts", tmp_path / "out")
    folder = tmp_path / "out" / f"layer-{name}"
    assert (wrote.returncode, wrote.stderr) == (1, "") and f"  report: {folder / 'report.md'}" in wrote.stdout
    small = load(folder / "trace.jsonl")
    commands_left = [each.name for each in small if isinstance(each, Call) and each.name.startswith("vkCmd")]
    assert commands_left == ["vkCmdFillBuffer", "vkCmdCopyBuffer"] and len(small) <= bare
    line = f"layer-only at record (block {copy}): READ_AFTER_WRITE vkCmdCopyBuffer"
    again = command(folder / "trace.jsonl", "--layer", name)
    assert again.returncode == 1 and line in again.stdout
    report = (folder / "report.md").read_text(encoding="utf-8")
    assert f"what is left of {len(stream.blocks)}" in report and line in report
    assert f"vkharness replay trace.jsonl --layer {name} --device lavapipe" in report
    assert "### Read after write" in report


@pytest.mark.driver
@pytest.mark.layer
@on_each_layer
def test_where_nothing_differs_there_is_no_report(layer: LayerInfo, tmp_path: Path) -> None:
    agrees = command(hazard(tmp_path)[0], "--layer", layer.version_text, "--artifacts", tmp_path / "out")
    assert agrees.returncode == 0 and "report" not in agrees.stdout and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--mode", "serial"], "--layer asks about the trace as recorded"),
        (["--iterations", "2"], "--iterations does not go with --layer"),
        (["--seed", "2"], "--strategy and --seed go with --mode reorder"),
    ],
)
def test_options_that_make_no_sense(options: list[str], line: str, tmp_path: Path) -> None:
    result = command(hazard(tmp_path)[0], "--layer", "today", *options)
    assert (result.returncode, result.stdout) == (2, "") and line in result.stderr


def test_a_layer_that_is_not_there(tmp_path: Path) -> None:
    trace, _ = hazard(tmp_path)
    for name, line in (("off", "there is no layer to ask"), ("0.1.2", "no Khronos layer 0.1.2"), ("x.json", "x.json")):
        result = command(trace, "--layer", name)
        assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1) and line in result.stderr


def two_queues(stream: Stream) -> str:
    """Submits to a second queue."""
    second = stream.id()
    stream.call("vkGetDeviceQueue", device=stream.device, queueIndex=1, pQueue=second)
    stream.call("vkQueueWaitIdle", queue=second)
    stream.call("vkQueueWaitIdle", queue=stream.queue)
    return "2 queues"


def surface(stream: Stream) -> str:
    """Destroys a swapchain, as every program does that has one."""
    stream.call("vkDestroySwapchainKHR", device=stream.device, swapchain=900)
    return "swapchains"


@pytest.mark.parametrize("make", [two_queues, surface])
def test_another_stream_than_the_traces_is_refused(make: Any) -> None:
    stream, _, _ = two_buffers(64)
    refuse_another_stream(stream.blocks)
    reason = make(stream)
    with pytest.raises(UserError, match=f"{reason}.*another stream"):
        refuse_another_stream(stream.blocks)
