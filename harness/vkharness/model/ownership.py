"""Which queue family owns what: contents are defined for one family at a time, unless a resource is shared by all.

Specification: "Resource Sharing Mode", "Queue Family Ownership Transfer". This module is about contents. The order of
the two halves of a transfer is a matter of `rules/barrier.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from vkharness.model.opinion import ModelAccess
from vkharness.spans import Span, merge, overlap, subtract
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED, VkImageLayout
from vkharness.trace.effects import FAMILIES_OUTSIDE, RangeBarrier

EVERYBODY = VK_QUEUE_FAMILY_IGNORED
"""The owner of a resource that all families share."""


@dataclass(frozen=True, slots=True)
class OwnedPart:
    """Some addresses of a resource, their owner, and the use that made it the owner."""

    spans: tuple[Span, ...]
    family: int
    use: ModelAccess
    release: RangeBarrier | None = None
    """The barrier that released these addresses and was not acquired. Their contents belong to no family then."""


Loss = tuple[ModelAccess, tuple[Span, ...], bool]
"""An earlier use, the addresses whose contents it leaves undefined for the present use, and whether somebody wrote
them."""


class OwnershipHistory:
    """The parts of every resource that any queue has used."""

    def __init__(self) -> None:
        self._parts: dict[tuple[int, int], list[OwnedPart]] = {}
        self._shared: set[int] = set()
        self._written: dict[int, list[Span]] = {}
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
        for key in [key for key in self._parts if key[0] == space and resource in (0, key[1])]:
            left = [] if span is None else self._outside(key, (span,))
            self._parts[key] = left
        self._written[space] = [] if span is None else subtract(self._written.get(space, []), [span])

    def wrote(self, space: int, spans: Sequence[Span]) -> None:
        """Somebody wrote contents there."""
        self._written[space] = merge([*self._written.get(space, []), *spans])

    def _has_contents(self, space: int, spans: Sequence[Span]) -> bool:
        """Whether anybody wrote there. Rule: rules.md#contents-that-nobody-wrote-are-not-lost."""
        return bool(overlap(self._written.get(space, []), spans))

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
        kept: list[OwnedPart] = []
        for part, inside in self._inside((space, resource), spans):
            if part.release is None and part.family == owner:
                if not use.write:
                    kept.append(replace(part, spans=inside))
            elif contents and (part.release is not None or not self._is_kept(resource, part.family, family)):
                yield part.use, inside, self._has_contents(space, inside)
        fresh = tuple(subtract(spans, sorted(span for part in kept for span in part.spans)))
        made = [OwnedPart(fresh, owner, use)] if fresh else []
        self._assign((space, resource), spans, [*kept, *made])

    def release(self, barrier: RangeBarrier, family: int, use: ModelAccess) -> Iterator[Loss]:
        """A family gives some addresses away. It loses them, and has to own them before. Returns the losses.

        Contents that a transition from VK_IMAGE_LAYOUT_UNDEFINED discards are nobody's ("Image Layout Transitions").
        """
        kept = not (barrier.transition and barrier.old_layout == VkImageLayout.UNDEFINED)
        yield from self.use(barrier.space, barrier.resource, barrier.spans, family, use, kept)
        key = (barrier.space, barrier.resource)
        self._assign(key, barrier.spans, [OwnedPart(tuple(barrier.spans), family, use, barrier)])

    def acquire(self, barrier: RangeBarrier, family: int, use: ModelAccess) -> Iterator[Loss]:
        """A family takes over some addresses. Returns the losses.

        All of the range must have been released with the same parameters. An acquire from an external family needs no
        release in this trace, unless everybody who has the memory is in it.
        Rules: rules.md#an-acquire-needs-its-release, rules.md#both-halves-of-a-transfer-agree,
        rules.md#a-transfer-between-two-programs-has-both-halves.
        """
        key = (barrier.space, barrier.resource)
        if barrier.src_family not in FAMILIES_OUTSIDE or barrier.is_traced:
            left = list(barrier.spans)
            for part, inside in self._inside(key, barrier.spans):
                left = subtract(left, inside)
                if part.release is None or not _match(part.release, barrier):
                    yield part.use, inside, self._has_contents(barrier.space, inside)
            if left:
                yield use, tuple(left), self._has_contents(barrier.space, left)
        else:
            self.wrote(barrier.space, barrier.spans)
        owner = EVERYBODY if barrier.resource in self._shared else family
        self._assign(key, barrier.spans, [OwnedPart(tuple(barrier.spans), owner, use)])

    def _inside(self, key: tuple[int, int], spans: Sequence[Span]) -> Iterator[tuple[OwnedPart, tuple[Span, ...]]]:
        for part in self._parts.get(key, ()):
            inside = overlap(part.spans, spans)
            if inside:
                yield part, tuple(inside)

    def _outside(self, key: tuple[int, int], spans: Sequence[Span]) -> list[OwnedPart]:
        parts = [replace(part, spans=tuple(subtract(part.spans, spans))) for part in self._parts.get(key, ())]
        return [part for part in parts if part.spans]

    def _assign(self, key: tuple[int, int], spans: Sequence[Span], parts: list[OwnedPart]) -> None:
        self._parts[key] = [*self._outside(key, spans), *parts]


def _match(release: RangeBarrier, acquire: RangeBarrier) -> bool:
    """Whether release and acquire agree in range, families and layouts. Two programs are outside to one another."""
    between_programs = release.dst_family in FAMILIES_OUTSIDE and acquire.src_family in FAMILIES_OUTSIDE
    same_families = (release.src_family, release.dst_family) == (acquire.src_family, acquire.dst_family)
    return (between_programs or same_families) and (release.spans, release.old_layout, release.new_layout) == (
        acquire.spans,
        acquire.old_layout,
        acquire.new_layout,
    )
