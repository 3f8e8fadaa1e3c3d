"""Jobs of a driver's process: random programs that record nearly the same several times."""

from __future__ import annotations

from typing import Any

import vkharness
from tests.support.said_calls import Listener, recorded_again
from vkharness.check import Analysis
from vkharness.fuzz import random_steps
from vkharness.fuzz.step_player import StepPlayer, open_rig
from vkharness.trace.calls import Block


def judge_program(seed: int) -> dict[str, Any]:
    """Judges the program of a seed by the sayings of its commands, and call by call. Also returns how many commands
    there are, and of how many it was known what they do."""
    with vkharness.attach(keep_trace=True) as session, open_rig(None) as rig:
        StepPlayer(rig).play(random_steps.make(seed))
    blocks = recorded_again(session.blocks or [], seed)
    listener = Listener(one_by_one=seed % 2 == 0)
    by_saying, by_call = _told(listener.listen(blocks)), _told(call_by_call(blocks))
    return {"known": listener.known, "heard": listener.heard, "by saying": by_saying, "by call": by_call}


def call_by_call(blocks: list[Block]) -> Analysis:
    """An analysis that was told of no saying."""
    analysis = Analysis()
    for block in blocks:
        analysis.step(block)
    return analysis


def _told(analysis: Analysis) -> list[str]:
    analysis.finish()
    return [*(f"{each.message} {each}" for each in analysis.findings), f"{analysis.verdict} {analysis.unmodelled}"]
