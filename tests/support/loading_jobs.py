"""Jobs of a driver's process: random streams whose shaders load, or work out in loops, what they access."""

from __future__ import annotations

from typing import Any

import vkharness
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.fuzz.random_steps import make
from vkharness.fuzz.step_player import StepPlayer, open_rig


def judge_stream(seed: int, family: str = "loads") -> dict[str, Any]:
    """Judges the stream of a seed with steps of one family: where both judges differ, and findings about dispatches."""
    with vkharness.attach(keep_trace=True) as session, open_rig(None) as rig:
        StepPlayer(rig).play(make(seed, [family]))
    blocks = session.blocks or []
    found = Analysis().follow(blocks).findings
    return {
        "disagreements": list(agreement(blocks).disagreements),
        "dispatches": sum(each.place.command == "vkCmdDispatch" for each in found),
        "unmodelled": sorted(session.unmodelled),
    }
