"""Random streams on a driver, each command observed: does any reach what `vkharness.commands` does not declare?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import vkharness
from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker
from vkharness.findings import UserError
from vkharness.fuzz.driver_deaths import asked
from vkharness.fuzz.random_steps import Step, make
from vkharness.fuzz.step_player import StepPlayer, open_rig
from vkharness.replay.observation.experiments import Budget
from vkharness.replay.observation.observing import BYTES, observe_trace
from vkharness.trace.observations import Observation


def run(steps: Sequence[Step], device: str, runs: int) -> dict[str, Any]:
    """Plays steps on this process' driver and observes them: `{"pieces": [...], "problem": ""}`. `runs` as in
    `Budget`."""
    with vkharness.attach(keep_trace=True, strict=True) as session, open_rig(None) as rig:
        StepPlayer(rig).play(steps)
    try:
        found = list(observe_trace(session.blocks or [], device, Budget(BYTES, runs)))
    except UserError as error:
        return {"pieces": [], "problem": str(error)}
    return {"pieces": [each.to_dict() for each in found if isinstance(each, Observation)], "problem": ""}


def observe_streams(seeds: Sequence[int], device: str, runs: int) -> Iterator[tuple[str, list[Observation], str]]:
    """(name, what its commands did, why it could not be observed) of the stream of each seed. `runs` as in `Budget`.

    A stream that touches what is not declared is observed again in a process of its own, and that counts. Random
    streams hold hazards, so that what they leave may depend on what a driver's process did before.
    """
    with Worker(find_driver(device)) as worker:
        for seed in seeds:
            pieces, problem = _ask(worker, seed, device, runs)
            if any(piece.undeclared_writes or piece.undeclared_reads for piece in pieces):
                with Worker(find_driver(device)) as fresh:
                    pieces, problem = _ask(fresh, seed, device, runs)
            yield f"seed {seed}", pieces, problem


def _ask(worker: Worker, seed: int, device: str, runs: int) -> tuple[list[Observation], str]:
    answer = asked(worker, f"{__name__}:run", {"steps": make(seed), "device": device, "runs": runs})
    if isinstance(answer, str):
        return [], f"{device}: {answer}"
    return [Observation.from_dict(each) for each in answer["pieces"]], answer["problem"]
