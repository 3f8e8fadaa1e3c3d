"""Command buffers while they are recorded: a hazard inside one of them is found before anything is submitted.

Theory of operation
===================

A recording has a context of its own (rules.md#hazards-are-found-while-recording). What was recorded since it was
judged last is judged in one go: when the command buffer is ended, and earlier where somebody asks for findings, or
before a call that changes what findings say (`vkharness.check`).

Most programs record the same commands into a command buffer frame after frame. What a recording meets follows from its
effects alone, so it is not judged again where these are known:

* A recording that met nothing is kept, as the plan of each command, when its command buffer is begun anew.
* The next recording *follows* it for as long as each command has the effects that the earlier one had at this place.
  Its commands are not judged.
* With the first other command, those that were not judged are judged, and so is what comes behind them.

When a command buffer is ended, the context of its recording is let go: most get no more commands, and what is known of
their ranges takes more memory than the commands. It is made again, from the commands and from what was forgotten since,
for a program that records more without a right to.

A recording need not be judged at all before it is executed, where it has simple effects alone
(`EffectPlan.is_simple`): it *waits*. What it would meet, it meets when it is executed. For a context knows of each
range what the recording's own context would know of it, and more: the last write is the same where the recording has
written, and the recording's reads since then are among those that are known, each ordered before the same as there. An
access conflicts with the last write, or with any read since, and what else is known takes no conflict away. So a
recording that met nothing when it was executed is one that meets nothing. One that meets something is judged first, and
so is one for which somebody asks.

What contents of memory decide of a command, such as the vertices of an indexed draw, is not judged while it is
recorded: it only takes findings away (`decided_hazards`). A recording that met nothing has none that could go. So it is
followed whatever memory holds, by commands of which the same effects are judged (`OpenEffects.sure`). What is open of
those that followed counts from the first other command on.

So the findings are the same as if every command had been judged. To be judged later is the same because nothing changes
the context of a recording from outside, but for the end of a resource: then commands that were not judged and may have
used it are judged first. Effects that say more than which memory is accessed, and in which order, are never followed
(`command_forms.PLAIN`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any

from vkharness.findings import Finding
from vkharness.native import core
from vkharness.spans import Span
from vkharness.syncval.command_forms import is_plain, is_simple
from vkharness.syncval.context import Context
from vkharness.syncval.decided_hazards import OpenCommands
from vkharness.syncval.evidence import Reporter
from vkharness.syncval.execution import Execution
from vkharness.syncval.formed_execution import make_execution
from vkharness.trace import effects
from vkharness.trace.effects import Command, Effect, EffectPlan, Recorded
from vkharness.trace.recorded_commands import RecordedCommands

_KNOWN_PLAIN, _KNOWN_SIMPLE = attrgetter("is_plain"), attrgetter("is_simple")
MOST_GONE = 256
"""Resources that went since a context was let go, at most: with more of them it is made again, and stays."""
MOST_KEPT = 1 << 16
"""Commands of earlier recordings that are kept, of all command buffers together."""


class Earlier:
    """A recording that met nothing: the plan of each of its commands, and by place, how many effects were judged of
    those of which not all were."""

    def __init__(self, commands: list[EffectPlan], sure: dict[int, int], queue_flags: int) -> None:
        self.commands, self.sure, self.queue_flags = commands, sure, queue_flags

    @cached_property
    def spaces(self) -> set[int]:
        """The address spaces that it knows anything of: what is forgotten of others is nothing to it."""
        others, found = (self.commands, set[int]()) if core is None else core.flat_spaces(self.commands)
        return found.union(*[_spaces(effect) for plan in others for effect in plan.effects])

    def has(self, at: int, commands: RecordedCommands) -> bool:
        """Whether it has the effects of these commands from a place on, of which the same ones are judged."""
        plans = commands.plans
        whole = at == 0 and len(plans) == len(self.commands)
        same = plans == self.commands if whole else plans[at:] == self.commands[at : len(plans)]
        if same:  # the next ones are these, and not equal ones of which flat plans would have to say their effects
            self.commands[at : len(plans)] = plans[at:]
        return same and _between(self.sure, at, len(plans)) == _between(commands.sure, at, len(plans))


@dataclass(slots=True)
class Recording:
    """A command buffer being recorded: its own execution and what was already reported in it."""

    command_buffer: int
    queue_flags: int
    earlier: Earlier | None
    """The earlier recording whose commands it repeats so far. None as soon as it is judged by itself."""
    commands: RecordedCommands
    """The recorded commands; more are appended until the command buffer is reset."""
    followed: int = 0
    """How many commands were found to be those of `earlier`."""
    judged: int = 0
    """How many commands were judged."""
    made: Execution | None = None
    gone: dict[tuple[int, Span | None], None] | None = None
    """Address spaces and spans that were forgotten since its execution was let go, as keys; None where it was not
    let go."""
    reported: set[tuple[Any, ...]] = field(default_factory=set)
    open: OpenCommands = field(default_factory=OpenCommands)
    is_plain: bool = True
    """Whether another recording could follow it."""
    waits: int = 0
    """How many commands it had when it was ended, if it is judged when it meets something where it is executed."""

    @property
    def execution(self) -> Execution:
        """Its execution, made for the first command that is judged."""
        if self.made is None:
            self.made, self.gone = self._new(), None
        return self.made

    def _new(self) -> Execution:
        """An execution that has executed what was judged so far."""
        made = make_execution(Context(0))
        made.batch = made.context.places.recording(self.command_buffer, self.commands)
        made.run_all(self.commands, self.queue_flags, 0, self.judged)
        for space, span in self.gone or ():
            made.context.forget(space, span)
        return made

    def let_go(self) -> None:
        """Gives up its execution, which is made again for the next command."""
        if self.made is not None:
            self.made, self.gone = None, {}

    def forget(self, space: int, span: Span | None) -> None:
        """Erases the accesses of addresses that no longer exist."""
        if self.gone is not None:
            self.gone[space, span] = None
            if len(self.gone) > MOST_GONE:
                self.made, self.gone = self._new(), None
        elif self.made is not None:
            self.made.context.forget(space, span)

    def follows(self, queue_flags: int) -> bool:
        """Whether all of it does what an earlier one did."""
        earlier = self.earlier
        if earlier is None:
            return False
        if queue_flags == earlier.queue_flags and earlier.has(self.followed, self.commands):
            self.followed = len(self.commands)
            return True
        self.catch_up()
        return False

    def catch_up(self) -> None:
        """Judges what followed an earlier recording. That meets nothing, since it met nothing before."""
        if self.earlier is not None:
            self.execution.run_all(self.commands, self.earlier.queue_flags, 0, self.followed)
            self.open.recorded(self.commands, 0, self.followed)
            self.judged, self.earlier = self.followed, None


class RecordingJudge:
    """Judges the recordings of a device."""

    def __init__(self, report: Reporter, count: Callable[[str], None]) -> None:
        """`count` takes the names of what cannot be judged."""
        self._report, self._count = report, count
        self._held: dict[int, Recording] = {}
        self._earlier: dict[int, Earlier] = {}
        self._kept = 0

    def reported(self, command_buffer: int) -> set[tuple[Any, ...]]:
        """Keys of the findings that were reported while a command buffer was recorded."""
        recording = self._held.get(command_buffer)
        return recording.reported if recording is not None else set()

    def record(self, recorded: Recorded) -> list[Finding]:
        """Judges one recorded command; the findings are those it causes."""
        held = self._held.get(recorded.command_buffer)
        commands = held.commands if held is not None else RecordedCommands()
        commands.append(recorded.command)
        return self.judge(recorded.command_buffer, commands, recorded.queue_flags)

    def judge(self, command_buffer: int, commands: RecordedCommands, queue_flags: int) -> list[Finding]:
        """Judges the commands of a command buffer that were not judged so far, or those with which it waits; the
        findings that they cause. The commands are the same object, which grows, until the command buffer is reset."""
        recording = self._recording(command_buffer, commands, queue_flags)
        waited, recording.waits = recording.waits, 0
        if recording.follows(queue_flags):
            return []
        end = waited or len(commands)
        self._note(recording, end)
        execution, judged = recording.execution, recording.judged
        recording.judged = end
        found: list[Finding] = []
        results = execution.run_all(commands, queue_flags, judged, end)
        for result in results:
            found += self._report.recorded_events(result.findings, recording.reported)
            hazards = recording.open.decided(result.hazards, result.place)
            found += self._report.recorded(hazards, result.place, recording.reported)
        if results or queue_flags != recording.queue_flags:
            recording.is_plain = False
        if waited:
            recording.let_go()
        return found

    def _recording(self, command_buffer: int, commands: RecordedCommands, queue_flags: int) -> Recording:
        recording = self._held.get(command_buffer)
        if recording is not None and recording.commands is not commands:  # one that a trace allocates twice
            self.reset(command_buffer, freed=True)
            recording = None
        if recording is None:
            earlier = self._earlier.get(command_buffer)
            recording = self._held[command_buffer] = Recording(command_buffer, queue_flags, earlier, commands)
        return recording

    def wait(self, command_buffer: int, commands: RecordedCommands, queue_flags: int) -> bool:
        """Lets the recording of a command buffer that is ended wait. False where `judge` must be asked."""
        recording = self._recording(command_buffer, commands, queue_flags)
        if recording.followed or recording.judged or recording.waits:
            return False
        if queue_flags != recording.queue_flags or commands.open_ones:
            return False
        earlier = recording.earlier
        if earlier is not None and earlier.queue_flags == queue_flags and earlier.has(0, commands):
            recording.followed = len(commands)
            return False
        if not (all(map(_KNOWN_SIMPLE, commands.plans)) or all(map(is_simple, commands.plans))):
            return False
        recording.earlier, recording.waits = None, len(commands)
        return bool(commands)

    def waits(self, command_buffer: int) -> bool:
        """Whether the recording of a command buffer waits."""
        recording = self._held.get(command_buffer)
        return recording is not None and recording.waits > 0

    def executed(self, command_buffer: int, commands: Sequence[Command], queue_flags: int) -> None:
        """The commands of a command buffer were executed on such a queue. If they met anything, their recording waits
        no more. They may be those of an earlier recording, where a batch was held back."""
        recording = self._held.get(command_buffer)
        if recording is None or not recording.waits or queue_flags != recording.queue_flags:
            return
        if recording.commands.has_same_columns(commands) and len(commands) == recording.waits:
            recording.waits, recording.judged, recording.gone = 0, len(commands), {}

    def _note(self, recording: Recording, end: int) -> None:
        """Takes note of what needs no judging in commands: unmodelled and open effects, and findings of secondaries."""
        commands = recording.commands
        recording.open.recorded(commands, recording.judged, end)
        plans = commands.plans[recording.judged : end]
        if all(map(_KNOWN_PLAIN, plans)):
            return
        for place, plan in enumerate(plans, recording.judged):
            if not is_plain(plan):
                recording.is_plain = False
                self._note_effects(recording, commands[place])

    def _note_effects(self, recording: Recording, command: Command) -> None:
        for effect in command.effects:
            if isinstance(effect, effects.Unmodelled):
                if not effect.open:
                    self._count(effect.what)
            elif isinstance(effect, effects.Execute):
                # Findings of a secondary are not reported again where it is executed.
                recording.reported.update(*(self.reported(buffer) for buffer, _ in effect.buffers))
                recording.open.executed(command.call, effect)

    def end(self, command_buffer: int) -> None:
        """A command buffer is ended, and all of its commands are judged."""
        recording = self._held.get(command_buffer)
        if recording is not None and recording.judged == len(recording.commands):
            recording.let_go()

    def reset(self, command_buffer: int, freed: bool) -> None:
        """A command buffer loses its commands, which it may get again unless it is freed."""
        recording = self._held.pop(command_buffer, None)
        if freed:
            self._drop(command_buffer)
        if freed or recording is None or recording.earlier is not None:
            return
        self._drop(command_buffer)
        if recording.is_plain and 0 < recording.judged <= MOST_KEPT:
            commands, judged = recording.commands, recording.judged
            plans, sure = commands.plans[:judged], _between(commands.sure, 0, judged)
            self._earlier[command_buffer] = Earlier(plans, sure, recording.queue_flags)
            self._kept += len(plans)
            while self._kept > MOST_KEPT:
                self._drop(next(iter(self._earlier)))

    def _drop(self, command_buffer: int) -> None:
        earlier = self._earlier.pop(command_buffer, None)
        if earlier is not None:
            self._kept -= len(earlier.commands)

    def forget(self, space: int, span: Span | None) -> None:
        """Erases the accesses of addresses that no longer exist. What was recorded before is judged before."""
        for recording in self._held.values():
            if recording.earlier is not None:
                if space not in recording.earlier.spaces:
                    continue
                recording.catch_up()
            recording.forget(space, span)


def _between(sure: dict[int, int], begin: int, end: int) -> dict[int, int]:
    """Those of the places from one to another."""
    return {at: each for at, each in sure.items() if begin <= at < end} if sure else sure


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
