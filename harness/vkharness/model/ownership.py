"""Which queue family owns what: contents are defined for one family at a time, unless a resource is shared by all.

Specification: "Resource Sharing Mode", "Queue Family Ownership Transfer". This module is about contents. The order of
the two halves of a transfer is a matter of `rules/barrier.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from vkharness.model.opinion import ModelAccess
from vkharness.spans import Span, SpanMap, subtract
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED, VkImageLayout
from vkharness.trace.effects import FAMILIES_OUTSIDE, RangeBarrier

V = TypeVar("V")
EVERYBODY = VK_QUEUE_FAMILY_IGNORED
"""The owner of a resource that all families share."""


@dataclass(frozen=True, slots=True, eq=False)
class OwningFamily:
    """Who owns some addresses of a resource, and the use that made it the owner."""

    number: int
    """Owners are numbered as they come."""
    family: int
    use: ModelAccess
    release: RangeBarrier | None = None
    """The barrier that released these addresses and was not acquired. Their contents belong to no family then."""


NOBODY: SpanMap[OwningFamily] = SpanMap()
Loss = tuple[ModelAccess, tuple[Span, ...], bool]
"""An earlier use, the addresses whose contents it leaves undefined for the present use, and whether somebody wrote
them."""


class OwnershipHistory:
    """The owners of every resource that any queue has used, by address."""

    def __init__(self) -> None:
        self._owners: dict[int, dict[int, SpanMap[OwningFamily]]] = {}
        """By address space and by resource."""
        self._count = 0
        self._shared: set[int] = set()
        self._written: dict[int, SpanMap[bool]] = {}
        self._kept: dict[int, tuple[int, ...]] = {}
        """By resource, and by the index of its owner, the families that take the contents without a transfer."""

    def share(self, resource: int) -> None:
        """Notes that a resource belongs to all families."""
        self._shared.add(resource)

    def keep(self, resource: int, acquirers: tuple[int, ...]) -> None:
        """Notes which families keep the contents of a resource that they acquire implicitly, by owner, as masks."""
        self._kept[resource] = acquirers

    def _is_kept(self, resource: int, owner: int, family: int) -> bool:
        """Whether contents are "always preserved when they are implicitly acquired" by a family.

        Specification: "Resource Sharing Mode". Rule: rules.md#contents-must-be-transferred-to-another-family.
        """
        masks = self._kept.get(resource, ())
        inside = owner < len(masks) and family < len(masks)
        return inside and bool(masks[owner] >> family & 1)

    def forget(self, space: int, span: Span | None, resource: int) -> None:
        """Drops the owners of a destroyed resource. Resource 0 stands for all resources at these addresses."""
        self._shared.discard(resource)
        self._kept.pop(resource, None)
        of_space = self._owners.get(space, {})
        gone = [resource] if resource else list(of_space)
        for each in gone:
            _erase(of_space, each, span)
        _erase(self._written, space, span)

    def wrote(self, space: int, spans: Sequence[Span]) -> None:
        """Somebody wrote contents there."""
        written = self._written.setdefault(space, SpanMap())
        for begin, end in spans:
            written.assign(begin, end, True)

    def _has_contents(self, space: int, spans: Sequence[Span]) -> bool:
        """Whether anybody wrote there. Rule: rules.md#contents-that-nobody-wrote-are-not-lost."""
        written = self._written.get(space)
        return written is not None and any(written.pieces(begin, end) for begin, end in spans)

    def use(
        self, space: int, resource: int, spans: Sequence[Span], family: int, use: ModelAccess, contents: bool
    ) -> Iterator[Loss]:
        """A queue of a family uses some addresses. Returns the losses.

        `contents` says whether the use depends on the bytes that are there. The family owns the addresses from then on.
        The last write stands for that in later losses, or else the first use.
        Rules: rules.md#contents-must-be-transferred-to-another-family, rules.md#what-was-released-must-be-acquired,
        rules.md#overwriting-needs-no-transfer.
        """
        owner = EVERYBODY if resource in self._shared else family
        fresh = spans
        for held, inside in self._inside(space, resource, spans):
            if held.release is None and held.family == owner:
                if not use.write:
                    fresh = subtract(fresh, inside)
            elif contents and (held.release is not None or not self._is_kept(resource, held.family, family)):
                yield held.use, inside, self._has_contents(space, inside)
        self._assign(space, resource, fresh, owner, use)

    def may_use(self, space: int, resource: int, spans: Sequence[Span], family: int) -> Iterator[Loss]:
        """The losses if a family reads some addresses, which it does not own for that."""
        owner = EVERYBODY if resource in self._shared else family
        for part, inside in self._inside(space, resource, spans):
            owned = part.release is None and part.family == owner
            if not owned and (part.release is not None or not self._is_kept(resource, part.family, family)):
                yield part.use, inside, self._has_contents(space, inside)

    def release(self, barrier: RangeBarrier, family: int, use: ModelAccess) -> Iterator[Loss]:
        """A family gives some addresses away. It loses them, and has to own them before. Returns the losses.

        Contents that a transition from VK_IMAGE_LAYOUT_UNDEFINED discards are nobody's ("Image Layout Transitions").
        """
        kept = not (barrier.transition and barrier.old_layout == VkImageLayout.UNDEFINED)
        yield from self.use(barrier.space, barrier.resource, barrier.spans, family, use, kept)
        self._assign(barrier.space, barrier.resource, barrier.spans, family, use, barrier)

    def acquire(self, barrier: RangeBarrier, family: int, use: ModelAccess) -> Iterator[Loss]:
        """A family takes over some addresses. Returns the losses.

        All of the range must have been released with the same parameters. An acquire from an external family needs no
        release in this trace, unless everybody who has the memory is in it.
        Rules: rules.md#an-acquire-needs-its-release, rules.md#both-halves-of-a-transfer-agree,
        rules.md#a-transfer-between-two-programs-has-both-halves.
        """
        if barrier.src_family not in FAMILIES_OUTSIDE or barrier.is_traced:
            left = list(barrier.spans)
            for held, inside in self._inside(barrier.space, barrier.resource, barrier.spans):
                left = subtract(left, inside)
                if held.release is None or not _match(held.release, barrier):
                    yield held.use, inside, self._has_contents(barrier.space, inside)
            if left:
                yield use, tuple(left), self._has_contents(barrier.space, left)
        else:
            self.wrote(barrier.space, barrier.spans)
        owner = EVERYBODY if barrier.resource in self._shared else family
        self._assign(barrier.space, barrier.resource, barrier.spans, owner, use)

    def _inside(self, space: int, resource: int, spans: Sequence[Span]) -> list[tuple[OwningFamily, tuple[Span, ...]]]:
        """The owners of some addresses, in the order in which they came, with the addresses."""
        owners = self._owners.get(space, {}).get(resource, NOBODY)
        found: dict[OwningFamily, list[Span]] = {}
        for begin, end in spans:
            for low, high, owner in owners.pieces(begin, end):
                found.setdefault(owner, []).append((low, high))
        return [(owner, tuple(found[owner])) for owner in sorted(found, key=_number)]

    def _assign(
        self,
        space: int,
        resource: int,
        spans: Sequence[Span],
        family: int,
        use: ModelAccess,
        release: RangeBarrier | None = None,
    ) -> None:
        self._count += 1
        owner = OwningFamily(self._count, family, use, release)
        owners = self._owners.setdefault(space, {}).setdefault(resource, SpanMap())
        for begin, end in spans:
            owners.assign(begin, end, owner)


def _number(owner: OwningFamily) -> int:
    return owner.number


def _erase(maps: dict[int, SpanMap[V]], key: int, span: Span | None) -> None:
    """Forgets a span of one of several maps, or the whole map."""
    if span is None:
        maps.pop(key, None)
    elif key in maps:
        maps[key].erase(*span)


def _match(release: RangeBarrier, acquire: RangeBarrier) -> bool:
    """Whether release and acquire agree in range, families and layouts. Two programs are outside to one another."""
    between_programs = release.dst_family in FAMILIES_OUTSIDE and acquire.src_family in FAMILIES_OUTSIDE
    same_families = (release.src_family, release.dst_family) == (acquire.src_family, acquire.dst_family)
    return (between_programs or same_families) and (release.spans, release.old_layout, release.new_layout) == (
        acquire.spans,
        acquire.old_layout,
        acquire.new_layout,
    )
