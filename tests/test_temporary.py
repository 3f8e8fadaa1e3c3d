"""Temporary folders: gone at their end, and after a kill with the next one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from vkharness.temporary import PREFIX, temporary_folder

KILLED = f"""
import os, signal, sys
from pathlib import Path
from vkharness.temporary import temporary_folder
with temporary_folder(Path(sys.argv[1])) as folder:
    (folder / "large").write_text("x")
    os.kill(os.getpid(), signal.{signal.SIGKILL.name})
"""


def test_a_folder_is_gone_at_its_end_and_after_a_kill_with_the_next_one(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert ran.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert (left / "large").exists()
    with temporary_folder(tmp_path) as mine:
        assert [*tmp_path.iterdir()] == [mine]
        (mine / "file").touch()
        with temporary_folder(tmp_path) as other:
            assert {*tmp_path.iterdir()} == {mine, other}
        assert [*tmp_path.iterdir()] == [mine]
    assert [*tmp_path.iterdir()] == []


def test_nothing_else_is_removed(tmp_path: Path) -> None:
    for name in (f"{PREFIX}notes", f"{PREFIX}abcdefgh.d", "vkharness-abcdefgh"):
        (tmp_path / name).mkdir()
    (tmp_path / f"{PREFIX}ijklmnop").touch()
    (tmp_path / f"{PREFIX}qrstuvwx").symlink_to("vkharness-abcdefgh")
    before = {*tmp_path.iterdir()}
    with temporary_folder(tmp_path):
        assert before < {*tmp_path.iterdir()}
    assert {*tmp_path.iterdir()} == before
    assert os.listdir(tmp_path / "vkharness-abcdefgh") == []
