"""Threads below both mirrors: what one of the two hears otherwise is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hunts import layered_threads
from hunts.layered_threads import STREAMS, TRACE, differences
from tests.support.written_streams import MirrorStream, buffer_calls, copy_calls, submit_args
from vkharness.live.line_tables import LineTables
from vkharness.live.native_sites import NativeSites
from vkharness.live.process_judge import judge_folder
from vkharness.trace.calls import Block, Call
from vkharness.trace.codec import save

pytestmark = pytest.mark.driver


def test_a_call_that_one_mirror_loses_is_told(tmp_path: Path) -> None:
    stream = MirrorStream(tmp_path / STREAMS / "process-7")
    buffer_calls(stream)
    for _ in range(2):
        copy_calls(stream)
        stream.call("vkQueueSubmit", submit_args(), 0)
    heard: list[Block] = []
    judge_folder(stream.folder, None, NativeSites(LineTables()), heard.append)
    save(tmp_path / TRACE, heard)
    assert list(differences(tmp_path)) == []
    moved = [
        replace(each, thread=5) if isinstance(each, Call) and each.name == "vkQueueSubmit" else each for each in heard
    ]
    save(tmp_path / TRACE, moved)
    assert "thread of the layer alone" in " ".join(differences(tmp_path))
    buffers = [at for at, each in enumerate(heard) if isinstance(each, Call) and each.name == "vkCreateBuffer"]
    for other in (turned(heard, buffers[0], buffers[0] + 1), larger(heard, buffers[0])):
        save(tmp_path / TRACE, other)
        assert f"thread of the layer alone: call {buffers[0] + 1} of " in " ".join(differences(tmp_path))
    save(tmp_path / TRACE, [replace(each, index=at) for at, each in enumerate(heard[:-5], 1)])
    told = list(differences(tmp_path))
    assert [each.partition(":")[0] for each in told] == [
        "verdict",
        "thread of Python's mirror alone",
        "thread of the layer alone",
        "finding of the layer alone",
    ]


def turned(blocks: list[Block], one: int, other: int) -> list[Block]:
    """The same calls, two of them in turned order."""
    found = list(blocks)
    found[one], found[other] = replace(found[other], index=one + 1), replace(found[one], index=other + 1)
    return found


def larger(blocks: list[Block], at: int) -> list[Block]:
    """The same calls, with a larger buffer."""
    call = blocks[at]
    assert isinstance(call, Call)
    info = {**call.args["pCreateInfo"], "size": call.args["pCreateInfo"]["size"] + 4}
    return [*blocks[:at], replace(call, args={**call.args, "pCreateInfo": info}), *blocks[at + 1 :]]


def test_more_streams_than_one_are_told(tmp_path: Path) -> None:
    for process in (7, 8):
        buffer_calls(MirrorStream(tmp_path / STREAMS / f"process-{process}"))
    assert list(differences(tmp_path)) == ["streams of the layer: 2 in place of one"]


def test_a_run_that_is_repeated_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A difference that shows once is no difference of the round, and no secret."""
    answers = [{"calls": 1, "findings": 0, "memory": 0, "problems": each} for each in (["finding of one alone: x"], [])]
    monkeypatch.setattr(layered_threads, "_round", lambda *_: answers.pop(0))
    monkeypatch.setattr(layered_threads, "mirror_layer", object)
    tally = layered_threads.run("lavapipe", 3, 1, 1, 1, lambda: None)
    assert (tally.bad, answers) == ({}, [])
    assert "1 runs were repeated" in str(tally) and "seed 3, repeated: finding of one alone: x" in str(tally)
