"""Resources that are the same memory (specification: "Memory Aliasing").

Buffers of one memory object share its addresses anyhow. An image has addresses of its own: what overlaps it in memory
is looked up when a resource is bound, and commands recorded from then on say through which other addresses their
accesses and barriers go. A program without such bindings pays one look-up a binding, and nothing for its commands.

* All subresources of an image overlap all of the memory that it is bound to, and what aliases any of that (the
  specification says so of images that are not linear; where the subresources of a linear one lie is not known here).
* A linear and a non-linear resource that share a page of bufferImageGranularity bytes overlap, too.
* Two images that were created alike with VK_IMAGE_CREATE_ALIAS_BIT and are bound alike overlap address by address.
* A barrier for one alias covers accesses through another when it contains all that overlaps.

The planes of a disjoint image are bound one by one, and each overlaps what is bound to its own memory.

Not looked at: sparse bindings, and commands that were recorded before the other resource was bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from vkharness.commands.recently_used import RecentlyUsed
from vkharness.commands.resources.imported_memory import ImportedMemory
from vkharness.findings import UserError
from vkharness.spans import Span, SpanMap
from vkharness.spec.enums import VkImageCreate, VkImageTiling
from vkharness.trace.effects import (
    Access,
    Alias,
    AutomaticTransition,
    Barrier,
    Command,
    Effect,
    Execute,
    PassEnd,
    RangeBarrier,
    SetEvent,
    SubpassBegin,
    WaitEvents,
)
from vkharness.trace.resources import Buffer, Image
from vkharness.trace.work_budget import spend


class Overlap(NamedTuple):
    """Bytes of a memory object that a resource shares with another one."""

    other: Buffer | Image
    own: Span
    """The addresses of the resource itself: the shared bytes of a buffer, all of an image or of a plane."""
    there: Span
    """The addresses of the other one."""
    alike: bool
    """Whether the two are images that overlap address by address."""


class Placed(NamedTuple):
    """A resource or a plane of it (0 for all), its bytes in memory, and the same rounded to whole pages."""

    thing: Buffer | Image
    plane: int
    memory: int
    bytes: Span
    pages: Span

    def addresses(self, shared: Span) -> Span:
        """Those that may lie in shared bytes."""
        if isinstance(self.thing, Buffer):
            return shared
        if not self.plane:
            return self.thing.whole
        spans = self.thing.subresources(self.plane, 0, self.thing.mips, 0, self.thing.layers)
        return (spans[0][0], spans[-1][1]) if spans else (0, 0)


MOST_TOLD = 1 << 13
"""Images that a program may ask about and make later."""


class Aliasing:
    """The bindings of all resources to memory, and which resources overlap."""

    def __init__(self) -> None:
        self._bound: dict[int, SpanMap[tuple[int, ...]]] = {}
        """Ids of the resources that each byte of a memory object is bound to, rounded to whole pages."""
        self._things: dict[int, list[Placed]] = {}
        """By resource, where it is; a disjoint image is in several places."""
        self.overlaps: dict[int, list[Overlap]] = {}
        """By resource, with which others it shares memory. Empty in most programs."""
        self.told: RecentlyUsed[str, int] = RecentlyUsed(MOST_TOLD)
        """The size that an image has by its VkImageCreateInfo, or a plane of it, where the program asked before it made
        one."""
        self.imported = ImportedMemory()

    def bind(self, thing: Buffer | Image, granularity: int = 1, plane: int = 0) -> None:
        """Notes that a resource was bound, or a plane of it. Linear and other resources need `granularity` bytes
        between them."""
        if not plane:
            self.remove(thing.id)
        bytes = (thing.offset, thing.offset + memory_size(thing, plane))
        if thing.memory is None or bytes[0] >= bytes[1]:
            return
        pages = (bytes[0] // granularity * granularity, -(-bytes[1] // granularity) * granularity)
        placed = Placed(thing, plane, thing.memory, bytes, pages)
        bound = self._bound.setdefault(thing.memory, SpanMap())
        others = {id for _, _, ids in bound.pieces(*placed.pages) for id in ids} - {thing.id}
        bound.update(*placed.pages, lambda _begin, _end, ids: (*(ids or ()), thing.id))
        self._things.setdefault(thing.id, []).append(placed)
        spend(len(others), "resources on the same memory")
        for other in (each for id in sorted(others) for each in self._things[id] if each.memory == placed.memory):
            shared = _shared(placed, other)
            if shared is not None:
                self._overlap(placed, other, shared)
                self._overlap(other, placed, shared)

    def _overlap(self, one: Placed, other: Placed, shared: Span) -> None:
        made = Overlap(other.thing, one.addresses(shared), other.addresses(shared), _alike(one, other))
        self.overlaps.setdefault(one.thing.id, []).append(made)

    def remove(self, id: int) -> None:
        """Forgets a resource."""
        for placed in self._things.pop(id, ()):
            bound = self._bound.get(placed.memory)
            if bound is not None:
                bound.update(
                    *placed.pages, lambda _begin, _end, ids: tuple(each for each in ids or () if each != id) or None
                )
        for other in {overlap.other.id for overlap in self.overlaps.pop(id, ())}:
            there = self.overlaps[other] = [each for each in self.overlaps[other] if each.other.id != id]
            if not there:
                del self.overlaps[other]

    def free(self, memory: int) -> None:
        """Forgets a memory object and everything that was bound to it."""
        for id in {id for _, _, ids in self._bound.get(memory, ()) for id in ids}:
            self.remove(id)
        self._bound.pop(memory, None)

    def __bool__(self) -> bool:
        """Whether any resources overlap."""
        return bool(self.overlaps)

    def overlap(self, one: int, other: int) -> bool:
        """Whether two images share memory."""
        return any(each.other.id == other for each in self.overlaps.get(one, ()))

    def mapped_images(self, memory: int, span: Span) -> list[Image]:
        """The linear images of one subresource that these bytes of a memory object belong to: what the host reads there
        is the image's. Where the subresources of other linear images lie is not known here."""
        bound = self._bound.get(memory)
        ids = {id for _, _, ids in bound.pieces(*span) for id in ids} if bound is not None else set()
        return [
            placed.thing
            for id in sorted(ids)
            for placed in self._things[id]
            if isinstance(placed.thing, Image) and placed.thing.is_one_linear and _meet(span, placed.bytes)
        ]

    @property
    def overlapping(self) -> set[int]:
        """Ids of the resources that overlap others, of which at least one of two is an image."""
        return set(self.overlaps)

    # -- what commands do ----------------------------------------------------------------------------------------------

    def widen(self, effects: Iterable[Effect]) -> tuple[Effect, ...]:
        """The effects, with the aliases of each access and barrier."""
        return tuple(self._widened(effect) for effect in effects)

    def _widened(self, effect: Effect) -> Effect:
        match effect:
            case Access() if effect.resource in self.overlaps:
                return replace(effect, aliases=self._of_access(effect.resource, effect.spans))
            case Barrier() if effect.ranges:
                return self._barrier(effect)
            case WaitEvents():
                return replace(effect, barriers=tuple(map(self._barrier, effect.barriers)))
            case SetEvent():
                return replace(effect, barrier=self._barrier(effect.barrier))
            case SubpassBegin() | PassEnd():
                return replace(effect, transitions=tuple(map(self._transition, effect.transitions)))
            case Execute():  # accesses of inherited attachments are made when they are executed
                return Execute(tuple((id, tuple(map(self._command, inner))) for id, inner in effect.buffers))
        return effect

    def _command(self, command: Command) -> Command:
        return command.with_effects(self.widen(command.effects))

    def _transition(self, each: AutomaticTransition) -> AutomaticTransition:
        if each.resource not in self.overlaps:
            return each
        return replace(each, aliases=self._of_access(each.resource, each.spans))

    def _barrier(self, barrier: Barrier) -> Barrier:
        ranges = tuple(
            replace(each, aliases=self._of_barrier(each)) if each.resource in self.overlaps else each
            for each in barrier.ranges
        )
        return replace(barrier, ranges=ranges)

    def _of_access(self, resource: int, spans: tuple[Span, ...]) -> tuple[Alias, ...]:
        return tuple(
            _alias(overlap, spans)
            for overlap in self.overlaps[resource]
            if any(_meet(span, overlap.own) for span in spans)
        )

    def _of_barrier(self, barrier: RangeBarrier) -> tuple[Alias, ...]:
        found = []
        for overlap in self.overlaps[barrier.resource]:
            first, last = overlap.own
            if overlap.alike or any(begin <= first and last <= end for begin, end in barrier.spans):
                found.append(_alias(overlap, barrier.spans))
        return tuple(found)


def memory_size(thing: Buffer | Image, plane: int = 0) -> int:
    """The bytes of memory that a resource takes, or a plane of it.

    An image whose requirements the program never asked for is taken to be as large as its texels. The answer is 0 when
    its format is unknown.
    """
    if isinstance(thing, Buffer):
        return thing.size
    told = thing.plane_bytes.get(plane, 0) if plane else thing.bytes
    if told:
        return told
    try:
        return thing.samples * sum(
            thing.format.aspect_bytes(aspect) * blocks[0] * blocks[1] * blocks[2] * thing.layers
            for aspect in thing.aspects
            if not plane or aspect == plane
            for mip in range(thing.mips)
            for blocks in (thing.blocks(aspect, mip),)
        )
    except UserError:
        return 0


def _shared(one: Placed, other: Placed) -> Span | None:
    """The bytes of memory in which two resources alias. None if there are none, and for buffers,
    which share addresses."""
    if isinstance(one.thing, Buffer) and isinstance(other.thing, Buffer):
        return None
    if _is_linear(one.thing) == _is_linear(other.thing):
        shared = _common(one.bytes, other.bytes)
    else:
        shared = _common(one.pages, other.pages)
    for placed in (one, other):
        if isinstance(placed.thing, Buffer):
            shared = _common(shared, placed.bytes)
    return shared if shared[0] < shared[1] else None


def _is_linear(thing: Buffer | Image) -> bool:
    return isinstance(thing, Buffer) or thing.info.get("tiling") == VkImageTiling.LINEAR


def _common(one: Span, other: Span) -> Span:
    return (max(one[0], other[0]), min(one[1], other[1]))


def _alike(placed: Placed, there: Placed) -> bool:
    """Whether two images interpret memory alike: created with equal parameters and the alias flag, and bound alike."""
    one, other = placed.thing, there.thing
    if not isinstance(one, Image) or not isinstance(other, Image):
        return False
    if (placed.plane, placed.bytes[0]) != (there.plane, there.bytes[0]):
        return False
    return one.info == other.info and bool(one.info.get("flags", 0) & VkImageCreate.ALIAS)


def _alias(overlap: Overlap, spans: tuple[Span, ...]) -> Alias:
    """The addresses that an access or barrier over `spans` of one resource reaches through the other."""
    other = overlap.other
    if overlap.alike:
        return Alias(other.id, spans, other.id, alike=True)
    return Alias(other.space if isinstance(other, Buffer) else other.id, (overlap.there,), other.id)


def _meet(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]
