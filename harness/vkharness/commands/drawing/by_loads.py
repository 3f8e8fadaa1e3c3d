"""Dispatches and draws whose shaders load, from blocks that they do not write, what decides which bytes they access.

Where such values are known when the command is executed, its accesses follow from them; otherwise they are the
declared ones. Only what no value decides is judged while the command is recorded, since values may change until then.
Specification: "Dispatching Commands", "Drawing Commands"; rules.md#values-that-a-shader-loads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from vkharness.commands.contents.content_steps import ANYTHING, Deferred, Outcome, Overwritten, ReadsBytes, overwritten
from vkharness.commands.contents.known_memory import KnownMemory
from vkharness.commands.drawing.descriptor_buffers import NotKnownError, known_set
from vkharness.commands.drawing.invocations import Invocations
from vkharness.commands.drawing.shader_memory import behind_descriptor, joined
from vkharness.commands.drawing.shaders import (
    ADDRESSES,
    UNKNOWN_CONTENTS,
    EffectsByLoads,
    StageUses,
    effects_by_loads,
    stage_uses,
)
from vkharness.commands.object_state import BoundSet, CommandBuffer, ObjectState
from vkharness.findings import Certainty
from vkharness.spans import Span
from vkharness.trace.effects import Access, Effect, Unmodelled
from vkharness.trace.resources import DescriptorsInMemory

if TYPE_CHECKING:
    from vkharness.shader.reach import LoadedPlace


class LoadedFrom(NamedTuple):
    """Where a value lies: the space and the addresses, and the buffer and its first byte there."""

    space: int
    span: Span
    buffer: int
    offset: int
    is_address: bool
    """Whether the value is a device address."""


Loads = dict["LoadedPlace", LoadedFrom]


@dataclass(slots=True)
class LoadingCommand(Deferred):
    """The accesses of the shaders of a dispatch or draw that depend on values in memory, or on descriptors there."""

    objects: ObjectState = field(compare=False, repr=False)
    uses: StageUses = field(compare=False, repr=False)
    sets: dict[int, BoundSet] = field(compare=False, repr=False)
    loads: Loads
    """Where the values lie, by the sets as they are bound."""
    made: EffectsByLoads
    """Gives what the shaders access with some of the values; the others may be anything."""
    declared: tuple[Effect, ...]
    """Their accesses whatever the values are: the last effects of the command while it is recorded. Those that are sure
    come first."""
    parameters: Deferred | None = None
    """The deferred step of indices or indirect parameters of the command; None without one."""
    resting: int = 0
    """The stages (VkShaderStageFlags) that do not run."""

    @property
    def loads_values(self) -> bool:
        """Always."""
        return True

    def outcome(self, memory: KnownMemory) -> Outcome:
        """Its accesses with the values that are known."""
        made = Outcome() if self.parameters is None else self.parameters.outcome(memory)
        if not made.runs:
            return made
        known = self.known(memory)
        if memory.on_address is not None:
            for each in self.loads.values():
                if each.is_address:
                    memory.on_address((each.buffer, each.offset), (each.space, each.span))
        shaded = self.declared if known is None else known[0]
        if self.objects.contents.bounds:
            shaded = self._bounded(shaded)
        return made._replace(accesses=(*made.accesses, *shaded), replaced=len(self.declared))

    def _bounded(self, effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
        """The effects with the most that unknown device addresses could reach in the place of what is not modelled."""
        kept = tuple(each for each in effects if not _is_anywhere(each))
        most = self.uses.anywhere(self.objects, self.resting) if len(kept) < len(effects) else None
        return effects if most is None else (*kept, *most)

    def most(self) -> tuple[Access, ...]:
        """Gives the most accesses by indices and parameters. Those by loaded values are among its recorded effects."""
        return () if self.parameters is None else self.parameters.most()

    def _read(self, memory: ReadsBytes) -> tuple[dict[int, BoundSet], Loads]:
        """The sets as memory has them, and where the values lie then."""
        return self.sets, self.loads

    def known(self, memory: ReadsBytes) -> tuple[tuple[Effect, ...], Overwritten] | None:
        """Gives the effects of the shaders, and the ranges that they write. None when no value is known, or when they
        write some of them themselves.

        If they do not, then no invocation can see another value: the first that wrote one would have had the known
        ones.
        """
        sets, places = self._read(memory)
        read = {place: memory.read(where.space, where.span) for place, where in places.items()}
        values = {place: int.from_bytes(data, "little") for place, data in read.items() if data is not None}
        if not values and sets is self.sets:
            return None
        effects = self.made(sets, values)
        written = overwritten(effects) or Overwritten(())
        loads = [places[place] for place in values]
        if not any(written.meets(each.space, each.span) for each in loads):
            return effects, written
        if sets is self.sets:
            return None
        effects = self.made(sets, {})
        return effects, overwritten(effects) or Overwritten(())


@dataclass(slots=True)
class DescribedCommand(LoadingCommand):
    """The same where descriptors lie in memory, too. Its reads of them are known while it is recorded."""

    reads: tuple[Access, ...] = ()

    def _read(self, memory: ReadsBytes) -> tuple[dict[int, BoundSet], Loads]:
        sets = {}
        for index, bound in self.sets.items():
            held = bound.set
            if isinstance(held, DescriptorsInMemory):
                held = known_set(self.objects, held, self.uses.used(index), memory)
            sets[index] = BoundSet(held, bound.dynamic)
        return sets, _loads(self.objects, sets, self.uses)

    def known(self, memory: ReadsBytes) -> tuple[tuple[Effect, ...], Overwritten] | None:
        """Gives the effects of the shaders, reads of descriptors among them, and the ranges that they write."""
        try:
            found = LoadingCommand.known(self, memory)
        except NotKnownError as error:
            return (*self.reads, Unmodelled(str(error))), ANYTHING
        assert found is not None
        return (*self.reads, *found[0]), found[1]


def by_loads(
    objects: ObjectState, buffer: CommandBuffer, bind_point: int, run: Invocations, effects: tuple[Effect, ...]
) -> tuple[Effect, ...]:
    """The effects of the shader of a dispatch while it is recorded. Values that it loads settle them, if these can
    tell more."""
    step = loading_command(objects, buffer, bind_point, run, effects)
    if step is None:
        return effects
    parameters = defer_loads(objects, buffer, step)
    foresight = buffer.steps.foresight(objects.contents.memory) if parameters is None else None
    foreseen = None if foresight is None else step.known(foresight)
    step.writes = (overwritten(step.declared) or Overwritten(())) if foreseen is None else foreseen[1]
    return step.declared


def loading_command(
    objects: ObjectState,
    buffer: CommandBuffer,
    bind_point: int,
    run: Invocations,
    effects: tuple[Effect, ...],
    idle: int = 0,
) -> LoadingCommand | None:
    """A dispatch or draw with these effects of its shaders, if what they load can tell more. `idle` holds the stages
    (VkShaderStageFlags) that do not run."""
    pipeline = buffer.pipelines.get(bind_point)
    if pipeline is None or not pipeline.stages or pipeline.unmodelled or buffer.late is not None:
        return None
    uses = stage_uses(objects, pipeline)
    bound = buffer.sets.get(bind_point, {})
    described = any(isinstance(bound[index].set, DescriptorsInMemory) for index in uses.sets if index in bound)
    is_plain = all(isinstance(each, Access | Unmodelled) for each in effects)
    bounded = objects.contents.bounds and any(map(_is_anywhere, effects))
    if not is_plain or not (described or bounded or (uses.loaded and effects)):
        return None
    sets = {index: _kept(each) for index, each in bound.items()}
    made = effects_by_loads(objects, buffer, pipeline, bind_point, run, idle)
    if described:
        reads = tuple(joined(uses.descriptor_reads(objects, sets, idle)))
        made_late = (Unmodelled(UNKNOWN_CONTENTS, open=True),)
        return DescribedCommand(objects, uses, sets, {}, made, (*reads, *made_late), resting=idle, reads=reads)
    loads = _loads(objects, sets, uses)
    if not loads and not bounded:
        return None
    declared = (replace(each, open=True) if isinstance(each, Unmodelled) else each for each in effects)
    return LoadingCommand(objects, uses, sets, loads, made, tuple(sorted(declared, key=_is_open)), resting=idle)


def defer_loads(objects: ObjectState, buffer: CommandBuffer, step: LoadingCommand) -> Deferred | None:
    """Defers the command being recorded, of which indices or parameters may be deferred already; gives that.

    Accesses that are exact without the values stay so with them. All else is judged when the command is executed,
    since the values may change until then; it stands behind that for those who ask what the command may do.
    """
    step.parameters = buffer.deferred
    if step.parameters is not None:
        buffer.steps.cut(len(buffer.steps.noted) - 1)
        step.sure, step.idle = step.parameters.sure, step.parameters.idle
    step.open = sum(map(_is_open, step.declared))
    buffer.defer(step, objects.contents)
    return step.parameters


def _is_anywhere(effect: Effect) -> bool:
    """Whether it stands for what shaders access through device addresses of which nothing is known."""
    return isinstance(effect, Unmodelled) and effect.what == ADDRESSES


def _is_open(effect: Effect) -> bool:
    return not isinstance(effect, Access) or effect.certainty is not Certainty.EXACT


def _kept(bound: BoundSet) -> BoundSet:
    """A set as it is now. A set of its own cannot change until the command is executed, but what is pushed can."""
    return BoundSet(replace(bound.set, slots=dict(bound.set.slots)), bound.dynamic) if bound.set.id == 0 else bound


def _loads(objects: ObjectState, sets: Mapping[int, BoundSet], uses: StageUses) -> Loads:
    """Where the values lie. Those past the end of a range are left out."""
    found: Loads = {}
    for place in uses.loaded:
        bound = sets.get(place.set)
        held = None if bound is None else bound.set.slots.get((place.binding, 0))
        if bound is None or held is None:
            continue
        memory = behind_descriptor(objects, held, bound.offset((place.binding, 0)))
        if memory is not None and not memory.whole:
            begin, end = memory.spans[0]
            span = (begin + place.offset, begin + place.offset + place.size)
            if span[1] <= end:
                buffer = objects.buffer(memory.resource)
                offset = span[0] - (buffer.span(0, 0)[0] if buffer is not None else 0)
                found[place] = LoadedFrom(memory.space, span, memory.resource, offset, place in uses.pointers)
    return found
