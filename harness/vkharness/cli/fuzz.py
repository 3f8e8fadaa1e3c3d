"""`vkharness fuzz agreement|layer|orders|mends|reductions|hostile|faults`: random streams and files, the smallest of
them with a fault, and faults of drivers."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

import click

from vkharness.cli import CLEAN, HAZARDS
from vkharness.cli.last_resort import echo
from vkharness.fuzz.random_steps import FAMILIES, Step
from vkharness.fuzz.random_text import FEATURES, feature_sets

FIRST = click.option("--first", type=click.IntRange(0), default=0, show_default=True, help="First seed.")
DEVICE = click.option("--device", default="lavapipe", show_default=True, help="The driver that runs the streams.")

LAYER = click.option(
    "--layer", default="today", show_default=True, help="Khronos layer: `old`, `today` or one version."
)


@click.group()
def fuzz() -> None:
    """Hunt for disagreements on random streams.

    The same seed gives the same stream. Exit codes: 0 everything agrees, 1 something disagrees, 2 usage.
    """


@fuzz.command()
@click.option("--count", type=click.IntRange(1), default=2000, show_default=True, help="Streams, over all features.")
@click.option("--seed", type=int, default=1, show_default=True)
@click.argument("features", nargs=-1, type=click.Choice(FEATURES))
@click.pass_context
def agreement(ctx: click.Context, count: int, seed: int, features: tuple[str, ...]) -> None:
    """Compare syncval and the model; no driver is needed.

    The count is spread over the FEATURES, each alone, and without an argument over all of them together too.
    """
    from rich.progress import Progress

    from vkharness.fuzz.agreement_fuzz import Disagreement, hunt
    from vkharness.report.console import terminal

    chosen = feature_sets(features)
    each_count = -(-count // len(chosen))
    code = CLEAN
    console = terminal(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("streams", total=each_count * len(chosen))
        for several in chosen:
            counts: Counter[str] = Counter()
            try:
                hunt(each_count, seed, several, counts, lambda: progress.advance(bar))
            except Disagreement as found:
                code = HAZARDS
                echo(f"disagreement:\n{found}")
            told = ", ".join(f"{number} {what}" for what, number in counts.items())
            echo(f"{'+'.join(several) or 'everything'}: {told}, seed {seed}")
    ctx.exit(code)


@fuzz.command()
@FIRST
@click.option("--count", type=click.IntRange(1), default=200, show_default=True, help="How many seeds.")
@DEVICE
@LAYER
@click.option(
    "--family", "families", multiple=True, type=click.Choice([*FAMILIES, "all"]), help="Only these kinds of steps."
)
@click.option("--plain", is_flag=True, help="Only what every stream has: transfers, dispatches, barriers, submits.")
@click.option("--shrink", "seed", type=click.IntRange(0), help="Only shrink this seed's stream.")
@click.pass_context
def layer(
    ctx: click.Context,
    first: int,
    count: int,
    device: str,
    layer: str,
    families: tuple[str, ...],
    plain: bool,
    seed: int | None,
) -> None:
    """Compare syncval with the Khronos layer; explained differences are listed and agree.

    Each seed is judged twice: as it comes, and what is left of it when no known difference can cover anything. There
    an explained difference is a disagreement ("no excuse").

    Without --family, streams have the kinds of steps in which every difference from that layer is explained.
    """
    from vkharness.fuzz import layer_fuzz

    chosen = [] if plain else list(families) or layer_fuzz.known_families(layer)
    chosen = list(FAMILIES) if "all" in chosen else chosen
    if seed is None:
        echo(f"seeds {first} to {first + count - 1}, {', '.join(chosen) or 'plain'}")
        tally = layer_fuzz.run(watched(range(first, first + count)), device, layer, chosen)
        echo(str(tally))
        seed = next(iter(tally.disagreements), None)
    if seed is not None:
        steps, lines = layer_fuzz.smallest(seed, device, layer, chosen)
        _print_steps(seed, steps)
        for line in lines:
            echo(line)
        ctx.exit(HAZARDS if lines else CLEAN)


@fuzz.command()
@FIRST
@click.option("--count", type=click.IntRange(1), default=100, show_default=True, help="How many seeds.")
@DEVICE
@click.pass_context
def orders(ctx: click.Context, first: int, count: int, device: str) -> None:
    """Make random streams clean with few barriers, run them in legal orders and compare the bytes."""
    from vkharness.device.drivers import find_driver
    from vkharness.device.process import Worker
    from vkharness.fuzz import order_fuzz
    from vkharness.fuzz.random_steps import make

    echo(f"seeds {first} to {first + count - 1}")
    verdicts: Counter[str] = Counter()
    bad: list[int] = []
    with Worker(find_driver(device)) as worker:
        for seed in watched(range(first, first + count)):
            answer = order_fuzz.ask(worker, make(seed), seed, device)
            verdicts[answer["verdict"]] += 1
            if order_fuzz.is_bad(answer):
                echo(f"seed {seed}: {answer}")
                bad.append(seed)
        echo(", ".join(f"{number} {verdict}" for verdict, number in sorted(verdicts.items())))
        if bad:
            _print_steps(bad[0], order_fuzz.smallest(worker, bad[0], device))
    ctx.exit(HAZARDS if bad else CLEAN)


@fuzz.command()
@FIRST
@click.option("--count", type=click.IntRange(1), default=100, show_default=True, help="How many seeds.")
@DEVICE
@click.pass_context
def mends(ctx: click.Context, first: int, count: int, device: str) -> None:
    """Mend random streams; try that each bit of each mend is needed, and run what is mended in legal orders."""
    from vkharness.device.drivers import find_driver
    from vkharness.device.process import Worker
    from vkharness.fuzz import mend_fuzz
    from vkharness.fuzz.random_steps import make

    echo(f"seeds {first} to {first + count - 1}")
    verdicts: Counter[str] = Counter()
    bad = False
    counts: Counter[str] = Counter()
    with Worker(find_driver(device)) as worker:
        for seed in watched(range(first, first + count)):
            answer = mend_fuzz.ask(worker, make(seed), seed, device)
            verdicts[answer["verdict"]] += 1
            counts.update({name: answer.get(name, 0) for name in ("groups", "pieces")})
            if mend_fuzz.is_bad(answer):
                bad = True
                echo(f"seed {seed}: {answer}")
    told = ", ".join(f"{number} {verdict}" for verdict, number in sorted(verdicts.items()))
    echo(f"{told}; {counts['groups']} groups of findings, {counts['pieces']} pieces of changes, each needed")
    ctx.exit(HAZARDS if bad else CLEAN)


@fuzz.command()
@FIRST
@click.option("--count", type=click.IntRange(1), default=100, show_default=True, help="How many seeds.")
@DEVICE
@click.pass_context
def reductions(ctx: click.Context, first: int, count: int, device: str) -> None:
    """Reduce random hazardous streams to one finding each, judge what is left and run it.

    What is left must have that finding and no other, for both judges. Exit codes: 0 all do, 1 one does not.
    """
    from vkharness.device.drivers import find_driver
    from vkharness.device.process import Worker
    from vkharness.fuzz import reduce_fuzz

    echo(f"seeds {first} to {first + count - 1}")
    with Worker(find_driver(device)) as worker:
        tally = reduce_fuzz.run(watched(range(first, first + count)), worker, device)
    echo(str(tally))
    ctx.exit(HAZARDS if tally.bad else CLEAN)


@fuzz.command()
@click.option("--minutes", type=click.FloatRange(0), default=0.0, help="How long, by the clock [no limit].")
@click.option("--count", type=click.IntRange(0), help="How many inputs in all [2000 without --minutes].")
@click.option("--seed", type=click.IntRange(0), help="[1, or the first that is not in the file of --total]")
@click.option("--jobs", type=click.IntRange(1, 1024), default=os.cpu_count() or 1, help="Processes [one a core].")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File of the figures, from which it goes on.")
@click.option("--total", type=click.Path(path_type=Path), help="File to which the sums of this hunt are added.")
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("hostile"),
    show_default=True,
    help="Folder for inputs with a fault, with the smallest of each, and for inputs that reach new lines.",
)
@click.option(
    "--device", default="auto", show_default=True, help="Replay some inputs on this driver, on any, or on `none`."
)
@click.option("--seconds", type=click.FloatRange(0.1), default=2.0, show_default=True, help="Allowed to any input.")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, exists=True))
@click.pass_context
def hostile(
    ctx: click.Context,
    minutes: float,
    count: int | None,
    seed: int | None,
    jobs: int,
    output: Path | None,
    total: Path | None,
    keep: Path,
    device: str,
    seconds: float,
    files: tuple[Path, ...],
) -> None:
    """Give every command that reads a file hostile ones; none may fail, hang or take much memory.

    FILES are traces, captures, results, lists of every kind that a command reads, or folders of them. Inputs are made
    by changing them, and from the registry alone. An input may take 1 s of the processor a kilobyte, or --seconds, and
    1 GiB. The same command with --output goes on where it was stopped. With --total and --count 0 the sums are told.

    Exit codes: 0 no input has a fault, 1 some have, 2 usage.
    """
    from vkharness.cli import main
    from vkharness.cli.hostile_readers import asking
    from vkharness.fuzz.hostile.job_processes import Ends, conduct, device_of
    from vkharness.fuzz.hostile.samples import read_samples
    from vkharness.fuzz.hostile.tally import HuntPlan, SumsFile
    from vkharness.fuzz.hostile.trial import Limits
    from vkharness.report.console import progress_bars

    ends = Ends((0 if minutes else 2000) if count is None else count, minutes)
    samples, begun = read_samples(files), time.monotonic()
    with ExitStack() as stack:
        sums = None if total is None else stack.enter_context(SumsFile(total))
        seed = max([0, *(sums.seeds if sums else [])]) + 1 if seed is None else seed
        plan = HuntPlan(seed, device_of(device))
        if ends != Ends():
            progress = stack.enter_context(progress_bars())
            bar = progress.add_task("inputs", total=ends.inputs or None)
            tally = conduct(
                asking(main), plan, samples, keep, output, Limits(seconds), ends, jobs,
                lambda so_far: progress.update(bar, completed=so_far.inputs),
            )  # fmt: skip
            head = f"seed {seed}, {len(samples)} samples given, {jobs} jobs, device {plan.device or 'none'}"
            echo(f"{head}\n{tally}" + (f"\ninputs with a fault: {keep}" if tally.faults or tally.lost else ""))
            if sums is not None:
                sums.add(seed, (time.monotonic() - begun) / 60, jobs, tally)
        if sums is not None:
            echo(str(sums))
    ctx.exit(HAZARDS if ends != Ends() and tally.faults else CLEAN)


@fuzz.command()
@click.option("--count", type=click.IntRange(1), default=100, show_default=True, help="How many faults strike.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@DEVICE
@click.option("--timeout", type=click.FloatRange(1), default=30.0, show_default=True, help="Seconds for a row.")
@click.argument("scenarios", nargs=-1, type=click.Path(path_type=Path, exists=True))
@click.pass_context
def faults(ctx: click.Context, count: int, seed: int, device: str, timeout: float, scenarios: tuple[Path, ...]) -> None:
    """Let calls of a driver fail, hang, crash or lose the device, and hold what becomes of the run.

    A driver of vkharness, built with the C compiler of this machine, stands before the --device. Each fault strikes one
    call of rows of the SCENARIOS (default: those of the suite), of cells of the matrix or of a replay. It must cost one
    row, whose state and reason say what happened; the others are as usual, no exit code is 0, and no process, file,
    descriptor, thread or memory is left. Exit codes: 0 all of that holds, 1 something does not.
    """
    from vkharness.cli import main
    from vkharness.report.console import progress_bars
    from vkharness.suite.faults.fault_hunt import hunt
    from vkharness.suite.whole_suite import suite_scenarios
    from vkharness.temporary import temporary_folder

    with temporary_folder() as folder, progress_bars() as progress:
        bar = progress.add_task("faults", total=count)
        result = hunt(
            main,
            device,
            count,
            seed,
            timeout,
            scenarios or (suite_scenarios(),),
            folder,
            lambda struck: progress.update(bar, completed=struck),
        )
    echo(f"seed {seed}")
    echo(str(result))
    ctx.exit(HAZARDS if result.wrong else CLEAN)


def watched(seeds: Sequence[int]) -> Iterable[int]:
    """The seeds, with a progress bar on a terminal."""
    from rich.progress import track

    from vkharness.report.console import terminal

    console = terminal(stderr=True)
    return track(seeds, "streams", console=console, transient=True, disable=not console.is_terminal)


def _print_steps(seed: int, steps: Sequence[Step]) -> None:
    """A stream of steps as a Python list, ready to be pasted into a test."""
    echo("\n".join([f"smallest stream of seed {seed}:", "[", *(f"    {step}," for step in steps), "]"]))
