"""Kept streams (`scenarios/streams/`): both judges find what each is kept for."""

from __future__ import annotations

from pathlib import Path

import pytest

from vkharness.findings import UserError
from vkharness.fuzz.agreement_fuzz import judge
from vkharness.fuzz.kept_streams import KeptStream, kept_streams

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
STREAMS = kept_streams([SCENARIOS])


@pytest.mark.parametrize("stream", STREAMS, ids=[each.name for each in STREAMS])
def test_both_judges_find_what_it_is_kept_for(stream: KeptStream) -> None:
    findings, agreement = judge(stream.text)
    assert agreement.disagreements == ()
    assert tuple(each.hazard for each in findings) == stream.finds


def test_each_has_a_name_of_its_own() -> None:
    assert len({each.name for each in STREAMS}) == len(STREAMS) > 0


@pytest.mark.parametrize("text", ["stream", "stream = 1", "[[stream]]\nname = 'a'", "stream = ['a']"])
def test_a_file_that_is_no_list_of_streams_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.toml"
    file.write_text(text)
    with pytest.raises(UserError, match=r"a\.toml: no kept streams"):
        kept_streams([tmp_path])


def test_a_file_that_is_not_toml_has_none(tmp_path: Path) -> None:
    (tmp_path / "scenario_a.py").write_text("")
    assert kept_streams([tmp_path, tmp_path / "scenario_a.py"]) == []
