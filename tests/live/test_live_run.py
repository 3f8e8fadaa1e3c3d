"""Programs under the mirror layer, judged while they run and afterwards. Here a script writes the stream."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.written_streams import MirrorStream, buffer_calls, copy_calls, submit_args
from vkharness.cli.check import check
from vkharness.cli.live import LiveRun, run_live
from vkharness.cli.processes import Options
from vkharness.device.manifests import Layer
from vkharness.findings import UserError
from vkharness.ignore_file import IgnoreFile
from vkharness.mirror_layer.layer_build import NAME as MIRROR

pytestmark = pytest.mark.driver
ROOT = Path(__file__).parents[2]
LAYER = Layer(MIRROR, Path("/nowhere/manifest.json"), "", "", "", "", False)
WRITES = """
import os, signal, sys
from pathlib import Path
from tests.support.written_streams import MirrorStream, buffer_calls, copy_calls, submit_args
stream = MirrorStream(Path(os.environ["VKHARNESS_OUT"]) / f"process-{os.getpid()}")
buffer_calls(stream)
copy_calls(stream)
stream.call("vkQueueSubmit", submit_args(), 0)
stream.data(4, 16, b"early!!!")
stream.call("vkQueueSubmit", submit_args(), 0)
"""
"""The host writes what a copy may still read."""


def options(folder: Path, **more: object) -> Options:
    frames = str(more.pop("frames", ""))
    return Options(folder / "found.json", None, None, "never", False, frames, "none", IgnoreFile([]), **more)  # type: ignore[arg-type]


def run(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch, **more: object) -> tuple[int, dict[str, object]]:
    """The exit code of a script that runs under the layer, and the document."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    code = run_live(LAYER, [sys.executable, "-c", script], options(folder, **more))
    return code, json.loads((folder / "found.json").read_text())


def test_a_program_is_judged_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The program ends when its first segments are gone: they were judged by then."""
    waits = "while (stream.folder / 'segment-00000000').exists(): os.sched_yield()\n"
    code, found = run(tmp_path, WRITES + waits, monkeypatch, tells_at_once=True)
    assert (code, found["verdict"]) == (1, "hazards")
    printed = capfd.readouterr().err
    assert 0 <= printed.find("WRITE_AFTER_READ: host write") < printed.index("hazards - "), "it is told as it comes"


def test_a_killed_program_is_judged_up_to_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    code, found = run(tmp_path, WRITES + "os.kill(os.getpid(), signal.SIGKILL)", monkeypatch)
    assert (code, found["verdict"]) == (137, "hazards")
    assert "SIGKILL" in capfd.readouterr().err


def test_each_process_has_a_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clean = WRITES.replace('stream.data(4, 16, b"early!!!")\n', 'stream.call("vkQueueWaitIdle", {"queue": 3}, 0)\n')
    both = (
        f"import subprocess, sys\nfor each in ({clean!r}, {WRITES!r}): subprocess.run([sys.executable, '-c', each])\n"
    )
    code, found = run(tmp_path, both, monkeypatch)
    processes = found["processes"]
    assert isinstance(processes, list)
    assert code == 1 and [each["verdict"] for each in processes] == ["clean", "hazards"]


def test_each_program_that_a_process_runs_has_its_own_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one has another run in its place. Only the last one ends as the process does."""
    names = "stream.record(7, struct.pack('<QQQII', 0, 0, 4096, {0}, 0) + b'{1}')\n"
    lasts = WRITES.replace("os.getpid()}", "os.getpid()}-2").replace("import os", "import struct, os")
    first = WRITES.replace("import os", "import struct, os") + names.format(10, "/bin/first")
    last = lasts + names.format(9, "/bin/last") + "sys.exit(7)"
    code, found = run(tmp_path, f"{first}\nos.execv(sys.executable, [sys.executable, '-c', {last!r}])", monkeypatch)
    processes = found["processes"]
    assert isinstance(processes, list)
    assert code == 7 and [each["program"] for each in processes] == ["first", "last"]
    assert ["program_end" in each for each in processes] == [False, True]


def started(folder: Path, more: str) -> subprocess.Popen[str]:
    """A process that runs a script under the layer, once the script has written its number."""
    starts = (
        "import sys\nfrom pathlib import Path\nfrom tests.live.test_live_run import LAYER, options, run_live\n"
        "sys.exit(run_live(LAYER, [sys.executable, '-c', sys.argv[1]], options(Path(sys.argv[2]))))"
    )
    script = f"{WRITES}signal.signal(signal.SIGINT, signal.SIG_IGN)\nprint(os.getpid(), flush=True)\n{more}"
    command = [sys.executable, "-c", starts, script, str(folder)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})


def test_the_second_interrupt_tells_what_was_judged(tmp_path: Path) -> None:
    """The program ignores the first one, and does not end by itself."""
    with started(tmp_path, "while True: signal.pause()") as process:
        assert process.stdout is not None and process.stdout.readline()
        while process.poll() is None and not (tmp_path / "found.json").exists():
            process.send_signal(signal.SIGINT)
        _, printed = process.communicate()
    assert "interrupted" in printed
    assert json.loads((tmp_path / "found.json").read_text())["processes"], printed


def test_a_program_that_does_not_end_after_the_last_frame_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vkharness.cli.live.GRACE", 0.01)
    presents = (
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "info = {'sType': 1000001001, 'pNext': None, 'waitSemaphoreCount': 0, 'swapchainCount': 0}\n"
        "stream.call('vkQueuePresentKHR', {'queue': 3, 'pPresentInfo': info}, 0)\n"
        "while True: signal.pause()"
    )
    code, found = run(tmp_path, WRITES + presents, monkeypatch, frames="1-1")
    assert (code, found["verdict"]) == (1, "hazards")


def test_the_layer_is_told_that_a_run_judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _ = run(tmp_path, "import os, sys\nsys.exit(40 + int(os.environ['VKHARNESS_RUN']))", monkeypatch)
    assert code == 41


@pytest.mark.parametrize("stays", [False, True])
def test_a_process_that_outlives_the_program_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], stays: bool
) -> None:
    """The program begins it and ends. It ends a little later, or when this test is over: then no more than a part of it
    is judged."""
    monkeypatch.setattr("vkharness.cli.live.LONGER", 0.01 if stays else 60)
    os.mkfifo(tmp_path / "hold")
    waits = f"open({str(tmp_path / 'hold')!r}).read()\n" if stays else "open(0).read()\n"
    clean = WRITES.replace('stream.data(4, 16, b"early!!!")\n', 'stream.call("vkQueueWaitIdle", {"queue": 3}, 0)\n')
    clean = clean.replace('getpid()}")', 'getpid()}", killed=True)')
    child = f"{clean}print(os.getpid(), flush=True)\nos.close(1)\n{waits}"
    begins = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        f"open({str(tmp_path / 'number')!r}, 'wb').write(child.stdout.readline())\n"
        "import os\nos._exit(0)\n"
    )
    code, found = run(tmp_path, begins, monkeypatch)
    printed = capfd.readouterr().err
    number = int((tmp_path / "number").read_text())
    said = f"vkharness: process {number} (python"
    if not stays:
        assert (code, found["verdict"]) == (0, "clean") and said not in printed
        return
    assert (code, found["verdict"]) == (3, "unknown")
    assert said in printed and "outlives the program: judged up to there" in printed
    process = os.pidfd_open(number)
    os.close(os.open(tmp_path / "hold", os.O_WRONLY))
    assert select.select([process], [], [], 60)[0]
    os.close(process)


@pytest.mark.parametrize("noticed", [False, True])
def test_one_interrupt_ends_the_judging_only_of_a_program_that_had_ended(tmp_path: Path, noticed: bool) -> None:
    """The press that ends the program may be told when the program is gone: that one is no second press."""
    live = LiveRun(options(tmp_path), ["true"])
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    try:
        with subprocess.Popen(["true"]) as process, live._signals(process):
            process.wait()
            if noticed:
                live._told(process, lambda: None)
            signal.raise_signal(signal.SIGINT)
            assert live._told(process, lambda: None) is noticed
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])


def test_no_program_outlives_the_judge(tmp_path: Path) -> None:
    with started(tmp_path, "while True: signal.pause()") as process:
        assert process.stdout is not None
        program = os.pidfd_open(int(process.stdout.readline()))
        process.kill()
        ended, _, _ = select.select([program], [], [], 60)
        os.close(program)
    assert ended


def test_a_folder_is_judged_afterwards(tmp_path: Path) -> None:
    for number, wait in ((7, True), (8, False)):
        stream = MirrorStream(tmp_path / f"process-{number}", process=number)
        buffer_calls(stream)
        copy_calls(stream)
        stream.call("vkQueueSubmit", submit_args(), 0)
        if wait:
            stream.call("vkQueueWaitIdle", {"queue": 3}, 0)
        stream.data(4, 16, b"early!!!")
        stream.call("vkQueueSubmit", submit_args(), 0)
    found = tmp_path / "found.json"
    ended = CliRunner().invoke(check, [str(tmp_path), "--json", str(found)])
    assert ended.exit_code == 1, ended.output
    documents = json.loads(found.read_text())["processes"]
    assert sorted((each["process"], each["verdict"]) for each in documents) == [(7, "clean"), (8, "hazards")]
    one = CliRunner().invoke(check, [str(tmp_path / "process-7")])
    assert one.exit_code == 0 and "clean" in one.output
    empty = tmp_path / "empty"
    empty.mkdir()
    refused = CliRunner().invoke(check, [str(empty)])
    assert isinstance(refused.exception, UserError)


def test_what_each_submit_does_wrong_is_one_group_without_frames_and_sites(tmp_path: Path) -> None:
    stream = MirrorStream(tmp_path / "process-7", process=7)
    buffer_calls(stream)
    for text in (b"early!!!", b"earlier!", b"too soon"):
        copy_calls(stream)
        stream.call("vkQueueSubmit", submit_args(), 0)
        stream.data(4, 16, text)
        stream.call("vkQueueWaitIdle", {"queue": 3}, 0)
    found = tmp_path / "found.json"
    ended = CliRunner().invoke(check, [str(tmp_path), "--json", str(found)])
    assert ended.exit_code == 1, ended.output
    (document,) = json.loads(found.read_text())["processes"]
    (group,) = document["groups"]
    assert group["count"] == 3
