"""Command buffers while they are recorded: a hazard inside one of them is found before anything is submitted.

Theory of operation
===================

A recording has a context of its own, and each command is judged over it as it comes
(rules.md#hazards-are-found-while-recording). Most programs record the same commands into a command buffer frame after
frame. What a recording meets follows from its effects alone, so it is not judged again where these are known:

* A recording that met nothing is kept, as the effects of each command, when its command buffer is begun anew.
* The next recording *follows* it for as long as each command has the effects that the earlier one had at this place.
  Its commands are not judged. They wait.
* With the first other command, those that wait are judged, and from then on each command as it comes.

So each finding comes with the call that causes it, as if every command had been judged at once. To be judged later is
the same because nothing changes the context of a recording from outside, but for the end of a resource: then commands
that wait and may have used it are judged first. Effects that say more than which memory is accessed, and in which
order, are never followed (`PLAIN`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from harness.findings import Finding, Place
from harness.spans import Span
from harness.syncval.context import Context
from harness.syncval.decided_hazards import OpenCommands
from harness.syncval.evidence import Reporter
from harness.syncval.execution import Execution, if_apart
from harness.trace import effects
from harness.trace.effects import Command, Effect, Recorded
from harness.trace.open_commands import is_open

PLAIN = (
    effects.Access, effects.Barrier, effects.RenderingBegin, effects.PassBegin, effects.SubpassBegin,
    effects.AttachmentUsers, effects.PassEnd,
)  # fmt: skip
"""Effects that follow from memory alone, and act on nothing else."""
MOST_KEPT = 1 << 16
"""Commands of earlier recordings that are kept, of all command buffers together."""


class Earlier:
    """A recording that met nothing: the effects of each of its commands."""

    def __init__(self, commands: list[tuple[Effect, ...]], queue_flags: int) -> None:
        self.commands, self.queue_flags = commands, queue_flags

    @cached_property
    def spaces(self) -> set[int]:
        """The address spaces that it knows anything of: what is forgotten of others is nothing to it."""
        return {space for command in self.commands for effect in command for space in _spaces(effect)}


@dataclass(slots=True)
class Recording:
    """A command buffer being recorded: its own execution and what was already reported in it."""

    command_buffer: int
    queue_flags: int
    earlier: Earlier | None
    """What it follows. None as soon as it is judged."""
    execution: Execution = field(default_factory=lambda: Execution(Context(0)))
    reported: set[tuple[Any, ...]] = field(default_factory=set)
    open: OpenCommands = field(default_factory=OpenCommands)
    waiting: list[Command] = field(default_factory=list)
    """The commands that were not judged, while it follows an earlier one."""
    commands: list[tuple[Effect, ...]] | None = field(default_factory=list)
    """The effects of each command that was judged; None as soon as it cannot be followed."""

    def place(self, command: Command) -> Place:
        """Where a command stands while it is recorded."""
        return Place(command.call, command.name, command.site, self.command_buffer)

    def follows(self, command: Command, queue_flags: int) -> bool:
        """Whether it does what an earlier one did, up to this command, which waits then."""
        earlier = self.earlier
        if earlier is None:
            return False
        at = len(self.waiting)
        alike = at < len(earlier.commands) and earlier.commands[at] == command.effects
        if alike and queue_flags == earlier.queue_flags and _is_plain(command):
            self.waiting.append(command)
            return True
        self.catch_up()
        return False

    def catch_up(self) -> None:
        """Judges what waits. That meets nothing, since it met nothing before."""
        if self.earlier is not None:
            for command in self.waiting:
                self.execution.run(command, self.place(command), self.earlier.queue_flags)
            self.commands = [command.effects for command in self.waiting]
            self.waiting, self.earlier = [], None


class RecordingJudge:
    """Judges the recordings of a device."""

    def __init__(self, report: Reporter, count: Callable[[str], None]) -> None:
        """`count` takes the names of what cannot be judged."""
        self._report, self._count = report, count
        self._held: dict[int, Recording] = {}
        self._earlier: dict[int, Earlier] = {}
        self._kept = 0

    def reported(self, command_buffer: int) -> set[tuple[Any, ...]]:
        """What was reported while it was recorded."""
        recording = self._held.get(command_buffer)
        return recording.reported if recording is not None else set()

    def record(self, recorded: Recorded) -> list[Finding]:
        """Judges a recorded command; the findings are those it causes."""
        command = recorded.command
        recording = self._held.get(recorded.command_buffer)
        if recording is None:
            earlier = self._earlier.get(recorded.command_buffer)
            recording = self._held[recorded.command_buffer] = Recording(
                recorded.command_buffer, recorded.queue_flags, earlier
            )
        if recording.earlier is not None and recording.follows(command, recorded.queue_flags):
            return []
        for effect in () if if_apart(command) else command.effects:
            if isinstance(effect, effects.Unmodelled):
                if not effect.open:
                    self._count(effect.what)
            elif isinstance(effect, effects.Execute):
                # What was found in a secondary is not found again where it is executed.
                recording.reported.update(*(self.reported(buffer) for buffer, _ in effect.buffers))
                recording.open.executed(command.call, effect)
        results = recording.execution.run(command, recording.place(command), recorded.queue_flags)
        found: list[Finding] = []
        for result in results:
            found += self._report.recorded_events(result.findings, recording.reported)
            hazards = recording.open.decided(result.hazards, result.place)
            found += self._report.recorded(hazards, result.place, recording.reported)
        if (command.undecided is not None or command.late is not None) and is_open(command):
            recording.open.add(command.call, command)
        if recording.commands is not None:
            if results or recorded.queue_flags != recording.queue_flags or not _is_plain(command):
                recording.commands = None
            else:
                recording.commands.append(command.effects)
        return found

    def reset(self, command_buffer: int, freed: bool) -> None:
        """A command buffer loses its commands, which it may get again unless it is freed."""
        recording = self._held.pop(command_buffer, None)
        if freed:
            self._drop(command_buffer)
        if freed or recording is None or recording.earlier is not None:
            return
        self._drop(command_buffer)
        commands = recording.commands
        if commands and len(commands) <= MOST_KEPT:
            self._earlier[command_buffer] = Earlier(commands, recording.queue_flags)
            self._kept += len(commands)
            while self._kept > MOST_KEPT:
                self._drop(next(iter(self._earlier)))

    def _drop(self, command_buffer: int) -> None:
        earlier = self._earlier.pop(command_buffer, None)
        if earlier is not None:
            self._kept -= len(earlier.commands)

    def forget(self, space: int, span: Span | None) -> None:
        """Erases the accesses of addresses that no longer exist."""
        for recording in self._held.values():
            if recording.earlier is not None:
                if space not in recording.earlier.spaces:
                    continue
                recording.catch_up()
            recording.execution.context.forget(space, span)


def _is_plain(command: Command) -> bool:
    """Whether nothing but the effects of a command says what it does, and all of these are plain."""
    if command.sure is not None or command.late is not None or command.undecided is not None:
        return False
    return if_apart(command) is not False or all(type(effect) in PLAIN for effect in command.effects)


def _spaces(effect: Effect) -> Iterator[int]:
    match effect:
        case effects.Access():
            ranges: tuple[Any, ...] = (effect,)
        case effects.Barrier():
            ranges = effect.ranges
        case effects.SubpassBegin() | effects.PassEnd():
            ranges = effect.transitions
        case _:
            ranges = ()
    for each in ranges:
        yield each.space
        yield from (alias.space for alias in each.aliases)
