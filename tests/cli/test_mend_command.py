"""`vkharness mend` as a user meets it: exit codes, the mended trace, one line for a mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.streams import Stream, two_buffers
from vkharness.check import Analysis
from vkharness.cli import main
from vkharness.trace.codec import load, save


def run(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as left:
        main(["mend", *map(str, arguments)])
    assert isinstance(left.value.code, int)
    return left.value.code


def hazardous(folder: Path) -> Path:
    stream, a, b = two_buffers()
    stream.begin()
    stream.fill(a, 1)
    stream.copy(a, b, 16)
    stream.submit()
    save(folder / "trace.jsonl", stream.blocks)
    return folder / "trace.jsonl"


def test_the_mended_trace_is_clean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, told = tmp_path / "out.jsonl", tmp_path / "told.json"
    assert run(hazardous(tmp_path), "--apply", out, "--json", told, "--code", "C") == 0
    assert Analysis().follow(load(out)).verdict == "clean"
    printed = capsys.readouterr().out
    assert "    mended by change 1\n" in printed
    assert "C, first form" in printed and "Python" not in printed
    assert json.loads(told.read_text())["groups"][0]["mended"]


def test_a_wait_of_the_host_is_told_beside_the_design_without_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = Stream()
    memory = stream.memory(16)
    a, b = stream.buffer(16, memory), stream.buffer(16)
    stream.begin()
    stream.copy(a, b, 16)
    stream.submit(wait=False)
    stream.host_write(memory, 0, bytes(16))
    save(tmp_path / "trace.jsonl", stream.blocks)
    told = tmp_path / "told.json"
    assert run(tmp_path / "trace.jsonl", "--json", told) == 0
    note = "with memory of its own for each frame in flight, the host need not wait there"
    assert f"\n    note: {note}\n" in capsys.readouterr().out
    assert json.loads(told.read_text())["groups"][0]["note"] == note


def test_a_clean_trace_has_nothing_to_mend(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stream = Stream()
    stream.begin()
    stream.submit()
    save(tmp_path / "trace.jsonl", stream.blocks)
    assert run(tmp_path / "trace.jsonl") == 0
    assert capsys.readouterr().out == "nothing to mend: no hazard was found\n"


def test_a_number_without_a_group_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(hazardous(tmp_path), "--finding", "7") == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("vkharness: --finding 7: ") and told.err.count("\n") == 1
