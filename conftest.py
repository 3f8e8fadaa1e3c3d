"""Root of the test configuration: what every test directory shares."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`-k scenario_name` imports only the modules that name it: to import all takes longer than the scenario."""
    wanted = config.getoption("-k").lower()
    if collection_path.suffix != ".py" or not wanted.startswith("scenario_") or not wanted.isidentifier():
        return None
    named = wanted in str(collection_path).lower() or wanted in collection_path.read_text(encoding="utf-8").lower()
    return None if named else True
