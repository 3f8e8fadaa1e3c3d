"""`vkharness mutate [SCENARIOS]`: drops each piece of each named dependency, and scores who notices. With `--judges` it
changes the judges instead, with `--rules` it disables their rules, and with `--shared` it plants mistakes in what both
judges share."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from vkharness.cli import CLEAN, HAZARDS
from vkharness.cli.last_resort import echo
from vkharness.findings import UserError

if TYPE_CHECKING:
    from vkharness.suite.kept_answers import KeptAnswers
    from vkharness.suite.mutation.rule_judging import Noticed
    from vkharness.suite.mutation.rule_mutants import RuleMutant

RANDOM_STREAMS = 330
SHARED_STREAMS, SHARED_TEXTS = 120, 300
"""Streams of steps and of text with which planted mistakes are looked for."""
_Each = TypeVar("_Each")


@click.command()
@click.argument("scenarios", nargs=-1, type=click.Path(path_type=Path))
@click.option("--device", default="lavapipe", show_default=True, help="The driver on which mutants are recorded.")
@click.option("--layer", default="auto", show_default=True, help="Khronos layers to ask: auto, off or one version.")
@click.option("--sample", "count", type=click.IntRange(1), help="Only that many scenarios, chosen by --seed.")
@click.option("--seed", type=int, default=1, show_default=True, help="Chooses the sample.")
@click.option("--jobs", type=click.IntRange(1, 64), default=os.cpu_count() or 1, help="Processes side by side.")
@click.option("--timeout", type=click.FloatRange(1), default=300.0, show_default=True, help="Seconds for a scenario.")
@click.option("--judges", is_flag=True, help="Change syncval and the model instead, one function at a time.")
@click.option("--rules", is_flag=True, help="The same, by the rules of docs/rules.md that a judge decides.")
@click.option("--shared", is_flag=True, help="Plant mistakes in what both judges share; random streams must notice.")
@click.option("--drivers", is_flag=True, help="Run the suite on drivers that break a promise each.")
@click.option("--all", "every", is_flag=True, help="With --drivers: every row, and not only those that claim it.")
@click.option("--promise", "promises", multiple=True, help="With --drivers: this promise alone; again for more.")
@click.option("--layers", is_flag=True, help="Silence one class of messages of a Khronos layer after the other.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write every mutant to this file.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Keep each answer here once it is there.")
@click.option("--resume", is_flag=True, help="Go on with the file of --out.")
@click.pass_context
def mutate(
    ctx: click.Context,
    /,
    scenarios: tuple[Path, ...],
    device: str,
    layer: str,
    count: int | None,
    seed: int,
    jobs: int,
    timeout: float,
    every: bool,
    promises: tuple[str, ...],
    json_path: Path | None,
    out: Path | None,
    resume: bool,
    **ways: bool,
) -> None:
    """Score how well each judge notices what is missing (SCENARIOS: files or folders; default: those of the suite).

    Every named dependency of every scenario is left out and weakened, one piece at a time. What the model calls legal
    must leave syncval silent, anything else it must catch: exit code 1 when one does not, and when a scenario that
    fails, hangs or ends its driver leaves no mutant to judge.

    With --judges, functions of syncval and the model are changed, one condition or update at a time. Scenarios, kept
    streams, 330 random streams or pixels must notice: exit code 1 where nobody does. --sample: a number of changes.

    With --rules, each function that decides a rule is changed until somebody notices; scenarios that claim one of the
    rules are asked: exit code 1 when nobody notices a rule. --sample: a number of functions.

    With --shared, functions and tables that both judges read are changed; random streams beside each other, a layer and
    computed bytes must notice: exit code 1 where nobody does. --sample: a number of changes.

    With --drivers, a driver stands before the one of --device, and breaks one promise of the specification after the
    other. Rows that claim it are run until five notice: exit code 1 when none does. --sample: a number of promises.
    With --layers, the layers keep one class of messages to themselves, and rows that expect it must notice.
    """
    from vkharness.suite.kept_answers import MUTATE, KeptAnswers
    from vkharness.suite.whole_suite import suite_scenarios

    _refuse_without(ways["drivers"], every, promises)
    plan = {"scenarios": [*map(str, scenarios)], "device": device, "sample": count, "seed": seed} | _asked(ways, layer)
    mutate_with = next((way for name, way in _WAYS.items() if ways[name]), _mutate_scenarios)
    if ways["drivers"]:
        plan |= {"drivers": "every row" if every else "claiming rows", "promises": [*promises]}
        mutate_with = partial(_break_drivers, every=every, promises=promises)
    with KeptAnswers(out, MUTATE, plan, resume=resume) as kept:
        run = _Run(scenarios or (suite_scenarios(),), device, layer, count, seed, jobs, timeout, json_path, kept)
        ctx.exit(mutate_with(run))


def _asked(ways: Mapping[str, bool], layer: str) -> dict[str, object]:
    """Returns the options of a run, as the file of its answers keeps them."""
    asked: dict[str, object] = {name: ways[name] for name in ("judges", "rules")}
    asked |= {name: True for name in ("shared", "layers") if ways[name]}
    return asked if any(ways[name] for name in ("judges", "rules", "drivers")) else asked | {"layer": layer}


def _refuse_without(drivers: bool, every: bool, promises: Collection[str]) -> None:
    if (every or promises) and not drivers:
        raise UserError(f"{'--all' if every else '--promise'} goes with --drivers")


@dataclass(frozen=True, slots=True)
class _Run:
    """Options of the command."""

    scenarios: tuple[Path, ...]
    device: str
    layer: str
    count: int | None
    seed: int
    jobs: int
    timeout: float
    json_path: Path | None
    kept: KeptAnswers

    def sampled(self, several: list[_Each]) -> list[_Each]:
        """So many of several as --sample says, and all without it."""
        from vkharness.device.pool import sample

        return several if self.count is None else [several[at] for at in sample(len(several), self.count, self.seed)]


def _mutate_scenarios(run: _Run) -> int:
    from vkharness.report.console import progress_bars, terminal
    from vkharness.report.findings_json import write_json
    from vkharness.suite.mutation import score
    from vkharness.suite.mutation.judge_mutants import claims, judge_mutants
    from vkharness.suite.mutation.mutant import Mutant

    several = run.sampled(claims(run.scenarios))
    if run.count is not None:
        echo(f"{len(several)} scenarios, seed {run.seed}")
    console = terminal()
    with progress_bars() as progress:
        keys = {each: f"{each[0]}::{each[1]}" for each in several}
        left = [each for each, key in keys.items() if key not in run.kept.answers]
        advance = partial(progress.advance, progress.add_task("mutants", total=len(left)))
        for named, made in judge_mutants(left, run.device, run.layer, run.jobs, advance, run.timeout):
            run.kept.keep(keys[named], {"mutants": [each.to_dict() for each in made]})
    answers = [each for key in keys.values() for each in run.kept.answers[key]["mutants"]]
    mutants = sorted(map(Mutant.from_dict, answers), key=str)
    if run.json_path is not None:
        write_json(run.json_path, {"version": 1, "mutants": [each.to_dict() for each in mutants]})
    console.print(score.table(mutants))
    for mutant in (each for each in mutants if each.problem):
        echo(f"{'lost' if mutant.lost else 'not judged'}: {mutant}: {mutant.problem}")
    lost = sum(each.lost for each in mutants)
    if lost:
        echo(f"{lost} of {len(several)} scenarios are lost: no mutant of them was judged")
    disagreements = score.wrong(mutants)
    for mutant in disagreements:
        kind = "syncval is not silent" if mutant.legal else "syncval misses it"
        echo(f"{kind}: {mutant}: {'; '.join(mutant.syncval or mutant.model)}")
    return HAZARDS if disagreements or lost else CLEAN


def _numbered(mutant: RuleMutant) -> str:
    """Returns the key of a mutant among the kept answers. It has the number, since two of a line may read alike."""
    return f"{mutant} ({mutant.number})"


def _mutate_judges(run: _Run) -> int:
    from vkharness.report.console import terminal
    from vkharness.report.findings_json import write_json
    from vkharness.suite.mutation import rule_score
    from vkharness.suite.mutation.rule_mutants import rule_mutants

    mutants = run.sampled(rule_mutants())
    echo(f"{len(mutants)} mutants of the judges, seed {run.seed}")
    several = {_numbered(each): [each] for each in mutants}
    judged, lost = _judged(several, (), run)
    noticed = [each for (each,) in judged]
    noticed.sort(key=lambda each: (each.mutant.module, each.mutant.line, each.mutant.number))
    if run.json_path is not None:
        write_json(run.json_path, {"version": 1, "seed": run.seed, "mutants": [each.to_dict() for each in noticed]})
    terminal().print(rule_score.table(noticed))
    unnoticed = rule_score.unnoticed_functions(noticed)
    for function in unnoticed:
        echo(f"nobody notices a change of {function}")
    needless = rule_score.needless_entries(noticed)
    for function in needless:
        echo(f"EQUIVALENT has {function}, but a change of it is noticed")
    return HAZARDS if unnoticed or needless or lost else CLEAN


def _plant_mistakes(run: _Run) -> int:
    from vkharness.report.console import progress_bars, terminal
    from vkharness.report.findings_json import write_json
    from vkharness.suite.mutation.shared_mutants import TABLES, shared_mutants
    from vkharness.suite.mutation.shared_streams import Planted, judge_planted, record_all, table
    from vkharness.temporary import temporary_folder

    layer = "today" if run.layer == "auto" else run.layer
    with progress_bars() as progress, temporary_folder() as folder:
        called = record_all(Path(folder), run.seed, SHARED_STREAMS, SHARED_TEXTS, run.device, layer)
        mutants = run.sampled([each for each in shared_mutants() if each.module == TABLES or each.decider in called])
        left = [each for each in mutants if _numbered(each) not in run.kept.answers]
        bar = progress.add_task("mistakes", total=len(left))
        for each in judge_planted(left, Path(folder), run.jobs):
            run.kept.keep(_numbered(each.mutant), each.told)
            progress.advance(bar)
    planted = [Planted(each, run.kept.answers[_numbered(each)]) for each in mutants]
    if run.json_path is not None:
        told = [{"mistake": str(each.mutant), **each.told} for each in planted]
        write_json(run.json_path, {"version": 1, "seed": run.seed, "planted": told})
    echo(f"{len(called)} functions of shared code are run, seed {run.seed}")
    terminal().print(table(planted))
    unnoticed = [each for each in planted if not any(each.told.values())]
    for each in unnoticed:
        echo(f"nobody notices {each.mutant}")
    return HAZARDS if unnoticed else CLEAN


def _disable_rules(run: _Run) -> int:
    from vkharness.report.console import terminal
    from vkharness.report.findings_json import write_json
    from vkharness.suite.mutation import rule_score
    from vkharness.suite.mutation.rule_mutants import deciders, rule_mutants

    cited = deciders()
    names = run.sampled(sorted(frozenset().union(*cited.values())))
    cited = {key: functions for key, each in cited.items() if (functions := each.intersection(names))}
    mutants = rule_mutants()
    several = {name: [each for each in mutants if each.decider == name] for name in names}
    echo(f"{len(cited)} rules of a judge, {len(names)} functions that decide them, seed {run.seed}")
    judged, lost = _judged(several, {anchor for anchor, _ in cited}, run)
    noticed = dict(zip(names, judged, strict=True))
    rules = rule_score.noticed_rules(cited, noticed)
    if run.json_path is not None:
        tried = [each.to_dict() for name in names for each in noticed[name]]
        by_rule = [{"rule": each.anchor, "judge": each.judge, "ways": sorted(each.ways)} for each in rules]
        write_json(run.json_path, {"version": 1, "seed": run.seed, "rules": by_rule, "mutants": tried})
    terminal().print(rule_score.rules_table(rules))
    return HAZARDS if lost or not all(each.ways for each in rules) else CLEAN


def _break_drivers(run: _Run, *, every: bool, promises: Collection[str]) -> int:
    from vkharness.device.faults.broken_promises import promises_named
    from vkharness.report.console import progress_bars
    from vkharness.report.findings_json import write_json
    from vkharness.suite.mutation.driver_mutants import DriverMutant, break_drivers, suite_rows
    from vkharness.temporary import temporary_folder

    several = run.sampled(promises_named(promises))
    left = [each for each in several if each.name not in run.kept.answers]
    rows = suite_rows(run.scenarios, every=every)
    with progress_bars() as progress, temporary_folder() as folder:
        advance = partial(progress.advance, progress.add_task("rows", total=len(left) * len(rows)))
        for each in break_drivers(
            left, rows, run.device, folder, run.jobs, every=every, advance=advance, timeout=run.timeout
        ):
            run.kept.keep(each.name, each.to_dict())
    mutants = [run.kept.read(each.name, DriverMutant.from_dict) for each in several]
    if run.json_path is not None:
        write_json(run.json_path, {"version": 1, "drivers": [each.to_dict() for each in mutants]})
    for each in mutants:
        echo(str(each))
    noticed = sum(bool(each.claiming) for each in mutants)
    echo(f"{noticed} of {len(mutants)} broken promises are noticed by a row that claims them")
    return CLEAN if noticed == len(mutants) and not any(each.missed for each in mutants) else HAZARDS


def _silence_layers(run: _Run) -> int:
    from vkharness.layer.manifest import chosen_layers
    from vkharness.report.console import progress_bars
    from vkharness.report.findings_json import write_json
    from vkharness.suite.mutation.layer_mutants import CLASSES, SilentLayer, silence

    mutants = run.sampled([(layer, each) for layer in chosen_layers(run.layer) for each in CLASSES])
    left = {f"{layer.version_text} {each.name}": (layer, each) for layer, each in mutants}
    keys = [*left]
    with progress_bars() as progress:
        left = {key: each for key, each in left.items() if key not in run.kept.answers}
        advance = partial(progress.advance, progress.add_task("layers", total=len(left)))
        for told in silence([*left.values()], run.scenarios, run.device, run.jobs, advance, run.timeout):
            run.kept.keep(f"{told.version} {told.name}", told.to_dict())
    several = [run.kept.read(key, lambda answer: SilentLayer(**answer)) for key in keys]
    if run.json_path is not None:
        write_json(run.json_path, {"version": 1, "layers": [each.to_dict() for each in several]})
    for each in several:
        echo(str(each))
    asked = [each for each in several if each.asked]
    echo(f"{sum(bool(each.noticed) for each in asked)} of {len(asked)} classes that layers lost are noticed")
    return HAZARDS if not asked or any(each.lives for each in several) else CLEAN


def _judged(
    several: Mapping[str, Sequence[RuleMutant]], rules: Collection[str], run: _Run
) -> tuple[list[list[Noticed]], int]:
    """Who notices mutants of each function, by the scenarios that claim one of these rules (none: every one), and how
    many scenarios could not be asked. The functions have the names under which their answers are run.kept."""
    from vkharness.fuzz.kept_streams import kept_streams
    from vkharness.report.console import progress_bars
    from vkharness.suite.mutation.judge_mutants import claims
    from vkharness.suite.mutation.rule_judging import Corpus, Noticed, judge_deciders
    from vkharness.temporary import temporary_folder

    corpus, left = Corpus(), {name: mutants for name, mutants in several.items() if name not in run.kept.answers}
    claiming = claims([each for each in run.scenarios if each.suffix != ".toml"], every=True, rules=rules)
    with progress_bars() as progress, temporary_folder() as folder:
        advance = partial(progress.advance, progress.add_task("scenarios", total=len(claiming)))
        lost = corpus.add_scenarios(claiming, run.device, folder, run.jobs, advance, run.timeout)
        corpus.add_kept(kept_streams(run.scenarios))
        corpus.add_random(RANDOM_STREAMS, run.seed)
        bar = progress.add_task("functions", total=len(left))
        for at, tried in judge_deciders([*left.values()], corpus, run.jobs):
            run.kept.keep([*left][at], {"tried": [each.to_dict() for each in tried]})
            progress.advance(bar)
    for line in lost:
        echo(f"lost: {line}")
    noticed = [
        [Noticed.from_dict(*each) for each in zip(mutants, run.kept.answers[name]["tried"], strict=False)]
        for name, mutants in several.items()
    ]
    return noticed, len(lost)


_WAYS = {"rules": _disable_rules, "judges": _mutate_judges, "shared": _plant_mistakes, "layers": _silence_layers}
"""Functions for these options; of several that are given, the first one counts."""
