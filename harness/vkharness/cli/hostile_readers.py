"""Readers of the files of the suite, of campaigns and of resumed runs, each as if it were a command of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vkharness.cli.last_resort import echo
from vkharness.findings import UserError
from vkharness.fuzz.hostile.trial import Main


def asking(main: Main) -> Main:
    """`main`, with the readers beside the commands."""

    def ask(arguments: list[str]) -> None:
        reader = READERS.get(arguments[0])
        if reader is None:
            return main(arguments)
        try:
            reader(Path(arguments[-1]))
        except UserError as error:
            echo(f"vkharness: {error}", err=True)
            sys.exit(2)
        sys.exit(0)

    return ask


def _expectations(path: Path) -> None:
    """Reads a list of expectations and asks of it what the row of the scenario beside it asks."""
    from vkharness.suite.expectations import load

    for entry in load(path):
        entry.covers("copy/scenario_x", "whole", "lavapipe", "llvmpipe Mesa 22.3.6")
        entry.holds_for("1.3.239")


def _baseline(path: Path) -> None:
    """Reads the lists of known results and asks of them what a run with `--vk-baseline` asks."""
    from vkharness.results.baseline import read_baseline, unmatched_lines
    from vkharness.results.states import RowState

    driver = path.stem.rpartition("-")[0]
    baseline = read_baseline(path.parent, driver)
    name = "copy/scenario_x[whole]"
    baseline.skip(name)
    for state in RowState:
        baseline.hold(name, state)
    unmatched_lines({driver: baseline}, {driver: [name]})


def _streams(path: Path) -> None:
    """Reads kept streams as the mutants of judges and the tests do."""
    from vkharness.fuzz.kept_streams import kept_streams

    kept_streams([path])


def _campaign(path: Path) -> None:
    """Reads the record of a campaign as one that goes on does."""
    from vkharness.campaign.record import causes, plan_text, read_campaign, totals

    campaign = read_campaign(path)
    plan_text(campaign.plan)
    causes(campaign.results.values())
    totals(campaign.results.values())


def _answers(path: Path) -> None:
    """Reads kept answers as a run of the matrix or of mutants that goes on does."""
    from vkharness.suite.kept_answers import MATRIX, KeptAnswers
    from vkharness.suite.row import Row

    with KeptAnswers(path, MATRIX, _plan(path), resume=True) as kept:
        for key in kept.answers:
            kept.read(key, Row.from_dict)


def _hunt(path: Path) -> None:
    """Reads the file of a hunt as one that goes on does."""
    from vkharness.fuzz.hostile.tally import HuntFile, HuntPlan

    plan = _plan(path)
    with HuntFile(path, HuntPlan(plan.get("seed", 0), plan.get("device", ""))) as file:
        str(file.tally)


def _claim(path: Path) -> None:
    """Writes the scenario of `reduce --scenario` and parses it: it must be Python before it is run."""
    import ast

    from vkharness.cli.numbered import group_of
    from vkharness.cli.readable import load_readable
    from vkharness.reduction.reduce import reduce
    from vkharness.reproduction.scenario_file import write_claim

    blocks, _ = load_readable(path)
    small = reduce(blocks, group_of(blocks, 1, path).first)
    try:
        ast.parse(write_claim(small.blocks, small.finding, Path("scenario_small.py"), path.name).text)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _shader(path: Path) -> None:
    """Reflects a shader of a trace and instruments it, as observing one does."""
    from vkharness.shader.instrument import instrument
    from vkharness.shader.reflect import reflect
    from vkharness.shader.spirv import parse

    code = path.read_bytes()
    try:
        for point in parse(code).entry_points[:4]:
            reflect(code, point.name)
        instrument(code, 1 << 32, 1 << 16, 0)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _plan(path: Path) -> dict[str, Any]:
    """The plan that the first line names, if it names one."""
    try:
        plan = json.loads(path.read_bytes().partition(b"\n")[0])["plan"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return plan if isinstance(plan, dict) else {}


READERS: dict[str, Callable[[Path], None]] = {
    "read-expectations": _expectations,
    "read-baseline": _baseline,
    "read-streams": _streams,
    "read-campaign": _campaign,
    "read-answers": _answers,
    "read-hunt": _hunt,
    "read-shader": _shader,
    "read-claim": _claim,
}
