"""Cost of a start, in CPU time: of the package, a check, a run of pytest and the collection of one scenario.

    .venv/bin/python bench/start.py [--rounds 5]

Each line is a process of its own with all its children, user and system time together: the least of all rounds, after
one that does not count. "times" divides it by what the process costs without us, which is Python that does nothing or
pytest without the plugin. Where PYTHONDONTWRITEBYTECODE is set and nothing is compiled yet, each start compiles anew.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from vkharness.report.console import terminal

ROOT = Path(__file__).resolve().parents[1]
TRACE = ROOT / "tests" / "data" / "gfxrecon" / "upstream-1.x.jsonl"
NOTHING = ("-c", "pass")
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
BARE_PYTEST = (*PYTEST, "-p", "no:vkharness")
ONE = ("--rootdir", str(ROOT), str(ROOT / "scenarios/barrier/scenario_chains.py"), "--collect-only")

STARTS = {
    "import vkharness": (("-c", "import vkharness"), NOTHING),
    "vkharness check, a small trace": (("-c", "from vkharness.cli import main; main()", "check", str(TRACE)), NOTHING),
    "pytest, one test, no option of ours": (PYTEST, BARE_PYTEST),
    "pytest, the scenarios of one module collected": ((*PYTEST, *ONE), BARE_PYTEST),
}
"""Starts to (arguments of Python, those of the start that it is compared with)."""


def seconds(arguments: tuple[str, ...], folder: str, rounds: int) -> float:
    """CPU time of a Python process with these arguments, started in a folder with one test."""
    times = []
    for _ in range(1 + rounds):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, *arguments], cwd=folder, stdout=subprocess.DEVNULL, check=False)
        assert done.returncode in (0, 1), f"{arguments} failed"  # 1: hazards
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times[1:])


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option("--rounds", default=5, type=click.IntRange(1), show_default=True)
def main(rounds: int) -> None:
    """A line for each start."""
    from rich.table import Table

    kept = "not " if os.environ.get("PYTHONDONTWRITEBYTECODE") else ""
    table = Table("start", "CPU ms", "without us", "times", title=f"compiled modules are {kept}kept", box=None)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_one.py").write_text("def test_one():\n    pass\n")
        for name, (arguments, bare) in STARTS.items():
            ours, theirs = seconds(arguments, folder, rounds), seconds(bare, folder, rounds)
            table.add_row(name, f"{ours * 1000:.0f}", f"{theirs * 1000:.0f}", f"{ours / theirs:.2f}")
    terminal().print(table)


if __name__ == "__main__":
    main()
