"""`vkharness advise` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.streams import two_buffers
from vkharness.cli import main
from vkharness.trace.codec import save


def run(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as left:
        main(["advise", *map(str, arguments)])
    assert isinstance(left.value.code, int)
    return left.value.code


def test_it_prints_the_narrower_form_and_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stream, a, b = two_buffers()
    stream.begin()
    stream.fill(a, 1)
    barrier = stream.barrier()
    stream.copy(a, b, 16)
    stream.submit()
    save(tmp_path / "trace.jsonl", stream.blocks)
    assert run(tmp_path / "trace.jsonl", "--code", "C", "--json", tmp_path / "told.json") == 0
    printed = capsys.readouterr().out
    assert f"1. vkCmdPipelineBarrier (call {barrier}): wider than needed\n" in printed
    assert "VK_PIPELINE_STAGE_TRANSFER_BIT" in printed and "Python" not in printed
    assert printed.splitlines()[-1].startswith("advice is about this trace only")
    [advice] = json.loads((tmp_path / "told.json").read_text())["advice"]
    assert advice["kind"] == "wider than needed" and advice["calls"] == [barrier]


def test_a_trace_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "none.jsonl") == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
