"""Command buffers that are executed as they were before: their commands are settled by the same contents.

Effects of commands at execution follow from their plans, from the steps that they noted, and from the contents of
memory for which they ask. A frame most often executes what the frame before it did, with the same indices and
parameters. So `LastSettled` keeps the plans of a command buffer as they were executed, and the known bytes that decided
them. Nobody changes bytes that are known (`known_memory`), so that the commands have the same effects where memory has
the same bytes.

That holds where all that was asked for was known, and where no command of the command buffer writes it: then what the
others write, which may differ in each frame, decides nothing. What is left out for want of contents is counted, and
what loads of shaders decide is looked at, each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any

from vkharness.commands.contents.content_steps import (
    FLAT_PLANS,
    Decided,
    Deferred,
    Overwritten,
    RunsSecondaries,
    Step,
    Steps,
    WritesLate,
)
from vkharness.commands.contents.known_memory import AskedMemory, KnownMemory
from vkharness.spans import Span, merge
from vkharness.trace.effects import Command, EffectPlan
from vkharness.trace.recorded_commands import CommandColumns, ExecutedCommands


class LastSettled:
    """The commands of one command buffer as they were executed last, and the contents of memory that decided that."""

    def __init__(self) -> None:
        self._plans: list[EffectPlan] = []
        self._noted: list[Any] = []
        self._lengths = (0, 0)
        """How many of both there were."""
        self._made: list[EffectPlan] | None = None
        """The plans as they were executed; None where more than memory decided them, or where nobody looked."""
        self._decided: list[tuple[int, Span, Any]] = []
        """The contents of memory that decided them: space, addresses, pieces."""
        self._writes = False
        """Whether they write memory."""
        self._writers: list[EffectPlan] = []
        """The plans of those that wrote last, and not equal ones, which may write other bytes."""
        self._forgets: tuple[Step, ...] | None = None
        """Their writes as one, if all are of unknown bytes; empty if others are among them. None where nobody asked."""

    def is_as_before(self, commands: Sequence[Command], steps: Steps) -> bool:
        """Whether the commands do what those before them did, as far as that is known while they are recorded. They
        are those before the next ones."""
        plans, noted = (commands.plans, steps.noted) if isinstance(commands, CommandColumns) else ([], [])
        lengths = len(plans), len(noted)
        same = bool(noted) and lengths == self._lengths and noted == self._noted and plans == self._plans
        self._plans, self._noted, self._lengths = plans, noted, lengths
        if not same:
            self._made = None
        return same

    def again(self, commands: Sequence[Command], memory: KnownMemory) -> ExecutedCommands | None:
        """The commands, which are as those before them, as they are executed with the same contents; None where these
        are others."""
        if self._made is None or any(memory.pieces(space, span) != pieces for space, span, pieces in self._decided):
            return None
        return ExecutedCommands(commands, list(self._made))

    def keep(self, made: Sequence[Command], asked: AskedMemory, memory: KnownMemory) -> None:
        """Keeps what the commands came to, if that is known where memory holds the same."""
        self._made, decided = None, asked.decided()
        if decided is None or not isinstance(made, CommandColumns) or made.open_ones:
            return
        self._decided = [(space, span, memory.pieces(space, span)) for space, span in decided]
        if all(map(_is_plain, self._noted)) and all(pieces is not None for _, _, pieces in self._decided):
            self._made, self._writes, self._writers = made.plans, asked.writes, []

    def write(self, steps: Steps) -> Sequence[Step]:
        """Gives the steps by which the commands, which are settled `again`, change memory."""
        if not self._writes:
            return ()
        if not self._writers or not all(map(is_, self._writers, self._plans)):
            self._writers, self._forgets = list(self._plans), None
            return steps.all()
        if self._forgets is None:
            self._forgets = _forgotten(steps.all())
        return self._forgets or steps.all()


def _forgotten(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Joins the writes of steps to one, if all are of unknown bytes; else gives none."""
    found: dict[int, list[Span]] = {}
    for step in steps:
        written = None if isinstance(step, Decided) else step.writes if isinstance(step, FLAT_PLANS) else step
        if isinstance(written, Overwritten) and written.places is not None:
            for space, span in written.places:
                found.setdefault(space, []).append(span)
        elif written is not None:
            return ()
    return (Overwritten(tuple((space, span) for space, spans in found.items() for span in merge(spans))),)


def _is_plain(noted: tuple[int, Any]) -> bool:
    """Whether memory and its plan decide all that a command does when it is executed."""
    step = noted[1]
    return step.writes is None if isinstance(step, Deferred) else not isinstance(step, RunsSecondaries | WritesLate)
