"""Files that appear whole: what a killed process left beside them goes with the next one, and nothing else does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vkharness.findings import UserError
from vkharness.whole_file import open_part, remove_left, replacing, write_whole


def left(target: Path, text: str = "cut off") -> Path:
    """Makes the file of a process that was killed."""
    handle, part = open_part(target)
    os.write(handle, text.encode())
    os.close(handle)
    return part


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_next_whole_file_removes_what_was_left_of_it(tmp_path: Path) -> None:
    left(tmp_path / "a.json")
    left(tmp_path / "a.json")
    other = left(tmp_path / "b.json")
    write_whole(tmp_path / "a.json", "whole")
    assert names(tmp_path) == ["a.json", other.name]
    assert (tmp_path / "a.json").read_text() == "whole"


def test_what_somebody_is_writing_stays(tmp_path: Path) -> None:
    with replacing(tmp_path / "a") as slow:
        slow.write_text("slow")
        write_whole(tmp_path / "a", "fast")
        assert slow.exists()
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "slow"


def test_files_of_a_user_and_links_stay(tmp_path: Path) -> None:
    kept = ["a.partial", "a.partial-1", "a.partial-x-12345678", "a.partial-1-12345678.jsonl", "ba.partial-1-12345678"]
    for name in kept:
        (tmp_path / name).touch()
    (tmp_path / "a.partial-1-abcdefgh").symlink_to("a.partial")
    remove_left(tmp_path, "a")
    assert names(tmp_path) == sorted([*kept, "a.partial-1-abcdefgh"])


def test_the_newest_are_kept_where_that_is_asked_for(tmp_path: Path) -> None:
    parts = [left(tmp_path / "t.jsonl", str(number)) for number in range(3)]
    for age, part in enumerate(reversed(parts)):
        os.utime(part, ns=(0, 10**9 * (10 - age)))
    remove_left(tmp_path, "t.jsonl", keep=1)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["2"]
    remove_left(tmp_path)
    assert names(tmp_path) == []


def test_an_error_leaves_the_earlier_file_and_nothing_else(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", "earlier")
    with pytest.raises(ValueError, match="no reason"), replacing(tmp_path / "a") as part:
        part.write_text("half")
        raise ValueError("no reason")
    assert names(tmp_path) == ["a"] and (tmp_path / "a").read_text() == "earlier"
    with pytest.raises(UserError, match="cannot be written"):
        write_whole(tmp_path / "no folder" / "a", "text")
