"""Streams of the mirror layer of which a part is not there: none of them is clean."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.written_streams import MirrorStream, buffer_calls, copy_calls, submit_args
from vkharness.check import Analysis
from vkharness.cli.check import check
from vkharness.live.line_tables import LineTables
from vkharness.live.native_sites import NativeSites
from vkharness.live.process_judge import ProcessJudge
from vkharness.live.records import HEAD, MAGIC, RECORD, VERSION, WINDOW, Kind, RecordStream
from vkharness.trace import work_budget
from vkharness.trace.work_budget import OverBudget

pytestmark = pytest.mark.driver


def written(folder: Path, *, killed: bool = False) -> MirrorStream:
    """A clean stream of several segments."""
    stream = MirrorStream(folder, segment=1 << 10, killed=killed)
    buffer_calls(stream)
    copy_calls(stream)
    assert stream.segments > 2
    return stream


def checked(folder: Path) -> Result:
    return CliRunner().invoke(check, [str(folder)])


def test_a_whole_stream_is_clean(tmp_path: Path) -> None:
    written(tmp_path)
    ended = checked(tmp_path)
    assert ended.exit_code == 0 and ended.output.startswith("clean"), ended.output


def no_middle(folder: Path) -> None:
    (folder / "segment-00000001").unlink()


def no_first(folder: Path) -> None:
    (folder / "segment-00000000").unlink()


def no_end_of_the_first(folder: Path) -> None:
    """As a program leaves it whose blocks never came to the disk."""
    path = folder / "segment-00000000"
    path.write_bytes(path.read_bytes()[:64].ljust(path.stat().st_size, b"\0"))


def no_page(folder: Path) -> None:
    (folder / "control").write_bytes(bytes(4096))


def pipe_for_a_page(folder: Path) -> None:
    (folder / "control").unlink()
    os.mkfifo(folder / "control")


def link_to_nowhere(folder: Path) -> None:
    no_middle(folder)
    (folder / "segment-00000001").symlink_to("nowhere")


CUTS: dict[Callable[[Path], None], str] = {
    no_middle: "segment-00000001 is not there",
    no_first: "segment-00000000 is not there",
    no_end_of_the_first: "segment-00000000, byte 64: no record, and segment-00000001 follows",
    no_page: "the process did not end by itself",
    pipe_for_a_page: "the process did not end by itself",
    link_to_nowhere: "No such file",
}


@pytest.mark.parametrize("cut", CUTS, ids=lambda each: each.__name__)
def test_a_stream_with_a_part_missing_is_unknown(tmp_path: Path, cut: Callable[[Path], None]) -> None:
    written(tmp_path)
    cut(tmp_path)
    ended = checked(tmp_path)
    assert ended.exit_code == 3 and CUTS[cut] in ended.output, ended.output


def test_a_process_that_was_killed_is_judged_up_to_there(tmp_path: Path) -> None:
    written(tmp_path, killed=True)
    ended = checked(tmp_path)
    assert ended.exit_code == 3 and "did not end by itself" in ended.output, ended.output


def test_a_stream_without_a_call_is_unknown(tmp_path: Path) -> None:
    MirrorStream(tmp_path)
    ended = checked(tmp_path)
    assert ended.exit_code == 3 and "the stream has no call" in ended.output, ended.output


def test_a_file_that_the_program_cuts_off_while_it_is_judged_ends_nothing_but_its_stream(tmp_path: Path) -> None:
    """What was there is judged, and the page of the process may be gone, too."""
    stream = MirrorStream(tmp_path, segment=1 << 20)
    buffer_calls(stream)
    copy_calls(stream)
    stream.call("vkQueueSubmit", submit_args(), 0)
    stream.data(4, 16, b"early!!!")
    for _ in range(500):
        stream.call("vkQueueSubmit", submit_args(), 0)
        stream.call("vkQueueWaitIdle", {"queue": 3}, 0)
    judge = ProcessJudge(tmp_path, Analysis(), NativeSites(LineTables()), live=True)
    while judge.session.calls < 40:
        assert judge.advance(1)
    os.truncate(tmp_path / "segment-00000000", WINDOW + 100)
    os.truncate(tmp_path / "control", 0)
    while judge.advance(100):
        pass
    judge.finish()
    assert judge.damage == f"segment-00000000: it was cut off at byte {WINDOW + 100}"
    assert judge.session.verdict == "hazards" and judge.session.calls < 900


def one_record(folder: Path, kind: Kind, size: int) -> RecordStream:
    """A segment whose only record has so many bytes, of which the disk holds the head."""
    with (folder / "segment-00000000").open("wb") as file:
        file.write(HEAD.pack(MAGIC, VERSION, 0, HEAD.size + size, 1) + RECORD.pack(size, kind, 0, 0, 0, 1))
        file.truncate(HEAD.size + size)
    return RecordStream(folder, keeps=True)


@pytest.mark.parametrize("kind", [Kind.CALL, Kind.MODULE])
def test_a_long_record_is_paid_before_it_is_read(kind: Kind, tmp_path: Path) -> None:
    stream = one_record(tmp_path, kind, 400 << 20)
    work_budget.share(1)
    try:
        with pytest.raises(OverBudget, match="bytes of a record"):
            stream.take()
    finally:
        work_budget.end_sharing()
        stream.close()


def test_a_long_record_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    reads = os.pread

    def counted(file: int, size: int, at: int) -> bytes:
        read.append(size)
        return reads(file, size, at)

    monkeypatch.setattr(os, "pread", counted)
    with closing(one_record(tmp_path, Kind.DATA, 1 << 20)) as stream:
        record = stream.take()
    assert record is not None and len(record.payload()) == (1 << 20) - RECORD.size
    assert sum(read) < (1 << 20) + 4 * WINDOW
