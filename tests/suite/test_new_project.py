"""`vkharness init` in a folder that is not empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from vkharness.findings import UserError
from vkharness.suite.new_project import make_project


def test_a_project_of_which_a_killed_call_wrote_some_files_is_completed(tmp_path: Path) -> None:
    files = make_project(tmp_path)
    before = {path: path.read_bytes() for path in files}
    for path in files[1:]:
        path.unlink()
    assert make_project(tmp_path) == files
    assert {path: path.read_bytes() for path in files} == before


def test_a_file_with_another_content_stays_and_nothing_is_written(tmp_path: Path) -> None:
    files = make_project(tmp_path)
    for path in files[1:]:
        path.unlink()
    files[0].write_text("mine")
    with pytest.raises(UserError, match=f"{files[0].name}: there already; nothing was written"):
        make_project(tmp_path)
    files[0].unlink()
    files[0].symlink_to("nowhere")
    with pytest.raises(UserError, match="nothing was written"):
        make_project(tmp_path)
    assert [path for path in files if path.exists()] == []
