"""Vertex buffers at fresh offsets are bound by the native core, and read as where each call is heard of."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from harness import native
from harness.commands.interpret import Interpreter
from harness.commands.open_vertices import OPENS
from harness.commands.said_states import SaidStates
from harness.fuzz.dense_frames import DenseFrames
from harness.fuzz.front_programs import CallProgram, told_of_program

pytestmark = [pytest.mark.driver, pytest.mark.skipif(native.core is None, reason=f"in use: {native.in_use}")]


def told(seed: int, keeps_trace: bool) -> list[str]:
    """The findings of a program that streams, which is made of calls of `lib` alone."""
    stream = DenseFrames(seed)
    program = CallProgram(stream.calls, stream.objects, 0, 0, keeps_trace)
    lines = told_of_program([(seed, number) for number in range(len(stream.calls))], lambda _: program)
    return [line for line in lines if not line.startswith("Call(")]


def test_most_binds_run_no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = Counter[str]()
    opened, record = SaidStates.open_vertices, Interpreter._record

    def counted(self: SaidStates, *given: Any) -> Any:
        counts["asked"] += 1
        return opened(self, *given)

    def recorded(self: Interpreter, index: int, name: str, *more: Any, **others: Any) -> Any:
        counts[name] += 1
        return record(self, index, name, *more, **others)

    monkeypatch.setattr(SaidStates, "open_vertices", counted)
    monkeypatch.setattr(Interpreter, "_record", recorded)
    seeds = random.Random(7).sample(range(100), 12)
    in_log = [told(seed, False) for seed in seeds]
    binds = sum(each["name"] == OPENS for seed in seeds for each in DenseFrames(seed).calls)
    natively = binds - counts[OPENS] - counts["asked"]
    assert natively > binds / 10, (binds, counts[OPENS], counts["asked"])
    assert in_log == [told(seed, True) for seed in seeds]
    assert sum(map(len, in_log)) > 1000
