"""The commands of a command buffer, kept as columns: a program may record millions.

A command takes 24 bytes here beside its plan, which equal commands share: its call, and references to its plan and to
its name and site. `Command` objects are made for those who look at them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from operator import eq
from typing import overload

from vkharness.trace.effects import NOTHING_OPEN, Command, EffectPlan, OpenEffects

Line = tuple[str, str | None]
"""The name of a command, and the site that records it."""


class CommandColumns(Sequence[Command]):
    """Commands that are kept as columns."""

    __slots__ = ("_all", "calls", "lines", "open_ones", "sure")
    _all: list[EffectPlan]
    calls: array[int]
    lines: list[Line]
    plans: list[EffectPlan]
    """The plan of each command. Only `RecordedCommands.add` changes it."""
    open_ones: dict[int, OpenEffects]
    """By place, in order: what is open of a command. Nothing is of most."""
    sure: dict[int, int]
    """`OpenEffects.sure` by place, where it is a number. Only these commands are not judged whole."""

    @property
    def all_plans(self) -> list[EffectPlan]:
        """The column of plans, which may be longer."""
        return self._all

    def open_from(self, at: int) -> Iterator[int]:
        """The places of commands of which anything is open, from the last one down to a place."""
        return takewhile(at.__le__, reversed(self.open_ones))

    def has_same_columns(self, commands: Sequence[Command]) -> bool:
        """Whether these commands are of the same recording, as it was or as it is executed."""
        return isinstance(commands, CommandColumns) and commands.calls is self.calls

    def __len__(self) -> int:
        return len(self.plans)

    @overload
    def __getitem__(self, at: int) -> Command: ...
    @overload
    def __getitem__(self, at: slice) -> list[Command]: ...
    def __getitem__(self, at: int | slice) -> Command | list[Command]:
        if isinstance(at, slice):
            return list(map(self._made, range(*at.indices(len(self)))))
        place = at + len(self) if at < 0 else at
        if not 0 <= place < len(self):
            raise IndexError(at)
        return self._made(place)

    def _made(self, place: int) -> Command:
        name, site = self.lines[place]
        is_open = self.open_ones.get(place, NOTHING_OPEN) if self.open_ones else NOTHING_OPEN
        return Command(self.calls[place], name, site, self._all[place], is_open)

    def __iter__(self) -> Iterator[Command]:
        if self.open_ones:
            yield from map(self._made, range(len(self)))
            return
        columns = zip(self._all, self.calls, self.lines, strict=False)
        for plan, call, (name, site) in islice(columns, len(self)):  # a paused batch is behind commands added since
            yield Command(call, name, site, plan)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)!r})"


class RecordedCommands(CommandColumns):
    """Commands in the order in which they were recorded. They are only added to.

    >>> commands = RecordedCommands()
    >>> commands.add(7, ("vkCmdDispatch", "draw.py:3"), EffectPlan(()))
    >>> commands[0].call, commands[-1].name, len(commands)
    (7, 'vkCmdDispatch', 1)
    """

    __slots__ = ("plans",)

    def __init__(self) -> None:
        self.calls, self.lines, self.open_ones, self.sure = array("q"), [], {}, {}
        self.plans = self._all = []

    def add(self, call: int, line: Line, plan: EffectPlan, open: OpenEffects = NOTHING_OPEN) -> None:
        """Adds a command."""
        self.calls.append(call)
        if open is not NOTHING_OPEN:
            self.open_ones[len(self.plans)] = open
            if open.sure is not None:
                self.sure[len(self.plans)] = open.sure
        self.lines.append(line)
        self.plans.append(plan)

    def extend(self, calls: bytes, lines: list[Line], plans: list[EffectPlan]) -> None:
        """Adds commands of which nothing is open. `calls` has 8 bytes for each."""
        self.calls.frombytes(calls)
        self.lines += lines
        self.plans += plans

    def append(self, command: Command) -> None:
        """Adds a command."""
        self.add(command.call, (command.name, command.site), command.plan, command.open)

    def snapshot(self) -> CommandsSoFar:
        """The commands so far, which do not grow with these."""
        return CommandsSoFar(self)


class ExecutedCommands(CommandColumns):
    """Commands of which some do something else when they are executed. Nothing is added to them any more."""

    __slots__ = ("plans",)

    def __init__(self, commands: Sequence[Command], plans: list[EffectPlan] | None = None) -> None:
        """With `plans`, the commands do that, and nothing of them is open."""
        if not isinstance(commands, CommandColumns):
            several, commands = commands, RecordedCommands()
            for each in several:
                commands.append(each)
        self.calls, self.lines = commands.calls, commands.lines
        is_open = plans is None
        self.open_ones, self.sure = (dict(commands.open_ones), dict(commands.sure)) if is_open else ({}, {})
        self.plans = self._all = list(commands.plans) if plans is None else plans

    def replace(self, at: int, plan: EffectPlan) -> None:
        """The command at a place does this, and nothing of it is open."""
        self.plans[at] = plan
        self.open_ones.pop(at, None)
        self.sure.pop(at, None)


class CommandsSoFar(CommandColumns):
    """The first commands of a command buffer, in the same columns until more are added there."""

    __slots__ = ("_length",)

    def __init__(self, recorded: RecordedCommands) -> None:
        self.calls, self.lines = recorded.calls, recorded.lines
        self.open_ones, self.sure = recorded.open_ones, recorded.sure
        self._all, self._length = recorded.plans, len(recorded.plans)

    def __len__(self) -> int:
        return self._length

    @property
    def plans(self) -> list[EffectPlan]:  # type: ignore[override]
        """The plan of each command."""
        return self._all if len(self._all) == self._length else self._all[: self._length]
