"""`vkharness races` from the command line, on a stream whose shader comes with the harness."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.streams import Stream
from vkharness.cli import main
from vkharness.trace.codec import save


def saved(path: Path, shader: str, bound: tuple[int, int]) -> Path:
    """A trace of one dispatch, with these of two buffers bound."""
    stream = Stream()
    held = stream.buffer(256), stream.buffer(256)
    stream.begin()
    stream.compute(shader, [held[each] for each in bound]).run()
    stream.submit()
    save(path, stream.blocks)
    return path


def asked(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["races", *arguments])
    return int(ended.value.code or 0)


def test_words_of_each_invocation_are_no_race(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(str(saved(tmp_path / "t.jsonl", "reverse_words", (0, 1)))) == 0
    assert capsys.readouterr().out == "0 races in 1 dispatch\n"


def test_reversing_a_buffer_in_place_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, document = saved(tmp_path / "t.jsonl", "reverse_words", (0, 0)), tmp_path / "races.json"
    assert asked(str(trace), "--json", str(document)) == 1
    said = capsys.readouterr().out
    (race,) = json.loads(document.read_text())["races"]
    assert said.startswith("race 1: storage buffer") and said.endswith("1 race in 1 dispatch\n")
    assert (race["storage"], race["places"], race["command"]) == ("storage buffer", 64, "vkCmdDispatch")
    assert sorted(each["kind"] for each in race["accesses"]) == ["read", "write"]


def test_a_file_that_is_no_trace_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.jsonl").write_text("no trace")
    assert asked(str(tmp_path / "t.jsonl")) == 2
    assert capsys.readouterr().err.count("\n") == 1
