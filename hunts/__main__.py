"""`python -m hunts core|extension|excuses|threads|kills`: hunts for faults of the product itself, which no user runs.

Those for faults of drivers, layers, judges and files are `vkharness fuzz`.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import click

from vkharness.cli import CLEAN, HAZARDS, main
from vkharness.cli.fuzz import DEVICE, FIRST, LAYER, watched
from vkharness.cli.last_resort import echo


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def hunts() -> None:
    """Hunt for faults of vkharness.

    The same seed gives the same work. Exit codes: 0 no fault, 1 faults, 2 usage.
    """


@hunts.command()
@click.option("--count", type=click.IntRange(0), default=2000, show_default=True, help="Streams, over all kinds.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="The first stream's.")
@click.option(
    "--kind", "kinds", multiple=True, help="Only streams of this kind.",
    type=click.Choice(
        ("text", "recordings", "long", "ranges", "calls", "orders", "changed", "front", "frames", "steps")
    ),
)  # fmt: skip
@click.option("--scenarios", multiple=True, type=click.Path(path_type=Path), help="Compare on these, too.")
@click.option("--device", default="lavapipe", show_default=True, help="The driver of programs; `none` runs no program.")
@click.pass_context
def core(
    ctx: click.Context, count: int, seed: int, kinds: tuple[str, ...], scenarios: tuple[Path, ...], device: str
) -> None:
    """Compare the native core with Python alone: every finding, in order and in words, and what is recorded.

    Streams are stream text, submitted with and without a recording before, several of them on one device, operations on
    thousands of ranges, calls that the registry alone makes, in a trace and in a program without a driver, calls in
    orders that no program has, traces with changed values, programs without a driver that record nearly the same in
    each frame, and steps that are played on a driver, as all variants
    of the SCENARIOS are. Exit codes: 0 both say the same, 1 they do not, 2 usage, or there is no native core.
    """
    from hunts.core_answers import KINDS
    from hunts.core_hunt import CoreAndPython, Difference, hunt
    from hunts.core_scenarios import compare_scenarios
    from vkharness.report.console import progress_bars
    from vkharness.suite.observe_scenarios import scenarios as claimed

    driver = None if device == "none" else device
    chosen = [each for each in kinds or KINDS if driver or each != "steps"]
    counts: Counter[str] = Counter()
    code = CLEAN
    with CoreAndPython(driver) as both, progress_bars() as progress:
        bar = progress.add_task("streams", total=count)
        try:
            if chosen:
                hunt(both.ask, range(seed, seed + count), chosen, counts, lambda more: progress.advance(bar, more))
        except Difference as found:
            code = HAZARDS
            echo(f"different:\n{found}")
        for told in compare_scenarios(both.ask, both.ask_anew, claimed(scenarios), counts):
            code = HAZARDS
            echo(f"different:\n{told}")
    echo(f"{', '.join(f'{number} {what}' for what, number in counts.items())}; from seed {seed} on")
    ctx.exit(code)


@hunts.command()
@click.option("--count", type=click.IntRange(0), default=100_000, show_default=True, help="How many programs.")
@click.option("--seed", type=click.IntRange(0), help="The first program's [1, or behind those in the file of --total].")
@click.option("--total", type=click.Path(path_type=Path), help="File to which the sums of this hunt are added.")
@click.pass_context
def extension(ctx: click.Context, count: int, seed: int | None, total: Path | None) -> None:
    """Call the native core as nobody would: it must survive, and give up what it held.

    A program makes up to some hundred calls with integers of any size and with objects that call again, raise or end in
    the middle of a call; some in several threads. `ci/sanitize --run python -m hunts extension` does so under the
    address sanitizer. Exit codes: 0 no fault, 1 faults, 2 usage, or there is no native core.
    """
    from hunts.extension_hunt import ExtensionSums, hunt
    from vkharness.report.console import progress_bars

    with ExitStack() as stack:
        sums = None if total is None else stack.enter_context(ExtensionSums(total))
        seed = (sums.next_seed if sums else 1) if seed is None else seed
        progress = stack.enter_context(progress_bars())
        bar = progress.add_task("programs", total=count)
        tally = hunt(seed, count, lambda more: progress.advance(bar, more))
        if count:
            echo(f"from seed {seed} on: {tally}")
            if sums is not None:
                sums.add(seed, tally)
        if sums is not None:
            echo(str(sums))
    ctx.exit(HAZARDS if tally.faults else CLEAN)


@hunts.command()
@FIRST
@click.option("--count", type=click.IntRange(1), default=100, show_default=True, help="How many seeds, of each kind.")
@DEVICE
@LAYER
def excuses(first: int, count: int, device: str, layer: str) -> None:
    """Falsify our findings one at a time: how often does a known difference from the layer excuse that?

    True findings are dropped and false ones invented, in streams without and with rendering. What excuses a mistake
    is listed by its entry; a mistake that nothing excuses is one that `fuzz layer` would notice.
    """
    from hunts import excuse_hunt

    for kind, families in excuse_hunt.KINDS.items():
        echo(f"{kind}, layer {layer}, seeds {first} to {first + count - 1}")
        echo(str(excuse_hunt.run(watched(range(first, first + count)), device, layer, families)))


@hunts.command()
@click.option("--minutes", type=click.FloatRange(0), default=0.0, help="How long, by the clock [no limit].")
@click.option("--count", type=click.IntRange(0), default=0, help="How many rounds [10 without --minutes].")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="The first round's.")
@click.option("--threads", type=click.IntRange(1), default=16, show_default=True)
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Streams that each thread plays.")
@click.option(
    "--layered", is_flag=True, help="Below the mirror layer, too, on one queue: do both mirrors hear the same?"
)
@DEVICE
@click.pass_context
def threads(
    ctx: click.Context, minutes: float, count: int, seed: int, threads: int, jobs: int, layered: bool, device: str
) -> None:
    """Record, submit and destroy in several threads at once under the mirror, then the same in one thread.

    A round plays random streams in each thread, on three queues of one device. Both runs must make the same calls and
    have the same findings, and `check` must judge the kept trace as the program was judged. An interpreter without the
    global lock, and PYTHONDEVMODE=1, show more.
    """
    if layered and minutes:
        raise click.UsageError("--layered goes by --count, and not by --minutes")
    from hunts import layered_threads, thread_hunt
    from vkharness.report.console import progress_bars

    echo(f"{thread_hunt.interpreter()}; {threads} threads, {jobs} streams each, from seed {seed} on")
    count = count or (0 if minutes else 10)
    with progress_bars() as progress:
        bar = progress.add_task("rounds", total=count or None)
        if layered:
            tally = layered_threads.run(device, seed, threads, jobs, count, lambda: progress.advance(bar))
        else:
            tally = thread_hunt.run(device, seed, threads, jobs, (count, minutes), lambda: progress.advance(bar))
    echo(str(tally))
    ctx.exit(HAZARDS if tally.bad else CLEAN)


@hunts.command()
@click.option("--count", type=click.IntRange(1), default=20, show_default=True, help="Kills of each command.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File of the figures, from which it goes on.")
@click.option("--only", "names", multiple=True, help="Only this command (repeatable).")
@click.option("--device", default="lavapipe", show_default=True, help="The driver that runs what commands run.")
@click.argument("program", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.pass_context
def kills(
    ctx: click.Context, count: int, seed: int, output: Path | None, names: tuple[str, ...], device: str, program: Path
) -> None:
    """Kill commands that write files, each at random points, and look at what they leave.

    PROGRAM is Python source with hazards; its trace is what the commands are given. After a kill every file is absent,
    whole or under a name that says that it is not, no other process is left, and the same command, or the one that goes
    on, leaves what an undisturbed one leaves. Points are counted in operations on files and processes, by `ptrace`.

    Exit codes: 0 all of that holds, 1 something does not. Needs Linux on x86-64.
    """
    from hunts.kills.kill_campaign import KillPlan, conduct
    from hunts.kills.killed_commands import COMMANDS
    from vkharness.report.console import progress_bars

    for each in names:
        if each not in COMMANDS:
            raise click.UsageError(f"--only {each}: there is no such command, only {', '.join(COMMANDS)}")
    chosen = names or tuple(COMMANDS)
    with progress_bars() as progress:
        bar = progress.add_task("kills", total=count * len(chosen))
        tally = conduct(
            KillPlan(seed, chosen, str(program), device),
            count,
            output,
            lambda so_far: progress.update(bar, completed=so_far.points.total()),
        )
    echo(f"seed {seed}")
    echo(str(tally))
    ctx.exit(HAZARDS if tally.faults else CLEAN)


if __name__ == "__main__":
    main(group=hunts)
