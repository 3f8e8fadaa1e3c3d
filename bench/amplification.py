"""Cost of small traces that ask for much work: `python bench/amplification.py [SHAPE ...]`.

For each shape of `vkharness.fuzz.hostile.amplified` and each command: seconds of the processor at a size and at its
double, the start of the interpreter included, and the exponent of the growth between the two: 1 is in proportion, 2 is
with the square. "*" stands for an end that says what was not looked at (`--work`), "-" for one after the limit
(`--limit`), "!" for exit code 70 or a signal.

With `--counted` the table of SECURITY.md: the exponents with which the file, and the work of each judge as it is
counted, grow when the size is doubled. It is the same on every machine. With `--bytes N` the table of seconds: of each
shape the largest trace of at most so many bytes, one row as soon as it is known. `run`, which that table alone has, is
`vkharness run` of a program that makes the same calls (`bench/live_shapes.py`) on SwiftShader; empty without one.
"""

from __future__ import annotations

import math
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import click

from vkharness.check import Analysis
from vkharness.device.drivers import environment, find_driver
from vkharness.fuzz.hostile.amplified import SHAPES, amplified
from vkharness.model import judge_stream_events
from vkharness.trace import work_budget
from vkharness.trace.codec import load
from vkharness.trace.work_budget import UNITS

LIVE, PROGRAM = "run", Path(__file__).with_name("live_shapes.py")
"""The column of a program that makes the calls of a shape, and the program."""
NO_PROGRAM = ("two-queues", "late-signals")
"""Shapes that it does not have: they need several queues, and software drivers have one."""
COUNTED_SIZE = 64
"""Repetitions in the first trace of the table of counted work."""

COMMANDS = {
    "check": "check --model auto {}",
    "always": "check --model always {}",
    "never": "check --model never {}",
    "mend": "mend {}",
    "advise": "advise {}",
    "explain": "explain {}",
    "graph": "graph -o g.svg {}",
    "reduce": "reduce -o small.jsonl {}",
    "join": "join -o joined.jsonl {} {}",
}
"""Commands of the table, by name."""


class Cost(NamedTuple):
    """Cost of one command."""

    seconds: float
    code: int
    stopped: bool
    """Whether it says what it did not look at."""


def cost(arguments: str, trace: str, folder: Path, limit: int) -> Cost:
    """Runs a command on a trace in a folder, with a limit of seconds of the processor. The driver is SwiftShader."""
    words = [trace if word == "{}" else word for word in arguments.split()]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))

    code = "import sys; from vkharness.cli import main; main(sys.argv[1:])"
    ended = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=folder, preexec_fn=limited, capture_output=True, check=False,
        env={**os.environ, **environment(find_driver("swiftshader"))},
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    said = ended.stdout + ended.stderr
    return Cost(seconds, ended.returncode, b"--work" in said or b"out of proportion" in said)


def _mark(each: Cost) -> str:
    return "!" if each.code not in (0, 1, 2, 3) else "*" if each.stopped else ""


def cell(costs: list[Cost], limit: int) -> str:
    """Seconds at the sizes, and the exponent between the last two."""
    said = ["-" if each.seconds >= limit else f"{each.seconds:.1f}{_mark(each)}" for each in costs]
    *_, first, last = (each.seconds for each in costs)
    grown = "" if "-" in said else f" ^{max(0.0, math.log2(last / first)):.1f}"
    return " ".join(said) + grown


def counted(shape: str, size: int, folder: Path) -> tuple[int, int, int]:
    """The bytes of a trace, and the units that its stream and the second judge take, without a limit."""
    path = folder / f"{shape}-{size}.jsonl"
    path.write_bytes(amplified(shape, size))
    work_budget.share(1e6)
    before = UNITS.left
    analysis = Analysis(keep_events=True).follow(load(path))
    between = UNITS.left
    judge_stream_events(analysis.events)
    return path.stat().st_size, before - between, between - UNITS.left


def growth(shapes: Iterable[str], size: int, folder: Path) -> Iterator[str]:
    """The lines of the table of counted work."""
    yield "| shape | what repeats | bytes | first judge | second judge |"
    yield "|---|---|---|---|---|"
    for shape in shapes:
        pairs = zip(counted(shape, size, folder), counted(shape, 2 * size, folder), strict=True)
        cells = " | ".join(f"{math.log2(last / first):.1f}" for first, last in pairs)
        yield f"| {shape} | {(SHAPES[shape].__doc__ or '').splitlines()[0]} | {cells} |"


def largest_size(shape: str, most: int) -> int:
    """The size of the largest trace of a shape that has at most so many bytes."""
    size = 1
    while len(amplified(shape, 2 * size)) <= most:
        size *= 2
    for step in (size >> at for at in range(1, size.bit_length())):
        size += step if len(amplified(shape, size + step)) <= most else 0
    return size


def seconds(shapes: Iterable[str], most: int, limit: int, names: list[str], folder: Path) -> Iterator[str]:
    """The lines of the table of seconds."""
    yield f"| shape | KB | {' | '.join(names)} |"
    yield "|---" * (2 + len(names)) + "|"
    for shape in shapes:
        size = largest_size(shape, most)
        trace = amplified(shape, size)
        (folder / f"{shape}.jsonl").write_bytes(trace)
        cells = []
        for name in names:
            if name == LIVE and shape in NO_PROGRAM:
                cells.append("")
                continue
            each = cost(
                f"run {PROGRAM} {shape} {size}" if name == LIVE else COMMANDS[name], f"{shape}.jsonl", folder, limit
            )
            cells.append("-" if each.seconds >= limit else f"{each.seconds:.1f}{_mark(each)}")
        yield f"| {shape} | {len(trace) // 1000} | {' | '.join(cells)} |"


@click.command(help=(__doc__ or "").splitlines()[0])
@click.argument("shapes", nargs=-1)
@click.option("--size", default=500, show_default=True, help="What repeats, in the first trace.")
@click.option("--times", default=2, show_default=True, help="How many sizes, each twice the one before.")
@click.option("--limit", default=60, show_default=True, help="Seconds of the processor for one command.")
@click.option("--commands", default=",".join(COMMANDS), show_default=True, help="Which columns.")
@click.option("--bytes", "most", type=int, help="Print the table of seconds of SECURITY.md.")
@click.option("--counted", "is_counted", is_flag=True, help="Print the table of counted work of SECURITY.md.")
def main(
    shapes: tuple[str, ...], size: int, times: int, limit: int, commands: str, most: int | None, is_counted: bool
) -> None:
    """The table."""
    if most is not None:
        with tempfile.TemporaryDirectory() as folder:
            for line in seconds(shapes or SHAPES, most, limit, commands.split(","), Path(folder)):
                print(line, flush=True)
        return
    if is_counted:
        with tempfile.TemporaryDirectory() as folder:
            print("\n".join(growth(shapes or SHAPES, COUNTED_SIZE, Path(folder))))
        return
    names = commands.split(",")
    sizes = [size << at for at in range(times)]
    print(" | ".join(("shape", "KB", *names)), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for shape in shapes or SHAPES:
            several = []
            for each in sizes:
                path = Path(folder) / f"{shape}-{each}.jsonl"
                path.write_bytes(amplified(shape, each))
                several.append(path)
            cells = []
            for name in names:
                costs: list[Cost] = []
                for path in several:
                    costs.append(cost(COMMANDS[name], path.name, Path(folder), limit))
                    if costs[-1].seconds >= limit:
                        costs += costs[-1:] * (times - len(costs))
                        break
                cells.append(cell(costs, limit))
            row = [shape, ", ".join(f"{each.stat().st_size / 1000:.0f}" for each in several), *cells]
            print(" | ".join(row), flush=True)


if __name__ == "__main__":
    main()
