"""Rows of the verdict table: what the judges said, and which entries of the expectation file excuse it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.findings import UserError
from harness.suite.expectations import KnownDisagreement, load
from harness.suite.row import FAILED, PASSED, Row, settle

WAW = "WRITE_AFTER_WRITE vkCmdFillBuffer after vkCmdFillBuffer"


def row(**layers: list[str]) -> Row:
    """A row whose layers (`v1_3_239`) disagree about those lines."""
    made = Row("access/x", "whole", "lavapipe", [WAW], [WAW])
    for name, several in layers.items():
        version = name.removeprefix("v").replace("_", ".")
        made.layer_disagreements[version] = several
        made.layers[version] = "disagrees" if several else "agrees"
    return made


def entries(folder: Path, more: str) -> list[KnownDisagreement]:
    path = folder / "expectations.toml"
    path.write_text(f'[[expect]]\nscenario="access/x"\nvariant="whole"\nreason="known"\n{more}')
    return load(path)


def test_the_layers_in_short() -> None:
    assert row().layer == "-"
    assert row(v1_3_239=[]).layer == row(v1_3_239=[], v1_4_364=[]).layer == "agrees"
    assert row(v1_3_239=[], v1_4_364=["x"]).layer == "1.3.239 agrees, 1.4.364 disagrees"
    starred = row(v1_3_239=[], v1_4_364=[])
    starred.layers["1.3.239"] = "agrees (2 by version)"
    assert starred.layer == "agrees*"
    assert Row.from_dict(starred.to_dict()) == starred


def test_an_entry_for_one_version(tmp_path: Path) -> None:
    only_old = entries(tmp_path, 'judge="layer"\nbefore="1.4.364"')
    disagreeing = row(v1_3_239=["x"], v1_4_364=[])
    settle(disagreeing, only_old)
    assert (disagreeing.status, disagreeing.excused) == (PASSED, ["layer 1.3.239: known"])
    both = row(v1_3_239=["x"], v1_4_364=["y"])
    settle(both, only_old)
    assert (both.status, both.reasons) == (FAILED, ["layer 1.4.364: y"])
    settle(both := row(v1_3_239=["x"], v1_4_364=["y"]), entries(tmp_path, 'judge="layer"'))
    assert both.status == PASSED


def test_an_entry_must_be_needed_by_every_layer_that_was_asked(tmp_path: Path) -> None:
    settle(wide := row(v1_3_239=["x"], v1_4_364=[]), entries(tmp_path, 'judge="layer"'))
    assert wide.status == FAILED and wide.reasons[0].startswith("expectation is not needed for layer 1.4.364")
    settle(today := row(v1_4_364=[]), entries(tmp_path, 'judge="layer"\nbefore="1.4.364"'))
    assert today.status == PASSED, "the old layer was not asked"
    settle(off := row(), entries(tmp_path, 'judge="layer"'))
    assert off.status == PASSED, "no layer was asked"


@pytest.mark.parametrize("wrong", ['judge="layer"\nsince="new"', 'judge="witness"\nbefore="1.4"', 'judge="layers"'])
def test_wrong_entries_are_one_clear_line(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(UserError, match=r"expectation 1: "):
        entries(tmp_path, wrong)
