"""The part of the pytest plugin that collects and runs scenarios and prints their table."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from rich.console import Console

from harness.suite import items as collect
from harness.suite.claims import Claim
from harness.suite.row import Row
from harness.suite.row_table import print_table

LOG_WIDTH = 180
"""Characters of the table's lines where the output is no terminal."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The scenario options, in the plugin's one group."""
    collect.add_options(parser.getgroup("vkharness"))


def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> list[pytest.Item] | None:
    """A claim becomes one item for each variant and device."""
    if isinstance(obj, Claim) and name.startswith("scenario_"):
        return list(collect.items(collector, name, obj))
    return None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Ends the driver processes."""
    collect.close_workers(config)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The verdict table of all rows, whichever process ran them."""
    rows = list(_rows(terminalreporter))
    if rows:
        terminalreporter.section("scenarios")
        writer = terminalreporter._tw
        # A log has no width of its own: nothing may be cut there.
        width = max(100, writer.fullwidth) if writer.hasmarkup else LOG_WIDTH
        console = Console(file=writer._file, force_terminal=writer.hasmarkup, width=width)
        print_table(rows, console, str(config.getoption("--vk-artifacts")))


def _rows(reporter: pytest.TerminalReporter) -> Iterator[Row]:
    for reports in reporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "call":
                for name, value in report.user_properties:
                    if name == collect.PROPERTY:
                        yield Row.from_dict(json.loads(value))
