"""The host learns something: at once for all, or, while a submitted batch waits, for what is submitted later alone.

Rule: rules.md#a-waiting-batch-knows-what-its-submit-knew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vkharness.syncval.barrier import Scope, after_barrier, forgetting
from vkharness.syncval.completion import carrying
from vkharness.syncval.context import Context
from vkharness.syncval.event_order import OperationOrder
from vkharness.syncval.host_knowledge import NOTHING_MORE, Clock, HostKnowledge, everything_after
from vkharness.syncval.state import HOST_QUEUE, Change
from vkharness.syncval.tokens import Tokens


class HostLearning:
    """Passes the host's knowledge of completed work of one device on to the queues that submit after it."""

    def __init__(
        self,
        context: Context,
        order: OperationOrder,
        tokens: Tokens,
        hear_of: Callable[[int, HostKnowledge, int], None],
    ) -> None:
        """`hear_of` is told which stages of a queue come after what the host knew."""
        self._context, self._order, self._tokens, self._hear_of = context, order, tokens, hear_of
        self._told: dict[int, HostKnowledge] = {}
        """By queue, what its last batch came to know of the host."""

    def learn(
        self, complete: Clock, reach: Clock, mark: tuple[int, int] | None = None, operations: Iterable[int] = ()
    ) -> None:
        """The host knows that work is complete: up to tags, what has a token that a queue gave, and operations on
        events. Batches that were submitted before do not come after it."""
        context = self._context
        if not context.holds_back():
            if mark is not None:
                context.complete(*mark)
            self._order.complete(operations)
            for queue, tag in complete.items():
                context.retire(queue, tag)
            return
        marks = []
        if mark is not None:  # the token may be used again before no batch waits any more
            token, own = mark[0], self._tokens.take()
            context.map_slots(carrying(token, own, mark[1]))
            marks.append((own, mark[1]))
        context.learn(context.learnt.with_more(complete, reach, marks, operations))

    def settle(self) -> None:
        """No batch waits any more: what the host has learned meanwhile is known to all that comes."""
        context, learnt = self._context, self._context.learnt
        context.forget_settled()
        self._told.clear()
        for token, queue in learnt.marks:
            by_host = queue == HOST_QUEUE
            if not by_host:
                context.complete(token, queue)
            self._take_off(token, context.tokens if by_host else self._tokens)
        self._order.complete(learnt.operations)
        for queue, tag in learnt.complete.items():
            context.retire(queue, tag)

    def begin(self, queue: int, known: HostKnowledge) -> None:
        """A queue begins a batch, after all that the host knew when it submitted that.

        Rule: rules.md#a-waiting-batch-knows-what-its-submit-knew.
        """
        if known is not self._told.get(queue, NOTHING_MORE):
            self._told[queue] = known
            self.come_after(queue, known, everything_after)

    def come_after(self, queue: int, known: HostKnowledge, scope: Callable[[int], Scope]) -> None:
        """Work of a queue comes after what the host knew: `scope` makes the dependency from a token.

        Rule: rules.md#a-waiting-batch-knows-what-its-submit-knew.
        """
        if known.era != self._context.era:
            return
        context, token = self._context, self._tokens.take()
        context.mark_known(queue, known, token)
        dependency = scope(token)
        context.map_slots(Change(((dependency,), queue), lambda state: after_barrier(state, (dependency,), queue)))
        self._take_off(token, self._tokens)
        self._hear_of(queue, known, dependency.dst_stages)

    def _take_off(self, token: int, tokens: Tokens) -> None:
        self._context.map_slots(forgetting(token))
        tokens.give(token)
