"""The suite that comes with the harness: all scenarios, from an installed copy or from the checkout."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from vkharness.findings import UserError

PACKAGE = Path(__file__).resolve().parent.parent
FOLDERS = (PACKAGE / "_suite", PACKAGE.parents[1])
"""Where the folder `scenarios` is: in an installed package, and in a checkout. Ids of rows are relative to it."""
SCENARIOS = "scenarios"


def suite_scenarios() -> Path:
    """The folder with all scenarios. Raises UserError when this copy of the harness has none."""
    for folder in FOLDERS:
        if (folder / SCENARIOS / "expectations.toml").is_file():
            return folder / SCENARIOS
    raise UserError(f"the scenarios are missing: neither {' nor '.join(map(str, FOLDERS))} has a folder {SCENARIOS}")


def run_suite(arguments: Sequence[str]) -> int:
    """Runs pytest with these arguments over the suite and returns its exit code. Results go below the current folder.

    Arguments that begin with `scenarios/`, such as ids of rows, choose files of the suite, whatever the current folder
    has. No settings of the project in the current folder count. Raises UserError without scenarios.
    """
    folder = suite_scenarios()
    root = folder.parent
    chosen = [each for each in arguments if each == SCENARIOS or each.startswith(f"{SCENARIOS}/")]
    settings = ["-c", os.devnull, "--rootdir", str(root), "--confcutdir", str(root), "--import-mode=importlib"]
    settings += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # this process has loaded the plugin already
    settings += ["-o", f"cache_dir={Path('.pytest_cache').resolve()}"]
    others = [each for each in arguments if each not in chosen]
    return int(pytest.main([*settings, *others, *(str(root / each) for each in chosen or [SCENARIOS])]))
