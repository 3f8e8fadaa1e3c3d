"""Plays the steps of random streams whose shaders load from memory what they access."""

from __future__ import annotations

from typing import Any

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer
from vkharness.rig.rig import Rig

BYTES = 64
"""Of a uniform block."""


class LoadingPlayer:
    """The part of `StepPlayer` that has uniform blocks. Whatever a shader sees there, it stays in bounds."""

    rig: Rig
    buffers: list[Any]
    pipelines: dict[tuple[str, bool, int], Any]
    _numbers: RigBuffer | None = None
    """The block that commands write."""

    def _loaded_words(self, commands: Commands, buffer: int, first: int, count: int, how: str) -> None:
        """A dispatch that stores to `count` words from `first` on, as a uniform block says. `how` is who writes that:
        "host" before the dispatch is recorded, "late" after that, or a command; "kept" is what is there."""
        key = ("uniform_range", False, 0)
        if key not in self.pipelines:
            self.pipelines[key] = self.rig.compute(key[0])
        if self._numbers is None:
            self._numbers = self.rig.buffer(data=_block(0, 4))
        numbers, block = self._numbers, _block(first, count)
        if how in ("host", "late"):
            numbers = self.rig.buffer(data=block if how == "host" else _block(0, 32))
        elif how == "update":
            commands.update(numbers, block)
        elif how == "fill":
            commands.fill(numbers, first, 0, 4)
        elif how == "copy":
            commands.copy(self.rig.buffer(data=block), numbers, (0, 0, 8))
        pipeline = self.pipelines[key]
        commands.bind(pipeline, self.rig.descriptors(pipeline, b0=self.buffers[buffer], b1=numbers))
        commands.push_constants(pipeline, 7)
        commands.dispatch()
        if how == "late":
            self.rig.host_write(numbers, block[:8])


def _block(first: int, count: int) -> bytes:
    return b"".join(word.to_bytes(4, "little") for word in (first, count)).ljust(BYTES, b"\0")
