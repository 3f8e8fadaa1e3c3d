"""Random streams on a driver's process: what a stream costs that fails there, or of which the driver dies.

A driver that dies of a stream as it was recorded says nothing of what was made of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import vkharness
from vkharness.device.process import Died, Worker
from vkharness.findings import FailedCallError
from vkharness.fuzz.random_steps import Step
from vkharness.fuzz.step_player import StepPlayer, open_rig
from vkharness.replay.outcomes.jobs import run_native, run_serial

DIED = "died: "
"""The beginning of a job's answer where its process died."""


def execute(steps: Sequence[Step], device: str) -> dict[str, Any]:
    """Plays steps on this process' driver, and executes what was recorded as reduced and mended streams are."""
    with vkharness.attach(keep_trace=True, strict=True) as session, open_rig(None) as rig:
        StepPlayer(rig).play(steps)
    for run in (run_serial, run_native):
        run(session.blocks or [], device)
    return {}


def asked(worker: Worker, target: str, arguments: Mapping[str, Any]) -> dict[str, Any] | str:
    """The answer of a job, as `Worker.call`, or why there is none: 'died: killed by SIGSEGV', or the call that failed.
    A driver that fails costs this job, and no other."""
    try:
        answer = worker.call(target, arguments)
    except FailedCallError as error:
        return str(error)
    return f"{DIED}{answer.reason}" if isinstance(answer, Died) else answer


def dies_of_the_whole(worker: Worker, steps: Sequence[Step], device: str) -> bool:
    """Whether the driver dies or fails of a stream of steps, which are valid usage, before anything is made of it."""
    return isinstance(asked(worker, "vkharness.fuzz.driver_deaths:execute", {"steps": steps, "device": device}), str)
