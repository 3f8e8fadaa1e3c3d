"""Threads below both mirrors: what one of the two hears otherwise is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

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
    save(tmp_path / TRACE, [replace(each, index=at) for at, each in enumerate(heard[:-5], 1)])
    told = list(differences(tmp_path))
    assert [each.partition(":")[0] for each in told] == [
        "verdict",
        "thread of Python's mirror alone",
        "thread of the layer alone",
        "finding of the layer alone",
    ]
