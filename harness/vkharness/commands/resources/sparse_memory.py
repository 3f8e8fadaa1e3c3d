"""Which memory each part of each sparse resource has, and what commands access by that.

A sparse buffer is exact: byte by byte its ranges are ranges of memory objects. Of a sparse image the texels keep their
own addresses, as those of other images do; memory that is bound there more than once gives it aliases, block by block.
Bindings count in the order of the calls. Specification: "Sparse Resources"; rules.md#sparse-memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from vkharness.findings import Hazard, Place
from vkharness.spans import Span, SpanMap, merge, overlap, subtract
from vkharness.trace.effects import Access, Alias, Barrier, Command, Effect, Execute, RangeBarrier, SetEvent, WaitEvents
from vkharness.trace.resources import Buffer, Image
from vkharness.trace.sparse_effects import BindingUse
from vkharness.trace.usage_effects import InvalidUsage

BLOCK = 1 << 16
"""Bytes of a standard sparse image block. A custom one has VkMemoryRequirements::alignment bytes."""


class BoundMemory(NamedTuple):
    """Memory of an address: the memory object, and what to add to the address for its offset."""

    memory: int
    shift: int


class Block(NamedTuple):
    """Memory of texels: all of these bytes stand behind each of them."""

    memory: int
    bytes: Span
    first: int
    """The first address that the bind named: memory that is bound twice counts as two blocks."""


class Tail(NamedTuple):
    """A mip tail region: where it lies among the opaque offsets of an image, and its texels."""

    region: Span
    texels: tuple[Span, ...]


@dataclass(slots=True)
class SparseResource:
    """A sparse buffer or image, and its bindings."""

    thing: Buffer | Image
    resident: bool
    """Whether it has sparse residency: parts may be unbound."""
    made: Place
    """The call that created it."""
    opaque: SpanMap[BoundMemory] = field(default_factory=SpanMap)
    """By opaque offset in bytes. The addresses of a buffer are these offsets."""
    blocks: SpanMap[Block] = field(default_factory=SpanMap)
    """Of an image, by address of the texels that were bound block by block."""
    tails: list[Tail] = field(default_factory=list)
    """Of an image, as far as the program asked for its requirements."""
    block_bytes: int = BLOCK
    block_texels: tuple[int, int, int] = (0, 0, 0)
    """The sparse image block; zeros when the program never asked."""

    def texels_of(self, region: Span) -> tuple[Span, ...]:
        """The texels of an image that an opaque range may hold: those of mip tails, else all of them."""
        assert isinstance(self.thing, Image)
        found = [tail for tail in self.tails if region[0] < tail.region[1] and tail.region[0] < region[1]]
        inside = any(tail.region[0] <= region[0] and region[1] <= tail.region[1] for tail in found)
        return tuple(merge(span for tail in found for span in tail.texels)) if inside else (self.thing.whole,)

    def bound(self, spans: Sequence[Span]) -> list[Span]:
        """Those of the addresses of an image that have memory."""
        found = [(begin, end) for span in spans for begin, end, _ in self.blocks.pieces(*span)]
        for begin, end, _ in self.opaque:
            found += overlap(merge(spans), self.texels_of((begin, end)))
        return merge(found)

    def memory(self) -> Iterator[tuple[int, Span, tuple[Span, ...]]]:
        """Each memory object and range that is bound, with its addresses in the resource."""
        for begin, end, (memory, shift) in self.opaque:
            spans = ((begin, end),) if isinstance(self.thing, Buffer) else self.texels_of((begin, end))
            yield memory, (begin + shift, end + shift), spans
        blocks: dict[Block, list[Span]] = {}
        for begin, end, block in self.blocks:
            blocks.setdefault(block, []).append((begin, end))
        for block, held in blocks.items():
            yield block.memory, block.bytes, tuple(held)


class Shared(NamedTuple):
    """Addresses of a resource of which the memory is bound elsewhere, too, and where."""

    spans: tuple[Span, ...]
    alias: Alias


class SparseMemory:
    """The sparse resources of a program."""

    def __init__(self) -> None:
        self.resources: dict[int, SparseResource] = {}
        self._shared: dict[int, list[Shared]] | None = {}
        """By resource, memory that an image shares with another one; None when it is to be found out again."""

    def add(self, thing: Buffer | Image, resident: bool, made: Place) -> None:
        """A sparse resource was created."""
        self.resources[thing.id] = SparseResource(thing, resident, made)

    def remove(self, id: int) -> None:
        """An object is gone."""
        if self.resources.pop(id, None) is not None:
            self._shared = None

    def spaces(self) -> set[int]:
        """The address spaces in which contents may lie under two addresses."""
        memories = {bound.memory for each in self.resources.values() for _, _, bound in each.opaque}
        return memories | self.resources.keys()

    def own_addresses(self, id: int, spans: list[Span]) -> list[Span]:
        """Addresses of the memory under a sparse buffer as its own; those under several ranges count in each."""
        held = self.resources[id]
        if isinstance(held.thing, Image):
            return spans
        pieces = [(begin + bound.shift, end + bound.shift, bound.shift) for begin, end, bound in held.opaque]
        return merge(
            (max(low, begin) - shift, min(high, end) - shift)
            for low, high in spans
            for begin, end, shift in pieces
            if begin < high and low < end
        )

    # -- binding -------------------------------------------------------------------------------------------------------

    def bind_opaque(self, id: int, offset: int, size: int, memory: int, at: int) -> tuple[Span, ...]:
        """Binds (memory 0: unbinds) opaque offsets of a resource. Answers with the addresses that are concerned."""
        held = self.resources.get(id)
        if held is None or size <= 0 or offset < 0:
            return ()
        self._shared = None
        region = (offset, offset + size)
        if memory:
            held.opaque.assign(*region, BoundMemory(memory, at - offset))
        else:
            held.opaque.erase(*region)
        return (region,) if isinstance(held.thing, Buffer) else held.texels_of(region)

    def bind_texels(self, id: int, spans: tuple[Span, ...], memory: int, bytes: Span) -> None:
        """Binds (memory 0: unbinds) texels of an image."""
        held = self.resources[id]
        self._shared = None
        for span in spans:
            if memory:
                held.blocks.assign(*span, Block(memory, bytes, spans[0][0]))
            else:
                held.blocks.erase(*span)

    # -- what commands do ----------------------------------------------------------------------------------------------

    def open_last(self, effects: tuple[Effect, ...]) -> tuple[tuple[Effect, ...], int | None]:
        """The effects of a recorded command with the accesses of sparse resources last, and how many come before.

        Which memory these touch is open until the submit. None stands for no such access, and for a command that does
        more than access memory.
        """
        of_sparse = [each for each in effects if isinstance(each, Access) and each.resource in self.resources]
        if not of_sparse or not all(isinstance(each, Access) for each in effects):
            return effects, None
        others = [each for each in effects if each not in of_sparse]
        return (*others, *of_sparse), len(others)

    def resolved(self, commands: Iterable[Command]) -> tuple[Command, ...]:
        """Commands as they are executed with the present bindings."""
        return tuple(map(self._command, commands))

    def _command(self, command: Command) -> Command:
        effects = tuple(made for each in command.effects for made in self._effect(each))
        return command if effects == command.effects else Command(command.call, command.name, command.site, effects)

    def _effect(self, effect: Effect) -> Iterable[Effect]:
        match effect:
            case Access() if effect.resource in self.resources:
                return self._access(effect, self.resources[effect.resource])
            case Barrier() if effect.ranges:
                return (self._barrier(effect),)
            case SetEvent():
                return (replace(effect, barrier=self._barrier(effect.barrier)),)
            case WaitEvents():
                return (replace(effect, barriers=tuple(map(self._barrier, effect.barriers))),)
            case Execute():
                return (Execute(tuple((id, self.resolved(inner)) for id, inner in effect.buffers)),)
        return (effect,)

    def _access(self, access: Access, held: SparseResource) -> Iterator[Effect]:
        """The use of the bindings, and the access of what is bound. Ranges that are not bound have no memory."""
        yield BindingUse(access.access_kind, access.resource, access.spans)
        if not held.resident and not _is_complete(held):
            kind = "VkBuffer" if isinstance(held.thing, Buffer) else "VkImage"
            yield InvalidUsage(Hazard.SPARSE_NOT_BOUND, access.resource, kind, held.made)
        if isinstance(held.thing, Image):
            spans = tuple(held.bound(access.spans)) if held.resident else access.spans
            if spans:
                yield replace(access, spans=spans, aliases=(*access.aliases, *self._aliases(access.resource, spans)))
            return
        for memory, own, there in _in_memory(held, access.spans):
            yield replace(access, space=memory, spans=there, aliases=self._aliases(access.resource, own))

    def _barrier(self, barrier: Barrier) -> Barrier:
        if not any(each.resource in self.resources for each in barrier.ranges):
            return barrier
        return replace(barrier, ranges=tuple(made for each in barrier.ranges for made in self._range(each)))

    def _range(self, each: RangeBarrier) -> Iterator[RangeBarrier]:
        held = self.resources.get(each.resource)
        if held is None or isinstance(held.thing, Image):
            contained = [
                shared.alias
                for shared in self._sharing(each.resource)
                if not subtract(merge(shared.spans), merge(each.spans))
            ]
            yield replace(each, aliases=(*each.aliases, *contained)) if contained else each
            return
        for memory, _, there in _in_memory(held, each.spans):
            yield replace(each, space=memory, spans=there)

    # -- memory that is bound twice ------------------------------------------------------------------------------------

    def _aliases(self, id: int, spans: Sequence[Span]) -> tuple[Alias, ...]:
        own = merge(spans)
        return tuple(shared.alias for shared in self._sharing(id) if overlap(own, merge(shared.spans)))

    def _sharing(self, id: int) -> list[Shared]:
        if self._shared is None:
            self._shared = self._find_shared()
        return self._shared.get(id, [])

    def _find_shared(self) -> dict[int, list[Shared]]:
        """Pairs of bindings of one memory, one of which is an image's. Buffers meet in the memory's own addresses."""
        by_memory: dict[int, list[tuple[Span, int, tuple[Span, ...]]]] = {}
        for id, held in self.resources.items():
            for memory, bytes, spans in held.memory():
                by_memory.setdefault(memory, []).append((bytes, id, spans))
        found: dict[int, list[Shared]] = {}
        for memory, several in by_memory.items():
            for one, other in _meeting(several):
                found.setdefault(one[1], []).extend(self._alias(memory, one, other))
                found.setdefault(other[1], []).extend(self._alias(memory, other, one))
        return found

    def _alias(
        self, memory: int, one: tuple[Span, int, tuple[Span, ...]], other: tuple[Span, int, tuple[Span, ...]]
    ) -> Iterator[Shared]:
        there, here = self.resources[other[1]].thing, self.resources[one[1]].thing
        if isinstance(there, Image):
            yield Shared(one[2], Alias(there.id, other[2], there.id))
        elif isinstance(here, Image):
            shared = max(one[0][0], other[0][0]), min(one[0][1], other[0][1])
            yield Shared(one[2], Alias(memory, (shared,), there.id))


def _meeting(
    several: list[tuple[Span, int, tuple[Span, ...]]],
) -> Iterator[tuple[tuple[Span, int, tuple[Span, ...]], tuple[Span, int, tuple[Span, ...]]]]:
    """Pairs of bindings of one memory object that overlap. O(n log n + pairs)."""
    open_ones: list[tuple[Span, int, tuple[Span, ...]]] = []
    for each in sorted(several):
        open_ones = [other for other in open_ones if other[0][1] > each[0][0]]
        yield from ((other, each) for other in open_ones)
        open_ones.append(each)


def _in_memory(held: SparseResource, spans: Sequence[Span]) -> Iterator[tuple[int, tuple[Span, ...], tuple[Span, ...]]]:
    """By memory object: addresses of a sparse buffer that are bound to it, and where they lie in it."""
    found: dict[int, tuple[list[Span], list[Span]]] = {}
    for span in spans:
        for begin, end, (memory, shift) in held.opaque.pieces(*span):
            own, there = found.setdefault(memory, ([], []))
            own.append((begin, end))
            there.append((begin + shift, end + shift))
    for memory, (own, there) in found.items():
        yield memory, tuple(merge(own)), tuple(merge(there))


def _is_complete(held: SparseResource) -> bool:
    """Whether all of a resource is bound; an image whose requirements are unknown is taken to be."""
    size = held.thing.size if isinstance(held.thing, Buffer) else held.thing.bytes
    return not subtract([(0, size)], [(begin, end) for begin, end, _ in held.opaque])
