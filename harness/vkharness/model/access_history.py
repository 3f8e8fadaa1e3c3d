"""The rules for two accesses of the same memory: when they conflict, and what must be between them.

Theory of operation
===================

(Specification, appendix "Memory Model": "Data Race", "Location-Ordered".)

Every access is compared with every earlier access whose addresses it shares, unless both read: nothing is forgotten
because something else is taken to stand for it. For a pair, prior P and current C, the
questions are asked in this order:

1. **Do they conflict at all?** One of them must write. Pairs that the specification exempts are passed over: atomics
   among themselves, attachment accesses in rasterization order, what one command does to one place.
2. **Is P before C?** The execution dependency order says so (`order`). For two attachment accesses it is enough that
   P is before C in each region of the framebuffer.
3. **When P writes: is the write available and visible to C?** `memory` and `visibility` say so. A write C after a
   write P needs that, too, since otherwise the older bytes may land last.

A pair that fails is a `DependencyGap`: *unordered* (question 2), *unavailable* or *invisible* (question 3). The words
matter to whoever mends it: an unordered pair needs a dependency, an unavailable one a source access mask, an
invisible one a destination access mask.

One rule makes question 3 weaker. When a read R saw the write P, and C is a write that is ordered after R, then C
needs no visibility of P by itself: it could not change what P left before R saw it.

What is dropped
---------------
A write that was in order replaces what was written before it at its addresses:
whatever comes later is held against the new write, and the older one has nothing to add. Only such addresses are
dropped. A write that was *unordered* replaces nothing, because which of the two comes last is open.

An access also *stands for* an earlier one of the same kind in the same command stream (`pairs.stands_for`). Each set
of nodes that holds the later one holds the earlier one, too: whatever comes after the later one comes after both, and
what makes the later one available makes both so. So a later access that conflicts with the earlier one conflicts with
the one that stands for it, and the earlier one has nothing to add. The conflict between the two themselves is reported
before that. This is why a command buffer that is submitted a thousand times is compared with its last execution, and
not with a thousand.

A worked example
----------------
>>> from vkharness.model import judge_stream_events
>>> from vkharness.model.stages import ACCESS_KIND
>>> from vkharness.trace.effects import Access, Command, Submission, Submitted
>>> def access(name):
...     return Access(ACCESS_KIND[f"SYNC_{name}"].index, 10, ((0, 64),), resource=10)
>>> fill = Command(1, "vkCmdFillBuffer", None, (access("CLEAR_TRANSFER_WRITE"),))
>>> copy = Command(2, "vkCmdCopyBuffer", None, (access("COPY_TRANSFER_READ"),))
>>> batch = Submission(0, ((5, (fill, copy)),))
>>> submit = Submitted(3, "vkQueueSubmit2", None, queue=1, queue_flags=0x7FFFFFFF, batches=(batch,), fence=0)
>>> [(str(each.kind), each.current.command) for each in judge_stream_events([submit]).conflicts]
[('unordered', 'vkCmdCopyBuffer')]
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from vkharness.model.memory import MemoryOperations
from vkharness.model.node_numbers import NodeNumbers
from vkharness.model.opinion import ConflictKind
from vkharness.model.order import ExecutionOrder
from vkharness.model.pairs import exempt, is_load, raster_ordered, stands_for
from vkharness.model.past_access import DependencyGap, PastAccess
from vkharness.model.visibility import VisibilityQuery
from vkharness.spans import Span, SpanMap, subtract
from vkharness.trace.attachment_operations import AttachmentOperation
from vkharness.trace.work_budget import spend

A_PAIR = 15
"""Units of the work budget that a pair costs."""
A_PIECE = 10
"""Units that each range of it costs."""
MOST_ALIKE = 8
"""How many reads at one address a later read is held against, to find those for which it stands."""


class _Held(NamedTuple):
    """Accesses to some addresses that nothing has replaced since, in the order in which they were made."""

    writes: tuple[PastAccess, ...] = ()
    reads: tuple[PastAccess, ...] = ()

    def and_then(self, made: PastAccess) -> _Held:
        """With one more access."""
        return _Held((*self.writes, made), self.reads) if made.writes else _Held(self.writes, (*self.reads, made))

    def without(self, gone: Container[PastAccess]) -> _Held | None:
        """Without some accesses; None where nothing is left."""
        writes, reads = (tuple(past for past in several if past not in gone) for several in self)
        return _Held(writes, reads) if writes or reads else None


_NOTHING = _Held()


class _Space:
    """The accesses of one address space, by address."""

    __slots__ = ("_held", "has_loads")

    def __init__(self) -> None:
        self._held: SpanMap[_Held] = SpanMap()
        self.has_loads = False
        """Whether one of the accesses so far is a load operation."""

    def add(self, made: PastAccess) -> None:
        """Keeps an access."""
        self.has_loads = self.has_loads or made.access.operation is AttachmentOperation.LOAD
        for begin, end in made.spans:
            self._held.update(begin, end, lambda _, __, held: (held or _NOTHING).and_then(made))

    def meeting(self, spans: Sequence[Span], reads: bool = True) -> list[tuple[PastAccess, list[Span]]]:
        """The accesses at some addresses, with the addresses: the writes, and the reads where these count, too."""
        found: dict[PastAccess, list[Span]] = {}
        for begin, end in spans:
            for low, high, held in self._held.pieces(begin, end):
                for several in held if reads else held[:1]:
                    for past in several:
                        shared = found.setdefault(past, [])
                        if shared and shared[-1][1] == low:
                            shared[-1] = (shared[-1][0], high)
                        else:
                            shared.append((low, high))
        return sorted(found.items(), key=_number) if len(found) > 1 else list(found.items())

    def alike(self, current: PastAccess) -> set[PastAccess]:
        """Reads for which a read stands. Of many reads by others at one address the last ones are looked at."""
        return {
            past
            for begin, end in current.spans
            for _, _, held in self._held.pieces(begin, end)
            for past in held.reads[-MOST_ALIKE:]
            if stands_for(current, past)
        }

    def replace(self, gone: Container[PastAccess], spans: Sequence[Span]) -> None:
        """A later access has taken addresses of some accesses."""
        for begin, end in spans:
            self._held.update(begin, end, lambda _, __, held: held and held.without(gone))


def _number(found: tuple[PastAccess, list[Span]]) -> int:
    return found[0].number


class AccessHistory:
    """Every access by address space. Each access is compared with all earlier ones that it overlaps, but for two that
    read."""

    def __init__(self, order: ExecutionOrder, operations: MemoryOperations) -> None:
        self._order = order
        self._operations = operations
        self._spaces: dict[int, _Space] = {}
        self.observe: Callable[[PastAccess, PastAccess, list[Span], DependencyGap | None], None] | None = None
        """Is told of each pair that shares addresses and of which one writes, with the gap between the two accesses."""
        self._command = 0
        self._count = 0
        self._queries: dict[bool, VisibilityQuery] = {}
        """Of the access that is being judged: what it sees everywhere, and by region."""
        self._replaced: list[tuple[_Space, set[PastAccess], list[Span]]] = []
        """Accesses that the executing command replaces, with addresses. They stay until its end: all accesses of the
        command are judged against those before it."""

    def add(self, current: PastAccess) -> Iterator[DependencyGap]:
        """Judges an access against all earlier ones, then keeps it where it is at home.

        At the addresses of an alias it is judged and not kept: what comes later through the alias is judged where this
        access is at home. Two resources that overlap the alias need not overlap each other.
        Rules: rules.md#only-shared-bytes-conflict, rules.md#an-image-overlaps-all-of-its-memory.
        """
        self._begin(current.command, current.automatic)
        self._count += 1
        current.number = self._count
        held = self._spaces.setdefault(current.space, _Space())
        self._queries.clear()
        gone = set() if current.writes else held.alike(current)
        met = held.meeting(current.spans, current.writes)
        pieces = len(current.spans) + sum(len(shared) for _, shared in met)
        spend(A_PAIR * len(met) + A_PIECE * pieces, "steps of the second judge")
        for prior, shared in met:
            gap = self._judge(prior, current, shared)
            if self.observe is not None:
                self.observe(prior, current, shared, gap)
            if gap is not None:
                yield gap
            elif _sees(prior, current):
                prior.note_reader(current, shared)
            if stands_for(current, prior) or (current.replaces and self._makes_obsolete(prior, current, gap)):
                gone.add(prior)
        if gone and current.automatic:
            held.replace(gone, current.spans)
        elif gone:
            self._replaced.append((held, gone, current.spans))
        if not current.through_alias:
            held.add(current)

    def _begin(self, command: int, automatic: bool = False) -> None:
        """Notes that another command is executed, and drops what the last command replaced. So does a transition that
        is made behind the store operations of its own command: what comes after these comes after what they replace."""
        if automatic or command != self._command:
            for space, gone, spans in self._replaced:
                space.replace(gone, spans)
            self._replaced.clear()
            self._command = command

    def writes_before(self, command: int, space: int, spans: Sequence[Span]) -> list[tuple[PastAccess, list[Span]]]:
        """The writes at some addresses before a command that no later write has replaced, with the addresses."""
        self._begin(command)
        held = self._spaces.get(space)
        return [] if held is None else held.meeting(spans, reads=False)

    def unordered(self, current: PastAccess) -> Iterator[DependencyGap]:
        """The earlier accesses that conflict with `current` by order alone. `current` itself is not kept."""
        held = self._spaces.get(current.space)
        for prior, shared in () if held is None else held.meeting(current.spans):
            meet = (prior.writes or current.writes) and not exempt(prior, current)
            if meet and not self._order.precedes(prior.use.node, current.use.node):
                yield DependencyGap(ConflictKind.UNORDERED, prior, current, tuple(shared))

    def forget(self, space: int, span: Span | None, complete: NodeNumbers) -> None:
        """Drops the accesses of a destroyed resource; `span` None stands for its whole address space. Of a span, which
        other resources may get, those stay that are not among the `complete` nodes.

        Rule: rules.md#destroyed-resources-take-their-accesses-along.
        """
        if span is None:
            self._spaces.pop(space, None)
            return
        held = self._spaces.get(space)
        if held is not None:
            held.replace({past for past, _ in held.meeting([span]) if past.use.node in complete}, [span])

    def _makes_obsolete(self, prior: PastAccess, current: PastAccess, gap: DependencyGap | None) -> bool:
        """Whether whatever comes after `current` has nothing to do with `prior` any more.

        That holds of a load operation that clears behind the transition of its own command, too.
        """
        if gap is not None:
            return gap.kind != ConflictKind.UNORDERED
        beside = prior.command == current.command and prior.stream == current.stream
        if beside and not (prior.automatic or current.automatic):
            again = prior.writes and raster_ordered(prior, current)  # a clear writes in the early and in the late tests
            return again or prior.use.node == current.use.node or current.access.operation is AttachmentOperation.STORE
        return True

    def _judge(self, prior: PastAccess, current: PastAccess, shared: list[Span]) -> DependencyGap | None:
        """The gap between two accesses, None without a conflict (specification: "Data Race").

        A conflict needs a write, and accesses without an order or a write that is not available and visible. Attachment
        accesses are ordered if they are so in every region of the framebuffer. Other accesses must be ordered
        everywhere ("Framebuffer Region Dependencies"). Rules: rules.md#read-after-write, rules.md#write-after-read,
        rules.md#write-after-write. An access that an implementation may make counts as made:
        rules.md#writes-to-one-aspect-may-rewrite-the-other.
        Rule: rules.md#reads-do-not-conflict.
        """
        if not (prior.writes or current.writes) or exempt(prior, current):
            return None
        if prior.regional and current.regional:
            return self._judge_order(prior, current, shared, True)
        return self._judge_order(prior, current, shared, False)

    def _judge_order(
        self, prior: PastAccess, current: PastAccess, shared: list[Span], by_region: bool
    ) -> DependencyGap | None:
        """The gap in the order, or in the visibility of a write. Accesses of two queues, or of two subpasses, have no
        order of their own.

        Rules: rules.md#queues-without-a-semaphore-race, rules.md#subpasses-without-a-path-race.
        """
        ordered = self._order.precedes(prior.use.node, current.use.node, by_region)
        if not (ordered or self._ordered_by_others(prior, current, shared, by_region)):
            return DependencyGap(ConflictKind.UNORDERED, prior, current, tuple(shared))
        if not prior.writes:
            return None
        query = self._queries.get(by_region)
        if query is None:
            query = self._queries[by_region] = VisibilityQuery(self._order, self._operations, current, by_region)
        hidden = self._hidden(prior, current, shared, query)
        if hidden:
            kind = ConflictKind.INVISIBLE if query.is_available(prior, hidden) else ConflictKind.UNAVAILABLE
            return DependencyGap(kind, prior, current, tuple(hidden))
        return None

    def _ordered_by_others(self, prior: PastAccess, current: PastAccess, shared: list[Span], by_region: bool) -> bool:
        """Whether reads that saw the prior write, or load operations, come between the two accesses everywhere.

        Rasterization order has no edges in the graph, so that these are asked for one by one.
        Rule: rules.md#most-recent-access.
        """
        left = shared
        for reader, spans in prior.seen_by:
            after = self._order.precedes(reader.use.node, current.use.node, by_region)
            if after or raster_ordered(reader, current):
                left = subtract(left, spans)
        held = self._spaces[current.space]
        for past, spans in held.meeting(left) if left and held.has_loads else ():
            if is_load(past, current) and self._order.precedes(prior.use.node, past.use.node):
                left = subtract(left, spans)
        return not left

    def _hidden(self, prior: PastAccess, current: PastAccess, shared: list[Span], query: VisibilityQuery) -> list[Span]:
        """The addresses at which `current` does not see the prior write.

        A write that comes after a read needs no visibility of its own, if the read saw the earlier write: it could not
        change what either left in memory ("Location-Ordered": read, then write). Rule: rules.md#most-recent-access.
        A load operation that saw the write "defines the initial values" of the attachment for the render pass instance.
        Rule: rules.md#input-reads-come-after-loads-and-before-stores.
        """
        hidden = query.hidden(prior, shared)
        readers = prior.seen_by if hidden else ()
        for reader, spans in readers:
            if is_load(reader, current):
                hidden = subtract(hidden, spans)
        if current.writes and not current.access.atomic:
            for _, spans in readers_before(reversed(readers), current, query):
                if not hidden:
                    break
                hidden = subtract(hidden, spans)
        return hidden


def readers_before(
    readers: Iterable[tuple[PastAccess, list[Span]]], current: PastAccess, query: VisibilityQuery
) -> Iterator[tuple[PastAccess, list[Span]]]:
    """Those of the readers that are ordered before the current access. Accesses of one command stand side by side: an
    implementation may leave out the early one of two tests, for instance."""
    for each in readers:
        reader = each[0]
        beside = reader.command == current.command and reader.stream == current.stream
        if not beside and (raster_ordered(reader, current) or query.after(reader.use.node)):
            yield each


def _sees(prior: PastAccess, current: PastAccess) -> bool:
    """Whether `current` reads what `prior` wrote, given that the two do not conflict. Nobody knows of a read that only
    may be made. Rule: rules.md#what-may-be-read-makes-the-verdict-unknown.

    Rasterization order counts as an order here. Other pairs that are exempt because their order does not matter do not.
    """
    reads = prior.writes and not current.possible and (not current.writes or current.access.atomic)
    return reads and (not exempt(prior, current) or raster_ordered(prior, current))
