"""What misses a package that `pip install vkharness` does not bring says in one line which extra brings it."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from vkharness.extras import brought_by
from vkharness.findings import UserError

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TRACE = ROOT / "tests" / "data" / "gfxrecon" / "upstream-1.x.jsonl"


def test_a_missing_package_is_one_line_with_the_extra() -> None:
    said = r"^a hat needs the package no_such_hat: pip install 'vkharness\[hats\]'$"
    with pytest.raises(UserError, match=said), brought_by("hats", "a hat"):
        importlib.import_module("no_such_hat")


def test_what_a_source_names_as_an_extra_is_one() -> None:
    named = {
        found
        for path in (ROOT / "harness").rglob("*.py")
        for found in re.findall(r'brought_by\("(\w+)"', path.read_text(encoding="utf-8"))
    }
    assert named and named <= PROJECT["optional-dependencies"].keys()


def test_checks_and_pytest_need_no_extra(tmp_path: Path) -> None:
    """Neither command imports a package that is brought by an extra alone, and `graph` says what it lacks."""
    extras = PROJECT["optional-dependencies"]
    brought = {re.split(r"\W", each)[0] for name in ("windows", "graph", "capture") for each in extras[name]}
    hidden = f"import sys; sys.modules.update(dict.fromkeys({sorted(brought)!r}))\n"
    (tmp_path / "test_x.py").write_text("def test_x(): pass\n")
    ended = {
        name: subprocess.run(
            [sys.executable, "-c", hidden + code], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        for name, code in {
            "check": f"from vkharness.cli import main; main(['check', {str(TRACE)!r}])",
            "graph": f"from vkharness.cli import main; main(['graph', {str(TRACE)!r}, '-o', 'order.dot'])",
            "pytest": "import pytest; sys.exit(pytest.main(['-q', '--vk-sync', 'test_x.py']))",
        }.items()
    }
    assert ended["check"].returncode == 1 and "Error" not in ended["check"].stderr, ended["check"]
    assert ended["pytest"].returncode == 0, ended["pytest"]
    said = "vkharness: the picture of an order needs the package graphviz: pip install 'vkharness[graph]'\n"
    assert (ended["graph"].returncode, ended["graph"].stderr) == (2, said)
