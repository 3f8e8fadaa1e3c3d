"""The static uses of the bound descriptors by the shaders of a bound pipeline (rules.md#shaders)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from vkharness.commands.drawing.bind_points import STAGES_OF
from vkharness.commands.drawing.descriptor_buffers import descriptor_reads
from vkharness.commands.drawing.descriptors import UNFOLLOWED_TYPES, UNKNOWN
from vkharness.commands.drawing.followed_invocations import Followed, StageInputs, followed
from vkharness.commands.drawing.invocations import Invocations, built_ins
from vkharness.commands.drawing.plans_by_sets import PlansBySets
from vkharness.commands.drawing.set_contents import contents_of
from vkharness.commands.drawing.shader_memory import (
    Held,
    ReachedAnywhere,
    ReachedMemory,
    behind_address,
    behind_descriptor,
    joined,
)
from vkharness.commands.drawing.viewed_texels import extent
from vkharness.commands.object_state import BoundSet, CommandBuffer, LateEffects, ObjectState
from vkharness.commands.rendering.attachment_access import attachment_effects
from vkharness.commands.resources.acceleration_structures import structure
from vkharness.findings import Certainty
from vkharness.spans import Span
from vkharness.spec.enums import VkDescriptorType, VkPipelineBindPoint, VkShaderStage
from vkharness.spec.scopes import ACCESS_KIND, bits
from vkharness.trace.effects import Access, Effect, EffectPlan, Unmodelled
from vkharness.trace.graphics_state import Targets
from vkharness.trace.resources import DescriptorsInMemory, Pipeline

if TYPE_CHECKING:
    from vkharness.shader.lanes.reached_places import ReachedBytes, ReachedTexels
    from vkharness.shader.reach import LoadedPlace, Reach, ShaderTouch
    from vkharness.shader.reflect import ReflectedEntryPoint, ResourceUse

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
ADDRESSES = "PhysicalStorageBuffer"
"""The name of an unmodelled effect: accesses of a shader through a device address of which nothing is known."""
NO_BUFFER = "a device address of no known buffer"
MOST_ANYWHERE = 1024
"""The most buffers that such an address is taken to lead to."""
UNKNOWN_CONTENTS = "descriptors in memory whose bytes are unknown"
NO_EFFECTS = EffectPlan(())
NO_SETS: dict[int, BoundSet] = {}
MemoryOf = Callable[[tuple[int, ...]], ReachedMemory | None]
"""The memory of a (set, binding, element)."""
NOTHING_LOADED: Mapping[LoadedPlace, int] = MappingProxyType({})
MOST_ELEMENTS = 4096
"""The most descriptors that one index that is not known may choose from."""


class StageUses:
    """Descriptors, push constants and loaded values that the stages of one pipeline use, and their accesses."""

    def __init__(self, pipeline: Pipeline) -> None:
        from vkharness.shader import values
        from vkharness.shader.accesses import READ
        from vkharness.shader.reach import pointer_places
        from vkharness.shader.reflect import reflect  # a program without shaders does without it
        from vkharness.shader.variables import IMAGES

        self.entries = [reflect(each.code, each.entry, each.specialization, each.stage) for each in pipeline.stages]
        self.writes = any(use.writes for entry in self.entries for use in entry.uses)
        self.stores = self.writes or any(
            ADDRESSES in entry.unmodelled or any(touch.flags != READ for touch in entry.addressed)
            for entry in self.entries
        )
        """Whether they may write memory, also through device addresses."""
        self.varies = any(entry.varies for entry in self.entries)
        self.loaded = sorted({place for entry in self.entries for place in entry.loaded})
        self.pointers = {place for entry in self.entries for place in pointer_places(entry.nodes, entry.addressed)}
        """Those of `loaded` that are device addresses."""
        self.is_addressed = any(entry.addressed for entry in self.entries)
        """Whether accesses go through device addresses."""
        self.has_texels = any(
            entry.code is not None and any(use.kind in IMAGES and use.touches for use in entry.uses)
            for entry in self.entries
        )
        """Whether texels of images that are accessed are told apart."""
        sized = {node.args[:2] for entry in self.entries for node in entry.nodes if node.op == values.LENGTH}
        self.bindings = {(use.set, use.binding) for entry in self.entries for use in entry.uses} | sized
        """(set, binding) of the descriptors that they use, or of which they ask for the size."""
        self.sets = tuple(sorted({index for index, _ in self.bindings}))
        self.pushed = sorted({place for entry in self.entries for place in entry.pushed})
        """(offset, size) of the push constants on which accesses depend."""

    def descriptor_reads(self, objects: ObjectState, sets: Mapping[int, BoundSet], idle: int) -> Iterator[Access]:
        """The reads of descriptors in memory, in the stages that run."""
        for entry in self.entries:
            if not entry.stage & idle:
                yield from descriptor_reads(objects, entry, sets, STAGE_NAMES[entry.stage])

    def anywhere(self, objects: ObjectState, idle: int) -> tuple[Access, ...] | None:
        """Gives the most accesses of the stages that run through device addresses of which nothing is known: of any
        buffer of which the program asked for the address. None where these are too many."""
        from vkharness.shader.accesses import READ

        several = objects.addresses.every()
        if len(several) > MOST_ANYWHERE:
            return None
        kinds: dict[str, None] = {}
        for entry in [each for each in self.entries if not each.stage & idle]:
            flags = {touch.flags for touch in entry.addressed}
            if ADDRESSES in entry.unmodelled or flags:
                kinds[f"SYNC_{STAGE_NAMES[entry.stage]}_SHADER_STORAGE_READ"] = None
            if ADDRESSES in entry.unmodelled or flags - {READ}:
                kinds[f"SYNC_{STAGE_NAMES[entry.stage]}_SHADER_STORAGE_WRITE"] = None
        return tuple(
            Access(ACCESS_KIND[kind].index, each.space, (each.span(0, each.size),), each.id, certainty=Certainty.BOUND)
            for kind in kinds
            for each in several
        )

    def used(self, index: int) -> list[tuple[int, tuple[int, ...] | None]]:
        """The bindings of a set that they use, with the elements of their arrays; None for any. Samplers, which mean no
        memory, are left out."""
        found: dict[int, set[int] | None] = {}
        for use in [use for entry in self.entries for use in entry.uses if use.set == index and use.kind != "sampler"]:
            held = found.setdefault(use.binding, set())
            found[use.binding] = None if held is None or use.elements is None else held.union(use.elements)
        return [(binding, None if held is None else tuple(sorted(held))) for binding, held in sorted(found.items())]

    def key(self, buffer: CommandBuffer, run: Invocations) -> tuple[Any, ...]:
        """Gives the values on which the accesses depend beside the descriptor sets: invocations and push constants. How
        sure accesses are that do not vary follows from which invocations are known."""
        known = (run,) if self.varies else run.known
        return (*known, *(buffer.constants.read(*place) for place in self.pushed)) if self.pushed else known


def stage_uses(objects: ObjectState, pipeline: Pipeline) -> StageUses:
    """Gives the uses of the stages of a pipeline. Their code is read once."""
    found = objects.reflected.get(pipeline.id)
    if found is None:
        found = objects.reflected[pipeline.id] = StageUses(pipeline)
    assert isinstance(found, StageUses)
    return found


def shader_effects(
    objects: ObjectState, buffer: CommandBuffer, bind_point: int, run: Invocations, idle: int = 0
) -> tuple[Effect, ...]:
    """The accesses of every stage of the bound pipeline in the invocations `run`. The spans of equal accesses are
    joined. `idle` holds the stages (VkShaderStageFlags) that do not run."""
    return shader_plan(objects, buffer, bind_point, run, idle).effects


def shader_plan(
    objects: ObjectState, buffer: CommandBuffer, bind_point: int, run: Invocations, idle: int = 0
) -> EffectPlan:
    """The same as a plan (`ShaderRun.plan`)."""
    pipeline = buffer.pipelines.get(bind_point)
    if pipeline is None or not pipeline.stages or pipeline.unmodelled:
        return EffectPlan((Unmodelled((pipeline and pipeline.unmodelled) or "a pipeline whose shaders were not seen"),))
    sets = buffer.sets.get(bind_point, NO_SETS)
    uses = stage_uses(objects, pipeline)
    objects.shaders.stores = objects.shaders.stores or uses.stores
    shaders = ShaderRun(objects, buffer, pipeline.id, uses, sets, run, bind_point, idle)
    for bound in sets.values():
        if bound.set.layout.late and not isinstance(bound.set, DescriptorsInMemory):
            then = replace(buffer, constants=copy(buffer.constants), late=None)
            later = shaders._replace(buffer=then, sets=dict(sets))
            buffer.late = LateEffects(partial(_late, later), shaders.uses.writes)
            break
    return shaders.plan()


def _late(shaders: ShaderRun) -> tuple[Effect, ...]:
    """Gives the accesses of a command through those of its bindings that may be written until the submit.

    Specification: VK_DESCRIPTOR_BINDING_UPDATE_AFTER_BIND_BIT of "VkDescriptorBindingFlagBits".
    """
    made = shaders.plan(late=True).effects
    return shaders.objects.aliasing.widen(made) if shaders.objects.aliasing else made


EffectsByLoads = Callable[[Mapping[int, BoundSet], "Mapping[LoadedPlace, int]"], tuple[Effect, ...]]
"""Gives the effects of a command, from its sets and from the values of members of blocks that its shaders load."""


def effects_by_loads(
    objects: ObjectState, buffer: CommandBuffer, pipeline: Pipeline, bind_point: int, run: Invocations, idle: int
) -> EffectsByLoads:
    """Makes the function that gives the effects of a command with these bindings and its present push constants."""
    then = replace(buffer, constants=copy(buffer.constants), late=None)
    uses = stage_uses(objects, pipeline)

    def effects(sets: Mapping[int, BoundSet], loaded: Mapping[LoadedPlace, int]) -> tuple[Effect, ...]:
        made = ShaderRun(objects, then, pipeline.id, uses, sets, run, bind_point, idle).plan(loaded=loaded).effects
        return objects.aliasing.widen(made) if objects.aliasing else made

    return effects


class ShaderRun(NamedTuple):
    """The shaders of a pipeline in one dispatch or draw, with what is bound.

    Their accesses are remembered by value, twice. Equal pipelines, invocations, push constants and contents of sets
    have one plan (`PlansBySets`). Memory of the same sizes in other places is reached in the same bytes, so that
    accesses that were found once are moved there (`_moved`). Only what is new in both ways is evaluated.
    """

    objects: ObjectState
    buffer: CommandBuffer
    pipeline: int
    uses: StageUses
    sets: Mapping[int, BoundSet]
    run: Invocations
    point: int
    """VkPipelineBindPoint."""
    idle: int = 0

    def plan(self, late: bool = False, loaded: Mapping[LoadedPlace, int] = NOTHING_LOADED) -> EffectPlan:
        """The accesses through bindings that may be written after they are bound (`late`), or all others. `loaded`
        are the values that are known of members of blocks."""
        start: tuple[Any, ...] = (self.pipeline, self.idle, *self.uses.key(self.buffer, self.run))
        if late or loaded:
            start += (late, *loaded.items())
        more = self._beside_memory()
        if more is None:
            return EffectPlan(tuple(self._evaluated(late, loaded)))
        known, point = self.objects.shaders, self.point
        table: PlansBySets | None = known.plans.get((*start, *more, point))
        if table is None:
            table = known.plans[(*start, *more, point)] = PlansBySets(point, self.uses.sets)
        key = table.key(self.objects, self.sets)
        found: EffectPlan | Literal[False] | None = table.get(key, False)
        if found is False:
            effects = self._moved(table, start, late, loaded)
            plan = EffectPlan(tuple(self._evaluated(late, loaded)) if effects is None else effects)
            found = plan if plan.effects else None
            table.keep(key, found)
        plan = found or NO_EFFECTS
        known.source = None if late or more or self.uses.loaded else (plan, table)
        return plan

    def _beside_memory(self) -> tuple[Any, ...] | None:
        """Gives the values that decide the accesses beside the memory behind the sets, by the kinds of bound sets. None
        where a set means more than can be told: an acceleration structure means what it was built from."""
        layouts = [self.sets[index].set.layout for index in self.uses.sets if index in self.sets]
        if any(each.has_structures for each in layouts):
            return None
        parts: tuple[Any, ...] = ()
        if any(each.has_inputs for each in layouts):
            buffer = self.buffer
            drawn = buffer.pipelines.get(VkPipelineBindPoint.GRAPHICS)
            parts = (buffer.rendering, buffer.inheritance is None, None if drawn is None else drawn.id)
        if self.uses.is_addressed:
            parts += (self.objects.moved, self.objects.addresses.changes)
        return parts

    def _moved(
        self, table: PlansBySets, start: tuple[Any, ...], late: bool, loaded: Mapping[LoadedPlace, int]
    ) -> tuple[Effect, ...] | None:
        """The accesses, found by those of memory of the same sizes. None where more decides them, as where a dynamic
        offset clips a range."""
        if self.uses.is_addressed or self.uses.has_texels:
            return None
        key: list[Any] = [*start]
        held: Held = {}
        for index in self.uses.sets:
            bound = self.sets.get(index)
            if bound is None:
                key.append(None)
                continue
            contents = contents_of(self.objects, bound.set)
            if contents.shape is None:
                return None
            key.append(contents.shape)
            held[index] = contents.memories, bound.dynamic
        reaches = self.objects.shaders.reaches
        alike = tuple(key)
        reached = reaches.get(alike)
        if reached is None:
            reached = reaches[alike] = self._anywhere(held, late, loaded)
        table.reach(alike[len(start) :], reached)
        return reached.at(held)

    def _anywhere(self, held: Held, late: bool, loaded: Mapping[LoadedPlace, int]) -> ReachedAnywhere:
        """Finds the accesses of memory of these sizes, wherever it lies."""
        used = [
            (index, place, self.sets[index].set.layout.dynamic.get(place, -1))
            for index, (memories, _) in held.items()
            for place in memories
            if (index, place[0]) in self.uses.bindings
        ]
        numbers: dict[tuple[int, ...], int] = {(index, *place): number for number, (index, place, _) in enumerate(used)}

        def behind(place: tuple[int, ...]) -> ReachedMemory | None:
            number = numbers.get(place)
            return None if number is None else held[place[0]][0][place[1], place[2]].at_its_begin(number)

        return ReachedAnywhere.of(self._evaluated(late, loaded, behind), used)

    def _evaluated(
        self, late: bool, loaded: Mapping[LoadedPlace, int], behind: MemoryOf | None = None
    ) -> Iterator[Effect]:
        """The accesses, found out stage by stage. `behind` gives the memory of a descriptor, if it is not the one that
        is bound."""
        found: list[Access] = []
        for entry in self.uses.entries:
            if not entry.stage & self.idle:
                for effect in StageAccesses(self, entry, loaded, behind).effects(late):
                    if isinstance(effect, Access):
                        found.append(effect)
                    else:
                        yield effect
        yield from joined(found)


def whole_ranges(objects: ObjectState, buffer: CommandBuffer, bind_point: int) -> Iterator[Access]:
    """Yields the accesses of the stages of the bound pipeline as if each use of a buffer or image reached all of its
    descriptor: as a write where a variable is stored to, else as a read. For those who look at descriptors alone."""
    from vkharness.shader.variables import IMAGES

    pipeline = buffer.pipelines.get(bind_point)
    sets = buffer.sets.get(bind_point, {})
    for entry in stage_uses(objects, pipeline).entries if pipeline is not None and pipeline.stages else ():
        for use in entry.uses:
            bound = sets.get(use.set)
            for element in use.elements or () if bound is not None and (use.reads or use.writes) else ():
                place = (use.binding, element)
                held = bound.set.slots.get(place) if bound is not None else None
                offset = bound.offset(place) if bound is not None else 0
                memory = None if held is None else behind_descriptor(objects, held, offset)
                if memory is not None and (use.kind in IMAGES or not memory.whole):
                    kind = "SHADER_STORAGE_WRITE" if use.plain_writes else memory.read_access
                    access_kind = ACCESS_KIND[f"SYNC_{STAGE_NAMES[entry.stage]}_{kind}"].index
                    yield Access(access_kind, memory.space, memory.spans, memory.resource)


class StageAccesses:
    """The accesses of one stage in one dispatch or draw."""

    def __init__(
        self, shaders: ShaderRun, entry: ReflectedEntryPoint, loaded: Mapping[LoadedPlace, int], behind: MemoryOf | None
    ) -> None:
        from vkharness.shader.reach import Evaluation, KnownInputs

        self._objects = shaders.objects
        self._buffer = shaders.buffer
        self._entry = entry
        self._sets = shaders.sets
        self._find = self._bound_memory if behind is None else behind
        self._memory: dict[tuple[int, ...], ReachedMemory | None] = {}
        """By (set, binding, element), or by (buffer,) behind an address."""
        self._walked: Followed | Literal[False] | None = False
        """The memory that the invocations reach; None where that is not known, False before they were followed."""
        self._others: dict[Effect, None] = {}
        """Accesses that are no plain memory of a descriptor, and what is not modelled."""
        ranges, complete = built_ins(shaders.run, entry)
        inputs = KnownInputs(ranges, complete, self._buffer.constants.read, self._length, loaded)
        self._evaluation = Evaluation(entry.nodes, inputs)
        samplers = shaders.objects.shaders.samplers
        self._inputs = StageInputs(shaders.run, inputs, self._size, samplers.levels, samplers.number)

    def effects(self, late: bool) -> Iterator[Effect]:
        """Those through bindings that may be written after they are bound (`late`), or all others."""
        if not late:
            self._others.update(dict.fromkeys(map(Unmodelled, self._entry.unmodelled)))
        for use in self._entry.uses:
            bound = self._sets.get(use.set)
            if bound is None or not bound.is_used(use.binding, late):
                continue
            if isinstance(bound.set, DescriptorsInMemory) and not bound.set.is_read:
                self._others[Unmodelled(UNKNOWN_CONTENTS)] = None
                continue
            for touch in use.touches:
                for element, reached in self._reached(use, touch):
                    self._touch(use, element, touch, reached)
        for touch in () if late else self._entry.addressed:
            reach = self._evaluation.reach(touch)
            if reach is not None:
                self._follow(touch, reach)
        yield from self._others
        name = STAGE_NAMES[self._entry.stage]
        for memory in self._memory.values():
            if memory is not None:
                yield from memory.accesses(name)

    def _reached(self, use: ResourceUse, touch: ShaderTouch) -> Iterator[tuple[int, Reach | ReachedTexels]]:
        """Yields the bytes or texels that one access reaches of each descriptor of an array, with its array element."""
        reach = self._evaluation.reach(touch)
        if reach is None:
            return
        found = None if reach.exact else self._followed(use, touch)
        if found is None:
            yield from ((element, reach) for element in self._elements(use, reach.elements))
            return
        for element, each in found.items():
            if isinstance(each, tuple):
                yield from ((element, reach._replace(spans=spans, exact=sure)) for spans, sure in each.parts() if spans)
            else:
                yield element, each

    def _followed(self, use: ResourceUse, touch: ShaderTouch) -> Mapping[int, ReachedBytes | ReachedTexels] | None:
        """The same, found by executing what decides it; None where that does not tell it."""
        from vkharness.shader.variables import BUFFERS, IMAGES

        images = use.kind in IMAGES
        if self._entry.code is None or not touch.sites or not (images or use.kind in BUFFERS):
            return None
        if self._walked is False:
            self._walked = followed(self._entry, self._inputs)
        if self._walked is None or self._walked.walked is None or not (images or self._walked.complete):
            return None
        from vkharness.shader.lanes.reached_places import joined as joined_reaches

        found = self._walked.walked.found
        if any((*site[:2], 0) in found for site in touch.sites):
            return None
        return joined_reaches(found[site] for site in touch.sites if site in found)

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

    def _touch(self, use: ResourceUse, element: int, touch: ShaderTouch, reach: Reach | ReachedTexels) -> None:
        # Elements past the end of a binding continue in the next one only for updates, never for access.
        bound = self._sets[use.set]
        held = bound.set.slots.get((use.binding, element))
        if held is None:
            return
        if held.type == UNKNOWN:
            self._others[Unmodelled(UNKNOWN_CONTENTS)] = None
        elif held.type in UNFOLLOWED_TYPES:
            self._others[Unmodelled("a shader with a descriptor of a tensor, or of a structure of one vendor")] = None
        elif held.type == VkDescriptorType.INPUT_ATTACHMENT:
            targets = Targets(inputs=(held.resource,))
            self._others.update(dict.fromkeys(attachment_effects(self._objects, self._buffer, targets)))
        elif held.type == VkDescriptorType.ACCELERATION_STRUCTURE_KHR:
            read = ACCESS_KIND[f"SYNC_{STAGE_NAMES[self._entry.stage]}_ACCELERATION_STRUCTURE_READ"].index
            for effect in structure(self._objects, read, held.resource):
                self._others[
                    replace(effect, certainty=Certainty.DECLARED) if isinstance(effect, Access) else effect
                ] = None
        else:
            memory = self._behind(use.set, use.binding, element)
            if memory is None:
                return
            sure = self._entry.stage in SURE_STAGES
            if isinstance(reach, tuple):
                memory.add(touch, reach, sure)
            else:
                memory.add_texels(touch.flags, reach, sure)

    def _behind(self, *place: int) -> ReachedMemory | None:
        if place not in self._memory:
            self._memory[place] = self._find(place)
        return self._memory[place]

    def _bound_memory(self, place: tuple[int, ...]) -> ReachedMemory | None:
        bound, at = self._sets[place[0]], (place[1], place[2])
        held = bound.set.slots.get(at)
        return None if held is None else behind_descriptor(self._objects, held, bound.offset(at))

    def _follow(self, touch: ShaderTouch, reach: Reach) -> None:
        """An access through a device address."""
        found = behind_address(self._objects, touch, reach)
        if found is None:
            self._others[Unmodelled(NO_BUFFER if reach.spans else ADDRESSES)] = None
            return
        memory = self._memory.setdefault((found[0].resource,), found[0])
        assert memory is not None
        memory.add(touch, found[1], self._entry.stage in SURE_STAGES)

    def _size(self, index: int, binding: int, element: int, level: int) -> tuple[int, int, int] | None:
        """The extent of a mip level of the view of an image descriptor."""
        memory = self._behind(index, binding, element) if index in self._sets else None
        return None if memory is None or memory.view is None else extent(*memory.view, level)

    def _length(self, index: int, binding: int, element: int) -> int | None:
        """The bytes of the range of a buffer descriptor."""
        memory = self._behind(index, binding, element) if index in self._sets else None
        return None if memory is None else memory.spans[0][1] - memory.spans[0][0]
