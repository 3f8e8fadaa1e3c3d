"""Files of the user's are plain ones: nothing blocks, and nothing is read for ever."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vkharness.cli import main
from vkharness.plain_file import open_plain, read_plain

READS = (
    ["check", "{}"], ["explain", "{}"], ["compare", "{}", "{}"], ["shown", "{}"], ["check", "--ignore", "{}", "{}"],
    ["check", "--observed", "{}", "{}"], ["report", "-o", "page", "{}"],
)  # fmt: skip


@pytest.mark.parametrize("words", READS, ids=" ".join)
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_special_file_is_refused_in_one_line(
    words: list[str], kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "special"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path = Path("/dev/zero")
    else:
        path.mkdir()
    with pytest.raises(SystemExit) as ended:
        main([str(path) if each == "{}" else each for each in words])
    said = capsys.readouterr().err
    assert ended.value.code == 2 and said.startswith("vkharness: ") and said.count("\n") == 1, said
    assert str(path) in said


def test_a_plain_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "plain"
    path.write_text("\u00e9")
    link = tmp_path / "link"
    link.symlink_to(path)
    assert read_plain(link) == "\u00e9"
    with open_plain(path) as file:
        assert file.seekable() and os.get_blocking(file.fileno()) is False
    with pytest.raises(FileNotFoundError):
        open_plain(tmp_path / "none")
