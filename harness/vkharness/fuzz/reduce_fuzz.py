"""Random hazardous streams made smaller: does each still show its finding, alone, and how many commands are left?

A stream of random steps is played on a driver under the mirror. One of its findings is chosen by the seed and the
stream reduced to it. What is left is judged again, by syncval and by the model.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import vkharness
from vkharness.agreement import ask_model
from vkharness.check import Analysis
from vkharness.device.process import Worker
from vkharness.findings import FailedCallError, UserError
from vkharness.fuzz.driver_deaths import asked, dies_of_the_whole
from vkharness.fuzz.random_steps import Step, make
from vkharness.fuzz.step_player import StepPlayer, open_rig
from vkharness.reduction.oracle import identity
from vkharness.reduction.reduce import reduce
from vkharness.replay.outcomes.jobs import run_native, run_serial
from vkharness.trace.codec import save


@dataclass
class ReductionTally:
    """Sums over streams."""

    before: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    """The vkCmd* calls of each hazardous stream, and those that were left."""
    asked: int = 0
    clean: int = 0
    """Streams without a finding that counts."""
    died: dict[int, str] = field(default_factory=dict)
    """Seeds of whose whole stream the driver dies: nothing is known of the reduced one."""
    bad: dict[int, str] = field(default_factory=dict)
    """The faults of reduced streams, by seed."""

    def add(self, seed: int, answer: dict[str, Any]) -> None:
        """Adds one stream's answer."""
        if not answer.get("before"):
            self.clean += not answer["wrong"]
        else:
            self.before.append(answer["before"])
            self.after.append(answer["after"])
            self.asked += answer["asked"]
        if answer["wrong"]:
            self.bad[seed] = answer["wrong"]

    @property
    def mean(self) -> float:
        """The commands that are left on average."""
        return sum(self.after) / max(1, len(self.after))

    def __str__(self) -> str:
        count = max(1, len(self.after))
        lines = [
            f"{len(self.after)} hazardous streams, {self.clean} clean: {sum(self.before) / count:.1f} commands on "
            f"average, {self.mean:.1f} left, {max(self.after, default=0)} at most, {self.asked / count:.0f} streams "
            f"judged for each, {len(self.bad)} wrong"
        ]
        lines += [f"  seed {seed}: the driver {what} of the whole stream" for seed, what in self.died.items()]
        return "\n".join(lines + [f"  seed {seed}: {what}" for seed, what in self.bad.items()])


def attempt(steps: Sequence[Step], seed: int, device: str, keep: str | None = None) -> dict[str, Any]:
    """Plays steps on this process' driver and reduces the stream to one of its findings.

    `before` and `after` are numbers of commands, missing for a clean stream. `wrong` says what the reduced stream does
    not do. `keep` is a file for the reduced trace.
    """
    with vkharness.attach(keep_trace=True, strict=True) as session, open_rig(None) as rig:
        StepPlayer(rig).play(steps)
    blocks = session.blocks or []
    counting = [each for each in Analysis().follow(blocks).findings if each.counts]
    if not counting:
        return {"wrong": ""}
    finding = random.Random(seed).choice(counting)
    whole = sum(getattr(block, "name", "").startswith("vkCmd") for block in blocks)
    small = reduce(blocks, finding)
    if keep is not None:
        save(Path(keep), small.blocks)
    again = Analysis(keep_events=True).follow(small.blocks)
    ask_model(again)
    found = {identity(each) for each in again.findings if each.counts}
    wrong = ""
    if identity(finding) not in found:
        wrong = "the finding is gone"
    elif others := found - {identity(finding)} - small.alike:
        wrong = f"{sorted(others)} beside {finding.key}"
    else:
        try:
            run_serial(small.blocks, device)
            run_native(small.blocks, device)
        except FailedCallError:
            raise
        except UserError as error:
            wrong = f"not run: {error}"
    return {"before": whole, "after": small.commands, "asked": small.asked, "wrong": wrong}


def run(seeds: Iterable[int], worker: Worker, device: str) -> ReductionTally:
    """Reduces the stream of each seed in a worker of the device."""
    tally = ReductionTally()
    for seed in seeds:
        steps = make(seed)
        arguments = {"steps": steps, "seed": seed, "device": device}
        answer = asked(worker, f"{__name__}:attempt", arguments)
        if not isinstance(answer, str):
            tally.add(seed, answer)
        elif dies_of_the_whole(worker, steps, device):
            tally.died[seed] = answer
        else:
            tally.add(seed, {"wrong": answer})
    return tally
