"""Meaning of calls, for tests that assert exact effects: a stream written by hand, interpreted without any judge."""

from __future__ import annotations

from typing import Any

from tests.support.streams import Stream
from vkharness.commands.interpret import Interpreter
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.trace.calls import Call
from vkharness.trace.effects import Access, Effect, Recorded, StreamEvent
from vkharness.trace.host_effects import UnseenSemaphore

Written = tuple[str, int, tuple[tuple[int, int], ...]]
"""An access in short: its name without SYNC_, the resource, the spans."""


class InterpretedStream(Stream):
    """A stream that is interpreted as it is written. Every buffer lies at offset 0 of a memory object of its own."""

    def __init__(self) -> None:
        self.interpreter = Interpreter()
        super().__init__()
        self.done = 0

    def did(self, result: int | None = None) -> list[StreamEvent]:
        """Interprets the calls since the last `did`; `result` is what the last of them returned, unless it is None.

        That nobody made a semaphore is left out: these streams take any number for one.
        """
        new = self.blocks[self.done :]
        self.done = len(self.blocks)
        if result is not None:
            last = new[-1]
            assert isinstance(last, Call)
            last.result = result
        events = [stream_event for block in new for stream_event in self.interpreter.step(block)]
        return [each for each in events if not isinstance(each, UnseenSemaphore)]

    def effects(self, name: str, **args: Any) -> tuple[Effect, ...]:
        """The effects of one command."""
        self.did()
        self.cmd(name, **args)
        return tuple(effect for each in self.did() if isinstance(each, Recorded) for effect in each.command.effects)


def effects_of(stream: Stream) -> dict[int, tuple[Effect, ...]]:
    """The effects of every recorded command, by block index."""
    interpreter = Interpreter()
    return {
        each.command.call: each.command.effects
        for block in stream.blocks
        for each in interpreter.step(block)
        if isinstance(each, Recorded)
    }


def short(effects: tuple[Effect, ...]) -> list[Written]:
    """Accesses in short; fails for anything else."""
    written = []
    for effect in effects:
        assert isinstance(effect, Access), effect
        written.append((ACCESS_KINDS[effect.access_kind].name.removeprefix("SYNC_"), effect.resource, effect.spans))
    return written
