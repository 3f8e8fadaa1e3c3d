"""Random programs that set more state, push descriptors and draw several ranges at once: what all of that does is
known again."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from hunts.front_programs import CallProgram, told_of_program
from hunts.state_frames import StateFrames
from vkharness.commands.interpret import Interpreter
from vkharness.native import core, in_use

NAMES = ("DrawMultiEXT", "DrawMultiIndexedEXT", "PushDescriptorSet", "SetVertexInputEXT", "SetColorBlendEnableEXT")


class Calm(StateFrames):
    """Its frames are nearly the same."""

    changes, freshness, frame_counts, draws = (0, 0.02), (0,), (16,), (3, 6)

    def _more(self) -> list[Any]:
        return [self._render] * 30


@pytest.mark.driver
@pytest.mark.skipif(core is None, reason=f"in use: {in_use}")
def test_what_they_do_is_known_and_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded, heard = Counter[str](), Counter[str]()
    record = Interpreter._record

    def counted(self: Interpreter, index: int, name: str, *more: Any, **named: Any) -> Any:
        recorded[name] += 1
        return record(self, index, name, *more, **named)

    def told(program: CallProgram) -> list[str]:
        calls = [(0, number) for number in range(len(program.calls))]
        return [each for each in told_of_program(calls, lambda _: program) if not each.startswith("Call(")]

    for seed in range(4):
        stream = Calm(seed)
        heard.update(each["name"] for each in stream.calls)
        with monkeypatch.context() as patch:
            patch.setattr(Interpreter, "_record", counted)
            found = told(CallProgram(stream.calls, stream.objects, 0, 0, False))
        assert found == told(CallProgram(stream.calls, stream.objects, 0, 0, True)), f"seed {seed}"
    shares = {name: 1 - recorded[f"vkCmd{name}"] / heard[f"vkCmd{name}"] for name in NAMES}
    assert min(shares.values()) > 0.2, shares
