"""Parts that `run` and `check` share: asking both judges, and the verdict on the terminal and in a JSON file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vkharness.cli.last_resort import echo
from vkharness.cli.patience import Patience
from vkharness.findings import Finding, Unjudged
from vkharness.verdicts import ModelAnswer, ProgramEnd

if TYPE_CHECKING:
    from vkharness.check import Analysis
    from vkharness.groups import Group
    from vkharness.ignore_file import IgnoreFile
    from vkharness.refutation import Refutation

ALWAYS_TIMES = 5
"""How many times the work of the first judge the second one may do for a live program."""
AUTO, ALWAYS, NEVER = "auto", "always", "never"
MODEL_OPTION = click.option(
    "--model",
    type=click.Choice([AUTO, ALWAYS, NEVER]),
    default=AUTO,
    show_default=True,
    help="Ask the second judge, too; auto: about up to the work of the first one, or half a second.",
)


def _share(ctx: click.Context, _: click.Parameter, factor: float) -> None:
    """Gives the command its units of work, and takes them back at its end."""
    from vkharness.trace import work_budget

    work_budget.share(factor)
    ctx.call_on_close(work_budget.end_sharing)


def _scale(ctx: click.Context, _: click.Parameter, factor: float) -> None:
    """Says how much the second judge may do for a program whose calls are followed as they come."""
    from vkharness.trace import work_budget

    work_budget.UNITS.factor = factor
    ctx.call_on_close(work_budget.end_sharing)


def _work_option(callback: Callable[[click.Context, click.Parameter, float], None], what: str) -> Callable[[Any], Any]:
    return click.option(
        "--work",
        type=click.FloatRange(0.01),
        default=1.0,
        show_default=True,
        expose_value=False,
        is_eager=True,
        callback=callback,
        help=f"Do up to so many times {what}.",
    )


WORK_OPTION = _work_option(_share, "the usual work before the rest is left out")
LIVE_WORK_OPTION = _work_option(_scale, "the usual work of the second judge, with `--model always`")


BOUNDS_OPTION = click.option(
    "--bounds", is_flag=True, help="Judge the most that draws could reach where contents of memory are unknown."
)

STRICT_OPTION = click.option(
    "--strict", is_flag=True, help="Count what is a hazard by the letter alone, and that hardly anybody would mend."
)


SARIF_OPTION = click.option(
    "--sarif", "sarif_path", type=click.Path(path_type=Path), help="Write the findings to this file as SARIF 2.1.0."
)
IGNORE = "--ignore"
IGNORE_OPTION = click.option(
    IGNORE, "ignore_path", type=click.Path(path_type=Path), help="Do not count the findings that this file names."
)


def ignore_file(path: Path | None) -> IgnoreFile:
    """The entries of a file, as of today; none without a file."""
    from vkharness.ignore_file import IgnoreFile, read_ignore_file

    return IgnoreFile([]) if path is None else read_ignore_file(path, date.today())


def make_analysis(
    model: str, bounds: bool, strict: bool, counts_repetitions: bool = False, eager: bool | None = None
) -> Analysis:
    """An analysis that keeps what the model will need. The rest is as `Analysis` says."""
    from vkharness.check import Analysis

    most = sys.maxsize
    if model == AUTO:
        from vkharness.agreement import MOST_EVENTS as most
    return Analysis(
        keep_events=model != NEVER,
        keep_at_most=most,
        bounds=bounds,
        partial=True,
        counts_repetitions=counts_repetitions,
        eager=eager,
        strict=strict,
    )


def ask_model(analysis: Analysis, model: str, patience: Patience | None = None) -> str:
    """Asks the second judge as the option says; never loads nothing of it. Nor does it ask whom `patience` has left."""
    if model == NEVER:
        return ModelAnswer.NOT_ASKED
    from vkharness import agreement
    from vkharness.trace.work_budget import OverBudget

    units = None if model == AUTO else _always(analysis)
    patience = Patience() if patience is None else patience
    try:
        opinion = patience.ask(lambda: agreement.ask_opinion(analysis, units))
    except OverBudget:
        opinion = None
    if patience.pressed:
        return ModelAnswer.NOT_ASKED
    answer = ModelAnswer.LEFT_OUT if opinion is None else agreement.note_opinion(analysis, opinion)
    if answer is ModelAnswer.LEFT_OUT:
        more = "--model always" if model == AUTO else "--work 10"
        echo(f"vkharness: note: the second judge is left out: it has more work than the first one ({more})", err=True)
    return answer


def _always(analysis: Analysis) -> int:
    """Units of the second judge where it is asked always: what a command has left, and for a live program as many as
    one that reads a file has, or some times what the first judge takes."""
    from vkharness.agreement import model_units
    from vkharness.trace.work_budget import SHARED, UNITS

    return sys.maxsize if UNITS.shared else int(UNITS.factor * max(SHARED, ALWAYS_TIMES * model_units(analysis.events)))


def refutation_of(observed: Path | None) -> Refutation | None:
    """The observations of a file, ready to be held against findings; None without a file."""
    if observed is None:
        return None
    from vkharness.refutation import Refutation
    from vkharness.trace.observations import read_observations

    return Refutation(read_observations(observed), str(observed))


def show(
    verdict: str,
    findings: Sequence[Finding],
    unmodelled: Mapping[str, int],
    model: str,
    unjudged: Unjudged,
    json_path: Path | None,
    sarif: tuple[Path, str] | None = None,
    *,
    stderr: bool = False,
    end: ProgramEnd | None = None,
) -> list[Group]:
    """Prints the verdict on stdout, or on stderr beside a program's output, then writes the files that were asked for.

    `sarif` is (the file, what was judged), `end` how the program ended that was judged.

    Returns the groups that it printed.
    """
    from vkharness.groups import groups_of
    from vkharness.report.console import terminal
    from vkharness.report.text import print_verdict

    groups = groups_of(findings)
    print_verdict(terminal(stderr=stderr), verdict, groups, unmodelled, unjudged, end)
    if json_path is not None:
        from vkharness.report.findings_json import verdict_document, write_json

        document = verdict_document(verdict, groups, unmodelled, model, unjudged, end)
        write_json(json_path, document)
    if sarif is not None:
        from vkharness.report.findings_json import verdict_document
        from vkharness.report.sarif import write_sarif

        write_sarif(sarif[0], [(sarif[1], verdict_document(verdict, groups, unmodelled, model, unjudged, end))])
    return groups
