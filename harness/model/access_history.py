"""The rules for two accesses of the same memory: when they conflict, and what must be between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.model.explain import INVISIBLE, UNAVAILABLE, UNORDERED
from harness.model.memory import MemoryOperations
from harness.model.order import ExecutionOrder
from harness.model.pairs import (
    ATTACHMENT_ORDER,
    REGION,
    SUPERSEDED_READ,
    after_load,
    attachment_ordered,
    exempt,
    facts,
    raster_ordered,
    superseded,
)
from harness.model.past_access import DependencyGap, PastAccess
from harness.model.visibility import VisibilityQuery
from harness.spans import Span, overlap, subtract


class AccessHistory:
    """Every access by address space. Quadratic: each is compared with all earlier ones that it overlaps."""

    def __init__(self, order: ExecutionOrder, guards: MemoryOperations) -> None:
        self._order = order
        self._guards = guards
        self._spaces: dict[int, list[PastAccess]] = {}
        self.writes: list[tuple[PastAccess, list[Span]]] = []
        """Every write, with all that it wrote."""
        self._command = 0
        self._replaced: list[tuple[PastAccess, list[Span]]] = []
        """What the command that is being executed replaces: its own accesses are all judged against what was before."""

    def add(self, current: PastAccess) -> Iterator[DependencyGap]:
        """Judges an access against all earlier ones, then keeps it."""
        self._begin(current.command)
        history = self._spaces.setdefault(current.space, [])
        for prior in history:
            shared = overlap(prior.spans, current.spans)
            if not shared:
                continue
            breach = self._judge(prior, current, shared)
            if breach is not None:
                breach = self._noted(breach)
                yield breach
                if ATTACHMENT_ORDER in breach.facts:
                    prior.outdone_by.append((current, shared))
            elif superseded(prior, current):
                prior.superseded_by.append((current, shared))
            elif _sees(prior, current):
                prior.seen_by.append((current, shared))
            if current.replaces and self._settled(prior, current, breach):
                if current.automatic:
                    prior.spans = subtract(prior.spans, current.spans)
                else:
                    self._replaced.append((prior, current.spans))
        self._spaces[current.space] = [*(held for held in history if held.spans), current]
        if current.writes:
            self.writes.append((current, current.spans))

    def _begin(self, command: int) -> None:
        """What the last command replaced is gone when another one is executed."""
        if command != self._command:
            for held, spans in self._replaced:
                held.spans = subtract(held.spans, spans)
            self._replaced.clear()
            self._command = command

    def unordered(self, current: PastAccess) -> Iterator[DependencyGap]:
        """Earlier accesses that conflict with this one by order alone. It is not kept."""
        for prior in self._spaces.get(current.space, ()):
            shared = overlap(prior.spans, current.spans)
            meet = shared and (prior.writes or current.writes) and not exempt(prior, current)
            if meet and not self._order.precedes(prior.use.node, current.use.node):
                yield DependencyGap(UNORDERED, prior, current, tuple(shared))

    def forget(self, space: int, span: Span | None) -> None:
        """The resource is gone."""
        if span is None:
            self._spaces.pop(space, None)
            return
        for held in self._spaces.get(space, ()):
            held.spans = subtract(held.spans, [span])

    def _settled(self, prior: PastAccess, current: PastAccess, breach: DependencyGap | None) -> bool:
        """Whether whatever comes after `current` has nothing to do with `prior` any more."""
        if breach is not None:
            return breach.kind != UNORDERED
        if prior.command == current.command and prior.lane == current.lane and not current.automatic:
            return prior.use.node == current.use.node
        return True

    def _judge(self, prior: PastAccess, current: PastAccess, shared: list[Span]) -> DependencyGap | None:
        """Conflict needs a write; an order; and after a write, availability and visibility ("Data Race").

        Attachments are ordered if they are so in every region of the framebuffer, anything else only if it is so
        everywhere ("Framebuffer Region Dependencies").
        """
        if not (prior.writes or current.writes) or exempt(prior, current):
            return None
        if prior.regional and current.regional:
            return self._judge_order(prior, current, shared, True)
        breach = self._judge_order(prior, current, shared, False)
        if breach is not None and self._judge_order(prior, current, shared, True) is None:
            return replace(breach, facts=breach.facts | {REGION})
        return breach

    def _noted(self, breach: DependencyGap) -> DependencyGap:
        """What is between the two by attachment order, or stands for the prior one where one read a stage is known."""
        prior, current = breach.prior, breach.current
        left = list(breach.spans)
        for between, spans in prior.seen_by:
            if attachment_ordered(between, current):
                left = subtract(left, spans)
        for between, spans in prior.outdone_by:
            if attachment_ordered(between, current) or self._order.precedes(between.use.node, current.use.node):
                left = subtract(left, spans)
        noted = {ATTACHMENT_ORDER} if not left else set()
        left = list(breach.spans)
        for between, spans in prior.superseded_by:
            if self._order.precedes(between.use.node, current.use.node):
                left = subtract(left, spans)
        return replace(breach, facts=breach.facts | noted | ({SUPERSEDED_READ} if not left else set()))

    def _judge_order(
        self, prior: PastAccess, current: PastAccess, shared: list[Span], by_region: bool
    ) -> DependencyGap | None:
        ordered = self._order.precedes(prior.use.node, current.use.node, by_region)
        if not (ordered or after_load(prior, current, shared)):
            return DependencyGap(UNORDERED, prior, current, tuple(shared), facts(prior, current, False))
        if not prior.writes:
            return None
        sight = VisibilityQuery(self._order, self._guards, current, by_region)
        hidden, guarded = self._hidden(prior, current, shared, sight)
        if hidden:
            kind = INVISIBLE if guarded or sight.is_available(prior, hidden) else UNAVAILABLE
            return DependencyGap(kind, prior, current, tuple(hidden), facts(prior, current, guarded))
        return None

    def _hidden(
        self, prior: PastAccess, current: PastAccess, shared: list[Span], sight: VisibilityQuery
    ) -> tuple[list[Span], bool]:
        """The addresses at which the prior write is not visible to the current access, and whether another read is
        between to which it is.

        A write that comes after a read needs no more than that the read saw the earlier write: its own visibility
        would not change what either left in memory ("Location-Ordered": read, then write).
        """
        left = hidden = sight.hidden(prior, shared)
        for reader, spans in prior.seen_by:
            ordered = raster_ordered(reader, current) or sight.after(reader.use.node)
            if left and ordered:
                left = subtract(left, spans)
        if current.writes and not current.access.atomic:
            return left, False
        return hidden, bool(hidden) and not left


def _sees(prior: PastAccess, current: PastAccess) -> bool:
    """Whether a read that is in no conflict with a write saw what it wrote: in rasterization order too, but not where
    the two simply are in no order."""
    reads = prior.writes and (not current.writes or current.access.atomic)
    return reads and (not exempt(prior, current) or raster_ordered(prior, current))
