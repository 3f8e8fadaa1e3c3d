"""Files of stream text, as commands read them, and traces as text."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.support.streams import two_buffers
from vkharness.check import Analysis
from vkharness.cli import main
from vkharness.findings import UserError
from vkharness.text_form.format import canonical
from vkharness.text_form.trace_text import findings_of, smallest, text_of
from vkharness.trace.calls import TOLD, Call
from vkharness.trace.codec import read_trace, save
from vkharness.trace.file_kinds import FileKind, file_kind, kind_of

HEAD_OF_A_DUMP = b"vkDeviceWaitIdle(device) returns VkResult VK_SUCCESS (0):\n"
RACE = """\
# an upload
submit q1
    vkCmdFillBuffer: CLEAR_TRANSFER_WRITE a
    COPY_TRANSFER_READ c
    vkCmdCopyBuffer: COPY_TRANSFER_READ a; COPY_TRANSFER_WRITE b
host waits
"""
DATA = Path(__file__).parents[1] / "data"
SAYABLE = (
    "queues/granite_backend-image_with_initial_data-without_the_semaphore",
    "queues/queue-buffer_goes_to_another_family-without_semaphore",
    "queues/sparse-two_ranges_of_one_memory-without_fill_before_copy",
    "queues/timeline-stages_of_an_early_wait-the_wait_at_the_vertex_shader",
    "sparse/fence_of_the_bind-whole",
    "sparse/memory_moves_to_another_range-without_the_wait_of_the_bind",
)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return ended.value.code, *capsys.readouterr()


@pytest.fixture
def race(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("race.txt").write_text(RACE)
    return Path("race.txt")


def test_check_judges_a_text_and_names_its_lines(race: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "check", "race.txt", "--json", "out.json")
    assert code == 1
    assert 'READ_AFTER_WRITE on VkBuffer 100 "a" [0, 64)' in out
    document = json.loads(Path("out.json").read_text())
    assert (document["model"], len(document["findings"])) == ("agrees", 1)
    (found,) = document["findings"]
    assert (found["site"], found["prior_site"]) == ("race.txt:5", "race.txt:3")


def test_explain_and_graph_read_a_text(race: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "explain", "race.txt")
    assert code == 0 and "CONFLICT unordered: vkCmdCopyBuffer" in out
    code, out, _ = told(capsys, "graph", "race.txt")
    assert code == 0 and "finding 1" in out
    assert "vkCmdFillBuffer" in Path("race.svg").read_text()


@pytest.mark.parametrize("command", ["mend", "advise", "reduce --finding 1 -o x.jsonl"])
def test_commands_that_need_calls_say_who_reads_a_text(
    race: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = told(capsys, *command.split(), "race.txt")
    assert code == 2
    assert "race.txt: stream text has accesses and no calls: check, explain, graph and fmt read it" in err


def test_what_cannot_be_read_is_one_line_with_its_place(race: Path, capsys: pytest.CaptureFixture[str]) -> None:
    race.write_text(RACE.replace("CLEAR_TRANSFER", "CLAER_TRANSFER"))
    for command in ("check", "explain", "graph", "fmt"):
        code, out, err = told(capsys, command, "race.txt")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith("vkharness: race.txt:3:22: 'CLAER_TRANSFER_WRITE' is no command and no access")


def test_fmt_prints_writes_and_checks(race: Path, capsys: pytest.CaptureFixture[str]) -> None:
    race.write_text(RACE.replace("    ", "  "))
    assert told(capsys, "fmt", "race.txt") == (0, RACE, "")
    assert told(capsys, "fmt", "--check", "race.txt")[0] == 1
    assert told(capsys, "fmt", "race.txt", "-o", "race.txt") == (0, "", "")
    assert race.read_text() == RACE
    assert told(capsys, "fmt", "--check", "race.txt")[0] == 0


def test_findings_come_with_the_smallest_text(race: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = told(capsys, "check", "--as-text", "race.txt")
    lines = [line for line in RACE.splitlines() if "READ c" not in line and "waits" not in line and "#" not in line]
    assert out.endswith("\n".join(["# 1. READ_AFTER_WRITE", *lines]) + "\n")


def test_looking_for_the_smallest_text_is_work(race: Path, capsys: pytest.CaptureFixture[str]) -> None:
    race.write_text(RACE + "submit q1\n" * 300)
    code, out, _ = told(capsys, "check", "--as-text", "--work", "0.01", "race.txt")
    assert code == 1 and "no text of finding 1 and those behind it" in out and "--work 0.1 allows" in out


def test_a_trace_as_text_has_the_findings_of_the_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stream, a, b = two_buffers()
    stream.begin()
    stream.fill(a, 7)
    stream.copy(a, b, 16)
    stream.submit()
    text = text_of(stream.blocks)
    assert [line.strip() for line in text.splitlines()] == [
        "submit q1",
        "vkCmdFillBuffer: CLEAR_TRANSFER_WRITE a[0:16]",
        "vkCmdCopyBuffer: COPY_TRANSFER_READ a[0:16]; COPY_TRANSFER_WRITE b[0:16]",
        "host waits q1",
    ]
    save(tmp_path / "t.jsonl", stream.blocks)
    assert told(capsys, "fmt", str(tmp_path / "t.jsonl")) == (0, text, "")


@pytest.mark.parametrize("name", SAYABLE)
def test_traces_of_the_suite_as_text(name: str) -> None:
    trace = DATA / f"{name}.jsonl"
    text = text_of(read_trace(trace))
    assert canonical(text) == text
    judged = Analysis().follow(read_trace(trace)).findings
    found = findings_of(text)
    assert Counter(each.hazard for each in found) == Counter(each.hazard for each in judged)
    for each in found:
        assert each.hazard in [left.hazard for left in findings_of(smallest(text, each))]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("sparse/two_blocks_of_one_memory-whole", "two resources share memory"),
        ("joining/client-files", "a payload is shared with somebody outside"),
    ],
)
def test_what_text_cannot_say_is_one_line(name: str, why: str) -> None:
    with pytest.raises(UserError) as raised:
        text_of(read_trace(DATA / f"{name}.jsonl"))
    assert str(raised.value) == f"stream text cannot say this: {why}"


def test_a_file_of_calls_cannot_tell_an_event() -> None:
    analysis = Analysis().follow([Call(1, TOLD, {"event": {"queue": 1}})])
    assert (analysis.verdict, len(analysis.unmodelled)) == ("unknown", 1)


def test_no_file_of_calls_has_the_name_of_an_event(tmp_path: Path) -> None:
    file, args = tmp_path / "told.jsonl", {"names": {"7": "x"}, "size": 64, "event": None}
    save(file, [Call(1, TOLD, args)])
    with pytest.raises(UserError, match=r"told\.jsonl:2: .*name of a C function"):
        list(read_trace(file))
    save(file, [Call(1, TOLD.replace(" ", "_"), args)])
    assert Analysis().follow(read_trace(file)).verdict == "unknown"


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"# a\n\n  submit q1\n", FileKind.TEXT),
        (b"host waits\n", FileKind.TEXT),
        (b"semaphore t1 = 0\n", FileKind.TEXT),
        (b"a note\nsubmit q1\n", None),
        (b"present mode: fifo\n" + HEAD_OF_A_DUMP, FileKind.API_DUMP_TEXT),
        (b"submit q1\n# " + HEAD_OF_A_DUMP, FileKind.TEXT),
        (b'{"header": {}}\n', FileKind.TRACE),
    ],
)
def test_a_text_is_known_by_its_first_event(head: bytes, kind: FileKind | None) -> None:
    assert kind_of(head) is kind


def test_a_line_of_the_program_far_before_its_dump_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_bytes(b"host reads\n" + b"frame\n" * 2000 + HEAD_OF_A_DUMP)
    assert file_kind(tmp_path / "out.txt") is FileKind.API_DUMP_TEXT
