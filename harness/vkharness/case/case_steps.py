"""The steps that make a case of one group of findings: smaller, shown, drawn, mended, a scenario.

Each step fails by itself: a line says why, and the others go on. Only a disk that takes no more ends all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vkharness.agreement import conflicts_of
from vkharness.case.case_folder import writing
from vkharness.case.group_replays import show_group
from vkharness.case.scenarios import write_scenario
from vkharness.case.shown_reduction import ShownReduction
from vkharness.device.drivers import Driver
from vkharness.device.process import JobError
from vkharness.findings import Finding, UnwrittenError, UserError
from vkharness.generated_text import python_name
from vkharness.groups import Group, groups_of
from vkharness.mending.device_runs import run_on
from vkharness.mending.mend import Mending, mend
from vkharness.model import judge
from vkharness.reduction.reduce import Reduction, count_commands, left_text, reduce
from vkharness.report.findings_json import group_findings, write_json
from vkharness.report.mends import LANGUAGES, document, summary
from vkharness.report.order_svg import draw_svg, standalone
from vkharness.report.printable import printable
from vkharness.report.replay_text import difference_line
from vkharness.report.text import group_text
from vkharness.trace.calls import Block
from vkharness.trace.codec import save
from vkharness.whole_file import write_whole

FINDING, FINDING_DATA, ORDER, MEND, MEND_DATA = "finding.txt", "finding.json", "order.svg", "mend.txt", "mend.json"
TRACE, MENDED, PICTURES = "trace.jsonl", "mended.jsonl", "pictures"
MOST_DRAWN = 24
"""Commands that the drawing of the order has."""


@dataclass(slots=True)
class StepResult:
    """The outcome of one step."""

    title: str
    lines: list[str] = field(default_factory=list)
    trouble: str = ""
    """Why it failed; empty where it did not."""


@dataclass(slots=True)
class CaseSource:
    """The parts that the cases of one trace share."""

    blocks: list[Block]
    name: str
    """Of the trace, or of the program."""
    drivers: Sequence[Driver]
    """On which things are tried: the first must show the hazard, all must run the scenario."""
    no_driver: str
    """Why there is no driver; empty where there is one."""
    seconds: float
    """Limit of time for making one trace smaller."""
    strict: bool = False
    """Whether hazards by the letter of the specification alone count, and are mended."""


@dataclass
class Case:
    """One group of findings, and the files about it in a folder."""

    source: CaseSource
    group: Group
    folder: Path
    steps: list[StepResult] = field(default_factory=list)
    small: Reduction | None = None
    shown: dict[str, Any] = field(default_factory=dict)
    """The witness on the driver (`vkharness.report.replays.witnessed`); empty where nobody asked for one."""
    scenario: str = ""
    """The name of the file; empty where there is none."""

    @property
    def finding(self) -> Finding:
        """The one that stands for the group, in the smaller trace where there is one."""
        return self.group.first if self.small is None else self.small.finding

    @property
    def strict(self) -> bool:
        """Whether hazards by the letter alone are mended: this one may be such a hazard, if somebody asked for it."""
        return self.source.strict or bool(self.group.first.uncounted)

    @property
    def blocks(self) -> list[Block]:
        """The smallest trace that there is."""
        return self.source.blocks if self.small is None else self.small.blocks


def make_case(case: Case, driver: ShownReduction, tell: Callable[[str], object]) -> None:
    """Takes all steps for one group of findings. `tell` is told which. Raises `UnwrittenError` where a file cannot be
    written."""
    steps: list[tuple[str, Callable[[], list[str]]]] = [
        ("finding", lambda: _write_finding(case)),
        ("smaller trace", lambda: _make_smaller(case, driver, tell)),
        ("pictures", lambda: _show(case, driver)),
        ("order", lambda: _draw_order(case)),
        ("mend", lambda: _write_mend(case, tell)),
        ("mended trace", lambda: _prove(case, tell)),
        ("scenario", lambda: _write_scenario(case)),
    ]
    for title, take in steps:
        tell(f"finding {case.group.number}: {title}")
        result = StepResult(title)
        try:
            result.lines = take()
        except UnwrittenError:
            raise
        except (UserError, JobError) as error:
            last = str(error).splitlines()[-1:] if isinstance(error, JobError) else [str(error)]
            result.trouble = printable("".join(last) or "a job failed").replace(f"{case.folder}/", "")
        case.steps.append(result)


def _write_finding(case: Case) -> list[str]:
    write_whole(case.folder / FINDING, group_text(case.group).plain)
    write_json(case.folder / FINDING_DATA, {"version": 1, "findings": group_findings(case.group)})
    return []


def _make_smaller(case: Case, driver: ShownReduction, tell: Callable[[str], object]) -> list[str]:
    blocks = case.source.blocks
    wanted = driver.choose(blocks, case.group)
    small = reduce(
        blocks, wanted, seconds=case.source.seconds, progress=lambda *left: tell(left_text(*left)), shows=driver.shows
    )
    save(case.folder / TRACE, small.blocks, {"reduced": {"from": case.source.name, "finding": case.group.number}})
    case.small = small
    before = f"{len(blocks)} calls, {count_commands(blocks)} commands"
    limit = [] if small.complete else ["the limit of time or work came first: a longer --seconds may leave less"]
    return [f"{before} became {len(small.blocks)} calls, {small.commands} commands", *limit]


def _show(case: Case, driver: ShownReduction) -> list[str]:
    if driver.worker is None:
        raise UserError(case.source.no_driver)
    if case.small is None:
        raise UserError("there is no smaller trace to run")
    arguments = {"trace": str(case.folder / TRACE), "mode": "witness", "device": driver.device}
    (group,) = groups_of([case.finding])
    result = show_group(driver.worker, arguments, case.folder / PICTURES, group)
    made = case.folder / PICTURES / f"finding-{group.number}"
    if made.is_dir():
        with writing(case.folder / PICTURES):
            for each in sorted(made.iterdir()):
                each.rename(case.folder / PICTURES / each.name)
            made.rmdir()
    case.shown = result
    if not result["shown"]:
        raise UserError(f"not shown on {driver.device}: {result['reason']}")
    return [f"shown on {driver.device}: {result['outcome']}", *map(difference_line, result["differences"])]


def _draw_order(case: Case) -> list[str]:
    opinion = judge(case.blocks)
    number = next(iter(conflicts_of([case.finding], opinion)), None)
    if number is None:
        raise UserError("the second judge finds no conflict there")
    drawing = draw_svg(opinion, opinion.everything[number - 1], MOST_DRAWN, case.finding)
    write_whole(case.folder / ORDER, standalone(drawing))
    return []


def _write_mend(case: Case, tell: Callable[[str], object]) -> list[str]:
    """The change of the trace as it was recorded, not of the smaller one: that one lacks dependencies to edit."""
    mending = mend(case.source.blocks, case.group.findings, tell, case.strict)
    lines = [*summary(mending.trace, mending.applied, mending.outcomes, tuple(LANGUAGES))]
    write_whole(case.folder / MEND, "".join(f"{line}\n" for line in lines))
    write_json(case.folder / MEND_DATA, document(mending.trace, mending.applied, mending.outcomes))
    _require_complete(mending)
    return [f"{_changes(mending)}, accepted by {'both judges' if mending.by_model else 'the first judge alone'}"]


def _require_complete(mending: Mending) -> None:
    if not mending.complete:
        raise UserError("; ".join(each.reason for each in mending.groups if each.reason) or "the work was over")


def _changes(mending: Mending) -> str:
    count = sum(1 for _ in mending.trace.edits())
    return "1 change" if count == 1 else f"{count} changes"


def _prove(case: Case, tell: Callable[[str], object]) -> list[str]:
    """The smaller trace, mended and run."""
    mending = mend(case.blocks, None, tell, case.strict)
    _require_complete(mending)
    if not mending.groups:
        raise UserError("nothing in the smaller trace counts")
    save(case.folder / MENDED, mending.applied.blocks)
    if not case.source.drivers:
        raise UserError(case.source.no_driver)
    findings = [finding for group in mending.groups for finding in group.findings]
    before, after = list(case.blocks), list(mending.applied.blocks)
    lines = [*run_on(case.source.drivers[0].name, before, after, findings)]
    wrong = [line for holds, line in lines if not holds]
    if wrong:
        raise UserError(f"not proved: {'; '.join(wrong)}")
    return [line for _, line in lines]


def _write_scenario(case: Case) -> list[str]:
    if case.small is None:
        raise UserError("there is no smaller trace")
    if not case.source.drivers:
        raise UserError(case.source.no_driver)
    hazard = python_name(str(case.finding.hazard).lower())
    path = case.folder / f"scenario_{hazard}.py"
    lines = write_scenario(path, case.small, case.source.name, case.source.drivers)
    case.scenario = path.name
    return [line.replace(f"{case.folder}/", "") for line in lines]
