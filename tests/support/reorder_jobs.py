"""Jobs that tests/test_reorder_rendering.py runs in a driver's process."""

from __future__ import annotations

from typing import Any

import harness
from harness.replay.outcomes.legal_order_runs import run_reorders
from harness.rig.rig import Rig
from tests.support.graphics_jobs import TO_COPY, WAYS, WORDS


def two_pictures(how: list[str], device: str) -> dict[str, Any]:
    """Two pictures made in one command buffer in different ways, downloaded, and in every order that was drawn: how
    many commands of how many were out of place, and what differed."""
    with harness.attach(keep_trace=True) as session, Rig() as rig:
        images, outs = [rig.target() for _ in how], [rig.buffer(4 * WORDS) for _ in how]
        with rig.commands() as commands:
            for way, image in zip(how, images, strict=True):
                WAYS[way](rig, commands, image)
            commands.barrier("", *TO_COPY)
            for image, out in zip(images, outs, strict=True):
                commands.image_to_buffer(image, out)
        rig.submit(commands)
        rig.wait()
    assert not session.findings
    chosen = [("reverse", 0), *(("priority", seed) for seed in range(4))]
    found = run_reorders(session.blocks or [], chosen, device)
    return {"orders": [run.to_dict() for run in found.executed], "units": found.units}
