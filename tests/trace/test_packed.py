"""Traces in one file: what is written comes back equal, whatever is cut off, damaged or out of proportion in it."""

from __future__ import annotations

import errno
import os
import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.normal_form import Generator
from vkharness.check import Analysis
from vkharness.findings import UserError
from vkharness.fuzz.hostile.call_orders import CallOrders
from vkharness.fuzz.hostile.shader_orders import CODE
from vkharness.spec import _generated as tables
from vkharness.trace import packed, packed_chunks, work_budget
from vkharness.trace.calls import Block, Call, HostRead, HostWrite, cut_off
from vkharness.trace.codec import TraceWriter, load, read_header, read_trace, save
from vkharness.trace.packed_chunks import ChunkKind, read_chunks, read_index
from vkharness.trace.work_budget import OverBudget


def blocks_of(rounds: int, size: int = 200) -> list[Block]:
    """Frames in which the host writes other bytes, and a queue presents."""
    made: list[Block] = []
    for number in range(rounds):
        made.append(HostWrite(len(made) + 1, 4, 0, bytes([number % 7]) * size, "frame.py:3"))
        made.append(HostRead(len(made) + 1, 4, 0, size))
        made.append(Call(len(made) + 1, "vkQueueWaitIdle", {"queue": 3}, 0))
        info: dict[str, Any] = {"sType": 1000001001, "pNext": None, "waitSemaphoreCount": 0, "pWaitSemaphores": None}
        info |= {"swapchainCount": 1, "pSwapchains": [9], "pImageIndices": [number], "pResults": None}
        made.append(Call(len(made) + 1, "vkQueuePresentKHR", {"queue": 3, "pPresentInfo": info}, 0))
    return made


def packed_file(path: Path, *parts: bytes) -> Path:
    """A file with these chunks of the stream, each of which is compressed by itself, and no end."""
    import zstandard

    with path.open("wb", buffering=0) as file:
        writer = packed_chunks.ChunkWriter(file.fileno())
        for part in parts:
            writer.write(ChunkKind.BEGINS, zstandard.ZstdCompressor().compress(part))
    return path


HEADER = b'{"header":{"vulkan-version":"1.3.275","vkharness":{"version":3}}}\n'
READ = b'{"index":1,"vkharness":{"name":"HostRead","args":{"memory_id":4,"offset":0,"size":8}}}\n'
WRITE = b'{"index":2,"meta":{"name":"FillMemoryCommand","args":{"memory_id":4,"offset":0,"size":5,"data":"#1"}}}\n'


@given(
    seed=st.integers(0, 2**32),
    names=st.lists(st.sampled_from(sorted(tables.COMMANDS)), max_size=6),
    size=st.integers(0, 300),
    group=st.sampled_from((100, 1 << 20)),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_streams_go_to_one_file_and_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, names: list[str], size: int, group: int
) -> None:
    """The same blocks, and then the same lines and the same files of contents."""
    monkeypatch.setattr(packed, "LINES_OF_A_GROUP", group)
    made = Generator(seed)
    blocks: list[Block] = [made.call(name, index) for index, name in enumerate(names, 1)]
    blocks.append(HostWrite(len(names) + 1, 3, 4096, made.random.randbytes(size), "program.py:3"))
    blocks.append(HostWrite(len(names) + 2, 3, 0, b"same" * 40, None, True))
    blocks.append(HostWrite(len(names) + 3, 3, 0, b"same" * 40))
    (tmp_path / "a").mkdir(exist_ok=True)
    save(tmp_path / "a" / "t.jsonl", blocks)
    save(tmp_path / "t.vkt", load(tmp_path / "a" / "t.jsonl"))
    assert load(tmp_path / "t.vkt") == blocks
    (tmp_path / "b").mkdir(exist_ok=True)
    save(tmp_path / "b" / "t.jsonl", load(tmp_path / "t.vkt"))
    assert (tmp_path / "a" / "t.jsonl").read_bytes() == (tmp_path / "b" / "t.jsonl").read_bytes()


def test_orders_of_calls_have_their_findings_from_one_file(tmp_path: Path) -> None:
    """Streams with shaders, sets and swapchains, as the hostile hunt makes them."""
    found = 0
    for name, code in CODE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(code)
    for seed in range(15):
        (tmp_path / "t.jsonl").write_bytes(CallOrders(random.Random(seed)).text())
        save(tmp_path / "t.vkt", load(tmp_path / "t.jsonl"))
        said = []
        for path in (tmp_path / "t.jsonl", tmp_path / "t.vkt"):
            analysis = Analysis(partial=True).follow(read_trace(path))
            said.append((analysis.verdict, [each.message for each in analysis.findings]))
        assert said[0] == said[1]
        found += len(said[0][1])
    assert found


def test_nothing_is_beside_the_file(tmp_path: Path) -> None:
    blocks = blocks_of(50)
    save(tmp_path / "t.vkt", blocks, {"reduced": {"from": "x", "finding": 1}})
    assert [each.name for each in tmp_path.iterdir()] == ["t.vkt"]
    assert read_header(tmp_path / "t.vkt")["vkharness"] == {"version": 3, "reduced": {"from": "x", "finding": 1}}
    (tmp_path / "t.vkt").rename(tmp_path / "elsewhere")
    assert load(tmp_path / "elsewhere") == blocks, "what a file is stands in it, and not in its name"


def test_a_file_is_read_up_to_wherever_it_was_cut(tmp_path: Path) -> None:
    blocks, path = blocks_of(5), tmp_path / "t.vkt"
    save(path, blocks)
    whole, index = path.read_bytes(), len(blocks)
    ends = [each.place for each in read_chunks(path, [])]
    stream_end = next(each.place for each in read_chunks(path, []) if each.kind is ChunkKind.INDEX)
    for at in range(len(whole)):
        path.write_bytes(whole[:at])
        notes: list[str] = []
        try:
            found = load(path, notes)
        except UserError as error:
            assert at <= ends[1] and str(error).startswith(f"{path}") and "\n" not in str(error)
            continue
        if at >= stream_end:
            assert found == blocks, "without its index it is whole"
            continue
        index = len(found) - 1
        assert found == [*blocks[:index], cut_off(index)]
        assert at in ends or notes == [
            f"{path}: the file ends in the middle of a chunk, at byte {max(filter(at.__gt__, ends))}: read up to there"
        ]
    assert index == len(blocks)


def test_what_is_damaged_is_told_in_one_line(tmp_path: Path) -> None:
    blocks, path = blocks_of(3), tmp_path / "t.vkt"
    save(path, blocks)
    whole = path.read_bytes()
    told = 0
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        notes: list[str] = []
        try:
            found = load(path, notes)
            assert found == blocks or (found[-1].index, len(notes)) == (len(found), 1), "or a size that is too large"
            told += len(notes)
        except UserError as error:
            told += 1
            assert str(error).startswith(f"{path}") and "\n" not in str(error)
    assert told > 0.9 * len(whole)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data + b"x", "no end of a packed trace"),
        (lambda data: data + data, "no end of a packed trace"),
        (lambda data: data[:8] + struct.pack("<I", 4) + data[12:], "version 4 in one file; this vkharness reads"),
        (lambda data: data[:16] + data[16:].replace(b"vkc\n", b"vkd\n", 1), "byte 16: no chunk"),
        (lambda data: data[:10], "ends in its head"),
        (lambda data: data[:16], "empty, not a trace"),
    ],
)
def test_what_is_no_packed_trace_is_refused(tmp_path: Path, change: Callable[[bytes], bytes], said: str) -> None:
    path = tmp_path / "t.vkt"
    save(path, blocks_of(1))
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(UserError, match=said):
        load(path)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((HEADER.replace(b'"version":3', b'"version":4'), READ), "version 4 of a newer vkharness"),
        ((HEADER, b"\x01 5\nhello", WRITE.replace(b"#1", b"#2")), "'#2' are not before the line"),
        ((HEADER, b"\x01 4\nhell", WRITE), "have 4 bytes where the trace says 5"),
        ((HEADER, b"\x01 99999999999\n", WRITE), "no size that contents have"),
        ((HEADER, b"\x01 -1\n", WRITE), "no size that contents have"),
        ((HEADER, WRITE.replace(b"#1", b"t.vkt")), "'t.vkt' are not before the line"),
        ((READ,), "the first line has no header"),
    ],
)
def test_what_a_packed_stream_may_not_hold_is_refused(tmp_path: Path, parts: tuple[bytes, ...], said: str) -> None:
    with pytest.raises(UserError, match=said):
        load(packed_file(tmp_path / "t.vkt", *parts))


def test_contents_are_those_before_the_line(tmp_path: Path) -> None:
    path = packed_file(tmp_path / "t.vkt", HEADER, READ, b"\x01 5\nhello" + WRITE)
    assert load(path) == [HostRead(1, 4, 0, 8), HostWrite(2, 4, 0, b"hello"), cut_off(2)]


def test_a_file_that_expands_out_of_proportion_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "AT_FIRST", 1 << 20)
    bomb = packed_file(tmp_path / "t.vkt", HEADER, b" " * (60 << 20))
    with pytest.raises(
        OverBudget, match=r"byte \d+: out of proportion to the size of its stream: more than 1,\d+,\d+ "
    ):
        load(bomb)


@pytest.mark.parametrize(("held", "what"), [(b'{"frame":1}\n', "lines"), (b"\x01 0\n", "contents")])
def test_what_holds_no_call_is_counted_as_work(held: bytes, what: str, tmp_path: Path) -> None:
    """Text of so many lines would be a larger file."""
    path = packed_file(tmp_path / "t.vkt", HEADER, READ, held * 2_000_000)
    work_budget.share(1)
    try:
        with pytest.raises(OverBudget, match=f"at {what} of a packed trace; --work 10"):
            load(path)
    finally:
        work_budget.end_sharing()


def test_what_is_written_is_in_proportion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros compress to a thousandth. The file is filled up, so that whoever reads it expands them."""
    monkeypatch.setattr(packed, "AT_FIRST", 1 << 20)
    blocks: list[Block] = [HostWrite(number, 4, 0, bytes((2 << 20) + number)) for number in range(1, 9)]
    save(tmp_path / "t.vkt", blocks)
    assert load(tmp_path / "t.vkt") == blocks
    assert (17 << 20) // 256 < (tmp_path / "t.vkt").stat().st_size < (17 << 20) // 100


def test_chunks_that_belong_to_nothing_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.vkt"
    with path.open("wb", buffering=0) as file:
        packed_chunks.ChunkWriter(file.fileno()).write(ChunkKind.GOES_ON, b"x")
    with pytest.raises(UserError, match="byte 16: a chunk that belongs to nothing"):
        load(path)
    path.write_bytes(path.read_bytes()[:16] + struct.pack("<4sB3xII", b"vkc\n", 9, 1, zlib.crc32(b"x", 9)) + b"x")
    with pytest.raises(UserError, match="byte 16: no chunk"):
        load(path)


def test_the_index_has_each_group_with_its_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "LINES_OF_A_GROUP", 3000)
    blocks, path = blocks_of(100), tmp_path / "t.vkt"
    save(path, blocks)
    groups = read_index(path)
    assert len(groups) > 10
    for group in groups[1:]:
        rest = list(read_trace(path, start=group))
        assert rest == blocks[group.line - 2 :], "line 1 is the header"
        assert group.frames == sum(
            getattr(each, "name", "") == "vkQueuePresentKHR" for each in blocks[: group.line - 2]
        )


def test_a_file_that_was_cut_has_no_index(tmp_path: Path) -> None:
    path = tmp_path / "t.vkt"
    save(path, blocks_of(1))
    assert read_index(path)
    path.write_bytes(path.read_bytes()[:-1])
    assert read_index(path) == []


def test_contents_of_long_streams_are_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "CONTENTS_OF_A_GROUP", 1000)
    monkeypatch.setattr(packed, "KEPT", 2000)
    blocks, path = blocks_of(100, size=400), tmp_path / "t.vkt"
    save(path, blocks)
    reader = packed.PackedTrace(path, [])
    most = max(sum(map(len, reader._contents.values())) for _ in reader.lines())
    assert load(path) == blocks and 1000 < most <= 2400


def test_contents_without_a_byte_are_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "KEPT", 100 * packed.AN_ENTRY)
    reader = packed.PackedTrace(packed_file(tmp_path / "t.vkt", HEADER, *[b"\x01 0\n" + READ] * 200), [])
    assert max(len(reader._contents) for _ in reader.lines()) == 101


def test_a_killed_writer_leaves_what_it_had_written(tmp_path: Path) -> None:
    blocks = blocks_of(3)
    writer = TraceWriter(tmp_path / "t.vkt")
    for block in blocks:
        writer.write(block)
    (left,) = tmp_path.iterdir()
    assert load(left) == [*blocks, cut_off(len(blocks))]
    writer.close()
    assert load(tmp_path / "t.vkt") == blocks


def test_a_packed_trace_may_ask_for_the_work_of_its_lines(tmp_path: Path) -> None:
    """A command does as much work for it as for the lines as text, but no more than for 64 bytes a byte."""
    blocks = [HostRead(number, 4, number * 7919 % 100003, 8) for number in range(1, 40001)]
    save(tmp_path / "t.vkt", blocks)
    save(tmp_path / "t.jsonl", blocks)
    left = {}
    for name in ("t.vkt", "t.jsonl"):
        work_budget.share(1)
        for _ in read_trace(tmp_path / name):
            pass
        left[name] = work_budget.UNITS.left
        work_budget.end_sharing()
    most = packed.COUNTED * (tmp_path / "t.vkt").stat().st_size
    assert 0.9 * left["t.jsonl"] < left["t.vkt"] <= left["t.jsonl"] and most > (tmp_path / "t.jsonl").stat().st_size


def test_a_file_that_takes_no_head_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is its descriptor."""
    handles: list[int] = []

    def full(handle: int, _: bytes) -> None:
        handles.append(handle)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(packed_chunks, "write_all", full)
    with pytest.raises(UserError, match="cannot be written: No space left on device"):
        TraceWriter(tmp_path / "t.vkt")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(handles[0])
