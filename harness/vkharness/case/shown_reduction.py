"""A driver that must show a finding in each smaller trace, if it shows it in the whole one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vkharness.device.drivers import Driver
from vkharness.device.process import Died, Worker
from vkharness.findings import Finding, UserError
from vkharness.groups import Group
from vkharness.temporary import temporary_folder
from vkharness.trace.calls import Block
from vkharness.trace.codec import save

MOST_ASKED, MOST_TRIED = 64, 3
"""Findings of a group that may be reduced, and how many of them are tried on a driver until one is shown."""


class ShownReduction:
    """Asks a driver whether it still shows the hazard; without a worker, nobody."""

    def __init__(self, worker: Worker | None, device: str) -> None:
        self.worker, self.device = worker, device
        self.shown = False
        """Whether it shows the hazard that was chosen last in the whole trace, and so in each smaller one."""
        self.said = ""

    def choose(self, blocks: list[Block], group: Group) -> Finding:
        """The finding of a group to reduce: the first that the driver shows, or else the one that stands for all."""
        self.shown = False
        left = group.findings[:MOST_ASKED] if self.worker is not None else []
        reason = ""
        for _ in range(MOST_TRIED):
            if not left:
                break
            answer = self._replay(blocks, left)
            at = int(answer.get("at", 0))
            if answer["shown"]:
                self.shown, self.said = True, f"shown on {self.device}"
                return left[at]
            reason = reason or str(answer["reason"])
            del left[: at + 1]
        self.said = f"not shown on {self.device} in the whole trace: {reason}" if self.worker is not None else ""
        return group.first

    def shows(self, blocks: list[Block], finding: Finding) -> bool:
        """Whether a smaller trace is good enough."""
        return not self.shown or bool(self._replay(blocks, [finding])["shown"])

    def _replay(self, blocks: list[Block], findings: list[Finding]) -> dict[str, Any]:
        assert self.worker is not None
        with temporary_folder() as folder:
            path = folder / "candidate.jsonl"
            save(path, blocks)
            arguments: dict[str, Any] = {"trace": str(path), "mode": "witness", "device": self.device}
            arguments["finding"] = [each.to_dict() for each in findings]
            try:
                answer = self.worker.call("vkharness.judged_replay:replay_job", arguments)
            except UserError as error:
                return {"shown": False, "reason": str(error)}
        return {"shown": False, "reason": f"{self.device} {answer.reason}"} if isinstance(answer, Died) else answer


@contextmanager
def shown_reduction(driver: Driver | None) -> Iterator[ShownReduction]:
    """Replays on a driver, in a process of its own."""
    if driver is None:
        yield ShownReduction(None, "")
        return
    with Worker(driver) as worker:
        yield ShownReduction(worker, driver.name)
