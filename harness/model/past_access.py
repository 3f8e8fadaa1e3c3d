"""One access that happened, as later ones meet it."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.model.opinion import ModelAccess
from harness.model.stages import ACCESS_KIND, ACCESS_KINDS, written_by
from harness.spans import Span
from harness.trace.effects import Access, RasterizationOrder

HOST_STREAM = 0
"""The host's own accesses: one thread, in the order of the stream."""
ENGINE_STREAM = -1
"""The presentation engine's own accesses: what it does with one image, it does in order."""
NOWHERE = -1
"""As `seen_at`: the access sees nothing of what others wrote."""
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
    """The subpass, or the queue, in which it happened."""
    command: int
    """The execution of a command that it belongs to."""
    instance: int = 0
    """Which instance of dynamic rendering in the command stream (a subpass is a command stream of its own); of the
    transitions of a render pass, its instance."""
    automatic: bool = False
    """A layout transition, half of an ownership transfer, a presentation: what is available is visible to it, what it
    writes is available."""
    seen_at: int | None = None
    """The node at which the access must see what is before it, where that is not its own."""
    learned: int = 0
    """Of a batch that was held back: what the host did, or knew to be complete, before it was executed."""
    assumed: int = 0
    """What came before signals that the host has waited for, in their queues, whether they cover it or not."""
    release: bool = False
    """A release of ownership with stages in its second scope, which are ignored."""
    seen_by: list[tuple[PastAccess, list[Span]]] = field(default_factory=list)
    """Reads to which this write is visible, with the addresses."""
    outdone_by: list[tuple[PastAccess, list[Span]]] = field(default_factory=list)
    """Accesses that only attachment order puts after this one, with the addresses."""
    superseded_by: list[tuple[PastAccess, list[Span]]] = field(default_factory=list)
    """Of a read: later reads in the same stage of the same queue, with the addresses."""

    @property
    def writes(self) -> bool:
        """An atomic is a read that also writes."""
        return self.use.write

    @property
    def regional(self) -> bool:
        """Whether it concerns each region of the framebuffer by itself: attachments, and their transitions."""
        return self.automatic or self.access.order != RasterizationOrder.NONE

    @property
    def replaces(self) -> bool:
        """Whether nobody can ask any more for what was written before it."""
        return self.writes and not self.access.atomic and not self.access.marker


@dataclass(frozen=True, slots=True)
class DependencyGap:
    """What is wrong between two accesses."""

    kind: str
    prior: PastAccess
    current: PastAccess
    spans: tuple[Span, ...]
    facts: frozenset[str] = frozenset()


def written(past: PastAccess) -> int:
    """The kind of access with which it writes."""
    return written_by(past.access.access_kind) if past.access.atomic else past.access.access_kind


def is_write(access: Access) -> bool:
    """Whether an access writes: by its kind, or as an atomic."""
    return access.atomic or ACCESS_KINDS[access.access_kind].write
