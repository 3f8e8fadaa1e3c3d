"""The memory that the accesses of one shader stage reach, gathered by descriptor or by buffer behind an address.

An address that is both read and written counts as written only: the shader orders its own accesses of one address.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from vkharness.commands.drawing.descriptors import BUFFER_TYPES, IMAGE_TYPES, TEXEL_TYPES, viewed
from vkharness.commands.drawing.viewed_texels import reached_spans
from vkharness.commands.flat_reaches import MOST_FLAT, FixedPlace, FlatPart, fixed_parts, flat_reach, written_by
from vkharness.commands.object_state import ObjectState
from vkharness.findings import Certainty
from vkharness.native import core
from vkharness.spans import Span, merge, subtract
from vkharness.spec.enums import VkDescriptorType
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.trace.attachment_operations import AttachmentOperation, RasterizationOrder
from vkharness.trace.effects import Access, Effect
from vkharness.trace.resources import BufferView, Descriptor, Image, ImageView

if TYPE_CHECKING:
    from vkharness.shader.lanes.reached_places import ReachedTexels
    from vkharness.shader.reach import Reach, ShaderTouch

UNIFORM_TYPES = (VkDescriptorType.UNIFORM_BUFFER, VkDescriptorType.UNIFORM_BUFFER_DYNAMIC)
STORAGE_TYPES = (
    VkDescriptorType.STORAGE_BUFFER,
    VkDescriptorType.STORAGE_BUFFER_DYNAMIC,
    VkDescriptorType.STORAGE_IMAGE,
    VkDescriptorType.STORAGE_TEXEL_BUFFER,
)
SURE_FIRST = (Certainty.EXACT, Certainty.DECLARED)


class MemoryPart(NamedTuple):
    """The memory behind a descriptor."""

    resource: int
    space: int
    begin: int
    end: int
    limit: int
    """The end of its buffer."""
    read_access: str
    whole: tuple[Span, ...] | None
    """Its addresses, if any access counts for all of it."""

    def at_its_begin(self, number: int) -> ReachedMemory:
        """Memory of the same size that begins at address 0 of a space and a resource of this number."""
        spans = ((0, self.end - self.begin),)
        return ReachedMemory(number, number, spans, self.read_access, self.whole is not None)


@dataclass(slots=True)
class ReachedMemory:
    """The memory of one resource that one stage reaches."""

    resource: int
    space: int
    spans: tuple[Span, ...]
    """All that the descriptor or buffer stands for, as addresses."""
    read_access: str = "SHADER_STORAGE_READ"
    whole: bool = False
    """Whether any access counts for all of it, unless its texels are known: an image or a texel buffer."""
    view: tuple[Image, ImageView] | None = None
    """The image, and the view of it."""
    reached: dict[tuple[int, Certainty], list[Span]] = field(default_factory=dict)

    def part(self, limit: int) -> MemoryPart | None:
        """The memory without what is reached of it; None where it has no addresses. `limit`: see `MemoryPart`."""
        begin, end = self.spans[0] if self.spans else (0, 0)
        whole = tuple(merge(self.spans)) if self.whole else None
        return (
            MemoryPart(self.resource, self.space, begin, end, limit, self.read_access, whole) if begin < end else None
        )

    def add(self, touch: ShaderTouch, reach: Reach, exact: bool) -> None:
        """Notes one access. One that may lie past the end of the range may touch any byte of it: "robustBufferAccess"
        lets such a store modify any memory within the range."""
        spans, sure = self.spans, Certainty.DECLARED
        if not self.whole:
            begin, end = self.spans[0]
            inside = begin + reach.spans[-1][1] <= end
            if inside or reach.clipped:
                spans = tuple((begin + low, min(end, begin + high)) for low, high in reach.spans if begin + low < end)
            if inside and exact and reach.exact:
                sure = Certainty.EXACT
        self.reached.setdefault((touch.flags, sure), []).extend(spans)

    def add_texels(self, flags: int, texels: ReachedTexels, exact: bool) -> None:
        """Notes accesses of texels of an image; of all of what is no image, though the shader takes it for one."""
        if self.view is None:
            self.reached.setdefault((flags, Certainty.DECLARED), []).extend(self.spans)
            return
        for spans, sure in reached_spans(*self.view, texels):
            certainty = Certainty.EXACT if sure and exact else Certainty.DECLARED
            self.reached.setdefault((flags, certainty), []).extend(spans)

    def accesses(self, stage: str) -> Iterator[Access]:
        """The accesses in the stage of this name. Each address counts once, as what is strongest and most certain."""
        from vkharness.shader.accesses import READ, READ_MODIFY_WRITE, WRITE

        taken: list[Span] = []
        for flags in (WRITE, READ_MODIFY_WRITE, READ):
            kind = "SHADER_STORAGE_WRITE" if flags == WRITE else self.read_access
            for certainty in SURE_FIRST:
                spans = merge(self.reached.get((flags, certainty), ()))
                left = subtract(spans, taken) if taken else spans
                if left:
                    access_kind = ACCESS_KIND[f"SYNC_{stage}_{kind}"].index
                    atomic = flags == READ_MODIFY_WRITE
                    yield Access(
                        access_kind, self.space, tuple(left), self.resource, atomic=atomic, certainty=certainty
                    )
                    taken = merge([*taken, *left])


Held = dict[int, tuple[dict[tuple[int, int], MemoryPart], tuple[int, ...]]]
"""By set index, the memory behind the descriptors of the set, and its dynamic offsets."""
UsedPlace = tuple[int, tuple[int, int], int]
"""A set index, (binding, element), and the number of its dynamic offset; -1 where it has none."""


MovableAccess = tuple[int, UsedPlace, tuple[Span, ...], bool, Certainty]
"""Kind of access, where the memory is, bytes from its begin, whether it is atomic, and how sure it is."""


class ReachedAnywhere(NamedTuple):
    """The effects of a command whose shaders access memory that may lie anywhere."""

    before: tuple[Effect, ...]
    """The effects before these accesses, which are the same wherever the memory lies."""
    accesses: tuple[MovableAccess, ...]
    behind: tuple[Effect, ...]
    """The effects after these accesses, which are the same, too."""
    moving: tuple[UsedPlace, ...]
    """The used descriptors that have a dynamic offset, whether they are accessed or not."""
    number: int
    """How many of the places are accessed."""
    flat: tuple[Any, tuple[UsedPlace | FixedPlace, ...]] | None
    """The common part of flat plans of these effects (`FlatReach` of the native core), and where the memory of each is;
    None where there are none."""

    @staticmethod
    def of(effects: Iterable[Effect], used: Sequence[UsedPlace]) -> ReachedAnywhere:
        """Makes it of effects on memory at its begin (`MemoryPart.at_its_begin`); its number is an index of `used`."""
        found = list(effects)
        accesses = [each for each in found if isinstance(each, Access)]
        made = tuple(
            (each.access_kind, used[each.resource], each.spans, each.atomic, each.certainty) for each in accesses
        )
        others = tuple(each for each in found if not isinstance(each, Access))
        moving = tuple(each for each in used if each[2] >= 0)
        number = len({each.resource for each in accesses})
        return ReachedAnywhere(others, made, (), moving, number, _flat(others, made, ()))

    def within(self, before: tuple[Effect, ...], behind: tuple[Effect, ...]) -> ReachedAnywhere:
        """The same of a command that does more before and after that, which stays the same."""
        before += self.before
        return self._replace(before=before, behind=behind, flat=_flat(before, self.accesses, behind))

    def at(self, held: Held) -> tuple[Effect, ...] | None:
        """The accesses of this memory; None where a dynamic offset clips some."""
        for index, place, number in self.moving:
            memories, dynamic = held[index]
            offset, memory = dynamic[number] if number < len(dynamic) else 0, memories[place]
            if offset and (memory.end + offset > memory.limit or memory.whole is not None):
                return None
        order, operation = RasterizationOrder.NONE, AttachmentOperation.ORDINARY
        made, resources = [], set()
        for access_kind, (index, place, number), bytes, atomic, certainty in self.accesses:
            memories, dynamic = held[index]
            resource, space, begin, _, _, _, spans = memories[place]
            resources.add(resource)
            if spans is None:
                if 0 <= number < len(dynamic):
                    begin += dynamic[number]
                spans = tuple([(begin + low, begin + high) for low, high in bytes])
            made.append(
                Access(
                    access_kind,
                    space,
                    spans,
                    resource,
                    atomic=atomic,
                    order=order,
                    operation=operation,
                    marker=False,
                    aliases=(),
                    rewrite=False,
                    certainty=certainty,
                )
            )
        if len(resources) < self.number:
            made = list(joined(made))
        return (*self.before, *made, *self.behind)


def _flat(
    before: tuple[Effect, ...], accesses: tuple[MovableAccess, ...], behind: tuple[Effect, ...]
) -> tuple[Any, tuple[UsedPlace | FixedPlace, ...]] | None:
    """See `ReachedAnywhere.flat`."""
    if core is None or not accesses or len(before) + len(accesses) + len(behind) > MOST_FLAT:
        return None
    places: list[UsedPlace | FixedPlace] = []
    parts: list[FlatPart] = []
    for effect in (*before, *behind):
        if not isinstance(effect, Access) or not effect.spans or effect.aliases:
            return None
    parts += fixed_parts(before, places)
    for kind, place, bytes, atomic, sure in accesses:
        if place not in places:
            places.append(place)
        access = Access(kind, 0, (), 0, atomic=atomic, certainty=sure)
        parts.append((access, places.index(place), written_by(access), bytes))
    parts += fixed_parts(behind, places)
    reach = flat_reach(len(places), *parts)
    return None if reach is None else (reach, tuple(places))


def joined(accesses: Iterable[Access]) -> Iterator[Access]:
    """Accesses of which those that differ in their spans alone are one."""
    found: dict[tuple[Any, ...], tuple[Access, list[Span]]] = {}
    for each in accesses:
        key = (each.access_kind, each.space, each.resource, each.atomic, each.order, each.operation, each.certainty)
        found.setdefault(key, (each, []))[1].extend(each.spans)
    # Where a shader reads a byte in both ways, the surer access counts, which is made last.
    for each, spans in sorted(found.values(), key=lambda one: one[0].certainty is Certainty.EXACT):
        where = (each.access_kind, each.space, tuple(merge(spans)), each.resource)
        yield Access(*where, atomic=each.atomic, order=each.order, operation=each.operation, certainty=each.certainty)


def behind_descriptor(objects: ObjectState, held: Descriptor, dynamic_offset: int) -> ReachedMemory | None:
    """The memory of one descriptor. None when it refers to nothing known, or to no bytes."""
    read = "UNIFORM_READ" if held.type in UNIFORM_TYPES else "SHADER_SAMPLED_READ"
    read = "SHADER_STORAGE_READ" if held.type in STORAGE_TYPES else read
    if held.type in IMAGE_TYPES:
        seen = viewed(objects, held)
        return None if seen is None else ReachedMemory(seen[0].id, seen[0].id, seen[1].spans, read, True, seen)
    id, offset, size = held.resource, held.offset, held.size
    if held.type in TEXEL_TYPES and not held.size:
        texels = objects.get(BufferView, held.resource)
        if texels is None:
            return None
        id, offset, size = texels.buffer, texels.offset, texels.size
    buffer = objects.buffer(id)
    if buffer is None:
        return None
    span = buffer.span(offset + dynamic_offset, size)
    if span[0] >= span[1]:
        return None
    return ReachedMemory(buffer.id, buffer.space, (span,), read, held.type not in BUFFER_TYPES)


def behind_address(objects: ObjectState, touch: ShaderTouch, reach: Reach) -> tuple[ReachedMemory, Reach] | None:
    """The buffer behind the device address of an access, and what the access reaches of it. None when no buffer is
    known to be there.

    A pointer that moves in a loop may move anywhere in its buffer. Any other access reaches no byte before its address.
    """
    first = reach.spans[0][0] if reach.spans else 0
    found = objects.addresses.find(first) if reach.spans else None
    if found is None:
        return None
    buffer, offset = found
    start = first - offset
    anywhere = touch.size is None and touch.covers
    spans = ((0, buffer.size),) if anywhere else tuple((low - start, high - start) for low, high in reach.spans)
    # An access is not defined outside of the buffer, so that its bytes there are left out.
    inside = tuple((low, min(high, buffer.size)) for low, high in spans if low < buffer.size)
    memory = ReachedMemory(buffer.id, buffer.space, (buffer.span(0, buffer.size),))
    return memory, reach._replace(spans=inside, clipped=True, exact=reach.exact and spans == inside)
