"""Knowledge of completed work that the host gains while a submitted batch waits for a signal.

A batch comes after what the host knew to be complete when it submitted the batch ("Host Write Ordering Guarantees"),
and not after what the host learns until the batch is executed. So nothing is forgotten while a batch waits: what the
host learns is kept here, each batch has the knowledge of its submit, and its queue comes to know that when it begins.
What the host signals or sets meanwhile hands its knowledge on to those that wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from vkharness.findings import Place
from vkharness.syncval.barrier import Scope, chained
from vkharness.syncval.completion import completed
from vkharness.syncval.race import NEVER, BatchIndex, batch_index_of
from vkharness.syncval.state import HOST_QUEUE, AccessOrdering, State, came_later
from vkharness.trace.work_budget import A_KNOWN_QUEUE, spend

EVERY_STAGE = EVERY_ACCESS = (1 << 256) - 1
SETTLED = 1 << 58
"""In the view of the host, the token of a write that the host has seen, or that it was told of."""

Clock = Mapping[int, BatchIndex]
"""By queue, up to which batch."""


@dataclass(frozen=True, slots=True)
class HostKnowledge:
    """Work that the host has come to know to be complete since a batch waits."""

    complete: Clock = field(default_factory=dict)
    """By queue, the tag up to which the host knows all work to be complete."""
    reach: Clock = field(default_factory=dict)
    """Up to where it knows of anything."""
    marks: tuple[tuple[int, int], ...] = ()
    """Tokens of more that it knows to be complete, each with the queue that gave it."""
    operations: frozenset[int] = frozenset()
    """The operations on events that it knows to be complete by such tokens."""
    era: int = -1
    """How often all batches had gone on before (`TrackedRanges.era`). Afterwards the tokens mean something else."""

    def with_more(
        self, complete: Clock, reach: Clock, marks: Iterable[tuple[int, int]] = (), operations: Iterable[int] = ()
    ) -> HostKnowledge:
        """This and more."""
        return HostKnowledge(
            later(self.complete, complete),
            later(self.reach, later(complete, reach)),
            (*self.marks, *marks),
            self.operations | frozenset(operations),
            self.era,
        )

    def of_device(self) -> HostKnowledge:
        """This without what is known of the host's own accesses."""
        return replace(self, marks=tuple(each for each in self.marks if each[1] != HOST_QUEUE))

    def includes(self, place: Place) -> bool:
        """Whether a batch is complete as a whole."""
        return batch_index_of(place) <= self.complete.get(place.queue or 0, NEVER)

    def part(
        self, state: State, write: int | None, reads: tuple[int, ...], includes: Callable[[int], bool]
    ) -> tuple[bool, frozenset[int]]:
        """Returns whether the write of a range is known to be complete, and the positions of its reads that are.
        `includes` tells of a place number whether its batch is complete as a whole."""
        known = {at for at, place in enumerate(reads) if includes(place)}
        written = write is not None and state.write is not None and includes(write)
        for token, queue in self.marks:
            view = state.view(queue)
            known |= {at for at, each in enumerate(view.reads) if token in each.tokens}
            written = written or bool({token, chained(token)} & view.write.tokens)
        if any(came_later(state.reads[at], state.write) for at in known):
            written = written or state.write is not None
        return written, frozenset(known)

    def seen_by_host(self, state: State, reads: tuple[int, ...]) -> tuple[State, tuple[int, ...]]:
        """A state and its reads without those that the host knows to be complete by tokens."""
        for token, queue in self.marks:
            if queue != HOST_QUEUE:
                state, gone = completed(state, token, queue)
                reads = tuple(read for at, read in enumerate(reads) if at not in gone)
        return state, reads


NOTHING_MORE = HostKnowledge()
"""No batch waits, or the host has learned nothing since one does."""


def later(one: Clock, other: Clock) -> dict[int, BatchIndex]:
    """Both clocks together."""
    spend(A_KNOWN_QUEUE * (len(one) + len(other)), "queues that know of one another")
    return {queue: max(one.get(queue, NEVER), other.get(queue, NEVER)) for queue in {**one, **other}}


def everything_after(token: int) -> Scope:
    """The dependency by which marked accesses happen before, and are visible to, all that follows a submit."""
    return Scope(0, 0, EVERY_STAGE, EVERY_ACCESS, token)


def after_mark(state: State, token: int, viewer: int, write: bool, reads: frozenset[int]) -> State:
    """Marks for a viewer the write of a state, as one that is available, and some of its reads (memoised)."""
    return state.after(
        ("host knows", token, viewer, write, reads), lambda state: _marked(state, token, viewer, write, reads)
    )


def _marked(state: State, token: int, viewer: int, write: bool, reads: frozenset[int]) -> State:
    view = state.view(viewer)

    def with_token(ordering: AccessOrdering, mark: int) -> AccessOrdering:
        return ordering._replace(tokens=ordering.tokens | {mark})

    return state.with_view(
        view._replace(
            write=with_token(view.write, chained(token)) if write else view.write,
            reads=tuple(with_token(each, token) if at in reads else each for at, each in enumerate(view.reads)),
        )
    )


def host_reads(state: State) -> tuple[int, ...]:
    """The positions of what the host read while a batch waited."""
    return tuple(at for at, read in enumerate(state.reads) if read.queue == HOST_QUEUE)


def after_host_reads(state: State, token: int) -> State:
    """Marks what the host read so far (memoised)."""
    return after_mark(state, token, HOST_QUEUE, False, frozenset(host_reads(state)))


def is_settled(state: State) -> bool:
    """Whether the host has done with the last write."""
    return state.write is not None and SETTLED in state.view(HOST_QUEUE).write.tokens


def after_settling(state: State) -> State:
    """A state once the host has done with the last write (memoised)."""
    return state.after("settled", _settled)


def _settled(state: State) -> State:
    view = state.view(HOST_QUEUE)
    return state.with_view(view._replace(write=view.write._replace(tokens=view.write.tokens | {SETTLED})))
