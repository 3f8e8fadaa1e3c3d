"""The file of observations: what is written is read again, and anything else is one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vkharness.findings import UserError
from vkharness.trace.calls import Call
from vkharness.trace.observations import (
    MOST_SPANS,
    Observation,
    Observations,
    ObservedCommand,
    TraceDigest,
    few,
    read_observations,
)

PIECE = Observation(
    (ObservedCommand(12, "vkCmdDispatch", 20, 0, 1, (11, 0)),),
    writes={5: ((0, 16), (32, 40))},
    reads={7: ((4, 8),)},
    undeclared_reads={9: ((0, 1),)},
    figures=(("vkCmdDispatch", 256, 24, 16, 4),),
    notes=("a note",),
)


def written(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    held = Observations("abc", "lavapipe", [PIECE, Observation((), problem="lavapipe killed by SIGSEGV")])
    assert read_observations(written(tmp_path / "seen", *held.lines())) == held


def test_too_many_ranges_become_one() -> None:
    spans = [(8 * at, 8 * at + 4) for at in range(MOST_SPANS + 1)]
    assert few(spans) == [(0, spans[-1][1])]
    assert few(spans[1:]) == spans[1:]


def test_the_digest_tells_traces_apart() -> None:
    digests = set()
    for names in (["vkA", "vkB"], ["vkB", "vkA"], ["vkA"]):
        digest = TraceDigest()
        assert len(list(digest.follow(Call(at, name, {}) for at, name in enumerate(names)))) == len(names)
        digests.add(digest.text)
    assert len(digests) == 3


HEADER = {"vkharness_observations": 1, "trace": "abc", "device": "lavapipe"}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([{"version": 1}], "no observations: `vkharness observe` writes them"),
        ([{**HEADER, "vkharness_observations": 2}], "observations of version 2, not 1"),
        ([{**HEADER, "trace": 5}], "malformed (TypeError: expected a text, found int)"),
        ([HEADER, {}], "malformed (KeyError: 'commands')"),
        ([HEADER, PIECE.to_dict() | {"writes": [{"resource": -1, "ranges": []}]}], "expected a number from 0 to 2^64"),
        ([HEADER, PIECE.to_dict() | {"writes": [{"resource": 1, "ranges": [[0]]}]}], "malformed (ValueError"),
        ([HEADER, PIECE.to_dict() | {"reads": {}}], "expected a list"),
        ([HEADER, PIECE.to_dict() | {"notes": [5]}], "expected a text"),
        ([HEADER, PIECE.to_dict() | {"writes": [{"resource": 1, "ranges": [[0, 1]] * 5000}]}], "at most 4096"),
    ],
)
def test_anything_else_is_one_line(tmp_path: Path, lines: list[dict[str, Any]], message: str) -> None:
    path = written(tmp_path / "seen", *lines)
    with pytest.raises(UserError) as raised:
        read_observations(path)
    assert str(raised.value).startswith(f"{path}:{len(lines)}: ")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "seen", HEADER, PIECE.to_dict())
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UserError, match="end in the middle of a line"):
        read_observations(path)
