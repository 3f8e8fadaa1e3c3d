"""Steps by which recorded commands change known contents, in order; they are settled when the commands are executed.

A command buffer keeps the steps of its commands beside the commands. At a submit its steps run over the known memory:
writes change it, and a `Deferred` command learns from it what it accesses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple, Protocol

from vkharness import native
from vkharness.commands.contents.built_structures import StructureCopied, StructuresBuilt
from vkharness.commands.contents.known_memory import KnownMemory
from vkharness.spans import Span
from vkharness.spec.enums import VkPipelineStage2
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.trace.effects import (
    Access,
    AutomaticTransition,
    Barrier,
    Effect,
    EffectPlan,
    OpenEffects,
    PassEnd,
    RangeBarrier,
    SubpassBegin,
    Unmodelled,
    WaitEvents,
)
from vkharness.trace.recorded_commands import RecordedCommands

_WRITES = tuple(kind.write for kind in ACCESS_KINDS)


class Filled(NamedTuple):
    """A fill with a 32-bit word."""

    space: int
    span: Span
    word: int

    def apply(self, memory: KnownMemory) -> None:
        """Makes the contents known."""
        memory.fill(self.space, self.span, self.word)


class Updated(NamedTuple):
    """A write of bytes that the call holds."""

    space: int
    begin: int
    data: bytes

    def apply(self, memory: KnownMemory) -> None:
        """Makes the contents known."""
        memory.write(self.space, self.begin, self.data)


class Copied(NamedTuple):
    """Copies between two buffers: of each its id, space, first address and size. The regions have the members of
    VkBufferCopy."""

    source: int
    source_space: int
    source_offset: int
    source_size: int
    target: int
    target_space: int
    target_offset: int
    target_size: int
    regions: tuple[tuple[int, int, int], ...]

    def apply(self, memory: KnownMemory) -> None:
        """Copies the known bytes of the source to the target, whose other bytes become unknown."""
        for begin, to, size in self.regions:
            source, target = self.source_offset + begin, self.target_offset + to
            memory.copy((self.source_space, source), (self.target_space, target), size)


class Overwritten(NamedTuple):
    """Writes of values that nobody knows, as (space, span). None stands for any memory."""

    places: tuple[tuple[int, Span], ...] | None

    def meets(self, space: int, span: Span) -> bool:
        """Whether any of these addresses may be written."""
        held = self.places
        return held is None or any(each == space and begin < span[1] and span[0] < end for each, (begin, end) in held)

    def apply(self, memory: KnownMemory) -> None:
        """The contents are unknown."""
        if self.places is None:
            memory.forget_all()
        else:
            for space, span in self.places:
                memory.forget(space, span)


ANYTHING = Overwritten(None)
NOTHING = Overwritten(())


class Outcome(NamedTuple):
    """The accesses of a deferred command beside its recorded effects, for some contents of memory."""

    accesses: tuple[Effect, ...] = ()
    replaced: int = 0
    """How many of its recorded effects, from the last, these take the place of."""
    runs: bool = True
    """Whether it does more than to read its parameters."""
    unknown: str = ""
    """A name of the accesses that are left out because contents are unknown; empty when none are."""
    most: tuple[Access, ...] = ()
    """The most accesses that are left out."""


@dataclass(slots=True, kw_only=True)
class Deferred:
    """A command whose accesses depend on contents of memory. Commands that do the same may share it."""

    sure: int | None = None
    """How many effects of the command, from the first, it has even if it runs nothing; None for all."""
    idle: bool = False
    """Whether it would run nothing with the contents that are foreseen when it is recorded."""
    open: int = 0
    """How many of its recorded effects, from the last, contents decide: they are not judged while it is recorded."""
    writes: Overwritten | None = None
    """Its writes with the contents that are foreseen, if contents decide them; else None."""

    @property
    def loads_values(self) -> bool:
        """Whether values that shaders load decide what it accesses."""
        return False

    def outcome(self, memory: KnownMemory) -> Outcome:
        """Gives its accesses with these contents of memory."""
        raise NotImplementedError

    def most(self) -> tuple[Access, ...]:
        """Gives the most accesses that it may have beside its recorded effects."""
        return ()

    def beside(self, effects: tuple[Effect, ...], memory: KnownMemory) -> tuple[Effect, ...]:
        """Gives further accesses that follow from its effects, with these contents of memory. It has `writes` then."""
        return ()

    def resources(self) -> set[int]:
        """The resources that it may access so."""
        return set()

    def is_idle(self, memory: ReadsBytes) -> bool:
        """Whether it would run nothing when memory holds this, as far as that is looked at: not where that is unknown,
        nor without `sure`."""
        return False


class OpenStep(NamedTuple):
    """A deferred command of which nothing else is open, in both forms in which a command buffer keeps it."""

    step: Deferred
    open: OpenEffects
    idle: OpenStep | None = None
    """The same where it is foreseen to run nothing; None if it always runs."""

    @staticmethod
    def of(step: Deferred) -> OpenStep:
        """That of a deferred command, whatever is foreseen of it."""
        runs = replace(step, idle=False)
        if step.sure is None:
            return OpenStep(runs, OpenEffects(undecided=runs))
        idle = replace(step, idle=True)
        return OpenStep(runs, OpenEffects(undecided=runs), OpenStep(idle, OpenEffects(step.sure, undecided=idle)))


@dataclass(slots=True)
class DeferredAt:
    """A deferred command at its place among the commands."""

    at: int
    step: Deferred
    counted: bool = False
    """Whether it was counted as one of which something is left out, or that is not modelled."""
    accesses: tuple[Effect, ...] = ()
    """Its accesses when it was executed last, with those that it only may have."""


class OpenSeries(Protocol):
    """What contents decide of deferred commands that differ in numbers alone (`NumberedSteps` of
    `vkharness.commands.drawing.numbered_draws`)."""

    open: OpenEffects
    """Of each of them."""

    @property
    def step(self) -> Deferred:
        """That of one of them."""

    def at(self, numbers: bytes, at: int) -> OpenStep:
        """That of one of the commands with these numbers."""

    def all_run(self, numbers: bytes, memory: ReadsBytes) -> bool:
        """Whether none of the commands would run nothing if memory held this, as far as that is told at once."""

    def count(self, numbers: bytes) -> int:
        """How many commands have these numbers."""

    def one(self, numbers: bytes, at: int) -> Deferred:
        """The step of one of them."""

    def plans(
        self, plans: list[EffectPlan], first: int, numbers: bytes, memory: KnownMemory
    ) -> list[EffectPlan | None] | None:
        """The plans of commands that have these numbers, and these plans from a place on, with what contents decide of
        them. None in the place of those, or of all, of which their steps must say it."""


class DeferredSeries:
    """Deferred commands one behind the other, from a place on, that write nothing."""

    __slots__ = ("at", "count", "numbers", "others", "series")

    def __init__(self, at: int, series: OpenSeries, numbers: bytes) -> None:
        self.at, self.series, self.numbers, self.count = at, series, numbers, series.count(numbers)
        self.others: dict[int, DeferredAt] = {}
        """Those of which their own steps say what they do, by place."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeferredSeries):
            return NotImplemented
        return self.series is other.series and (self.at, self.numbers) == (other.at, other.numbers)

    __hash__ = None  # type: ignore[assignment]

    def one(self, place: int) -> DeferredAt:
        """That at a place, by itself."""
        found = self.others.get(place)
        if found is None:
            found = self.others[place] = DeferredAt(place, self.series.one(self.numbers, place - self.at))
        return found


class ReadsBytes(Protocol):
    """Known memory, as far as parameters are concerned."""

    def read(self, space: int, span: Span) -> bytes | None:
        """The bytes at addresses of a space; None when they are not known."""

    def known(self, space: int, span: Span) -> list[Span]:
        """The addresses of a span that are known, in order."""

    def known_pieces(self, space: int, span: Span) -> list[Any] | None:
        """The pieces of a span that are known, in order; None where that is not told at once."""


class Foresight(NamedTuple):
    """Memory as it is while a command is recorded, after the last commands that were recorded before it."""

    memory: ReadsBytes
    steps: list[Step]
    """Those of these commands that change contents; of flat plans, what these write."""

    def read(self, space: int, span: Span) -> bytes | None:
        """The bytes at addresses of a space; None when they are not known."""
        for step in reversed(self.steps):
            if isinstance(step, StructureStep):
                continue
            if isinstance(step, WritesLate):
                step = step.foreseen
            if not isinstance(step, Filled | Updated):
                if not isinstance(step, Overwritten) or step.meets(space, span):
                    return None
                continue
            begin, end = step.span if isinstance(step, Filled) else (step.begin, step.begin + len(step.data))
            if step.space == space and begin <= span[0] and span[1] <= end:
                after = KnownMemory()
                step.apply(after)
                return after.read(space, span)
            if step.space == space and begin < span[1] and span[0] < end:
                return None
        return self.memory.read(space, span)

    def known(self, space: int, span: Span) -> list[Span]:
        """The addresses of a span that are known, in order. Nobody looks that far ahead."""
        return []

    def known_pieces(self, space: int, span: Span) -> list[Any] | None:
        """The pieces of a span that are known, in order; None where steps change some of it alone."""
        for step in reversed(self.steps):
            if isinstance(step, StructureStep):
                continue
            if isinstance(step, WritesLate):
                step = step.foreseen
            if isinstance(step, Filled | Updated):
                begin, end = step.span if isinstance(step, Filled) else (step.begin, step.begin + len(step.data))
                if step.space == space and begin < span[1] and span[0] < end:
                    return None
            elif not isinstance(step, Overwritten) or step.places is None:
                return []
            elif step.meets(space, span):
                return None
        return self.memory.known_pieces(space, span)


MOST_STEPS = 64
"""The most steps behind which contents are foreseen."""


class WritesLate(NamedTuple):
    """A command, by its place, of which it is open until it is executed what it writes."""

    at: int
    foreseen: Overwritten = ANYTHING
    """Its writes as far as they are foreseen when it is recorded."""


class RunsSecondaries(NamedTuple):
    """A vkCmdExecuteCommands at a place among the commands, with the steps of each command buffer that it runs."""

    at: int
    steps: tuple[tuple[Step, ...], ...]


Write = Filled | Updated | Copied | Overwritten
StructureStep = StructuresBuilt | StructureCopied
"""Changes of acceleration structures, beside the writes of their bytes."""
Decided = DeferredAt | DeferredSeries
"""Commands of which contents decide what they do, and which change none themselves."""
Step = Write | Decided | WritesLate | RunsSecondaries | StructureStep
"""A flat plan may stand for what it writes: of those nobody asks, it says nothing in Python."""
FLAT_PLANS: tuple[Any, ...] = () if native.core is None else (native.core.FlatPlan,)


def held_bytes(step: Any) -> int:
    """How many bytes of data a step holds."""
    if type(step) in FLAT_PLANS:
        held: int = step.held_bytes
        return held
    return len(step.data) if isinstance(step, Updated) else 0


class Steps:
    """The steps by which the commands of a command buffer change contents of memory, or depend on them.

    For most commands their plan has the step. Others note steps while they are recorded. The plans are looked
    at when somebody asks for the steps, which in most programs nobody does.
    """

    __slots__ = ("_changing", "_commands", "_looked", "_next", "_sorted", "_steps", "last", "noted")

    def __init__(self, commands: RecordedCommands) -> None:
        self._commands = commands
        self.noted: list[tuple[int, Step | Deferred | None]] = []
        """The steps that commands noted, by their place among the commands. None stands for the step of the command's
        plan, which comes behind a deferred command, too, if contents do not decide the writes of that."""
        self.last = -1
        """The place of the command that noted anything last."""
        self._steps: list[Step] = []
        self._looked = 0
        """How many commands have their steps in `_steps` already."""
        self._next = 0
        """How many of `noted` that are."""
        self._changing: list[Step] = []
        """Those of `_steps` that change contents."""
        self._sorted = 0
        """Of how many that is told."""

    def append(self, step: Step | Deferred | None) -> None:
        """Notes a step of the command being recorded."""
        self.last = len(self._commands)
        self.noted.append((self.last, step))

    def defer(self, place: int, step: Deferred) -> None:
        """Notes that the command at a place, which is behind all that was noted, is deferred."""
        self.last = place
        self.noted.append((place, step))

    def defer_series(self, series: DeferredSeries) -> None:
        """Notes that the commands of a series are."""
        self.last = series.at + series.count - 1
        self.noted.append((series.at, series))

    def cut(self, length: int) -> None:
        """Forgets what was noted behind the first ones, by the command being recorded."""
        del self.noted[length:]
        self.last = self.noted[-1][0] if self.noted else -1

    def all(self) -> list[Step]:
        """The steps of the commands so far, without the one being recorded."""
        self._take(len(self._commands.plans))
        return self._steps

    def foresight(self, memory: ReadsBytes, place: int | None = None) -> Foresight | None:
        """Gives memory as it is foreseen where the next command is recorded, or that at a place behind all that was
        noted. None where that would take a long search, as it does from then on."""
        if len(self._steps) <= MOST_STEPS:
            self._take(len(self._commands.plans) if place is None else place)
        if len(self._steps) > MOST_STEPS:
            return None
        changing = [each for each in self._steps[self._sorted :] if not isinstance(each, Decided)]
        self._changing += [each.writes if isinstance(each, FLAT_PLANS) else each for each in changing]
        self._sorted = len(self._steps)
        return Foresight(memory, self._changing)

    def _take(self, end: int) -> None:
        """Takes the steps of commands up to a place."""
        plans = self._commands.plans
        for place, step in islice(self.noted, self._next, None):
            if place >= end:
                break
            self._look(plans, place)
            self._next += 1
            self._looked = max(self._looked, place + 1)
            if isinstance(step, DeferredSeries):
                self._looked = max(self._looked, place + step.count)
                self._steps.append(step)
                continue
            says_all = step is not None
            if isinstance(step, Deferred):
                says_all, step = step.writes is not None, DeferredAt(place, step)
            if step is not None:
                self._steps.append(step)
            if not says_all:
                self._steps += content_steps(plans, place, place + 1)
        self._look(plans, end)

    def _look(self, plans: list[EffectPlan], end: int) -> None:
        """Takes the steps of commands up to a place, none of which noted anything."""
        if self._looked < end:
            self._steps += content_steps(plans, self._looked, end)
            self._looked = end


def content_steps(plans: list[EffectPlan], begin: int, end: int) -> list[Step]:
    """Gives the steps of the commands from one place to another that change contents."""
    if native.core is not None:
        found: list[Step] = native.core.content_steps(plans, begin, end, written, NOTHING)
        return found
    return [step for plan in plans[begin:end] if (step := plan.writes or written(plan)) is not NOTHING]


def written(plan: EffectPlan) -> Write:
    """Gives the change that a plan makes to the contents of memory; computed once."""
    if plan.writes is None:
        plan.writes = overwritten(plan.effects) or NOTHING
    found: Write = plan.writes
    return found


def overwritten(effects: Iterable[Effect]) -> Overwritten | None:
    """Gives the ranges of memory that effects write, as writes of unknown values; None where they write none."""
    places: list[tuple[int, Span]] = []
    for effect in effects:
        if type(effect) is Access:
            if _WRITES[effect.access_kind] or effect.atomic:
                if effect.space != effect.resource:
                    places += [(effect.space, span) for span in effect.spans]
                places += _aliases(effect)
        elif type(effect) is Barrier:
            for part in effect.ranges:
                places += _aliases(part) if part.transition else ()
        elif type(effect) is SubpassBegin or type(effect) is PassEnd:
            for each in effect.transitions:
                places += _aliases(each)
        elif type(effect) is Unmodelled or (type(effect) is WaitEvents and _waits_for_host(effect)):
            return ANYTHING
    return Overwritten(tuple(places)) if places else None


def _aliases(written: Access | RangeBarrier | AutomaticTransition) -> list[tuple[int, Span]]:
    return [(alias.space, span) for alias in written.aliases for span in alias.spans]


def _waits_for_host(wait: WaitEvents) -> bool:
    """Whether the host may set an event after it wrote memory that was submitted before."""
    return any(stages & VkPipelineStage2.HOST for barrier in wait.barriers for stages in _sources(barrier))


def _sources(barrier: Barrier) -> Iterator[int]:
    for dependency in (*barrier.globals, *(part.dependency for part in barrier.ranges)):
        yield dependency.src_stages
