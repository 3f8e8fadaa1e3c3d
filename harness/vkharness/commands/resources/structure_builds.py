"""Builds of acceleration structures: what each reads and writes, and which structures its instances name.

Instances and the ranges of indirect builds lie in device memory. Where its contents are known when the build is
executed, the accesses are exact. Instances of which nothing is known may name any structure that is built.
Specification: "Acceleration Structures"; rules.md#a-top-level-build-reads-the-structures-of-its-instances.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from vkharness.commands.contents.built_structures import (
    MOST_NAMED,
    NOWHERE,
    Built,
    BuiltStructures,
    Leads,
    StructurePlace,
    StructuresBuilt,
)
from vkharness.commands.contents.content_steps import Deferred, Outcome, Overwritten, StructureStep, overwritten
from vkharness.commands.contents.known_memory import KnownMemory
from vkharness.commands.drawing.geometry import (
    INSTANCE_BYTES,
    RANGE,
    Info,
    InstanceArray,
    geometries,
    has_instances,
    inputs,
    instance_array,
    micromap_of,
)
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.commands.resources.acceleration_structures import addressed, scratch_bytes, structure, structure_place
from vkharness.findings import Certainty
from vkharness.spans import Span, merge
from vkharness.spec.enums import VkAccelerationStructureType, VkBuildAccelerationStructureMode
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.trace.effects import Access, Effect, Unmodelled
from vkharness.trace.operation_effects import NextOperation
from vkharness.trace.work_budget import spend

BUILD_READ = ACCESS_KIND["SYNC_ACCELERATION_STRUCTURE_BUILD_ACCELERATION_STRUCTURE_READ"].index
BUILD_WRITE = ACCESS_KIND["SYNC_ACCELERATION_STRUCTURE_BUILD_ACCELERATION_STRUCTURE_WRITE"].index
BUILD_INPUT = ACCESS_KIND["SYNC_ACCELERATION_STRUCTURE_BUILD_SHADER_READ"].index
BUILD_MICROMAP = ACCESS_KIND["SYNC_ACCELERATION_STRUCTURE_BUILD_MICROMAP_READ_EXT"].index
BUILD_INDIRECT = ACCESS_KIND["SYNC_ACCELERATION_STRUCTURE_BUILD_INDIRECT_COMMAND_READ"].index

RANGE_BYTES, REFERENCE_AT, REFERENCE_BYTES = 4 * len(RANGE), 56, 8
"""Where a VkAccelerationStructureInstanceKHR has accelerationStructureReference."""
MOTION = 0x20
"""VK_BUILD_ACCELERATION_STRUCTURE_MOTION_BIT_NV."""
MOST_APART = 4096
"""The most instances that are looked at one by one, where some of their bytes are unknown."""

UNKNOWN_RANGES = Unmodelled("inputs of an indirect acceleration structure build")
UNKNOWN_POINTERS = Unmodelled("instances behind pointers in device memory")
NO_STRUCTURE = Unmodelled("an instance of no known acceleration structure")
TOO_MANY = Unmodelled(f"instances that may be of more than {MOST_NAMED} acceleration structures")
MOTION_INSTANCES = Unmodelled("motion instances of an acceleration structure build")


class Build(NamedTuple):
    """One build of a command: a VkAccelerationStructureBuildGeometryInfoKHR, and one range for each geometry.

    The ranges of an indirect build are None; `places` are their addresses then, and `most` the most primitives.
    """

    info: Info
    ranges: tuple[Info, ...] | None
    most: tuple[int, ...] = ()
    places: tuple[int, ...] = ()

    @property
    def counts(self) -> list[int]:
        """How many primitives each geometry has, at most."""
        return list(self.most) if self.ranges is None else [each["primitiveCount"] for each in self.ranges]

    @property
    def is_late(self) -> bool:
        """Whether contents of memory decide what it reads."""
        return self.ranges is None or any(map(has_instances, geometries(self.info)))


def recorded_builds(objects: ObjectState, buffer: CommandBuffer, builds: Sequence[Build]) -> tuple[Effect, ...]:
    """Gives the accesses of the builds of a command while it is recorded. Nothing orders them with one another."""
    effects = tuple(_effects(objects, builds, None))
    if not any(each.is_late for each in builds):
        built = [(place, Built(True, NOWHERE)) for each in builds if (place := _target(objects, each)) is not None]
        note(buffer, StructuresBuilt(tuple(built)))
        return effects
    effects = tuple(replace(each, open=True) if isinstance(each, Unmodelled) else each for each in effects)
    step = LateBuilds(objects, tuple(builds), len(effects), writes=overwritten(effects) or Overwritten(()))
    buffer.defer(step, objects.contents)
    return effects


def note(buffer: CommandBuffer, step: StructureStep) -> None:
    """Notes what the command being recorded does to acceleration structures, beside what its effects write."""
    buffer.steps.append(step)
    buffer.steps.append(None)


@dataclass(slots=True)
class LateBuilds(Deferred):
    """Builds of which the contents of memory decide what they read."""

    objects: ObjectState = field(compare=False, repr=False)
    builds: tuple[Build, ...] = ()
    recorded: int = 0
    """How many effects the command has while it is recorded."""

    def outcome(self, memory: KnownMemory) -> Outcome:
        """All accesses."""
        return Outcome(tuple(_effects(self.objects, self.builds, memory)), replaced=self.recorded)

    def most(self) -> tuple[Access, ...]:
        """Reads of any structures."""
        return any_reads(self.objects, BUILD_READ)


def any_reads(objects: ObjectState, access_kind: int) -> tuple[Access, ...]:
    """Reads of all structures that instances may name one day."""
    places = objects.contents.memory.structures.addresses.values()
    return tuple(structure_reads(access_kind, places, Certainty.BOUND))


def structure_reads(access_kind: int, places: Iterable[StructurePlace], certainty: Certainty) -> Iterator[Access]:
    """Reads of structures, one for each buffer."""
    found: dict[tuple[int, int], list[Span]] = {}
    for place in places:
        found.setdefault((place.space, place.resource), []).append(place.span)
    for (space, resource), spans in sorted(found.items()):
        yield Access(access_kind, space, tuple(merge(spans)), resource, certainty=certainty)


def _target(objects: ObjectState, build: Build) -> StructurePlace | None:
    return structure_place(objects, build.info["dstAccelerationStructure"])


def _effects(objects: ObjectState, builds: Sequence[Build], memory: KnownMemory | None) -> Iterator[Effect]:
    """Yields the effects of builds with these contents of memory; `memory` is None while they are recorded."""
    made: list[tuple[StructurePlace, Built]] = []
    for number, each in enumerate(builds):
        if number:
            yield NextOperation()
        yield from _written(objects, each)
        named = _Named(objects, memory)
        yield from _inputs(objects, each, memory, named)
        yield from named.reads()
        place = _target(objects, each)
        if place is not None:
            bottom = each.info["type"] != VkAccelerationStructureType.TOP_LEVEL
            made.append((place, Built(bottom, named.leads())))
    if memory is not None:
        for place, built in made:
            memory.structures.build(place, built)


def _written(objects: ObjectState, build: Build) -> Iterator[Effect]:
    """The accesses of the structures of one build. An update reads its source, also where it is in place."""
    info = build.info
    update = info["mode"] == VkBuildAccelerationStructureMode.UPDATE
    if update:
        yield from structure(objects, BUILD_READ, info["srcAccelerationStructure"])
    yield from structure(objects, BUILD_WRITE, info["dstAccelerationStructure"])
    size = scratch_bytes(objects, info, build.counts, update)
    if size is None:
        yield Unmodelled("scratch memory whose size was not asked for")
    elif size:
        yield from addressed(objects, BUILD_WRITE, info["scratchData"].get("deviceAddress", 0), size)


def _inputs(objects: ObjectState, build: Build, memory: KnownMemory | None, named: _Named) -> Iterator[Effect]:
    """The reads of the ranges and the geometries of one build."""
    for place in build.places:
        yield from addressed(objects, BUILD_INDIRECT, place, RANGE_BYTES)
    ranges = build.ranges if build.ranges is not None else _ranges(objects, build, memory)
    if ranges is None:
        named.all_others()
        yield UNKNOWN_RANGES
        return
    for geometry, each in zip(geometries(build.info), ranges, strict=False):
        for piece in inputs(geometry, each):
            if isinstance(piece, str):
                yield Unmodelled(piece)
            else:
                yield from addressed(objects, BUILD_INPUT, *piece)
        if micromap_of(geometry) and each["primitiveCount"]:
            yield from structure(objects, BUILD_MICROMAP, micromap_of(geometry))
        array = instance_array(geometry, each)
        if array is not None:
            yield from named.look(array, bool(build.info["flags"] & MOTION))


def _ranges(objects: ObjectState, build: Build, memory: KnownMemory | None) -> tuple[Info, ...] | None:
    """The ranges of an indirect build; None where they are not known."""
    found: list[Info] = []
    for at, most in zip(build.places, build.most, strict=False):
        data = _read(objects, memory, at, RANGE_BYTES)
        if data is None:
            return None
        values: dict[str, Any] = dict(zip(RANGE, struct.unpack("<4I", data), strict=True))
        found.append(values | {"primitiveCount": min(most, values["primitiveCount"])})
    return tuple(found)


def _read(objects: ObjectState, memory: KnownMemory | None, address: int, size: int) -> bytes | None:
    """The bytes at a device address; None where they are not known."""
    held = None if memory is None else objects.addresses.find(address)
    if memory is None or held is None:
        return None
    buffer, offset = held
    span = buffer.span(offset, size)
    return memory.read(buffer.space, span) if span[1] - span[0] == size else None


class _Named:
    """The structures that the instances of one build name."""

    def __init__(self, objects: ObjectState, memory: KnownMemory | None) -> None:
        self._objects, self._memory = objects, memory
        self._places: dict[StructurePlace, None] = {}
        self._others = False

    @property
    def _structures(self) -> BuiltStructures:
        assert self._memory is not None
        return self._memory.structures

    def all_others(self) -> None:
        """Instances may name any."""
        self._others = True

    def look(self, array: InstanceArray, is_motion: bool) -> Iterator[Effect]:
        """Looks at instances. Answers with the reads of those behind pointers, and what is not modelled. While they
        are recorded it is open what they hold."""
        spend(array.number, "instances of acceleration structures")
        if self._memory is None:
            return
        if is_motion:
            self.all_others()
            yield MOTION_INSTANCES
        elif array.are_pointers:
            yield from self._pointers(array)
        else:
            data = _read(self._objects, self._memory, array.address, array.number * INSTANCE_BYTES)
            if data is not None:
                references = {each for (each,) in struct.iter_unpack(f"<{REFERENCE_AT}xQ", data)}
                yield from self._refer(references)
            elif array.number <= MOST_APART:
                starts = range(array.address, array.address + array.number * INSTANCE_BYTES, INSTANCE_BYTES)
                yield from self._refer({self._reference(each) for each in starts})
            else:
                self.all_others()

    def _pointers(self, array: InstanceArray) -> Iterator[Effect]:
        data = _read(self._objects, self._memory, array.address, array.number * array.stride)
        if data is None:
            self.all_others()
            yield UNKNOWN_POINTERS
            return
        pointers = sorted({each for (each,) in struct.iter_unpack("<Q", data)})
        for each in pointers:
            yield from addressed(self._objects, BUILD_INPUT, each, INSTANCE_BYTES)
        yield from self._refer({self._reference(each) for each in pointers})

    def _reference(self, instance: int) -> int | None:
        """The reference of an instance at an address; None where it is not known."""
        data = _read(self._objects, self._memory, instance + REFERENCE_AT, REFERENCE_BYTES)
        return None if data is None else int.from_bytes(data, "little")

    def _refer(self, references: set[int | None]) -> Iterator[Effect]:
        """Instances with these references are built in; that of one that is inactive is 0."""
        for each in references - {0}:
            place = None if each is None else self._structures.addresses.get(each)
            if place is not None:
                self._places[place] = None
            else:
                self.all_others()
                if each is not None:
                    yield NO_STRUCTURE

    def reads(self) -> Iterator[Effect]:
        """The reads of the structures that are named, and of those that may be."""
        yield from structure_reads(BUILD_READ, self._places, Certainty.EXACT)
        if self._others and self._memory is not None:
            others = [each for each in self._structures.nameable() if each not in self._places]
            if len(others) > MOST_NAMED:
                yield TOO_MANY
            else:
                yield from structure_reads(BUILD_READ, others, Certainty.DECLARED)

    def leads(self) -> Leads:
        """The structures to which the new one leads."""
        return Leads(frozenset(self._places), self._others)
