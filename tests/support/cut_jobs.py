"""Jobs for workers: random render pass instances, whole and cut, run beside each other."""

from __future__ import annotations

import random
from typing import Any

import vkharness
from vkharness.findings import Finding, Hazard, Place
from vkharness.fuzz.random_steps import Step, make
from vkharness.fuzz.step_player import StepPlayer, open_rig
from vkharness.replay.contents.observe import Outputs, compare, observe
from vkharness.replay.outcomes.executor import execute, open_scene
from vkharness.replay.outcomes.serial import Serial
from vkharness.replay.schedule.cut_instances import cut_instance
from vkharness.replay.schedule.replayable import replayable
from vkharness.replay.schedule.steps import Step as ReplayStep
from vkharness.replay.schedule.steps import StepKind, flatten
from vkharness.spec.command_classes import BEGINS_RENDERING, ENDS_RENDERING
from vkharness.trace.calls import Block

FAMILIES = ["passes", "rendering", "secondaries"]
MOVED = "SYNC_IMAGE_LAYOUT_TRANSITION"


def differences_of_cuts(seed: int, device: str) -> dict[str, Any]:
    """Cuts each instance of a random stream between two of its actions. What differs from the bytes of the whole one,
    and how many cuts there were. Streams whose draws write undefined values have none."""
    steps = make(seed, FAMILIES)
    if "no_fragment" in str(steps):
        return {"cuts": 0, "different": []}
    blocks = _recorded(steps)
    whole = flatten(blocks)
    cuts = [cut for begin, step in enumerate(whole) if _begins(step) and (cut := _cut(whole, begin, seed)) is not None]
    expected = _run(blocks, device, whole) if cuts else Outputs()
    different = [each.to_dict() for cut in cuts for each in compare(expected, _run(blocks, device, cut))]
    return {"cuts": len(cuts), "different": different}


def _recorded(steps: list[Step]) -> list[Block]:
    with vkharness.attach(keep_trace=True) as session, open_rig(None) as rig:
        StepPlayer(rig).play(steps)
    return replayable(session.blocks or [])


def _begins(step: ReplayStep) -> bool:
    return step.kind is StepKind.ACTION and step.name.startswith(BEGINS_RENDERING)


def _cut(steps: list[ReplayStep], begin: int, seed: int) -> list[ReplayStep] | None:
    """The steps with the instance that begins there cut around two of its actions, if it can be."""
    end = next(at for at in range(begin, len(steps)) if steps[at].name.startswith(ENDS_RENDERING))
    actions = [at for at in range(begin, end + 1) if steps[at].kind is StepKind.ACTION]
    first, second = sorted(random.Random(seed * 1000 + begin).sample(actions, 2))
    place, prior = (Place(steps[at].block.index, steps[at].name, None) for at in (second, first))
    cut = cut_instance(
        steps, Finding(Hazard.WRITE_AFTER_WRITE, MOVED, MOVED, place, prior, 1, "VkImage"), first, second
    )
    return None if cut is None else cut.steps


def _run(blocks: list[Block], device: str, steps: list[ReplayStep]) -> Outputs:
    with open_scene(blocks, device) as scene:
        execute(scene, Serial().plan(steps))
        return observe(scene.contents, scene.notes)
