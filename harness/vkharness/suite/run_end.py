"""Output of a run of the suite when it is over: a summary on the terminal, CSV files, the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from vkharness.findings import UserError
from vkharness.results.read_results import read_results
from vkharness.results.result_lines import RowResult
from vkharness.suite.csv_files import write_csv_files
from vkharness.suite.row import Row
from vkharness.suite.row_progress import carried
from vkharness.suite.row_summary import print_summary
from vkharness.suite.row_table import print_table
from vkharness.suite.suite_run import suite_run

NARROWEST = 80
"""The width in characters of what is printed, at least."""
LOG_WIDTH = 180
"""The width of the whole table where the output is no terminal: nothing may be cut there."""


def tell_end(reporter: pytest.TerminalReporter) -> None:
    """Prints the summary of all rows, whichever process and whichever part of the run ran them; writes the files.

    A worker of pytest-xdist has a summary, too, which nobody reads: the run is not over for the others then."""
    config, run = reporter.config, suite_run(reporter.config)
    if hasattr(config, "workerinput"):
        return
    rows = [*(run.earlier.rows.values() if run.earlier else ()), *_rows_of(reporter)]
    if rows or run.closing:
        reporter.section("scenarios")
        writer = reporter._tw
        width = max(NARROWEST, writer.fullwidth)
        whole = config.getoption("--vk-table") or reporter.verbosity > 0
        if whole:
            wide = width if writer.hasmarkup else max(width, LOG_WIDTH)
            console = Console(file=writer._file, force_terminal=writer.hasmarkup, width=wide)
            print_table([Row.from_dict(each.row) for each in rows], console)
        console = Console(file=writer._file, force_terminal=writer.hasmarkup, width=width, highlight=False)
        print_summary(rows, console, str(config.getoption("--vk-artifacts")))
        if not whole:
            reporter.write_line("--vk-table or -v prints a line for each row")
        for line in run.closing:
            reporter.write_line(line, red=line.startswith("FAILED"))
    if run.file is not None and run.file.path.exists():
        try:
            _write_files(reporter, run.file.path)
        except UserError as error:
            reporter.write_line(f"vkharness: {error}", red=True)


def _rows_of(reporter: pytest.TerminalReporter) -> Sequence[RowResult]:
    reports = [report for reports in reporter.stats.values() for report in reports]
    return [row for row in map(carried, reports) if row is not None]


def _write_files(reporter: pytest.TerminalReporter, path: Path) -> None:
    config, found = reporter.config, read_results(path)
    write_csv_files(path.parent, found.rows.values())
    folder = config.getoption("--vk-report")
    if folder:
        from vkharness.suite.result_page import page_of_results

        target = config.invocation_params.dir / folder
        reporter.write_line(f"page: {page_of_results(found, target, config.rootpath)}")
