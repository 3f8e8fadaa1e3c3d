"""Why each pair of accesses of the same memory is in order, or not: the argument of the model as data.

The model judges the stream once more and notes the pairs. What makes a write available and visible is found by asking
the judge's own `VisibilityQuery` about two memory operations at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from vkharness.commands.debug_info import DebugInfo
from vkharness.commands.interpret import Interpreter
from vkharness.model.access_history import readers_before
from vkharness.model.memory import MemoryOperation, MemoryOperations
from vkharness.model.node_numbers import EMPTY, NodeNumbers
from vkharness.model.opinion import Conflict, ModelAccess
from vkharness.model.order import Edge, ExecutionOrder
from vkharness.model.pairs import Exemption, exempt, raster_ordered
from vkharness.model.past_access import DependencyGap, PastAccess, written
from vkharness.model.program import Program
from vkharness.model.rules import RULES
from vkharness.model.visibility import VisibilityQuery, visible_to
from vkharness.spans import Span, overlap, subtract
from vkharness.trace.calls import Block
from vkharness.trace.effects import StreamEvent
from vkharness.trace.resources import Buffer, Image


@dataclass(frozen=True, slots=True)
class Passage:
    """How the bytes of some addresses pass from a write to a later access."""

    spans: tuple[Span, ...]
    flush: int | None = None
    """The node that makes the write available. None for a write that is available by itself."""
    taken_on: int | None = None
    """The node that makes it available to the device. None where `flush` does."""
    invalidate: int | None = None
    """The node that makes it visible. None for an access to which all that is available is visible."""
    reader: ModelAccess | None = None
    """The read that saw the write and comes before the later access, which is a write."""


@dataclass(frozen=True, slots=True)
class PairExplanation:
    """One pair: why it needs no dependency, which dependencies it has, or what is missing."""

    prior: ModelAccess
    current: ModelAccess
    resource: int
    subject: Image | Buffer | None
    """The resource as it was then. None stands for a memory object."""
    spans: tuple[Span, ...]
    order: ExecutionOrder
    exemption: Exemption | None = None
    conflict: Conflict | None = None
    path: tuple[Edge, ...] = ()
    """The edges from the first access to the second, one for each step."""
    loads: tuple[ModelAccess, ...] = ()
    """Without a path: the load operations that come between the two."""
    passages: tuple[Passage, ...] = ()
    """After a write, how its bytes pass. Together the passages cover `spans`."""
    debug: DebugInfo = field(default_factory=DebugInfo)
    """Names, labels and frames of the program; empty where the pairs are of stream events."""


@dataclass(frozen=True, slots=True)
class _Pair:
    prior: PastAccess
    current: PastAccess
    spans: list[Span]
    gap: DependencyGap | None
    readers: tuple[tuple[PastAccess, list[Span]], ...]
    subject: Image | Buffer | None


def explain_pairs(
    blocks: Iterable[Block], limit: int, calls: tuple[int, int] | None = None
) -> tuple[list[PairExplanation], int, dict[str, int]]:
    """The explanations of the last `limit` pairs of a trace, the number of pairs before them, and what has no rule.

    `calls` chooses the pairs between the commands of two block indices. Commands that are never executed have no pairs.
    """
    interpreter = Interpreter()
    objects = interpreter.objects
    stream = (each for block in blocks for each in interpreter.step(block))
    found, left_out, unmodelled = explain_stream_pairs(
        stream, limit, calls, lambda id: objects.image(id) or objects.buffer(id)
    )
    return [replace(each, debug=objects.debug) for each in found], left_out, unmodelled


def explain_stream_pairs(
    stream: Iterable[StreamEvent],
    limit: int,
    calls: tuple[int, int] | None = None,
    subject: Callable[[int], Image | Buffer | None] = lambda id: None,
) -> tuple[list[PairExplanation], int, dict[str, int]]:
    """As `explain_pairs`, from stream events; `subject` finds a live resource."""
    program, kept, count = Program(RULES), deque[_Pair](maxlen=limit), 0

    def note(prior: PastAccess, current: PastAccess, spans: list[Span], gap: DependencyGap | None) -> None:
        nonlocal count
        asked = calls is None or sorted(calls) == sorted((prior.use.call, current.use.call))
        if asked and (prior.writes or current.writes) and exempt(prior, current) is not Exemption.ONE_COMMAND:
            count += 1
            kept.append(_Pair(prior, current, spans, gap, tuple(prior.seen_by), subject(current.resource)))

    program.accesses.observe = note
    program.follow(stream)
    remarks = [each for each in program.opinion.remarks if calls is None or sorted(calls) == _calls(each)]
    return (
        [_explain(pair, program.order, program.memory) for pair in kept] + [_remark(each, subject) for each in remarks],
        count - len(kept),
        program.opinion.unmodelled,
    )


def _calls(conflict: Conflict) -> list[int]:
    return sorted((conflict.prior.call, conflict.current.call))


def _remark(said: Conflict, subject: Callable[[int], Image | Buffer | None]) -> PairExplanation:
    """A remark, as if it were a pair of accesses."""
    what = subject(said.resource)
    return PairExplanation(said.prior, said.current, said.resource, what, said.spans, said.order, conflict=said)


def _explain(pair: _Pair, order: ExecutionOrder, memory: MemoryOperations) -> PairExplanation:
    prior, current = pair.prior, pair.current
    known = PairExplanation(prior.use, current.use, current.resource, pair.subject, tuple(pair.spans), order)
    if pair.gap is not None:
        return replace(known, conflict=pair.gap.conflict(order))
    exemption = exempt(prior, current)
    if exemption is not None:
        return replace(known, exemption=exemption)
    by_region = prior.regional and current.regional
    nodes = order.path(prior.use.node, current.use.node, by_region)
    path = tuple(next(order.into(second, NodeNumbers.one(first))) for first, second in pairwise(nodes))
    loads = () if path else tuple(reader.use for reader, _ in pair.readers if raster_ordered(reader, current))
    passages = tuple(_passages(pair, order, memory, by_region)) if prior.writes else ()
    return replace(known, path=path, loads=loads, passages=passages)


def _passages(pair: _Pair, order: ExecutionOrder, memory: MemoryOperations, by_region: bool) -> Iterator[Passage]:
    """For each part of the addresses, the first invalidate that the access has and the last flush before it, or the
    reads that saw the write."""
    left = pair.spans
    for available, invalidate in _candidates(pair, order, memory):
        only = MemoryOperations(order)
        for operation in (*available, *invalidate):
            only.add(operation)
        hidden = VisibilityQuery(order, only, pair.current, by_region).hidden(pair.prior, left)
        seen = subtract(left, hidden)
        if seen:
            flush, taken_on, *_ = (*(each.node for each in available), None, None)
            yield Passage(tuple(seen), flush, taken_on, invalidate[0].node if invalidate else None)
        left = hidden
        if not left:
            return
    for reader, spans in readers_before(
        pair.readers, pair.current, VisibilityQuery(order, memory, pair.current, by_region)
    ):
        seen = overlap(left, spans)
        if seen:
            yield Passage(tuple(seen), reader=reader.use)
        left = subtract(left, spans)


def _candidates(
    pair: _Pair, order: ExecutionOrder, memory: MemoryOperations
) -> Iterator[tuple[tuple[MemoryOperation, ...], tuple[MemoryOperation, ...]]]:
    """Each way in which the write becomes available with each invalidate after it, near ones first. An automatic access
    needs none of its own."""
    prior, current = pair.prior, pair.current
    earlier = order.by_region[current.use.node]
    near = [each for each in memory.everything if each.node in earlier]
    flushes = [()] if prior.automatic else list(_flushes(prior, near))
    invalidates = [(replace(each, flushes=0, first=EMPTY),) for each in near if each.invalidates & visible_to(current)]
    for invalidate in [()] if current.automatic else invalidates:
        for flush in flushes:
            ends = [each[-1].node for each in (flush, invalidate) if each]
            if all(first == second or order.precedes(first, second, True) for first, second in pairwise(ends)):
                yield flush, invalidate


def _flushes(prior: PastAccess, near: list[MemoryOperation]) -> Iterator[tuple[MemoryOperation, ...]]:
    """Yields the operations that make a write available to the device, last ones first: one operation, or a flush of
    the host and an operation that takes on what is available to the host.

    Rule: rules.md#a-late-host-write-needs-a-dependency-from-the-host.
    """
    flushes = [replace(each, invalidates=0) for each in reversed(near) if each.flushes]
    for flush in flushes:
        if not flush.makes_available(prior.use.node, written(prior)):
            continue
        if not flush.by_host:
            yield (flush,)
        elif flush.space == prior.space:
            yield from ((flush, each) for each in flushes if each.takes_on(flush))
