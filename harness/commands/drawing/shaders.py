"""The static uses of the bound descriptors by the shaders of a bound pipeline (rules.md#shaders)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from harness.commands.drawing.bind import STAGES_OF
from harness.commands.drawing.invocations import Invocations, built_ins
from harness.commands.drawing.shader_memory import ReachedMemory, behind_address, behind_descriptor
from harness.commands.object_state import BoundSet, CommandBuffer, LateEffects, ObjectState
from harness.commands.rendering.attachment_access import attachment_effects
from harness.commands.resources.acceleration_structures import structure
from harness.findings import Certainty
from harness.spans import Span, merge
from harness.spec.enums import VkDescriptorType, VkPipelineBindPoint, VkShaderStage
from harness.spec.scopes import ACCESS_KIND, bits
from harness.trace.attachment_operations import AttachmentOperation, RasterizationOrder
from harness.trace.effects import Access, Effect, Unmodelled
from harness.trace.graphics_state import Targets
from harness.trace.resources import Pipeline

if TYPE_CHECKING:
    from harness.shader.reach import LoadedPlace, Reach, ShaderTouch
    from harness.shader.reflect import ReflectedEntryPoint, ResourceUse

STAGE_NAMES = {
    VkShaderStage.VERTEX: "VERTEX_SHADER",
    VkShaderStage.TESSELLATION_CONTROL: "TESSELLATION_CONTROL_SHADER",
    VkShaderStage.TESSELLATION_EVALUATION: "TESSELLATION_EVALUATION_SHADER",
    VkShaderStage.GEOMETRY: "GEOMETRY_SHADER",
    VkShaderStage.FRAGMENT: "FRAGMENT_SHADER",
    VkShaderStage.COMPUTE: "COMPUTE_SHADER",
    VkShaderStage.TASK_EXT: "TASK_SHADER_EXT",
    VkShaderStage.MESH_EXT: "MESH_SHADER_EXT",
}
"""The name of each VkShaderStageFlagBits stage as access names spell it."""
STAGE_NAMES |= dict.fromkeys(bits(STAGES_OF[VkPipelineBindPoint.RAY_TRACING_KHR]), "RAY_TRACING_SHADER")

SURE_STAGES = (VkShaderStage.COMPUTE, VkShaderStage.VERTEX)
"""Stages that run for sure once a dispatch or draw does."""
FAR = 1 << 32
MOST_SHADER_EFFECTS = 1 << 14
"""The most combinations of a pipeline and its bindings that are remembered."""
NOTHING_LOADED: Mapping[LoadedPlace, int] = MappingProxyType({})
MOST_ELEMENTS = 4096
"""The most descriptors that one index that is not known may choose from."""


class StageUses:
    """What the stages of one pipeline use."""

    def __init__(self, pipeline: Pipeline) -> None:
        from harness.shader.reach import pointer_places
        from harness.shader.reflect import reflect  # a program without shaders does without it

        self.entries = [reflect(each.code, each.entry, each.specialization, each.stage) for each in pipeline.stages]
        self.writes = any(use.writes for entry in self.entries for use in entry.uses)
        self.varies = any(entry.varies for entry in self.entries)
        self.loaded = sorted({place for entry in self.entries for place in entry.loaded})
        self.pointers = {place for entry in self.entries for place in pointer_places(entry.nodes, entry.addressed)}
        """Those of `loaded` that are device addresses."""
        self._pushed = sorted({place for entry in self.entries for place in entry.pushed})

    def key(self, buffer: CommandBuffer, run: Invocations) -> tuple[Any, ...]:
        """What the accesses depend on beside the descriptor sets."""
        if not self.varies:
            return ()
        return (run, *(buffer.constants.read(*place) for place in self._pushed)) if self._pushed else (run,)


def stage_uses(objects: ObjectState, pipeline: Pipeline) -> StageUses:
    """What the stages of a pipeline use. Their code is read once."""
    found = objects.reflected.get(pipeline.id)
    if found is None:
        found = objects.reflected[pipeline.id] = StageUses(pipeline)
    assert isinstance(found, StageUses)
    return found


def shader_effects(
    objects: ObjectState, buffer: CommandBuffer, bind_point: int, run: Invocations, idle: int = 0
) -> tuple[Effect, ...]:
    """The accesses of every stage of the bound pipeline in the invocations `run`. The spans of equal accesses are
    joined.

    `idle` holds the stages (VkShaderStageFlags) that do not run. The result is remembered for a pipeline, its sets and
    what it depends on beside them, until a set is written or any object that a descriptor may refer to is destroyed.
    It is not remembered where a set means more than its descriptors tell: what was pushed, what the render pass
    instance has, and what an acceleration structure was built from.
    """
    pipeline = buffer.pipelines.get(bind_point)
    if pipeline is None or not pipeline.stages:
        return (Unmodelled("a pipeline whose shaders were not seen"),)
    sets = buffer.sets.get(bind_point, {})
    uses = stage_uses(objects, pipeline)
    parts: list[Any] = [pipeline.id, idle, *uses.key(buffer, run)] if uses.varies else [pipeline.id, idle]
    remembered = True
    for index, bound in sets.items():
        if bound.set.id == 0 or bound.set.layout.refers_further:
            remembered = False
        if bound.set.layout.late:
            buffer.late = _late(objects, buffer, pipeline, sets, run, idle)
        parts += (index, bound.key)
    if not remembered:
        return tuple(_shader_effects(objects, buffer, uses, sets, run, idle))
    key = tuple(parts)
    made = objects.shader_effects.get(key)
    if made is None:
        made = _remember(objects, key, sets, tuple(_shader_effects(objects, buffer, uses, sets, run, idle)))
    return made


def _remember(
    objects: ObjectState, key: tuple[Any, ...], sets: Mapping[int, BoundSet], made: tuple[Effect, ...]
) -> tuple[Effect, ...]:
    """Keeps what shaders access by these sets until one of them is written."""
    if len(objects.shader_effects) >= MOST_SHADER_EFFECTS:
        objects.forget_effects()
    objects.shader_effects[key] = made
    for bound in sets.values():
        objects.effects_of_set.setdefault(bound.set.id, []).append(key)
    return made


def _late(
    objects: ObjectState,
    buffer: CommandBuffer,
    pipeline: Pipeline,
    sets: dict[int, BoundSet],
    run: Invocations,
    idle: int,
) -> LateEffects:
    """What a command with these bindings accesses through bindings that may be written until the submit.

    Specification: VK_DESCRIPTOR_BINDING_UPDATE_AFTER_BIND_BIT of "VkDescriptorBindingFlagBits".
    """
    then = replace(buffer, constants=copy(buffer.constants), late=None)
    bound = dict(sets)

    uses = stage_uses(objects, pipeline)
    before = ("late", pipeline.id, idle, *uses.key(buffer, run))

    def effects() -> tuple[Effect, ...]:
        key = (*before, *((index, *each.key) for index, each in bound.items()))
        made = objects.shader_effects.get(key)
        if made is None:
            found = tuple(_shader_effects(objects, then, uses, bound, run, idle, late=True))
            made = _remember(objects, key, bound, found)
        return objects.aliasing.widen(made) if objects.aliasing else made

    return LateEffects(effects, uses.writes)


def effects_by_loads(
    objects: ObjectState,
    buffer: CommandBuffer,
    pipeline: Pipeline,
    sets: dict[int, BoundSet],
    run: Invocations,
    idle: int,
) -> Callable[[Mapping[LoadedPlace, int]], tuple[Effect, ...]]:
    """What a command with these bindings accesses, by the values of members of blocks that its shaders load."""
    then = replace(buffer, constants=copy(buffer.constants), late=None)
    uses = stage_uses(objects, pipeline)
    before = (
        "loaded",
        pipeline.id,
        idle,
        *uses.key(buffer, run),
        *((index, *each.key) for index, each in sets.items()),
    )
    remembered = all(each.set.id and not each.set.layout.refers_further for each in sets.values())

    def effects(loaded: Mapping[LoadedPlace, int]) -> tuple[Effect, ...]:
        key = (*before, *loaded.items())
        made = objects.shader_effects.get(key) if remembered else None
        if made is None:
            made = tuple(_shader_effects(objects, then, uses, sets, run, idle, loaded=loaded))
            made = _remember(objects, key, sets, made) if remembered else made
        return objects.aliasing.widen(made) if objects.aliasing else made

    return effects


def _shader_effects(
    objects: ObjectState,
    buffer: CommandBuffer,
    uses: StageUses,
    sets: dict[int, BoundSet],
    run: Invocations,
    idle: int,
    late: bool = False,
    loaded: Mapping[LoadedPlace, int] = NOTHING_LOADED,
) -> Iterator[Effect]:
    joined: dict[tuple[int, int, int, bool, RasterizationOrder, AttachmentOperation, Certainty], list[Span]] = {}
    for entry in uses.entries:
        if entry.stage & idle:
            continue
        for effect in StageAccesses(objects, buffer, entry, sets, run, loaded).effects(late):
            if isinstance(effect, Access):
                how = (effect.atomic, effect.order, effect.operation, effect.certainty)
                joined.setdefault((effect.access_kind, effect.space, effect.resource, *how), []).extend(effect.spans)
            else:
                yield effect
    # Where a shader reads a byte in both ways, the surer access counts, which is made last.
    for key, spans in sorted(joined.items(), key=lambda item: item[0][-1] is Certainty.EXACT):
        access_kind, space, resource, atomic, order, operation, certainty = key
        where = (access_kind, space, tuple(merge(spans)), resource)
        yield Access(*where, atomic, order, operation, certainty=certainty)


def whole_ranges(objects: ObjectState, buffer: CommandBuffer, bind_point: int) -> Iterator[Access]:
    """What the stages of the bound pipeline would access if each use of a buffer reached all of its descriptor: as a
    write where a variable is stored to, else as a read. For those who look at descriptors alone."""
    pipeline = buffer.pipelines.get(bind_point)
    sets = buffer.sets.get(bind_point, {})
    for entry in stage_uses(objects, pipeline).entries if pipeline is not None and pipeline.stages else ():
        for use in entry.uses:
            bound = sets.get(use.set)
            for element in use.elements or () if bound is not None and (use.reads or use.writes) else ():
                place = (use.binding, element)
                held = bound.set.slots.get(place) if bound is not None else None
                offset = bound.offsets.get(place, 0) if bound is not None else 0
                memory = None if held is None else behind_descriptor(objects, held, offset)
                if memory is not None and not memory.whole:
                    kind = "SHADER_STORAGE_WRITE" if use.plain_writes else memory.read_access
                    access_kind = ACCESS_KIND[f"SYNC_{STAGE_NAMES[entry.stage]}_{kind}"].index
                    yield Access(access_kind, memory.space, memory.spans, memory.resource)


class StageAccesses:
    """The accesses of one stage in one dispatch or draw."""

    def __init__(
        self,
        objects: ObjectState,
        buffer: CommandBuffer,
        entry: ReflectedEntryPoint,
        sets: dict[int, BoundSet],
        run: Invocations,
        loaded: Mapping[LoadedPlace, int],
    ) -> None:
        from harness.shader.reach import Evaluation, KnownInputs

        self._objects = objects
        self._buffer = buffer
        self._entry = entry
        self._sets = sets
        self._memory: dict[tuple[int, ...], ReachedMemory | None] = {}
        """By (set, binding, element), or by (buffer,) behind an address."""
        self._others: dict[Effect, None] = {}
        """Accesses that are no plain memory of a descriptor, and what is not modelled."""
        ranges, complete = built_ins(run, entry)
        inputs = KnownInputs(ranges, complete, buffer.constants.read, self._length, loaded)
        self._evaluation = Evaluation(entry.nodes, inputs)

    def effects(self, late: bool) -> Iterator[Effect]:
        """Those through bindings that may be written after they are bound (`late`), or all others."""
        if not late:
            self._others.update(dict.fromkeys(map(Unmodelled, self._entry.unmodelled)))
        for use in self._entry.uses:
            bound = self._sets.get(use.set)
            binding = None if bound is None else bound.set.layout.bindings.get(use.binding)
            for touch in use.touches if binding is not None and binding.late == late else ():
                reach = self._evaluation.reach(touch)
                if reach is not None:
                    for element in self._elements(use, reach.elements):
                        self._touch(use, element, touch, reach)
        for touch in () if late else self._entry.addressed:
            reach = self._evaluation.reach(touch)
            if reach is not None:
                self._follow(touch, reach)
        yield from self._others
        name = STAGE_NAMES[self._entry.stage]
        for memory in self._memory.values():
            if memory is not None:
                yield from memory.accesses(name)

    def _elements(self, use: ResourceUse, chosen: Span | None) -> Iterable[int]:
        """The descriptors of an array that may be meant. Those that were never written are none."""
        if chosen is not None and chosen[1] - chosen[0] < MOST_ELEMENTS:
            return range(chosen[0], chosen[1] + 1)
        low, high = (0, FAR) if chosen is None else chosen
        slots = self._sets[use.set].set.slots
        found = [at for binding, at in slots if binding == use.binding and low <= at <= high]
        if len(found) > MOST_ELEMENTS:
            self._others[Unmodelled(f"an index into an array of more than {MOST_ELEMENTS} descriptors")] = None
            return ()
        return found

    def _touch(self, use: ResourceUse, element: int, touch: ShaderTouch, reach: Reach) -> None:
        # Elements past the end of a binding continue in the next one only for updates, never for access.
        bound = self._sets[use.set]
        held = bound.set.slots.get((use.binding, element))
        if held is None:
            return
        if held.type == VkDescriptorType.INPUT_ATTACHMENT:
            targets = Targets(inputs=(held.resource,))
            self._others.update(dict.fromkeys(attachment_effects(self._objects, self._buffer, targets)))
        elif held.type == VkDescriptorType.ACCELERATION_STRUCTURE_KHR:
            read = ACCESS_KIND[f"SYNC_{STAGE_NAMES[self._entry.stage]}_ACCELERATION_STRUCTURE_READ"].index
            for effect in structure(self._objects, read, held.resource):
                self._others[
                    replace(effect, certainty=Certainty.DECLARED) if isinstance(effect, Access) else effect
                ] = None
        else:
            memory = self._behind(bound, use.set, use.binding, element)
            if memory is not None:
                memory.add(touch, reach, self._entry.stage in SURE_STAGES)

    def _behind(self, bound: BoundSet, index: int, binding: int, element: int) -> ReachedMemory | None:
        place = (index, binding, element)
        if place not in self._memory:
            held = bound.set.slots.get((binding, element))
            offset = bound.offsets.get((binding, element), 0)
            self._memory[place] = None if held is None else behind_descriptor(self._objects, held, offset)
        return self._memory[place]

    def _follow(self, touch: ShaderTouch, reach: Reach) -> None:
        """An access through a device address."""
        found = behind_address(self._objects, touch, reach)
        if found is None:
            self._others[Unmodelled("PhysicalStorageBuffer")] = None
            return
        memory = self._memory.setdefault((found[0].resource,), found[0])
        assert memory is not None
        memory.add(touch, found[1], self._entry.stage in SURE_STAGES)

    def _length(self, index: int, binding: int, element: int) -> int | None:
        """The bytes of the range of a buffer descriptor."""
        bound = self._sets.get(index)
        memory = None if bound is None else self._behind(bound, index, binding, element)
        return None if memory is None else memory.spans[0][1] - memory.spans[0][0]
