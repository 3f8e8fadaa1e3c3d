"""Programs under the mirror layer: what their streams hold, and that they run as they do without it."""

from __future__ import annotations

import mmap
import os
import signal
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.mirror_streams import (
    CALL,
    DATA,
    ENTER,
    LOST,
    MODULE,
    RETURN,
    STACK,
    UNSEEN,
    Record,
    calls_of,
    compiled,
    layer_environment,
    process_folders,
    records_of,
)
from vkharness.check import Analysis
from vkharness.live.line_tables import LineTables
from vkharness.live.native_sites import NativeSites
from vkharness.live.process_judge import ProcessJudge, judge_folder
from vkharness.mirror_layer.layer_build import BUILT, LIBRARY
from vkharness.trace.calls import Block, Call


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return compiled("mirrored.c", tmp_path, "-lvulkan", "-pthread")


def run(program: Path, mode: str, out: Path | None, **more: str) -> subprocess.CompletedProcess[str]:
    environ = layer_environment(out, **more)
    return subprocess.run([str(program), mode], env=environ, capture_output=True, text=True, check=False)


def recorded(program: Path, mode: str, out: Path, **more: str) -> list[Record]:
    """The stream of the one process of a run that ends well."""
    done = run(program, mode, out, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = process_folders(out)
    return records_of(folder)


def own_calls(records: list[Record]) -> list[str]:
    """From the device on: before it, other layers and the loader ask, too."""
    names = [each.name for each in calls_of(records)]
    return names[names.index("vkGetDeviceQueue") :]


COPY = [
    "vkGetDeviceQueue", "vkCreateBuffer", "vkGetBufferMemoryRequirements", "vkAllocateMemory", "vkBindBufferMemory",
    "vkMapMemory", "vkCreateCommandPool", "vkAllocateCommandBuffers", "vkBeginCommandBuffer", "vkCmdFillBuffer",
    "vkCmdPipelineBarrier", "vkCmdCopyBuffer", "vkEndCommandBuffer", "vkQueueSubmit", "vkQueueWaitIdle",
]  # fmt: skip
END = ["vkFreeMemory", "vkDestroyBuffer", "vkDestroyDevice", "vkDestroyInstance"]


def one(records: list[Record], name: str) -> Record:
    (found,) = [each for each in calls_of(records) if each.name == name]
    return found


def test_each_call_is_recorded_with_what_its_pointers_lead_to(program: Path, tmp_path: Path) -> None:
    records = recorded(program, "copy", tmp_path / "out")
    assert own_calls(records) == COPY + END
    fill, copy, barrier = (one(records, f"vkCmd{name}") for name in ("FillBuffer", "CopyBuffer", "PipelineBarrier"))
    commands, buffer = fill.arguments[:2]
    assert fill.arguments[2:] == (4096, 4096, 42) and fill.kind == CALL
    assert copy.arguments[:4] == (commands, buffer, buffer, 1)
    assert copy.numbers("3Q", copy.arguments[4]) == (4096, 8192, 4096)
    assert barrier.arguments[5:7] == (0, 1) and barrier.arguments[8:] == (0, 0)
    kind, chain, source, destination, *_, held = barrier.numbers("I4xQ4IQ", barrier.arguments[7])
    assert (kind, chain, source, destination, held) == (44, 0, 0x1000, 0x800, buffer)
    made = one(records, "vkCreateInstance")
    name = made.numbers("Q", made.numbers("Q", made.arguments[0] + 24)[0] + 16)[0]
    assert made.whole[name:].startswith(b"mirrored\0")
    assert one(records, "vkCreateBuffer").numbers("Q", one(records, "vkCreateBuffer").arguments[3]) == (buffer,)


def test_a_submit_is_there_before_the_driver_has_it(program: Path, tmp_path: Path) -> None:
    records = recorded(program, "copy", tmp_path / "out")
    submit = one(records, "vkQueueSubmit")
    returned = records[records.index(submit) + 1]
    assert (submit.kind, returned.kind, returned.name) == (ENTER, RETURN, "vkQueueSubmit")
    assert struct.unpack("<Qq", returned.payload) == (submit.serial, 0)
    (commands,) = submit.numbers("Q", submit.numbers("Q", submit.arguments[2] + 48)[0])
    assert commands == one(records, "vkBeginCommandBuffer").arguments[0]
    assert [each.kind for each in calls_of(records) if each.name in END] == [CALL] * len(END)


def test_mapped_memory_is_sent_where_it_counts(program: Path, tmp_path: Path) -> None:
    """What the host wrote comes before the submit, what the device wrote before the wait's record."""
    records = recorded(program, "copy", tmp_path / "out")
    memory = one(records, "vkMapMemory").arguments[:2]
    held = bytearray(1 << 20)
    seen = {}
    for each in records:
        if each.kind == DATA:
            device, of, offset, size = struct.unpack_from("<4Q", each.payload)
            assert (device, of) == memory
            held[offset : offset + size] = each.payload[32 : 32 + size]
        elif each.name in ("vkMapMemory", "vkQueueSubmit", "vkQueueWaitIdle") and each.kind != RETURN:
            seen[each.name] = bytes(held)
    assert seen["vkQueueSubmit"][:1000] == b"\7" * 1000
    assert seen["vkQueueSubmit"][1000:] == seen["vkMapMemory"][1000:]
    assert seen["vkQueueWaitIdle"][4096:12288] == struct.pack("<I", 42) * 2048


def test_a_stack_leads_into_the_program(program: Path, tmp_path: Path) -> None:
    records = recorded(program, "copy", tmp_path / "out")
    stacks, modules = {}, []
    for each in records:
        if each.kind == STACK:
            number, count = struct.unpack_from("<II", each.payload)
            stacks[number] = struct.unpack_from(f"<{count}Q", each.payload, 8)
        if each.kind == MODULE:
            _, start, end, path, build = struct.unpack_from("<3Q2I", each.payload)
            modules.append((start, end, each.payload[32 : 32 + path].decode(), build))
        if each.stack:
            assert each.stack in stacks
    (own,) = [(start, end) for start, end, path, _ in modules if path == str(program)]
    for call in calls_of(records):
        if call.name.startswith("vkCmd"):
            first, *rest = stacks[call.stack]
            assert own[0] <= first < own[1] and len(rest) >= 2
    assert one(records, "vkCmdFillBuffer").stack != one(records, "vkCmdCopyBuffer").stack
    assert not any(LIBRARY in path for start, end, path, _ in modules if start <= stacks[1][0] < end)
    none = recorded(program, "copy", tmp_path / "none", VKHARNESS_STACKS="0")
    assert not [each for each in none if each.stack or each.kind in (STACK, MODULE)]


@pytest.mark.parametrize("size", range(1024, 1120, 16))
def test_what_deeper_calls_left_is_in_no_stack(program: Path, tmp_path: Path, size: int) -> None:
    """The size of the frame that calls differs from call to call."""
    records = recorded(program, f"varied-{size}", tmp_path / "out")
    stacks = {struct.unpack_from("<I", each.payload)[0]: each.payload[8:] for each in records if each.kind == STACK}
    deeper, first, then = [each for each in calls_of(records) if each.name == "vkCmdFillBuffer"]
    callers = [struct.unpack_from("<3Q", stacks[each.stack]) for each in (deeper, first, then)]
    assert callers[0][0] == callers[1][0] == callers[2][0]
    assert callers[0][1] != callers[1][1] == callers[2][1]
    assert callers[1][2] != callers[0][2]


def test_every_call_of_every_thread_is_there_in_its_order(program: Path, tmp_path: Path) -> None:
    records = recorded(program, "threads", tmp_path / "out")
    by_thread: dict[int, list[int]] = {}
    for each in calls_of(records):
        if each.name == "vkCmdFillBuffer":
            by_thread.setdefault(each.thread, []).append(each.arguments[4])
    assert len(by_thread) == 8
    assert all(values == [values[0] & 0xFFFF0000 | at for at in range(2000)] for values in by_thread.values())


def test_threads_at_once_are_judged_as_one_thread_is(program: Path, tmp_path: Path) -> None:
    """16 of them make, map, record, submit, wait and destroy. Their host writes are in as many pieces as others saw."""
    judged = {}
    for mode in ("races-at-once", "races-in-turn"):
        assert run(program, mode, tmp_path / mode).returncode == 0
        (folder,) = process_folders(tmp_path / mode)
        blocks: list[Block] = []
        session = judge_folder(folder, Analysis(), NativeSites(LineTables()), blocks.append)
        told = [(each.hazard, each.place.command, each.prior.command, each.ranges) for each in session.findings]
        names = Counter(each.name for each in blocks if isinstance(each, Call))
        judged[mode] = session.verdict, Counter(told), names, dict(session.unmodelled)
        assert len({each.thread for each in blocks if isinstance(each, Call)}) == (17 if "once" in mode else 1)
    assert judged["races-at-once"] == judged["races-in-turn"]
    verdict, found, names, unmodelled = judged["races-in-turn"]
    assert (verdict, found.total(), names["vkQueueSubmit"], unmodelled) == ("hazards", 48, 96, {})


def test_a_chain_ends_no_program(program: Path, tmp_path: Path) -> None:
    """A struct that the tables lack keeps its head, and a pointer that Vulkan ignores is not followed."""
    call = [each for each in calls_of(recorded(program, "chained", tmp_path / "out")) if each.name == "vkCreateBuffer"][
        1
    ]
    info = call.arguments[1]
    (external,) = call.numbers("Q", info + 8)
    assert call.numbers("Q", info + 48) == (0,)
    assert call.numbers("I", external) == (1000072000,)
    assert call.numbers("I4xQ", *call.numbers("Q", external + 8)) == (0x70000000, 0)


def test_a_pointer_that_vulkan_ignores_leads_where_nothing_is_any_more(program: Path, tmp_path: Path) -> None:
    """Though the layer read that memory at an earlier call."""
    first, then = [
        each.numbers("Q", each.arguments[1] + 24)[0]
        for each in calls_of(recorded(program, "stale", tmp_path / "out"))
        if each.name == "vkBeginCommandBuffer"
    ][1:]
    assert first > 1 and then == 1


@pytest.mark.parametrize(("mode", "why"), [("few-files", "Too many open files"), ("short-files", "File too large")])
def test_a_stream_that_cannot_go_on_says_so(program: Path, tmp_path: Path, mode: str, why: str) -> None:
    """The program goes on, and the judge reads that its calls do."""
    records = recorded(program, mode, tmp_path / "out")
    assert [each.text for each in records if each.kind == LOST] == [f"recording: the stream cannot go on: {why}"]
    assert records[-1].kind == LOST and records[-2].name == "vkCmdSetLineWidth"


@pytest.mark.parametrize(("mode", "status"), [("killed", -signal.SIGKILL), ("exited", 3)])
def test_what_was_recorded_outlives_the_process(program: Path, tmp_path: Path, mode: str, status: int) -> None:
    assert run(program, mode, tmp_path / "out").returncode == status
    (folder,) = process_folders(tmp_path / "out")
    assert own_calls(records_of(folder)) == COPY
    assert struct.unpack_from("<I", (folder / "control").read_bytes(), 44) == (0,)


def test_a_child_has_a_stream_of_its_own(program: Path, tmp_path: Path) -> None:
    assert run(program, "forked", tmp_path / "out").returncode == 0
    parent, child = sorted(process_folders(tmp_path / "out"), key=lambda each: len(calls_of(records_of(each))))[::-1]
    assert own_calls(records_of(parent)) == COPY + END
    assert own_calls(records_of(child)) == COPY[: COPY.index("vkMapMemory") + 1]


def test_instances_follow_each_other_in_one_stream(program: Path, tmp_path: Path) -> None:
    names = own_calls(recorded(program, "twice", tmp_path / "out"))
    again = names.index("vkCreateInstance")
    assert names[:again] == COPY + END and names[again:].count("vkQueueSubmit") == 1


def test_without_a_folder_the_program_is_left_alone(program: Path, tmp_path: Path) -> None:
    bare, mirrored = run(program, "copy", None, VK_INSTANCE_LAYERS=""), run(program, "copy", None)
    assert (bare.returncode, bare.stdout) == (mirrored.returncode, mirrored.stdout) == (0, "42\n")
    assert mirrored.stderr == bare.stderr


def test_a_folder_that_cannot_be_made_is_one_line(program: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run(program, "copy", tmp_path / "file")
    assert (done.returncode, done.stdout) == (0, "42\n")
    (line,) = done.stderr.splitlines()
    assert line.startswith("vkharness: the mirror layer stops recording: ") and line.endswith("Not a directory")


def test_an_update_template_gives_what_its_entries_name(program: Path, tmp_path: Path) -> None:
    """Without what lies between. The record of its creation says where its data lies in a record."""
    records = recorded(program, "templated", tmp_path / "out")
    made, call = one(records, "vkCreateDescriptorUpdateTemplate"), one(records, "vkUpdateDescriptorSetWithTemplate")
    (entries,) = made.numbers("Q", made.arguments[1] + 24)
    assert made.numbers("4I2Q", entries) == (3, 0, 2, 7, 0, 24)
    (buffer,) = {each.arguments[1] for each in calls_of(records) if each.name == "vkBindBufferMemory"}
    assert call.numbers("6Q", call.arguments[3]) == (buffer, 0, 64, buffer, 256, 128)
    assert len(call.whole) == call.arguments[3] + 48


@contextmanager
def judged(program: Path, *mode: str, out: Path, **more: str) -> Iterator[tuple[subprocess.Popen[bytes], mmap.mmap]]:
    """A program that runs, and the control of its stream."""
    environ = layer_environment(out, **more)
    with subprocess.Popen([str(program), *mode], env=environ, stdout=subprocess.DEVNULL) as running:
        while not (found := list(out.glob("process-*/control"))):
            assert running.poll() is None
        with found[0].open("r+b") as file, mmap.mmap(file.fileno(), 4096) as control:
            yield running, control


def set_number(control: mmap.mmap, at: int, form: str, value: int) -> None:
    control[at : at + struct.calcsize(form)] = struct.pack("<" + form, value)


JUDGE, CONSUMED, ANSWERED, STOP, STOPPED = 32, 24, 48, 56, 68
"""Where these are in `control`."""
ALL = 1 << 62


def test_a_program_is_no_further_ahead_than_its_judge_allows(program: Path, tmp_path: Path) -> None:
    """With breaks it waits at its first call until there is a judge, who lets it go on to the end of the segment."""
    more = {"VKHARNESS_LIMIT": "1", "VKHARNESS_BREAK": "1"}
    with judged(program, "many", out=tmp_path / "out", **more) as (running, control):
        set_number(control, JUDGE, "I", os.getpid())
        set_number(control, ANSWERED, "Q", ALL)
        done = 0
        while running.poll() is None:
            (begun,) = struct.unpack_from("<Q", control, 16)
            assert begun <= done + 1
            done = begun
            set_number(control, CONSUMED, "Q", done)
    assert running.returncode == 0 and done == 3
    (folder,) = process_folders(tmp_path / "out")
    assert len([each for each in calls_of(records_of(folder)) if each.name == "vkCmdSetLineWidth"]) == 700000


def test_a_judge_that_is_gone_is_not_waited_for(program: Path, tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    with judged(program, "many", out=tmp_path / "out", VKHARNESS_LIMIT="1", VKHARNESS_BREAK="1") as (running, control):
        set_number(control, JUDGE, "I", gone.pid)
        assert running.wait() == 0


def followed(running: subprocess.Popen[bytes], folder: Path) -> None:
    """Reads as the judge of `run` does, to the end."""
    judge = ProcessJudge(folder, None, NativeSites(LineTables()), live=True)
    while running.poll() is None:
        judge.advance(1 << 16)
    while judge.advance(1 << 16):
        pass
    judge.finish()
    assert running.returncode == 0 and not judge.damage


def test_a_program_and_its_judge_wait_for_each_other_in_turn(program: Path, tmp_path: Path) -> None:
    """One segment may be unread: it is let go of when the judge has seen its end."""
    with judged(program, "many", out=tmp_path / "out", VKHARNESS_LIMIT="1") as (running, _):
        followed(running, process_folders(tmp_path / "out")[0])


@pytest.mark.parametrize(("setting", "calls"), [("VKHARNESS_LIMIT", "500000"), ("VKHARNESS_BREAK", "100")])
def test_nobody_waits_behind_a_call_that_has_not_returned(tmp_path: Path, setting: str, calls: str) -> None:
    """The driver returns from a submit when another thread went on. The judge waits for its result."""
    program = compiled("fake_loader.c", tmp_path, "-ldl", "-pthread")
    with judged(program, str(BUILT / LIBRARY), calls, out=tmp_path / "out", **{setting: "1"}) as (running, _):
        followed(running, process_folders(tmp_path / "out")[0])


def test_nothing_is_recorded_when_nobody_comes_again(program: Path, tmp_path: Path) -> None:
    with judged(program, "many", out=tmp_path / "out", VKHARNESS_BREAK="1") as (running, control):
        set_number(control, JUDGE, "I", os.getpid())
        set_number(control, STOPPED, "I", 1)
        set_number(control, ANSWERED, "Q", ALL)
        assert running.wait() == 0
    (folder,) = process_folders(tmp_path / "out")
    assert "vkCmdSetLineWidth" not in [each.name for each in calls_of(records_of(folder))]


def test_a_program_of_run_records_for_nobody_else(program: Path, tmp_path: Path) -> None:
    """It stops when the judge is gone, and where the folder is gone it makes none."""
    done = run(program, "copy", tmp_path / "none", VKHARNESS_RUN="1")
    assert (done.returncode, done.stdout) == (0, "42\n") and not (tmp_path / "none").exists()
    (tmp_path / "out").mkdir()
    gone = subprocess.Popen(["true"])
    gone.wait()
    more = {"VKHARNESS_RUN": "1", "VKHARNESS_BREAK": "1"}
    with judged(program, "many", out=tmp_path / "out", **more) as (running, control):
        set_number(control, JUDGE, "I", gone.pid)
        assert running.wait() == 0
    (folder,) = process_folders(tmp_path / "out")
    assert "vkCmdSetLineWidth" not in [each.name for each in calls_of(records_of(folder))]


def test_with_breaks_each_call_waits_and_stops_where_it_is_to(program: Path, tmp_path: Path) -> None:
    """The judge answers what it has read, and has the program stop in the barrier."""
    with judged(program, "copy", out=tmp_path / "out", VKHARNESS_BREAK="1") as (running, control):
        set_number(control, JUDGE, "I", os.getpid())
        (folder,) = process_folders(tmp_path / "out")
        while running.poll() is None:
            records = records_of(folder)
            for each in records:
                if each.name == "vkCmdPipelineBarrier":
                    set_number(control, STOP, "Q", each.serial)
            set_number(control, ANSWERED, "Q", len(records))
    assert running.returncode == -signal.SIGTRAP
    assert calls_of(records_of(folder))[-1].name == "vkCmdPipelineBarrier"


def test_a_command_that_the_tables_lack_is_passed_on_and_told_when_called(tmp_path: Path) -> None:
    """With all of its arguments, whatever they are. What is merely asked for is not told."""
    program = compiled("fake_loader.c", tmp_path, "-ldl", "-pthread")
    environ = layer_environment(tmp_path / "out")
    command = [str(program), str(BUILT / LIBRARY)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "51.875 51.875 51.875 3\n"), done.stderr
    (folder,) = process_folders(tmp_path / "out")
    records = records_of(folder)
    assert [each.text for each in records if each.kind == UNSEEN] == ["vkStrangeEXT"]
    names = [each.name for each in calls_of(records)]
    assert names == ["vkCreateInstance", "vkCreateDevice", "vkDeviceWaitIdle", "vkDestroyDevice", "vkDestroyInstance"]
