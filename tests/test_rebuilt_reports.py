"""Programs that were rebuilt from public reports: the first form has an error that the judges find, the second none."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from bench.reports.__main__ import MENDED, programs, record, verdict


@pytest.mark.driver
def test_a_rebuilt_program_is_wrong_as_reported_and_right_as_mended(tmp_path: Path) -> None:
    program = next(each for each in programs() if each.stem == "transfer_release_missing")
    for form, wanted in (("", "1 ownership-not-released"), (MENDED, "clean")):
        record(program, tmp_path / "trace.jsonl", form)
        assert verdict(tmp_path / "trace.jsonl") == wanted


def test_each_program_says_what_it_rebuilds_and_has_both_forms() -> None:
    for program in programs():
        tree = ast.parse(program.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), program.stem
        assert any(isinstance(each, ast.Name) and each.id == "MENDED" for each in ast.walk(tree)), program.stem
