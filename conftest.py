"""Root of the test configuration: what every test directory shares."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

SEED_VARIABLE = "VKHARNESS_SEED"
_GIVEN = "VKHARNESS_GIVEN_SEED"
NESTED = "-p no:hypothesispytest"
"""Options of the runs of pytest that tests start: at their end the plugin imports the whole of hypothesis."""


def pytest_configure() -> None:
    """Draws the seed of this run, unless the environment gives it. The processes of pytest-xdist inherit it, and those
    that tests start inherit options."""
    os.environ.setdefault(_GIVEN, os.environ.get(SEED_VARIABLE, "1"))
    os.environ.setdefault(SEED_VARIABLE, str(secrets.randbelow(1 << 32)))
    given = os.environ.get("PYTEST_ADDOPTS", "")
    if NESTED not in given:
        os.environ["PYTEST_ADDOPTS"] = f"{given} {NESTED}".strip()


def pytest_report_header() -> str:
    """The seed in the head of the output, so that a run can be repeated."""
    return f"fresh seed: {SEED_VARIABLE}={os.environ[SEED_VARIABLE]}"


@pytest.fixture
def pytester(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """pytest's own, whose runs take the options of nested runs, too."""
    monkeypatch.setenv("PYTEST_ADDOPTS", NESTED)
    return pytester


@pytest.fixture
def fresh_seed() -> int:
    """A seed that nobody has tuned to: another one in each run."""
    return int(os.environ[SEED_VARIABLE])


@pytest.fixture
def given_seed() -> int:
    """The seed that the environment gives, else always the same. For random streams that drivers execute: a driver may
    die of a valid stream, and that is not what a change of ours is to be judged by."""
    return int(os.environ[_GIVEN])


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`-k scenario_name` imports only the modules that name it: to import all takes longer than the scenario."""
    wanted = config.getoption("-k").lower()
    if collection_path.suffix != ".py" or not wanted.startswith("scenario_") or not wanted.isidentifier():
        return None
    named = wanted in str(collection_path).lower() or wanted in collection_path.read_text(encoding="utf-8").lower()
    return None if named else True
