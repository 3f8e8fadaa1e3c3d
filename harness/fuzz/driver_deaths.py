"""Whether a driver dies of a random stream as it was recorded: then its death says nothing of what was made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import harness
from harness.device.process import Died, Worker
from harness.fuzz.random_steps import Step
from harness.fuzz.step_player import StepPlayer, open_rig
from harness.replay.outcomes.jobs import run_native, run_serial


def execute(steps: Sequence[Step], device: str) -> dict[str, Any]:
    """Plays steps on this process' driver, and executes what was recorded as reduced and mended streams are."""
    with harness.attach(keep_trace=True) as session, open_rig(None) as rig:
        StepPlayer(rig).play(steps)
    for run in (run_serial, run_native):
        run(session.blocks or [], device)
    return {}


def dies_of_the_whole(worker: Worker, steps: Sequence[Step], device: str) -> bool:
    """Whether the driver dies of a stream of steps, which are valid usage, before anything is made of it."""
    answer = worker.call("harness.fuzz.driver_deaths:execute", {"steps": steps, "device": device})
    return isinstance(answer, Died)
