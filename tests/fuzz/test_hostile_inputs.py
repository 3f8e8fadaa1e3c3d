"""Inputs at which a command once ended otherwise than it promises."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from vkharness import cli
from vkharness.cli.hostile_readers import asking
from vkharness.fuzz.hostile.samples import TRACE, Sample
from vkharness.fuzz.hostile.trial import Limits, Trial, judged

INPUTS = Path(__file__).parents[1] / "data" / "hostile"
ASKED = "asked.txt"
LIMITS = Limits(memory=1 << 50)
"""Of memory this process may have more than one input could use."""


@pytest.mark.parametrize("name", sorted(path.parent.name for path in INPUTS.glob(f"*/{ASKED}")))
def test_an_input_that_once_failed_ends_as_promised(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "here"
    shutil.copytree(INPUTS / name, place)
    monkeypatch.chdir(place)
    command, code = Path(ASKED).read_text().splitlines()
    words = tuple(command.split()[1:])
    files = {path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*") if path.is_file()}
    end = judged(asking(cli.main), Trial(Sample(TRACE, words[-1], files), words), None, LIMITS)
    assert (end.fault, f"exit {end.code}") == ("", code), end.text
