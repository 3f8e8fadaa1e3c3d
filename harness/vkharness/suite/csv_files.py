"""The rows of a run as deqp-runner writes them: `results.csv` has every row, `failures.csv` those that fail a run.

A line is `name,state,seconds`, in the second file `name,state`. The name is that of the lists of known results, with
the device behind it, since one run has several. Spreadsheets and the scripts of driver teams read these.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from operator import itemgetter
from pathlib import Path

from vkharness.report.printable import printable
from vkharness.results.baseline import row_name
from vkharness.results.result_lines import RowResult
from vkharness.results.states import GOOD
from vkharness.whole_file import write_whole

RESULTS, FAILURES = "results.csv", "failures.csv"


def write_csv_files(folder: Path, rows: Iterable[RowResult]) -> None:
    """Writes both files in `folder`, by name. Raises `UserError` when that cannot be done."""
    several = sorted(((name_of(each), each) for each in rows), key=itemgetter(0))  # two files may have one name
    failed = [(name, str(each.state)) for name, each in several if each.state not in GOOD]
    write_whole(folder / RESULTS, _text((name, str(each.state), f"{each.seconds:.3f}") for name, each in several))
    write_whole(folder / FAILURES, _text(failed))


def name_of(row: RowResult) -> str:
    """`copy/scenario_x[whole] on lavapipe`, on one line."""
    return printable(f"{row_name(row.row)} on {row.row['device']}")


def _text(lines: Iterable[tuple[str, ...]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()
