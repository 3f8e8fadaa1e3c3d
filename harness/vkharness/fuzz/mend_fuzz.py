"""Random streams full of hazards: is each mended, is each bit of each mend needed, and do legal orders hold then?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import vkharness
from vkharness.device.process import Worker
from vkharness.findings import FailedCallError, HostStep, UserError
from vkharness.fuzz.driver_deaths import asked, dies_of_the_whole
from vkharness.fuzz.order_fuzz import leaves_contents_undefined, resolves_into_a_later_layer
from vkharness.fuzz.random_steps import Step
from vkharness.fuzz.step_player import StepPlayer, open_rig
from vkharness.mending.mend import mend
from vkharness.mending.pieces import pieces
from vkharness.mending.proof import is_clean
from vkharness.model import judge
from vkharness.replay.outcomes.legal_order_runs import run_reorders
from vkharness.report.mends import finding_line
from vkharness.trace.calls import Block

HOPELESS = "left out: the host would wait for ever"
"""The verdict on a stream in which the host needs what only an earlier submit could give it."""
DRIVER_DIES = "the driver dies of the whole stream"
"""The verdict where nothing is known of the mended stream."""


def attack(steps: Sequence[Step], seed: int, device: str) -> dict[str, Any]:
    """Plays steps on this process' driver, mends the stream and tries what it says. `verdict` is `mended` when all of
    it holds, with the numbers of `groups` and of `pieces` of the changes."""
    with vkharness.attach(keep_trace=True, strict=True) as session, open_rig(None) as rig:
        StepPlayer(rig).play(steps)
    return verdict_of(session.blocks or [], seed, device)


def verdict_of(blocks: list[Block], seed: int, device: str) -> dict[str, Any]:
    """Gives the answer of `attack` for blocks that were recorded before."""
    mending = mend(blocks)
    counts = {"groups": len(mending.groups), "pieces": 0}
    left = [each.findings[0] for each in mending.groups if not each.how]
    if left:
        # A submit that waits for what the host has yet to do: the host would wait for it for ever.
        hopeless = all(each.gap is HostStep.EARLIER_SUBMIT for each in left)
        return {"verdict": HOPELESS if hopeless else "not mended", "open": list(map(finding_line, left)), **counts}
    for trace in (mending.trace, mending.applied):
        if not is_clean(trace, (), mending.by_model):
            return {"verdict": "not clean", **counts}
        for piece in pieces(trace):
            counts["pieces"] += 1
            if is_clean(piece.without(mending.trace), (), mending.by_model):
                return {"verdict": "wider than needed", "piece": piece.what, **counts}
    return {"verdict": _run(list(mending.applied.blocks), seed, device), **counts}


def _run(blocks: list[Block], seed: int, device: str) -> str:
    """`mended`, unless a legal order of the mended stream leaves other bytes than the serial run."""
    if judge(blocks).unmodelled or (device == "lavapipe" and resolves_into_a_later_layer(blocks)):
        return "mended"
    try:
        found = run_reorders(blocks, [("reverse", 0), ("random", seed)], device)
    except FailedCallError:
        raise
    except UserError as error:
        return f"not run: {error}"
    return "broken" if found.differing and not leaves_contents_undefined(blocks) else "mended"


def is_bad(answer: dict[str, Any]) -> bool:
    """Whether an answer of `ask` shows a fault of ours."""
    return answer["verdict"] not in ("mended", HOPELESS, DRIVER_DIES)


def ask(worker: Worker, steps: Sequence[Step], seed: int, device: str) -> dict[str, Any]:
    """`attack` in the worker. A driver that died or failed is a verdict."""
    answer = asked(worker, f"{__name__}:attack", {"steps": steps, "seed": seed, "device": device})
    if not isinstance(answer, str):
        return answer
    verdict = DRIVER_DIES if dies_of_the_whole(worker, steps, device) else answer
    return {"verdict": verdict, "groups": 0, "pieces": 0}
