"""Dependencies that make a range visible while a write of it is not available: reported as remarks, not as conflicts.

Older rules take writes for dirty cache lines. There a dependency must not invalidate memory that holds an unflushed
write, and must not do so while a write may happen. Today's specification
forbids neither: a visibility operation makes visible what is available, and leaves alone what is not ("Availability,
Visibility, and Domain Operations"). A barrier that names a range, and that a write of the range is not in, does nothing
for that write, though. That is seldom what a program means, so that it is worth a remark. A dependency over all memory
names none, and is not remarked upon. Nor is a write that comes after the barrier in the stream.

On the host the rule is still one (`rules/host.py`): memory that is written, not flushed and then invalidated is lost.

A worked example
----------------
A fill, then a barrier of its buffer whose first access scope is empty.

>>> from vkharness.text_form.stream_text import parse
>>> from vkharness.model import judge_stream_events
>>> text = "submit q1\\n CLEAR_TRANSFER_WRITE a\\n barrier a CLEAR > COPY/TRANSFER_READ\\n"
>>> [str(each.kind) for each in judge_stream_events(parse(text)).remarks]
['dirty-invalidate']
"""

from __future__ import annotations

from collections.abc import Sequence

from vkharness.findings import Place
from vkharness.model.access_history import AccessHistory
from vkharness.model.memory import MemoryOperation, MemoryOperations
from vkharness.model.node_numbers import EMPTY, NodeNumbers
from vkharness.model.opinion import Conflict, ConflictKind, ModelAccess
from vkharness.model.order import ExecutionOrder
from vkharness.model.past_access import HOST_STREAM, PastAccess, written
from vkharness.spans import Span, subtract
from vkharness.trace.work_budget import spend

A_WRITE = 20
"""Units of the work budget that a write costs in a range that a dependency names."""


class Caches:
    """The remarks on the visibility operations of ranges so far."""

    def __init__(self, order: ExecutionOrder, operations: MemoryOperations) -> None:
        self._order = order
        self._operations = operations
        self._said: set[tuple[ConflictKind, int, int, int]] = set()
        self.remarks: list[Conflict] = []

    def made_visible(
        self, operations: Sequence[MemoryOperation], place: Place, accesses: AccessHistory, command: int
    ) -> None:
        """The dependencies of one command make memory visible. Each write so far in a range that one of them names must
        be available before one of them.

        Rules: rules.md#what-is-made-visible-should-be-available, rules.md#a-write-should-not-race-with-a-barrier.
        """
        before = EMPTY
        for each in operations:
            before |= self._order.closure(True)[each.node] | NodeNumbers.one(each.node)
        for each in operations:
            if each.space is None or not each.invalidates:
                continue
            use = ModelAccess(place, "", False, each.node)
            writes = accesses.writes_before(command, each.space, each.spans)
            spend(A_WRITE * len(writes), "steps of the second judge")
            for past, shared in writes:
                if not _may_be_dirty(past):
                    continue
                if past.use.node not in before:
                    self._say(ConflictKind.RACING, past, use, shared)
                elif dirty := self._unavailable(past, shared, before):
                    self._say(ConflictKind.DIRTY, past, use, dirty)

    def _unavailable(self, past: PastAccess, spans: list[Span], before: NodeNumbers) -> list[Span]:
        """The addresses at which none of the nodes `before` made a write available."""
        if self._operations.flushed(past.use.node, written(past), before):
            return []
        for flush in self._operations.ranged_flushes(past.space, past.use.node, written(past)):
            if flush.node in before:
                spans = subtract(spans, flush.spans)
        return spans

    def _say(self, kind: ConflictKind, past: PastAccess, current: ModelAccess, spans: list[Span]) -> None:
        """Notes one remark. The same two commands are remarked upon once for each resource."""
        prior, resource, certainty = past.use, past.resource, past.access.certainty
        key = (kind, prior.call, current.call, resource)
        if key not in self._said:
            self._said.add(key)
            self.remarks.append(Conflict(kind, prior, current, resource, tuple(spans), self._order, certainty))


def _may_be_dirty(past: PastAccess) -> bool:
    """Whether it is a write of the device that is not available by itself."""
    return past.writes and not past.automatic and past.stream > HOST_STREAM
