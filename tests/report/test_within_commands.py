"""Races within one command are not judged: the summary says so where shaders store to memory, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.streams import Stream, words
from vkharness.cli.check import check
from vkharness.report.text import WITHIN_COMMANDS
from vkharness.trace.codec import save


@pytest.mark.parametrize(
    ("shader", "push", "buffers", "stores"),
    [("fill_words", words(7), 1, True), ("address_copy", words(0, 0, 0, 0), 0, True), ("", b"", 0, False)],
)
def test_a_trace_says_so_where_shaders_store(
    tmp_path: Path, shader: str, push: bytes, buffers: int, stores: bool
) -> None:
    stream = Stream()
    stream.begin()
    stream.fill(stream.buffer(256), 1)
    if shader:
        stream.compute(shader, [stream.buffer(256) for _ in range(buffers)], push).run()
    stream.submit(stream.end())
    trace, document = tmp_path / "one.jsonl", tmp_path / "one.json"
    save(trace, stream.blocks)
    result = CliRunner().invoke(check, [str(trace), "--json", str(document)])
    assert (WITHIN_COMMANDS in result.stdout.splitlines()) == stores, result.stdout
    assert json.loads(document.read_text())["storing_shaders"] == stores


def test_a_pipeline_that_no_dispatch_runs_says_nothing(tmp_path: Path) -> None:
    stream = Stream()
    dispatch = stream.compute("fill_words", [stream.buffer(256)], words(7))
    stream.begin()
    stream.cmd("BindPipeline", pipelineBindPoint=1, pipeline=dispatch.pipeline)
    stream.submit(stream.end())
    save(tmp_path / "one.jsonl", stream.blocks)
    assert WITHIN_COMMANDS not in CliRunner().invoke(check, [str(tmp_path / "one.jsonl")]).stdout
