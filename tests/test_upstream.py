"""The command that holds captures of other tests against what these expect."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import upstream
from tests.support.streams import Stream
from vkharness.trace.codec import save

SOURCE = """
TEST_F(Copies, Twice) {
    monitor->SetDesiredError("SYNC-HAZARD-READ-AFTER-WRITE");
    monitor->SetDesiredErrorRegex("SYNC-HAZARD-WRITE-AFTER-WRITE", "text, 7", 2);
    monitor->SetDesiredError("VUID-of-something-else");
}

TEST_F(Copies, Once) {
    monitor->SetDesiredFailureMsg(kErrorBit, "SYNC-vkCmdSetEvent-set-race");
}

TEST_F(Copies, None) {}
"""


def test_expectations_are_read_from_the_text(tmp_path: Path) -> None:
    (tmp_path / "sync_val_copies.cpp").write_text(SOURCE, encoding="utf-8")
    assert upstream.expected(tmp_path) == {
        "Copies.Twice": ["READ_AFTER_WRITE", "WRITE_AFTER_WRITE", "WRITE_AFTER_WRITE"],
        "Copies.Once": ["vkCmdSetEvent-set-race"],
        "Copies.None": [],
    }


def test_a_capture_agrees_with_one_of_the_lists_or_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stream = Stream()
    a, b = stream.buffer(16), stream.buffer(16)
    stream.begin()
    stream.fill(a, 7)
    stream.copy(a, b, 16)
    stream.submit()
    for name in ("Same", "More", "Said"):
        save(tmp_path / f"Copies.{name}.jsonl", stream.blocks)
    (tmp_path / "Copies.Broken.jsonl").write_text("[]", encoding="utf-8")
    wanted = {"Copies.Same": ["READ_AFTER_WRITE"]} | {
        f"Copies.{each}": [] for each in ("More", "Said", "Broken", "Gone")
    }
    upstream.judge_all(tmp_path, [wanted, {"Copies.Said": ["READ_AFTER_WRITE"]}])
    lines = capsys.readouterr().out.splitlines()
    assert "more: Copies.More: 1 READ_AFTER_WRITE; expected: none" in lines
    assert "not recorded: Copies.Gone: expected: none" in lines
    assert any(each.startswith("refused: Copies.Broken: ") for each in lines)
    assert "    2 same" in lines
