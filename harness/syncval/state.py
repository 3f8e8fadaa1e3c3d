"""What is known of one range of addresses: its most recent write, the reads since, and what each viewer may assume.

A *viewer* is whoever accesses memory with an order of its own: a queue, a command buffer while it is recorded (0), a
subpass while its render pass instance runs (negative). Barriers, semaphores and subpass dependencies never change
what happened; they change what one viewer may assume about it, its `View`.

States are immutable and interned, and each remembers what every operation made of it. Syncval is therefore a finite
automaton that is built as the program runs: an access or a barrier that was seen before costs one look-up, and two
ranges with the same history share one state. Who made an access and when (its `Place`) stays with the range, because
no rule depends on it.

Of all accesses only the last write is kept, and the reads beside and since it, one a stage and queue. Older hazards
were reported (design document, "Most Recent Access"; SYNC_RULES 2.3). The rules live in `access`, `barrier`, `layout`
and `handover`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Hashable, Iterable
from itertools import count
from typing import Any, NamedTuple, TypeVar

from harness.spec.scopes import BY_NAME, SYNC

LAYOUT_TRANSITION = BY_NAME["SYNC_IMAGE_LAYOUT_TRANSITION"].index
OWNERSHIP_TRANSFER = BY_NAME["SYNC_QUEUE_FAMILY_OWNERSHIP_TRANSFER"].index
RECORDING = 0
"""The viewer of accesses that are only recorded so far."""
NO_TOKENS: frozenset[int] = frozenset()


class Write(NamedTuple):
    """The most recent write, by `viewer` on `queue` (equal but for subpasses). `operation` is an `Operation`; `atomic`
    writes (and markers) do not conflict with others of their kind. One that is `done`, as the host knows, conflicts
    with no access of the device; it is kept because the host may not see it yet."""

    sync: int
    queue: int
    viewer: int
    atomic: bool = False
    operation: int = 0
    done: bool = False


class Read(NamedTuple):
    """The most recent read by one stage of one queue. One that is `beside` the last write is of the same command: what
    is ordered after it need not be ordered after the write."""

    sync: int
    stage: int
    queue: int
    viewer: int
    beside: bool = False


class AccessOrdering(NamedTuple):
    """What a viewer may assume of one access.

    Of a write: `barriers` is the set of accesses (bits of SYNC indices) that it was made visible to, `chain` the stages
    that happen after it through dependencies that made it available. Of a read: `barriers` are the stages ordered after
    it, `chain` those whose own later reads are known to happen after it, so that a barrier that covers them covers it.
    `tokens` are the events that were set after it, as `barrier.after_set` marks them. Of a read: `passed` are stages of
    subpasses, now over, that were ordered after it; nothing in them is any more, but a barrier that covers them is.
    """

    barriers: int = 0
    chain: int = 0
    tokens: frozenset[int] = NO_TOKENS
    passed: int = 0


NO_GUARD = AccessOrdering()


class View(NamedTuple):
    """What one viewer may assume: of the write, of each read in the state's order; `ordered` are stages that happen
    after some read, so that a read there cannot conflict with the write."""

    viewer: int
    write: AccessOrdering
    reads: tuple[AccessOrdering, ...]
    ordered: int

    @property
    def empty(self) -> bool:
        """Whether nothing may be assumed: such views are not kept."""
        return self.write == NO_GUARD and not self.ordered and all(guard == NO_GUARD for guard in self.reads)


class AccessOutcome(NamedTuple):
    """What an access meets: the hazard with the prior write (`prior` -1) or read (its position), and the new state.

    `position` is where the new state keeps the access: -1 as the write, otherwise its place among the reads.
    """

    hazard: str | None
    prior: int
    state: State
    position: int


T = TypeVar("T")


class State:
    """An interned state. Compare by identity."""

    __slots__ = ("followed", "made", "reads", "views", "write")

    write: Write | None
    reads: tuple[Read, ...]
    views: tuple[View, ...]
    """Sorted by viewer, without empty ones."""

    def __init__(self, write: Write | None, reads: tuple[Read, ...], views: tuple[View, ...]) -> None:
        self.write, self.reads, self.views = write, reads, views
        self.followed = any(not read.beside for read in reads)
        """Whether a read came after the write: what is ordered after all reads is ordered after the write too."""
        self.made: dict[Hashable, Any] = {}
        """What operations made of it; each key names all that its value depends on."""

    def after(self, key: Hashable, rule: Callable[[State], T]) -> T:
        """What an operation makes of this state, worked out once for each `key`, which must name all it depends on."""
        known: T | None = self.made.get(key)
        if known is None:
            if len(self.made) >= _MADE_LIMIT:
                self.made.clear()
            known = self.made[key] = rule(self)
        return known

    def view(self, viewer: int) -> View:
        """What a viewer may assume."""
        for view in self.views:
            if view.viewer == viewer:
                return view
        return View(viewer, NO_GUARD, (NO_GUARD,) * len(self.reads), 0)

    def with_view(self, view: View) -> State:
        """This state with one view replaced."""
        return intern(self.write, self.reads, (*(v for v in self.views if v.viewer != view.viewer), view))

    def without_write(self) -> State:
        """This state when the write no longer counts: something else overwrote it, or the host sees it."""
        return intern(None, self.reads, tuple(view._replace(write=NO_GUARD) for view in self.views))

    def finished(self) -> State:
        """This state once the host knows that the write is complete (memoised)."""
        return self.after("finished", lambda _: intern(_done(self.write), self.reads, self.views))

    def without_reads(self, positions: tuple[int, ...]) -> State:
        """This state once the host knows that these reads, and with them the older write, are complete (memoised)."""
        return self.after(("without", positions), lambda _: self._without_reads(positions))

    def _without_reads(self, positions: tuple[int, ...]) -> State:
        kept = [at for at in range(len(self.reads)) if at not in positions]
        views = tuple(
            view._replace(reads=tuple(view.reads[at] for at in kept), ordered=view.ordered if kept else 0)
            for view in self.views
        )
        return intern(_done(self.write), tuple(self.reads[at] for at in kept), views)

    def _check(self) -> None:
        """Raises AssertionError when an invariant is broken."""
        stages = [(read.stage, read.queue) for read in self.reads]
        assert len(stages) == len(set(stages)), "two reads of one stage and queue"
        assert self.write is None or SYNC[self.write.sync].write, "a write that is none"
        assert all(not SYNC[read.sync].write for read in self.reads), "a read that is none"
        viewers = [view.viewer for view in self.views]
        assert viewers == sorted(set(viewers)), "views out of order"
        assert all(len(view.reads) == len(self.reads) for view in self.views), "a view that lacks a read"
        assert self.write is not None or self.reads or not self.views, "views of nothing"


class Change:
    """An operation over many states. Each remembers what it made of it under a number that stands for `key`, which
    names all that the operation depends on: long keys are hashed once, not once a state."""

    __slots__ = ("_number", "_rule")

    def __init__(self, key: Hashable, rule: Callable[[State], State]) -> None:
        number = _NUMBERS.get(key)
        if number is None:
            if len(_NUMBERS) >= _LIMIT:
                _NUMBERS.clear()
            number = _NUMBERS[key] = next(_NEW_NUMBER)
        self._number, self._rule = number, rule

    def __call__(self, state: State) -> State:
        """The state after the operation."""
        known: State | None = state.made.get(self._number)
        return state.after(self._number, self._rule) if known is None else known


_NUMBERS: dict[Hashable, int] = {}
_NEW_NUMBER = count()


def union(masks: Iterable[int]) -> int:
    """All bits of several masks."""
    return functools.reduce(operator.or_, masks, 0)


_INTERNED: dict[tuple[Write | None, tuple[Read, ...], tuple[View, ...]], State] = {}
_LIMIT = 1 << 16
"""States that are shared."""
_MADE_LIMIT = 1 << 12
"""Operations that one state remembers; then it begins anew."""


def intern(write: Write | None, reads: tuple[Read, ...], views: Iterable[View]) -> State:
    """The one state with these contents. The table is emptied when it grows past a bound; only sharing is lost."""
    known = (view for view in views if not view.empty) if write is not None or reads else ()
    kept = tuple(sorted(known, key=_viewer))
    key = (write, reads, kept)
    state = _INTERNED.get(key)
    if state is None:
        if len(_INTERNED) >= _LIMIT:
            _INTERNED.clear()
            _INTERNED[None, (), ()] = EMPTY
        state = _INTERNED[key] = State(write, reads, kept)
    return state


def _done(write: Write | None) -> Write | None:
    return None if write is None else write._replace(done=True)


def _viewer(view: View) -> int:
    return view.viewer


EMPTY = State(None, (), ())
_INTERNED[None, (), ()] = EMPTY
