"""Dispatches and draws whose shaders load, from blocks that they do not write, what decides which bytes they access.

Where such values are known when the command is executed, its accesses follow from them; otherwise they are the
declared ones. Only what no value decides is judged while the command is recorded, since values may change until then.
Specification: "Dispatching Commands", "Drawing Commands"; rules.md#values-that-a-shader-loads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from vkharness.commands.contents.content_steps import Deferred, Outcome, Overwritten, ReadsBytes, overwritten
from vkharness.commands.contents.known_memory import KnownMemory
from vkharness.commands.drawing.invocations import Invocations
from vkharness.commands.drawing.shader_memory import behind_descriptor
from vkharness.commands.drawing.shaders import StageUses, effects_by_loads, stage_uses
from vkharness.commands.object_state import BoundSet, CommandBuffer, ObjectState
from vkharness.findings import Certainty
from vkharness.spans import Span
from vkharness.trace.effects import Access, Effect, Unmodelled

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
    """The accesses of the shaders of a dispatch or draw that depend on values in memory."""

    loads: Loads
    made: Callable[[Mapping[LoadedPlace, int]], tuple[Effect, ...]]
    """Gives what the shaders access with some of the values; the others may be anything."""
    declared: tuple[Effect, ...]
    """What they access whatever the values are: the last effects of the command while it is recorded. Those that are
    sure come first."""
    parameters: Deferred | None = None
    """What else of the command depends on contents: indices and parameters."""

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
        accesses = (*made.accesses, *(self.declared if known is None else known[0]))
        return made._replace(accesses=accesses, replaced=len(self.declared))

    def most(self) -> tuple[Access, ...]:
        """What indices and parameters decide. What loaded values do is among its recorded effects."""
        return () if self.parameters is None else self.parameters.most()

    def known(self, memory: ReadsBytes) -> tuple[tuple[Effect, ...], Overwritten] | None:
        """What the shaders access, and what they write. None when no value is known, or when they write some of them
        themselves.

        If they do not, then no invocation can see another value: the first that wrote one would have had the known
        ones.
        """
        read = {place: memory.read(where.space, where.span) for place, where in self.loads.items()}
        values = {place: int.from_bytes(data, "little") for place, data in read.items() if data is not None}
        if not values:
            return None
        effects = self.made(values)
        written = overwritten(effects) or Overwritten(())
        loads = [self.loads[place] for place in values]
        return None if any(written.meets(each.space, each.span) for each in loads) else (effects, written)


def by_loads(
    objects: ObjectState, buffer: CommandBuffer, bind_point: int, run: Invocations, effects: tuple[Effect, ...]
) -> tuple[Effect, ...]:
    """The effects of the shader of a dispatch while it is recorded. What it loads settles them, if that can tell
    more."""
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
    if pipeline is None or not pipeline.stages or not effects or buffer.late is not None:
        return None
    uses = stage_uses(objects, pipeline)
    if not uses.loaded or not all(isinstance(each, Access | Unmodelled) for each in effects):
        return None
    sets = {index: _kept(bound) for index, bound in buffer.sets.get(bind_point, {}).items()}
    loads = _loads(objects, sets, uses)
    if not loads:
        return None
    made = effects_by_loads(objects, buffer, pipeline, bind_point, sets, run, idle)
    declared = (replace(each, open=True) if isinstance(each, Unmodelled) else each for each in effects)
    return LoadingCommand(loads, made, tuple(sorted(declared, key=_is_open)))


def defer_loads(objects: ObjectState, buffer: CommandBuffer, step: LoadingCommand) -> Deferred | None:
    """Defers the command being recorded, of which indices or parameters may be deferred already; gives that.

    What is exact without the values stays so with them. All else is judged when the command is executed, since the
    values may change until then; it stands behind that for those who ask what the command may do.
    """
    step.parameters = buffer.deferred
    if step.parameters is not None:
        buffer.steps.cut(len(buffer.steps.noted) - 1)
        step.sure, step.idle = step.parameters.sure, step.parameters.idle
    step.open = sum(map(_is_open, step.declared))
    buffer.defer(step, objects.contents)
    return step.parameters


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
