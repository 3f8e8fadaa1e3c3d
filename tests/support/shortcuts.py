"""The judge without what makes it fast: nothing that was found out about one command is used for another one."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from vkharness.check import Analysis
from vkharness.commands.contents.settled_again import LastSettled
from vkharness.commands.drawing import draw
from vkharness.commands.said_states import SaidStates
from vkharness.syncval import slots
from vkharness.syncval.repeated_recordings import RecordingJudge
from vkharness.trace.calls import Block


def judged_plainly(blocks: Iterable[Block]) -> Analysis:
    """An analysis that was told of no saying, remembers no recording, lets no slot sleep, and knows nothing of shaders,
    draws and plans at the next call. The stream is over."""
    with _without_shortcuts():
        analysis = Analysis(eager=False)
        objects = analysis._interpreter.objects
        objects.plans.share_nothing()
        for block in blocks:
            objects.shaders.clear()
            analysis.step(block)
        analysis.finish()
    return analysis


@contextmanager
def _without_shortcuts() -> Iterator[None]:
    reset, bindings = RecordingJudge.reset, draw._effects_of_bindings

    def reset_and_drop(self: RecordingJudge, command_buffer: int, freed: bool) -> None:
        reset(self, command_buffer, freed)
        self._drop(command_buffer)

    def of_bindings(objects: Any, buffer: Any, *given: Any) -> Any:
        buffer.drawing.last_draw = None
        return bindings(objects, buffer, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RecordingJudge, "reset", reset_and_drop)
        patch.setattr(draw, "_effects_of_bindings", of_bindings)
        patch.setattr(SaidStates, "note", lambda self, buffer, *given: self.lose(buffer))
        patch.setattr(LastSettled, "is_as_before", lambda self, *given: False)
        patch.setattr(slots, "AWAKE", sys.maxsize >> 1)
        yield


def keep_little(patch: pytest.MonkeyPatch, seed: int) -> None:
    """Lets everything that is remembered be forgotten soon."""
    chosen = random.Random(seed)
    for module, names in LIMITS.items():
        for name in names.split():
            patch.setattr(f"vkharness.{module}.{name}", chosen.choice((1, 2, 5, 20)))
    for name in ("MOST_BY_VALUE", "MOST_CONTENTS", "MOST_PLANS"):
        patch.setattr(f"vkharness.commands.drawing.state_parts.{name}", chosen.choice((1, 2, 5, 20)))


LIMITS = {
    "check": "MOST_SAYINGS", "commands.contents.at_submit": "MOST_WAITING MOST_PLANS MOST_BYTES_WAITING",
    "commands.drawing.plans_by_sets": "MOST_PLANS MOST_REACHES", "commands.drawing.set_contents": "MOST_BY_VALUE",
    "commands.interpret": "MOST_LINES", "commands.known_shaders": "MOST_CONTENTS MOST_PLANS MOST_REACHES",
    "commands.plan_table": "SEEN", "commands.said_states": "MOST_KNOWN",
    "record.native_log": "MOST_CALLS MOST_SAYINGS MOST_BYTES", "syncval.command_forms": "MOST_NOTED",
    "syncval.repeated_recordings": "MOST_GONE MOST_KEPT", "syncval.slots": "AWAKE STEPS NEW_STEP KEPT",
    "syncval.state": "_LIMIT _MADE_LIMIT",
}  # fmt: skip
"""By module, how much is remembered of what was found out."""
