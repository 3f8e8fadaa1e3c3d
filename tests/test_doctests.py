"""The examples in docstrings: each is run as it stands."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(
    path for path in (ROOT / "harness" / "vkharness").rglob("*.py") if ">>> " in path.read_text(encoding="utf-8")
)
MODULES = [
    ".".join(path.relative_to(ROOT / "harness").with_suffix("").parts).removesuffix(".__init__") for path in FILES
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    failed, attempted = doctest.testmod(importlib.import_module(name))
    assert attempted > 0
    assert failed == 0
