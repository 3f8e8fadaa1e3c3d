"""The rules for two accesses of the same memory: when they conflict, and what must be between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from harness.model.explain import INVISIBLE, UNAVAILABLE, UNORDERED
from harness.model.memory import Guard, Guards, pieces
from harness.model.opinion import Use
from harness.model.order import Order
from harness.model.raster import in_raster_order
from harness.model.spans import overlap, without
from harness.model.stages import KIND, KINDS, written_by
from harness.spans import Span
from harness.trace.effects import Access
from harness.trace.effects import Order as RasterOrder

HOST_LANE = 0
"""The host's own accesses: one thread, in the order of the stream."""
NOWHERE = -1
"""As `seen_at`: the access sees nothing of what others wrote."""
GUARDED_READ = "guarded-read"
"""The read is ordered after another read to which the write is visible."""

HOST_OVERWRITE = "host-overwrite"
"""The host writes where the device has written."""
LAYOUT_TRANSITION = KIND["SYNC_IMAGE_LAYOUT_TRANSITION"].index
ATTACHMENT_ORDER = "attachment-order"
"""Rasterization order would hold if both were in one subpass."""
REGION = "region"
"""They are ordered in each region of the framebuffer, and not everywhere."""
FACTS = (GUARDED_READ, HOST_OVERWRITE, ATTACHMENT_ORDER, REGION)
"""What may be noted of a conflict beside its kind."""


@dataclass(slots=True)
class Held:
    """An access that happened, with the addresses that no later write has replaced."""

    use: Use
    access: Access
    space: int
    resource: int
    spans: list[Span]
    lane: int
    """The subpass, or the queue, in which it happened."""
    command: int
    """The execution of a command that it belongs to."""
    instance: int = 0
    """Which instance of dynamic rendering in the lane (a subpass is a lane of its own); of the transitions of a render
    pass, its instance."""
    automatic: bool = False
    """A layout transition, half of an ownership transfer, a presentation: what is available is visible to it, what it
    writes is available."""
    seen_at: int | None = None
    """The node at which the access must see what is before it, where that is not its own."""
    seen_by: list[tuple[Held, list[Span]]] = field(default_factory=list)
    """Reads to which this write is visible, with the addresses."""

    @property
    def writes(self) -> bool:
        """An atomic is a read that also writes."""
        return self.use.write

    @property
    def regional(self) -> bool:
        """Whether it concerns each region of the framebuffer by itself: attachments, and their transitions."""
        return self.automatic or self.access.order != RasterOrder.NONE

    @property
    def replaces(self) -> bool:
        """Whether nobody can ask any more for what was written before it."""
        return self.writes and not self.access.atomic and not self.access.marker


@dataclass(frozen=True, slots=True)
class Breach:
    """What is wrong between two accesses."""

    kind: str
    prior: Held
    current: Held
    spans: tuple[Span, ...]
    facts: frozenset[str] = frozenset()


class Accesses:
    """Every access by address space. Quadratic: each is compared with all earlier ones that it overlaps."""

    def __init__(self, order: Order, guards: Guards) -> None:
        self._order = order
        self._guards = guards
        self._spaces: dict[int, list[Held]] = {}
        self.writes: list[tuple[Held, list[Span]]] = []
        """Every write, with all that it wrote."""
        self._command = 0
        self._replaced: list[tuple[Held, list[Span]]] = []
        """What the command that is being executed replaces: its own accesses are all judged against what was before."""

    def add(self, current: Held) -> Iterator[Breach]:
        """Judges an access against all earlier ones, then keeps it."""
        self._begin(current.command)
        history = self._spaces.setdefault(current.space, [])
        for prior in history:
            shared = overlap(prior.spans, current.spans)
            if not shared:
                continue
            breach = self._judge(prior, current, shared)
            if breach is not None:
                yield breach
            elif prior.writes and (not current.writes or current.access.atomic) and not _exempt(prior, current):
                prior.seen_by.append((current, shared))
            if current.replaces and self._settled(prior, current, breach):
                if current.automatic:
                    prior.spans = without(prior.spans, current.spans)
                else:
                    self._replaced.append((prior, current.spans))
        self._spaces[current.space] = [*(held for held in history if held.spans), current]
        if current.writes:
            self.writes.append((current, current.spans))

    def _begin(self, command: int) -> None:
        """What the last command replaced is gone when another one is executed."""
        if command != self._command:
            for held, spans in self._replaced:
                held.spans = without(held.spans, spans)
            self._replaced.clear()
            self._command = command

    def unordered(self, current: Held) -> Iterator[Breach]:
        """Earlier accesses that conflict with this one by order alone. It is not kept."""
        for prior in self._spaces.get(current.space, ()):
            shared = overlap(prior.spans, current.spans)
            meet = shared and (prior.writes or current.writes) and not _exempt(prior, current)
            if meet and not self._order.precedes(prior.use.node, current.use.node):
                yield Breach(UNORDERED, prior, current, tuple(shared))

    def forget(self, space: int, span: Span | None) -> None:
        """The resource is gone."""
        if span is None:
            self._spaces.pop(space, None)
            return
        for held in self._spaces.get(space, ()):
            held.spans = without(held.spans, [span])

    def _settled(self, prior: Held, current: Held, breach: Breach | None) -> bool:
        """Whether whatever comes after `current` has nothing to do with `prior` any more."""
        if breach is not None:
            return breach.kind != UNORDERED
        if prior.command == current.command and prior.lane == current.lane and not current.automatic:
            return prior.use.node == current.use.node
        return True

    def _judge(self, prior: Held, current: Held, shared: list[Span]) -> Breach | None:
        """Conflict needs a write; an order; and after a write, availability and visibility ("Data Race").

        Attachments are ordered if they are so in every region of the framebuffer, anything else only if it is so
        everywhere ("Framebuffer Region Dependencies").
        """
        if not (prior.writes or current.writes) or _exempt(prior, current):
            return None
        if prior.regional and current.regional:
            return self._judge_order(prior, current, shared, True)
        breach = self._judge_order(prior, current, shared, False)
        if breach is not None and self._judge_order(prior, current, shared, True) is None:
            return replace(breach, facts=breach.facts | {REGION})
        return breach

    def _judge_order(self, prior: Held, current: Held, shared: list[Span], by_region: bool) -> Breach | None:
        ordered = self._order.precedes(prior.use.node, current.use.node, by_region)
        if not (ordered or _after_load(prior, current, shared)):
            return Breach(UNORDERED, prior, current, tuple(shared), _facts(prior, current, False))
        if not prior.writes:
            return None
        sight = _Sight(self._order, self._guards, current, by_region)
        hidden, guarded = self._hidden(prior, current, shared, sight)
        if hidden:
            kind = INVISIBLE if guarded or sight.is_available(prior, hidden) else UNAVAILABLE
            return Breach(kind, prior, current, tuple(hidden), _facts(prior, current, guarded))
        return None

    def _hidden(self, prior: Held, current: Held, shared: list[Span], sight: _Sight) -> tuple[list[Span], bool]:
        """The addresses at which the prior write is not visible to the current access, and whether another read is
        between to which it is.

        A write that comes after a read needs no more than that the read saw the earlier write: its own visibility
        would not change what either left in memory ("Location-Ordered": read, then write).
        """
        left = hidden = sight.hidden(prior, shared)
        for reader, spans in prior.seen_by:
            ordered = _in_raster_order(reader, current) or sight.after(reader.use.node)
            if left and ordered:
                left = without(left, spans)
        if current.writes and not current.access.atomic:
            return left, False
        return hidden, bool(hidden) and not left


class _Sight:
    """What one access can see."""

    def __init__(self, order: Order, guards: Guards, current: Held, by_region: bool) -> None:
        self._guards = guards
        self._by_region = by_region
        self._before = order.closure(by_region)
        self._current = current
        node = current.use.node
        self._sync = current.access.sync
        self._earlier = self._before[node]
        self._scopes = self._earlier if current.lane == HOST_LANE else order.direct[node]
        """The second scopes that the access is in. One of the host is in those of all that the host waited for."""
        if current.seen_at is not None:
            self._scopes = 0 if current.seen_at == NOWHERE else self._before[current.seen_at]
        self._seen = guards.seen(self._scopes, self._sync, by_region) if not current.automatic else self._earlier
        """What is before an invalidate for this access, for all memory; automatic ones see what is available."""

    def after(self, node: int) -> bool:
        """Whether a node is before the access."""
        return bool(self._earlier >> node & 1)

    def hidden(self, prior: Held, shared: list[Span]) -> list[Span]:
        """The addresses at which a write is not visible."""
        if self._covers(prior, self._seen):
            return []
        guards = [each for each in self._guards.ranged(prior.space) if overlap(each.spans, shared)]
        hidden: list[Span] = []
        for part, covering in pieces(shared, guards):
            seen = self._seen
            for guard in covering:
                if guard.invalidates >> self._sync & 1 and self._scopes >> guard.node & 1:
                    seen |= self._before[guard.node] | 1 << guard.node
            if not any(_flushes(guard, prior, seen) for guard in covering) and not self._covers(prior, seen):
                hidden += part
        return sorted(hidden)

    def is_available(self, prior: Held, spans: list[Span]) -> bool:
        """Whether a write was made available, at each of these addresses, before the access."""
        if self._covers(prior, self._earlier):
            return True
        for guard in self._guards.ranged(prior.space):
            if _flushes(guard, prior, self._earlier):
                spans = without(spans, guard.spans)
        return not spans

    def _covers(self, prior: Held, seen: int) -> bool:
        """Whether the write is available, for all memory, at some node of the set."""
        if prior.automatic:
            return bool(seen >> prior.use.node & 1)
        return self._guards.flushed(prior.use.node, written(prior), seen)


def _flushes(guard: Guard, prior: Held, seen: int) -> bool:
    """Whether a dependency makes a write available, and is one of these nodes."""
    return bool(guard.flushes >> written(prior) & 1 and seen >> guard.node & 1 and guard.first >> prior.use.node & 1)


def _after_load(prior: Held, current: Held, shared: list[Span]) -> bool:
    """Whether a load operation that saw the prior write is between: it happens before what accesses the attachment
    after it in the subpass ("Render Pass Load Operations")."""
    left = shared
    for reader, spans in prior.seen_by:
        if _in_raster_order(reader, current):
            left = without(left, spans)
    return not left


def written(held: Held) -> int:
    """The kind of access with which it writes."""
    return written_by(held.access.sync) if held.access.atomic else held.access.sync


def _exempt(prior: Held, current: Held) -> bool:
    """Pairs that need nothing between them.

    Accesses of one command in one place order themselves, and so do those of the host; atomics, and markers, may come
    in any order; transitions on one queue execute in submission order ("Image Layout Transitions"), but for those of
    one render pass instance, which have none ("Implicit Synchronization Guarantees"); and rasterization order.
    """
    beside = prior.lane == current.lane and not (prior.automatic or current.automatic)
    if beside and (prior.command == current.command or current.lane == HOST_LANE):
        return True
    if (prior.access.atomic and current.access.atomic) or (prior.access.marker and current.access.marker):
        return True
    if prior.access.sync == current.access.sync == LAYOUT_TRANSITION:
        one_instance = prior.instance != 0 and prior.instance == current.instance
        return prior.use.queue == current.use.queue and not one_instance
    return _in_raster_order(prior, current)


def _in_raster_order(prior: Held, current: Held) -> bool:
    """Rasterization order is an order of one subpass, or of one instance of dynamic rendering."""
    beside = prior.lane == current.lane and prior.instance == current.instance
    return beside and in_raster_order(prior.access, current.access)


def _facts(prior: Held, current: Held, guarded: bool) -> frozenset[str]:
    """What is to be noted of two accesses that conflict."""
    noted = set()
    if guarded:
        noted.add(GUARDED_READ)
    if current.lane == HOST_LANE and current.writes:
        noted.add(HOST_OVERWRITE)
    if prior.use.queue == current.use.queue and in_raster_order(prior.access, current.access):
        noted.add(ATTACHMENT_ORDER)
    return frozenset(noted)


def is_write(access: Access) -> bool:
    """Whether an access writes: by its kind, or as an atomic."""
    return access.atomic or KINDS[access.sync].write
