"""One access that happened, as later accesses are compared with it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from vkharness.findings import weaker
from vkharness.model.opinion import Conflict, ConflictKind, ModelAccess
from vkharness.model.order import ExecutionOrder
from vkharness.model.stages import ACCESS_KIND, ACCESS_KINDS, written_by
from vkharness.spans import Span
from vkharness.trace.attachment_operations import RasterizationOrder
from vkharness.trace.effects import Access

HOST_STREAM = 0
"""The stream of the host's own accesses. The host is one thread, in the order of the trace."""
ENGINE_STREAM = -1
"""The stream of the presentation engine's accesses. The engine works on one image in order."""
NOWHERE = -1
"""A value of `seen_at`: the access sees no write of others."""
LAYOUT_TRANSITION = ACCESS_KIND["SYNC_IMAGE_LAYOUT_TRANSITION"].index


@dataclass(slots=True)
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
    """The reads to which this write is visible, with the addresses."""

    @property
    def writes(self) -> bool:
        """Whether the access writes. An atomic both reads and writes."""
        return self.use.write

    @property
    def regional(self) -> bool:
        """Whether the access concerns each region of the framebuffer by itself, as attachment accesses and transitions
        do."""
        return self.automatic or self.access.order != RasterizationOrder.NONE

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
