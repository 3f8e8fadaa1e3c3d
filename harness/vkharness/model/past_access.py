"""One access that happened, as later accesses are compared with it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from vkharness.findings import Certainty, weaker
from vkharness.model.opinion import Conflict, ConflictKind, ModelAccess
from vkharness.model.order import ExecutionOrder
from vkharness.model.stages import ACCESS_KIND, ACCESS_KINDS, written_by
from vkharness.spans import Span, merge, subtract
from vkharness.trace.attachment_operations import RasterizationOrder
from vkharness.trace.effects import Access

HOST_STREAM = 0
"""The stream of the host's own accesses. The host is one thread, in the order of the trace."""
ENGINE_STREAM = -1
"""The stream of the presentation engine's accesses. The engine works on one image in order."""
NOWHERE = -1
"""A value of `seen_at`: the access sees no write of others."""
Likeness = tuple[object, ...]
LAYOUT_TRANSITION = ACCESS_KIND["SYNC_IMAGE_LAYOUT_TRANSITION"].index


@dataclass(slots=True, eq=False)
class PastAccess:
    """An access that happened, with the addresses that no later write has replaced."""

    use: ModelAccess
    access: Access
    space: int
    resource: int
    spans: list[Span]
    stream: int
    """The command stream (a subpass or a queue) in which the access happened."""
    command: int
    """The number of the execution of a command to which the access belongs."""
    instance: int = 0
    """The number of the render pass instance: that around the access, or the last one of dynamic rendering."""
    within: int = 0
    """The command stream of the subpass in which an operation is made that has a stream of its own; 0 for others."""
    automatic: bool = False
    """Whether this is a layout transition, half of an ownership transfer or a presentation.

    All that is available is visible to such an access, and what it writes is available.
    """
    seen_at: int | None = None
    """The node at which earlier writes must be visible, if that is not the access's own node."""
    seen_by: list[tuple[PastAccess, list[Span]]] = field(default_factory=list)
    """The reads to which this write is visible, with the addresses. Of reads that are alike the first one is here: what
    comes after a later one comes after the first one."""
    number: int = 0
    """Accesses are numbered as they are made."""
    _seen: dict[Likeness, list[Span]] = field(default_factory=dict)
    """The addresses in `seen_by` for reads that are alike."""
    _likeness: Likeness | None = None

    @property
    def writes(self) -> bool:
        """Whether the access writes. An atomic both reads and writes."""
        return self.use.write

    @property
    def possible(self) -> bool:
        """Whether contents of memory that nobody knows decide whether it is made: nothing may rest on it."""
        return self.access.certainty is Certainty.BOUND

    @property
    def regional(self) -> bool:
        """Whether the access concerns each region of the framebuffer by itself, as attachment accesses and transitions
        do."""
        return self.automatic or self.access.order != RasterizationOrder.NONE

    @property
    def likeness(self) -> Likeness:
        """A key that is equal for accesses that are ordered alike and made available alike: the command stream, the
        kind of access, and what exempts pairs from needing an order. Accesses that are no command's own are like no
        other."""
        if self._likeness is None:
            access = self.access
            inside = (0, 0) if access.order == RasterizationOrder.NONE else (self.instance, self.within)
            one = self.number if self.automatic or self.stream <= HOST_STREAM else 0
            how = (access.order, access.operation, access.atomic, access.marker, access.certainty)
            self._likeness = (one, self.stream, access.access_kind, *inside, *how)
        return self._likeness

    def note_reader(self, reader: PastAccess, spans: list[Span]) -> None:
        """The write is visible to a read at some addresses."""
        known = self._seen.get(reader.likeness, [])
        new = subtract(spans, known) if known else spans
        if new:
            self._seen[reader.likeness] = merge([*known, *new])
            self.seen_by.append((reader, new))

    @property
    def through_alias(self) -> bool:
        """Whether the addresses are those of another resource on the same memory."""
        return self.access.space != self.space

    @property
    def replaces(self) -> bool:
        """Whether later accesses need not be compared with what was there before this access.

        A write through an alias may leave some of the bytes alone.
        """
        return self.writes and not self.access.atomic and not self.access.marker and not self.through_alias


@dataclass(frozen=True, slots=True)
class DependencyGap:
    """A dependency that is missing between two accesses."""

    kind: ConflictKind
    prior: PastAccess
    current: PastAccess
    spans: tuple[Span, ...]

    def conflict(self, order: ExecutionOrder) -> Conflict:
        """The conflict that the gap makes."""
        prior, current = self.prior.use, self.current.use
        if self.prior.access.atomic:
            prior = replace(prior, access=ACCESS_KINDS[written(self.prior)].name)
        if self.current.access.atomic and not self.prior.writes:  # its write conflicts, else its read does
            current = replace(current, access=ACCESS_KINDS[written(self.current)].name)
        certainty = weaker(self.prior.access.certainty, self.current.access.certainty)
        return Conflict(self.kind, prior, current, self.current.resource, self.spans, order, certainty)


def written(past: PastAccess) -> int:
    """The kind of access with which an access writes."""
    return written_by(past.access.access_kind) if past.access.atomic else past.access.access_kind


def is_write(access: Access) -> bool:
    """Whether an access writes: by its kind, or as an atomic."""
    return access.atomic or ACCESS_KINDS[access.access_kind].write
