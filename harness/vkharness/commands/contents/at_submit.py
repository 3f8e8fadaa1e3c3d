"""The contents of memory over a program's life: what is known at each submit, and what is left out for want of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vkharness.commands.contents.content_steps import (
    FLAT_PLANS,
    Decided,
    DeferredAt,
    DeferredSeries,
    RunsSecondaries,
    Step,
    Steps,
    StructureStep,
    WritesLate,
    held_bytes,
    overwritten,
)
from vkharness.commands.contents.descriptor_bytes import DescriptorBytes
from vkharness.commands.contents.known_memory import AskedMemory, KnownMemory
from vkharness.commands.contents.settled_again import LastSettled
from vkharness.commands.flat_reaches import behind_accesses
from vkharness.commands.resources.aliasing import Aliasing
from vkharness.findings import Certainty
from vkharness.spans import Span
from vkharness.trace.effects import (
    Access,
    Command,
    Effect,
    EffectPlan,
    Execute,
    SemaphoreOperation,
    StreamEvent,
    Submitted,
    Unmodelled,
)
from vkharness.trace.pending_batches import PendingBatch, PendingBatches
from vkharness.trace.recorded_commands import ExecutedCommands
from vkharness.trace.submits import SubmitBatch

PATIENCE = 1 << 14
"""The changes of contents that are followed before any command was recorded that depends on contents."""
MOST_WAITING = 1 << 10
"""The most submits and writes of the host of which nobody has looked at the changes."""
MOST_PLANS = 1 << 12
"""The most plans that are remembered of commands with what follows from contents."""
MOST_BYTES_WAITING = 1 << 20
"""The most bytes that changes hold which nobody has looked at."""


class MemoryContents:
    """Known memory in the order of submission. It is the order of execution as far as contents matter: commands that
    it does not order would be a hazard on the contents themselves.

    The exception is a batch that waits for a signal that is still to come. While there is one, nothing is known.

    A program whose commands depend on no contents is followed for a while only, and what changes contents meanwhile
    waits, in order, until somebody asks what is known. So such a program pays for none of it.
    """

    def __init__(self, aliasing: Aliasing) -> None:
        self._memory = KnownMemory()
        self._waiting: list[tuple[Step, ...]] = []
        """Changes that `_memory` does not have yet; none once a command was recorded that depends on contents."""
        self._bytes_waiting = 0
        self.descriptors = DescriptorBytes()
        """The bytes that stand for descriptors."""
        self.bounds = False
        """Whether the most that commands could reach counts, so that nothing is left out."""
        self.possible = False
        """Whether the most that commands could reach is among their accesses, though nothing is found by it alone."""
        self.left_out: dict[str, int] = {}
        """Numbers of recorded commands by the name of the accesses that are not judged, since contents are unknown."""
        self.has_structures = False
        """Whether the program made acceleration structures."""
        self.unmodelled: list[str] = []
        """The names of unmodelled effects of commands that were settled, since somebody last took them."""
        self._patience: int | None = PATIENCE
        """How many changes are followed from now on; None for all."""
        self._aliasing = aliasing
        self._plans: dict[tuple[int, int], tuple[tuple[Effect, ...], EffectPlan, EffectPlan]] = {}
        """By the identity of accesses that follow from contents and of a plan: both, and the plan of both."""
        self._batches: PendingBatches[None] = PendingBatches()

    @property
    def memory(self) -> KnownMemory:
        """The contents that are known now."""
        self._catch_up()
        return self._memory

    def forget_all(self) -> None:
        """Anything may hold anything now."""
        self._waiting, self._bytes_waiting = [], 0
        self._memory.forget_all()

    def give_up(self) -> None:
        """Nothing is known from now on."""
        self.needed()
        self.forget_all()
        self._memory.keeps = False

    def needed(self) -> None:
        """A command is recorded that depends on contents."""
        self._catch_up()
        self._patience = None

    def watch(self) -> None:
        """Follows all changes from now on, and which addresses they change (`KnownMemory.changed`)."""
        self.needed()
        self._memory.watch()

    def leave_to_host(self, space: int) -> None:
        """See `KnownMemory.leave_to_host`."""
        self.needed()
        self._memory.leave_to_host(space)

    def changed(self, space: int, span: Span) -> list[Span]:
        """See `KnownMemory.changed`."""
        return [] if self._waiting else self._memory.changed(space, span)

    def change(self, steps: Sequence[Step]) -> None:
        """Takes the next changes of contents, none of which depends on contents."""
        if not steps:
            return
        if self._patience is None:
            self._apply(steps)
            return
        self._patience = max(0, self._patience - len(steps))
        if not self._patience:
            self.forget_all()
            return
        self._waiting.append(tuple(steps))
        self._bytes_waiting += sum(map(held_bytes, steps))
        if len(self._waiting) > MOST_WAITING or self._bytes_waiting > MOST_BYTES_WAITING:
            self._catch_up()

    def _catch_up(self) -> None:
        """Makes the changes that wait."""
        waiting, self._waiting, self._bytes_waiting = self._waiting, [], 0
        for steps in waiting:
            self._apply(steps)

    def _apply(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, RunsSecondaries):
                for inner in step.steps:
                    self._apply(inner)
            elif isinstance(step, StructureStep):
                step.apply_to(self._memory.structures)
            elif not isinstance(step, Decided | WritesLate):
                step.apply(self._memory)

    def semaphore(self, id: int, initial: int | None) -> None:
        """A new semaphore: a timeline with a value, or a binary one."""
        self._batches.create(id, initial)

    def share(self, semaphore: int, outside: bool) -> None:
        """Whether somebody outside may signal a semaphore from now on."""
        held = bool(self._batches.held)
        list(self._batches.share(semaphore, outside))
        if held:
            self.forget_all()

    @property
    def holds_back(self) -> bool:
        """Whether a batch waits for a signal that is still to come."""
        return bool(self._batches.held)

    def semaphore_destroyed(self, id: int) -> None:
        """A semaphore is gone."""
        self._batches.destroy(id)

    def signal(self, semaphore: int, value: int) -> None:
        """The host signals a timeline semaphore."""
        held = bool(self._batches.held)
        list(self._batches.signal(semaphore, value))
        if held:
            self.forget_all()

    def submit(self, queue: int, batches: Sequence[SubmitBatch]) -> None:
        """A submit. The command buffers of its batches are settled next."""
        held = bool(self._batches.held)
        pending = [PendingBatch(_values(each.waits), _values(each.signals), None) for each in batches]
        list(self._batches.submit(queue, pending))
        if held or self._batches.held:
            self.forget_all()

    def settled(self, commands: Sequence[Command], steps: Steps, depends: bool, last: LastSettled) -> Sequence[Command]:
        """The commands of one command buffer as they are executed now; `depends` when any depends on contents. `last`
        has what its commands came to before."""
        if not depends:
            if self._patience != 0:
                self.change(steps.all())
            return commands
        made = self._settled(commands, steps, last, self.memory)
        if self._batches.held:
            self.forget_all()
        return made

    def _settled(
        self, commands: Sequence[Command], steps: Steps, last: LastSettled, memory: KnownMemory
    ) -> Sequence[Command]:
        if not last.is_as_before(commands, steps) or self._aliasing:
            return self._settle(commands, steps.all(), memory)
        known = last.again(commands, memory)
        if known is not None:
            self._apply(last.write(steps))
            return known
        memory.asked = asked = AskedMemory()
        try:
            made = self._settle(commands, steps.all(), memory)
        finally:
            memory.asked = None
        last.keep(made, asked, memory)
        return made

    def _settle(self, commands: Sequence[Command], steps: Sequence[Step], memory: KnownMemory) -> Sequence[Command]:
        made = ExecutedCommands(commands)
        for step in steps:
            if isinstance(step, DeferredAt):
                made.replace(step.at, self._executed(made.plans[step.at], step, memory))
            elif isinstance(step, DeferredSeries):
                self._settle_series(made, step, memory)
            elif isinstance(step, RunsSecondaries):
                effects = tuple(self._secondaries(effect, step, memory) for effect in made.plans[step.at].effects)
                made.replace(step.at, EffectPlan(effects))
            elif isinstance(step, WritesLate):
                written = overwritten(made.plans[step.at].effects)
                if written is not None:
                    written.apply(memory)
            elif isinstance(step, StructureStep):
                step.apply_to(memory.structures)
            else:
                step.apply(memory)
        return made

    def _settle_series(self, made: ExecutedCommands, step: DeferredSeries, memory: KnownMemory) -> None:
        found = None
        if not self._aliasing:
            found = step.series.plans(made.plans, step.at, step.numbers, memory)
        for place, plan in enumerate(found or [None] * step.count, step.at):
            if plan is None:
                plan = self._executed(made.plans[place], step.one(place), memory)
            made.replace(place, plan)

    def _secondaries(self, effect: Effect, step: RunsSecondaries, memory: KnownMemory) -> Effect:
        if not isinstance(effect, Execute):
            return effect
        held = zip(effect.buffers, step.steps, strict=True)
        return Execute(tuple((id, self._settle(commands, steps, memory)) for (id, commands), steps in held))

    def _executed(self, plan: EffectPlan, placed: DeferredAt, memory: KnownMemory) -> EffectPlan:
        """Gives the plan of a command with the accesses that follow from contents. Each command is counted once if
        anything of it is left out."""
        step = placed.step
        outcome = step.outcome(memory)
        accesses: tuple[Effect, ...] = outcome.accesses
        if outcome.unknown and memory.asked is not None:
            memory.asked.is_known = False
        if outcome.unknown and (self.bounds or self.possible):
            accesses = (*accesses, *outcome.most)
        if outcome.unknown and not (self.bounds or placed.counted):
            placed.counted = True
            self.left_out[outcome.unknown] = self.left_out.get(outcome.unknown, 0) + 1
        if self._aliasing:
            accesses = self._aliasing.widen(accesses)
        if accesses != outcome.accesses:
            accesses = placed.accesses = placed.accesses if placed.accesses == accesses else accesses
        if not self._aliasing and outcome.runs and not outcome.replaced and step.writes is None:
            return self._joined(accesses, plan)
        effects = plan.effects if outcome.runs else plan.effects[: step.sure]
        effects = effects[: len(effects) - outcome.replaced]
        if step.writes is not None and not placed.counted:
            found = [effect.what for effect in accesses if isinstance(effect, Unmodelled)]
            placed.counted = bool(found)
            self.unmodelled += found
        made = (*accesses, *effects)
        beside = step.beside(made, memory)
        return EffectPlan((*made, *(self._aliasing.widen(beside) if self._aliasing else beside)))

    def _joined(self, accesses: tuple[Effect, ...], plan: EffectPlan) -> EffectPlan:
        """The plan of accesses before those of a plan: one object for the same objects, as programs tend to execute
        them again."""
        if not accesses:
            return plan
        key = id(accesses), id(plan)
        found = self._plans.get(key)
        if found is None:
            if len(self._plans) >= MOST_PLANS:
                self._plans.clear()
            flat = behind_accesses(accesses, plan) if type(plan) in FLAT_PLANS else None
            found = self._plans[key] = accesses, plan, flat or EffectPlan((*accesses, *plan.effects))
        return found[2]


def without_bounds(event: StreamEvent) -> StreamEvent:
    """The event without accesses that are a bound."""
    if not isinstance(event, Submitted):
        return event
    batches = [
        replace(batch, buffers=tuple((id, tuple(map(_sure, commands))) for id, commands in batch.buffers))
        for batch in event.batches
    ]
    return replace(event, batches=tuple(batches))


def _sure(command: Command) -> Command:
    effects: list[Effect] = []
    for effect in command.effects:
        if isinstance(effect, Execute):
            effects.append(Execute(tuple((id, tuple(map(_sure, commands))) for id, commands in effect.buffers)))
        elif not isinstance(effect, Access) or effect.certainty is not Certainty.BOUND:
            effects.append(effect)
    return command.with_effects(tuple(effects))


def _values(operations: Sequence[SemaphoreOperation]) -> tuple[tuple[int, int], ...]:
    return tuple((each.semaphore, each.value) for each in operations)
