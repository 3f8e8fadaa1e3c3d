"""Output of `vkharness run` for a program without a Vulkan call in the captured part."""

from dataclasses import replace

import pytest

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
