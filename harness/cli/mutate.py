"""`vkharness mutate [SCENARIOS]`: drops each piece of each named dependency, and scores who notices. With `--judges` it
disables the rules of the judges instead."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import click

from harness.cli import CLEAN, HAZARDS

RANDOM_STREAMS = 330


@click.command()
@click.argument("scenarios", nargs=-1, type=click.Path(path_type=Path))
@click.option("--device", default="lavapipe", show_default=True, help="The driver on which mutants are recorded.")
@click.option("--layer", default="auto", show_default=True, help="Khronos layers to ask: auto, off or one version.")
@click.option("--sample", "count", type=click.IntRange(1), help="Only that many scenarios, chosen by --seed.")
@click.option("--seed", type=int, default=1, show_default=True, help="Chooses the sample.")
@click.option("--jobs", type=click.IntRange(1, 64), default=os.cpu_count() or 1, help="Processes side by side.")
@click.option("--judges", is_flag=True, help="Disable rules of syncval and the model instead, one at a time.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write every mutant to this file.")
@click.pass_context
def mutate(
    ctx: click.Context,
    scenarios: tuple[Path, ...],
    device: str,
    layer: str,
    count: int | None,
    seed: int,
    jobs: int,
    judges: bool,
    json_path: Path | None,
) -> None:
    """Score how well each judge notices what is missing (SCENARIOS: files or folders; default: those of the suite).

    Every named dependency of every scenario is left out and weakened, one piece at a time. What the model calls legal
    must leave syncval silent, anything else it must catch: exit code 1 when one does not.

    With --judges, the functions of syncval and the model are changed, one condition or update at a time, and the
    scenarios, the kept streams beside them, 330 random streams or the pixels must notice: exit code 1 when no change of
    a function is noticed. --sample then is a number of changes.
    """
    if judges:
        ctx.exit(_mutate_judges(scenarios, device, count, seed, jobs, json_path))
    from harness.device.pool import sample
    from harness.report.console import progress_bars, terminal
    from harness.report.findings_json import write_json
    from harness.suite.mutation import score
    from harness.suite.mutation.judge_mutants import claims, judge_mutants
    from harness.suite.whole_suite import suite_scenarios

    several = claims(scenarios or (suite_scenarios(),))
    if count is not None:
        several = [several[at] for at in sample(len(several), count, seed)]
        click.echo(f"{len(several)} scenarios, seed {seed}")
    console = terminal()
    with progress_bars() as progress:
        bar = progress.add_task("mutants", total=len(several))
        mutants = sorted(judge_mutants(several, device, layer, jobs, partial(progress.advance, bar)), key=str)
    if json_path is not None:
        write_json(json_path, {"version": 1, "mutants": [each.to_dict() for each in mutants]})
    console.print(score.table(mutants))
    for mutant in (each for each in mutants if each.problem):
        click.echo(f"not judged: {mutant}: {mutant.problem}")
    disagreements = score.wrong(mutants)
    for mutant in disagreements:
        kind = "syncval is not silent" if mutant.legal else "syncval misses it"
        click.echo(f"{kind}: {mutant}: {'; '.join(mutant.syncval or mutant.model)}")
    ctx.exit(HAZARDS if disagreements else CLEAN)


def _mutate_judges(
    scenarios: tuple[Path, ...], device: str, count: int | None, seed: int, jobs: int, json_path: Path | None
) -> int:
    from tempfile import TemporaryDirectory

    from harness.device.pool import sample
    from harness.fuzz.kept_streams import kept_streams
    from harness.report.console import progress_bars, terminal
    from harness.report.findings_json import write_json
    from harness.suite.mutation import rule_score
    from harness.suite.mutation.judge_mutants import claims
    from harness.suite.mutation.rule_judging import Corpus, judge_rules
    from harness.suite.mutation.rule_mutants import rule_mutants
    from harness.suite.whole_suite import suite_scenarios

    mutants = rule_mutants()
    if count is not None:
        mutants = [mutants[at] for at in sample(len(mutants), count, seed)]
    click.echo(f"{len(mutants)} mutants of the judges, seed {seed}")
    scenarios = scenarios or (suite_scenarios(),)
    several, corpus = claims([each for each in scenarios if each.suffix != ".toml"], every=True), Corpus()
    with progress_bars() as progress, TemporaryDirectory() as folder:
        bar = progress.add_task("scenarios", total=len(several))
        corpus.add_scenarios(several, device, Path(folder), jobs, partial(progress.advance, bar))
        corpus.add_kept(kept_streams(scenarios))
        corpus.add_random(RANDOM_STREAMS, seed)
        bar = progress.add_task("mutants", total=len(mutants))
        noticed = []
        for each in judge_rules(mutants, corpus, jobs):
            noticed.append(each)
            progress.advance(bar)
    noticed.sort(key=lambda each: (each.mutant.module, each.mutant.line, each.mutant.number))
    if json_path is not None:
        write_json(json_path, {"version": 1, "seed": seed, "mutants": [each.to_dict() for each in noticed]})
    terminal().print(rule_score.table(noticed))
    unnoticed = rule_score.unnoticed_rules(noticed)
    for rule in unnoticed:
        click.echo(f"nobody notices a change of {rule}")
    needless = rule_score.needless_entries(noticed)
    for rule in needless:
        click.echo(f"EQUIVALENT has {rule}, but a change of it is noticed")
    return HAZARDS if unnoticed or needless else CLEAN
