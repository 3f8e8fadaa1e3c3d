"""Output of `vkharness run` for a program without a Vulkan call in the captured part."""

from dataclasses import replace
from pathlib import Path

import pytest

from vkharness.cli import main
from vkharness.cli.processes import Options, tell_of_no_call
from vkharness.ignore_file import IgnoreFile

OPTIONS = Options(None, None, None, "auto", False, "", "auto", IgnoreFile([]))


def test_a_range_of_frames_that_never_began_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """A program that draws without presenting never gets past frame 1, which is not to be taken for no call at all."""
    tell_of_no_call(OPTIONS)
    tell_of_no_call(replace(OPTIONS, frames="2-20"))
    assert capsys.readouterr().err.splitlines() == [
        "unknown - no Vulkan call was seen",
        "unknown - no Vulkan call was seen in frames 2-20; a program that presents nothing has only frame 1",
    ]


@pytest.mark.parametrize(
    ("name", "data"), [("t.jsonl", b'{"header": true}\n'), ("t", b'\n{"header": true}\n'), ("t.gfxr", b"GFXR\0")]
)
def test_a_recorded_stream_is_no_program(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, data: bytes
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(SystemExit) as leaving:
        main(["run", str(tmp_path / name)])
    said = f"{tmp_path / name} is no program but a recorded stream: vkharness check {tmp_path / name}"
    assert (leaving.value.code, capsys.readouterr().err) == (2, f"vkharness: {said}\n")
