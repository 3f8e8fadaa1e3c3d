"""Dispatches whose shaders load, from blocks that they do not write, what decides which bytes they access.

Where such values are known when the dispatch is executed, its accesses follow from them; otherwise they are the
declared ones. Only what no value decides is judged while the dispatch is recorded, since values may change until then.
Specification: "Dispatching Commands"; rules.md#values-that-a-shader-loads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from harness.commands.contents.content_steps import Deferred, Foresight, Outcome, Overwritten, ReadsBytes, overwritten
from harness.commands.contents.known_memory import KnownMemory
from harness.commands.drawing.invocations import Invocations
from harness.commands.drawing.shader_memory import behind_descriptor
from harness.commands.drawing.shaders import StageUses, effects_by_loads, stage_uses
from harness.commands.object_state import BoundSet, CommandBuffer, ObjectState
from harness.findings import Certainty
from harness.spans import Span
from harness.trace.effects import Access, Effect, Unmodelled

if TYPE_CHECKING:
    from harness.shader.reach import LoadedPlace


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
class LoadingDispatch(Deferred):
    """The accesses of a dispatch that depend on values in memory."""

    loads: Loads
    made: Callable[[Mapping[LoadedPlace, int]], tuple[Effect, ...]]
    """Gives what it accesses with some of the values; the others may be anything."""
    declared: tuple[Effect, ...]
    recorded: int = 0
    """The number of its effects while it is recorded."""

    def outcome(self, memory: KnownMemory) -> Outcome:
        """Its accesses with the values that are known."""
        known = self.known(memory)
        if memory.on_address is not None:
            for each in self.loads.values():
                if each.is_address:
                    memory.on_address(each.buffer, each.offset, memory.pieces(each.space, each.span) or [])
        return Outcome(self.declared if known is None else known[0], replaced=self.recorded)

    def known(self, memory: ReadsBytes) -> tuple[tuple[Effect, ...], Overwritten] | None:
        """Its accesses, and what it writes. None when no value is known, or when it writes some of them itself.

        If it does not, then no invocation can see another value: the first that wrote one would have had the known
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
    """The effects of a dispatch while it is recorded. What its shader loads settles them, if that can tell more."""
    pipeline = buffer.pipelines.get(bind_point)
    if pipeline is None or not pipeline.stages or not effects or buffer.late is not None:
        return effects
    uses = stage_uses(objects, pipeline)
    if not uses.loaded:
        return effects
    sets = {index: _kept(bound) for index, bound in buffer.sets.get(bind_point, {}).items()}
    loads = _loads(objects, sets, uses)
    if not loads:
        return effects
    made = effects_by_loads(objects, buffer, pipeline, sets, run)
    declared = tuple(replace(each, open=True) if isinstance(each, Unmodelled) else each for each in effects)
    step = LoadingDispatch(loads, made, declared, recorded=len(declared))
    foreseen = step.known(Foresight(objects.contents.memory, buffer.steps.all()))
    buffer.defer(step, objects.contents)
    # What is exact without the values stays so with them. All else is judged when the dispatch is executed, since the
    # values may change until then; it stands behind that for those who ask what the dispatch may do.
    step.writes = (overwritten(declared) or Overwritten(())) if foreseen is None else foreseen[1]
    step.idle, step.sure = True, sum(not _is_open(each) for each in declared)
    return tuple(sorted(declared, key=_is_open))


def _is_open(effect: Effect) -> bool:
    return not isinstance(effect, Access) or effect.certainty is not Certainty.EXACT


def _kept(bound: BoundSet) -> BoundSet:
    """A set as it is now. A set of its own cannot change until the command is executed, but what is pushed can."""
    return replace(bound, set=replace(bound.set, slots=dict(bound.set.slots))) if bound.set.id == 0 else bound


def _loads(objects: ObjectState, sets: Mapping[int, BoundSet], uses: StageUses) -> Loads:
    """Where the values lie. Those past the end of a range are left out."""
    found: Loads = {}
    for place in uses.loaded:
        bound = sets.get(place.set)
        held = None if bound is None else bound.set.slots.get((place.binding, 0))
        if bound is None or held is None:
            continue
        memory = behind_descriptor(objects, held, bound.offsets.get((place.binding, 0), 0))
        if memory is not None and not memory.whole:
            begin, end = memory.spans[0]
            span = (begin + place.offset, begin + place.offset + place.size)
            if span[1] <= end:
                buffer = objects.buffer(memory.resource)
                offset = span[0] - (buffer.span(0, 0)[0] if buffer is not None else 0)
                found[place] = LoadedFrom(memory.space, span, memory.resource, offset, place in uses.pointers)
    return found
