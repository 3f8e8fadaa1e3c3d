"""The file of a campaign's results: the plan first, then one line a chunk in the order they were done.

`vkharness.planned_file` has its form: what was done stays done when the campaign is killed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from vkharness.campaign.plan import ChunkResult, Discovery, Plan
from vkharness.findings import UserError
from vkharness.planned_file import Known, PlannedFile, PlannedWork, read_planned

CAMPAIGN = PlannedWork("vkharness campaign", 1, "campaign")


class CampaignFile(PlannedFile):
    """The results of one campaign, on disk. One process writes it at a time."""

    def __init__(self, path: Path, plan: Plan) -> None:
        """Opens the file of a campaign, or makes it. Raises `UserError` where it is another campaign's."""
        self.results: dict[int, ChunkResult] = {}
        """The results of the chunks that are done, by number of the chunk."""

        def check(known: Known) -> None:
            campaign = _campaign(path, known)
            if campaign.plan != plan:
                raise UserError(
                    f"{path}: holds a campaign with another plan ({plan_text(campaign.plan)}); name another file, "
                    "or remove it"
                )
            self.results = campaign.results

        super().__init__(path, CAMPAIGN, plan.to_dict(), check)

    def add(self, result: ChunkResult) -> None:
        """Writes the result of a chunk; once it returns, the chunk is done for good. A chunk counts once."""
        if result.number not in self.results:
            self.append(result.to_dict())
            self.results[result.number] = result


class Campaign(NamedTuple):
    """The plan in a campaign's file, and the results by number of the chunk."""

    plan: Plan
    results: dict[int, ChunkResult]


def read_campaign(path: Path) -> Campaign:
    """The plan and the results of a campaign's file. Raises `UserError` where it is none."""
    known = read_planned(path, CAMPAIGN)
    if known is None:
        raise UserError(f"{path}: is empty")
    return _campaign(path, known)


def _campaign(path: Path, known: Known) -> Campaign:
    try:
        plan = Plan.from_dict(known.plan)
    except UserError as error:
        raise CAMPAIGN.trouble(path, 1, error) from None
    results = dict[int, ChunkResult]()

    def take(line: dict[str, Any]) -> None:
        result = ChunkResult.from_dict(line)
        if not 0 <= result.number < plan.chunk_count:
            raise UserError(f"{path}: has a chunk that its plan has not")
        results[result.number] = result

    CAMPAIGN.take(path, known.lines, take)
    return Campaign(plan, results)


class Cause(NamedTuple):
    """Discoveries of one cause."""

    cause: str
    times: int
    example: Discovery
    """The one with the shortest text."""


def causes(results: Iterable[ChunkResult]) -> list[Cause]:
    """Groups the discoveries by cause, the most frequent cause first."""
    by_cause: dict[str, list[Discovery]] = {}
    for result in results:
        for each in result.discoveries:
            by_cause.setdefault(each.cause, []).append(each)
    found = [
        Cause(cause, len(several), min(several, key=lambda each: (len(each.text), each.seed)))
        for cause, several in by_cause.items()
    ]
    return sorted(found, key=lambda each: (-each.times, each.cause))


def totals(results: Iterable[ChunkResult]) -> Counter[str]:
    """The sums of the counts."""
    total: Counter[str] = Counter()
    for result in results:
        total.update(result.counts)
    return total


def plan_text(plan: Plan) -> str:
    """A plan in a phrase."""
    about = ", ".join(filter(None, (" ".join(plan.families), plan.device, plan.layer and f"layer {plan.layer}")))
    return f"{plan.work}, {plan.count} from seed {plan.seed}, {plan.size} a chunk{about and f', {about}'}"
