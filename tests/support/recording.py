"""Parts that tests of `record` share: a mirror that only keeps what it is given, and a lavapipe rig."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from vkharness.check import Analysis
from vkharness.findings import Finding, Unjudged
from vkharness.trace.calls import Block, Call, HostWrite
from vkharness.trace.effects import StreamEvent

PROGRAMS = Path(__file__).parents[1] / "programs"


class Keeper:
    """Judges nothing and keeps every block. `device_writes` is what it claims that pending work writes; what it may
    write is interpreted."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.findings: list[Finding] = []
        self.unmodelled: dict[str, int] = {}
        self.verdict = "clean"
        self.unjudged = Unjudged()
        self.device_writes: list[tuple[int, int]] = []
        self.events: list[StreamEvent] = []
        self._analysis = Analysis()

    def step(self, block: Block) -> list[Finding]:
        self.blocks.append(block)
        self._analysis.step(block)
        return []

    def written(self, memory: int, begin: int, end: int) -> Sequence[tuple[int, int]]:
        return self.device_writes

    def may_write(self, command_buffers: Iterable[int]) -> dict[int, list[tuple[int, int]]]:
        return self._analysis.may_write(command_buffers)

    @property
    def calls(self) -> list[Call]:
        return [block for block in self.blocks if isinstance(block, Call)]

    @property
    def names(self) -> list[str]:
        return [call.name for call in self.calls]

    @property
    def host_writes(self) -> list[HostWrite]:
        return [block for block in self.blocks if isinstance(block, HostWrite)]

    def last(self, name: str) -> Call:
        return next(call for call in reversed(self.calls) if call.name == name)


def make_rig(**options: Any) -> Any:
    """The `Rig` of tests/programs/rig.py on the driver that the environment names."""
    return importlib.import_module("tests.programs.rig").Rig(**options)
