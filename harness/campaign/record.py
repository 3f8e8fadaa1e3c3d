"""The file of a campaign's results: JSON Lines, the plan first, then one line a chunk in the order they were done.

A line is synced to the disk before its chunk counts as done. A last line that a kill cut off is dropped when the file
is opened again. The format has a version, which the first line gives: `{"format": "vkharness campaign", "version": 1,
"harness": "0.1.0", "plan": …}`.
"""

from __future__ import annotations

import fcntl
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import harness
from harness.campaign.plan import ChunkResult, Discovery, Plan
from harness.findings import UserError
from harness.line_file import append_line, cut_half_line, read_lines

FORMAT, VERSION = "vkharness campaign", 1
LONGEST_LINE = 64 << 20
"""Bytes of one line that are read."""
TROUBLE = "not a line of a campaign"


class CampaignFile:
    """The results of one campaign, on disk. One process writes it at a time."""

    def __init__(self, path: Path, plan: Plan) -> None:
        """Opens the file of a campaign, or makes it. Raises `UserError` where it is another campaign's."""
        self.path = path
        self.results: dict[int, ChunkResult] = {}
        """What was done, by number of the chunk."""
        try:
            self._file = open(path, "ab+")  # noqa: SIM115 (closed by `close`)
        except OSError as error:
            raise UserError(f"{path}: cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._begin(plan)
        except BlockingIOError:
            self._file.close()
            raise UserError(f"{path}: another campaign is writing it") from None
        except BaseException:
            self._file.close()
            raise

    def _begin(self, plan: Plan) -> None:
        known = _read(self.path)
        cut_half_line(self._file.fileno())
        if known is None:
            self._append({"format": FORMAT, "version": VERSION, "harness": harness.__version__, "plan": plan.to_dict()})
        elif known.plan != plan:
            raise UserError(
                f"{self.path}: holds a campaign with another plan ({plan_text(known.plan)}); name another file, "
                "or remove it"
            )
        else:
            self.results = known.results
        self._check(plan)

    def _check(self, plan: Plan) -> None:
        if any(not 0 <= number < plan.chunk_count for number in self.results):
            raise UserError(f"{self.path}: has a chunk that its plan has not")

    def add(self, result: ChunkResult) -> None:
        """Writes what came of a chunk; once it returns, the chunk is done for good. A chunk counts once."""
        if result.number not in self.results:
            self._append(result.to_dict())
            self.results[result.number] = result

    def _append(self, value: dict[str, Any]) -> None:
        append_line(self._file.fileno(), json.dumps(value, separators=(",", ":")))

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Known(NamedTuple):
    """What a file holds."""

    plan: Plan
    results: dict[int, ChunkResult]


def read_campaign(path: Path) -> Known:
    """The plan and the results of a campaign's file. Raises `UserError` where it is none."""
    try:
        known = _read(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    if known is None:
        raise UserError(f"{path}: is empty")
    return known


def _read(path: Path) -> Known | None:
    """What a file holds, without a last line that was cut off; None for an empty file."""
    plan, results = None, {}
    with open(path, "rb") as file:
        for number, value in enumerate(read_lines(path, file, LONGEST_LINE, f"{TROUBLE}: "), 1):
            if value is None:
                break
            try:
                if plan is None:
                    plan = _plan_of(value)
                else:
                    result = ChunkResult.from_dict(value)
                    results[result.number] = result
            except (ValueError, KeyError, TypeError, AttributeError, UserError) as error:
                raise UserError(f"{path}:{number}: {TROUBLE}: {error}") from None
    return None if plan is None else Known(plan, results)


def _plan_of(value: dict[str, Any]) -> Plan:
    if value["format"] != FORMAT:
        raise ValueError(f"format is {value['format']!r}")
    if value["version"] != VERSION:
        raise ValueError(f"version {value['version']} is not known here")
    return Plan.from_dict(value["plan"])


class Cause(NamedTuple):
    """Discoveries of one cause."""

    cause: str
    times: int
    example: Discovery
    """The one with the shortest text."""


def causes(results: Iterable[ChunkResult]) -> list[Cause]:
    """What was discovered, grouped by cause, the most frequent one first."""
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
