"""The access state of one range of addresses: the automaton that syncval runs.

Theory of operation
===================

The question is always the same: a command accesses a range; is each earlier access that conflicts with it ordered
before it, and does it see what was written? ("Data Race" in the specification's memory model.)

What is kept
------------
A program makes millions of accesses. For a range the state keeps only

1. the most recent write,
2. the reads since that write, one for each pipeline stage of each viewer and few more,
3. for each viewer, what the viewer may assume about that write and about each of these reads.

A *viewer* is whoever accesses memory in an order of its own: a queue, a command buffer while it is recorded (viewer
0), a subpass while its render pass instance runs (negative numbers). A barrier, a semaphore or a subpass dependency
never changes what happened. It changes what one viewer may assume about it: the viewer's `View`.

Why that suffices
-----------------
* **An older write is not needed.** When W2 replaced W1, W2 was held against W1. Either a dependency ordered W1 before
  W2, and then whatever is ordered after W2 is ordered after W1 too; or the hazard between them was reported, and a
  second report about W1 would only repeat it.
* **A read before the last write is not needed**, for the same reason.
* **One read for each stage is enough.** The first scope of a barrier holds all earlier commands of its stages. A
  barrier that orders the later of two reads in one stage of one viewer orders the earlier one as well. The opposite is
  not true, so the later read is the one that is kept. Reads of two subpasses are kept until what is known of one is
  known of the other, too (`superseded_reads`).
* **Reads and the write are held apart.** A write after a read needs an execution dependency alone. A write after a
  write needs a memory dependency. When reads came after the last write, a new write is held against those reads
  alone: each of them was already judged against the write.

What a view knows
-----------------
Of the write: the accesses to which a dependency made the write visible, and the
stages that happen after the write was made available. The second set is what lets two barriers chain: a later barrier
whose first scope has one of these stages carries the write further. Of a read: the stages that happen after it. A
read has no availability.

Why it is an automaton
----------------------
States are immutable and interned, and no rule depends on who made an
access or when: the `Place` of an access stays with the range (`context`). Two ranges with equal histories share one
state. Each state remembers what each operation made of it, so that an operation that was seen before costs one
look-up. A program uses few states, however long it is.

A worked example
----------------
A copy writes a buffer, and a later copy reads it.

>>> from vkharness.spec.masks import scope
>>> from vkharness.syncval.access import AccessRequest, after_access
>>> from vkharness.syncval.barrier import after_barrier, expand
>>> from vkharness.trace.effects import Dependency
>>> QUEUE, ALL_QUEUE_FLAGS = 1, 0x7FFFFFFF
>>> write, read = (
...     AccessRequest(ACCESS_KIND[f"SYNC_COPY_TRANSFER_{each}"].index, QUEUE, QUEUE) for each in ("WRITE", "READ")
... )
>>> written = after_access(EMPTY, write).state

Without a dependency the read may see old contents. An execution dependency alone does not help, because the write is
not made available:

>>> def barrier(state, source, destination):
...     dependency = Dependency(*scope(source), *scope(destination))
...     return after_barrier(state, (expand(dependency, ALL_QUEUE_FLAGS),), QUEUE)
>>> print(after_access(written, read).hazard)
READ_AFTER_WRITE
>>> print(after_access(barrier(written, "COPY", "COPY"), read).hazard)
READ_AFTER_WRITE

A memory dependency does. It may be split: the first barrier makes the write available and names the compute stage,
the second one begins with that stage, so that they chain.

>>> print(after_access(barrier(written, "COPY/TRANSFER_WRITE", "COPY/TRANSFER_READ"), read).hazard)
None
>>> available = barrier(written, "COPY/TRANSFER_WRITE", "COMPUTE_SHADER")
>>> print(after_access(barrier(available, "COMPUTE_SHADER", "COPY/TRANSFER_READ"), read).hazard)
None
>>> print(after_access(barrier(available, "BLIT", "COPY/TRANSFER_READ"), read).hazard)
READ_AFTER_WRITE

Equal histories are one object:

>>> after_access(EMPTY, write).state is written
True

The rules are in `access` (reads and writes), `barrier`, `layout_transition`, `cross_dependency` (semaphores,
subpasses) and `race` (accesses that nothing joins)."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import count
from threading import RLock
from typing import Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from vkharness.findings import Certainty, Hazard
from vkharness.spec.scopes import ACCESS_KIND, ACCESS_KINDS

LAYOUT_TRANSITION = ACCESS_KIND["SYNC_IMAGE_LAYOUT_TRANSITION"].index
OWNERSHIP_TRANSFER = ACCESS_KIND["SYNC_QUEUE_FAMILY_OWNERSHIP_TRANSFER"].index
NO_TOKENS: frozenset[int] = frozenset()
HOST_QUEUE = (1 << 62) + 1
"""The queue of what the host accesses while batches wait, and writes without a flush. It races with nothing, since a
submit comes after it."""


class Write(NamedTuple):
    """The most recent write.

    `queue` made it, as `viewer`; the two differ only inside a subpass. `operation` is an `AttachmentOperation` as a
    number. Writes that are `atomic` (and markers) do not conflict with others of their kind. A write is `done` when the
    host knows that it is complete: it conflicts with no access of the device then, and is kept because the host may not
    see it yet. An attachment access and a layout transition are `regional`: dependencies by region order them. `open`
    says that the render pass instance of an attachment access goes on.
    """

    access_kind: int
    queue: int
    viewer: int
    atomic: bool = False
    operation: int = 0
    done: bool = False
    certainty: Certainty = Certainty.EXACT
    read: bool = False
    """It is done, and so is a read that saw it: what the host writes over it comes after that read."""
    regional: bool = False
    open: bool = False


class Read(NamedTuple):
    """A recent read by one stage of one viewer.

    `same_command` says that the command of the last write made this read, too, in another stage. To be ordered after
    such a read does not mean to be ordered after the write. `certainty` to `open` are as in `Write`.
    """

    access_kind: int
    stage: int
    queue: int
    viewer: int
    same_command: bool = False
    certainty: Certainty = Certainty.EXACT
    operation: int = 0
    regional: bool = False
    open: bool = False
    over: bool = False
    """The host knows that it is complete; it leaves the state when its range is next met."""

    @property
    def possible(self) -> bool:
        """Whether contents of memory that nobody knows decide whether it is made: nothing may rest on it."""
        return self.certainty is Certainty.BOUND


class AccessOrdering(NamedTuple):
    """Ordering and visibility of one access, as dependencies have established them for a viewer.

    * `barriers`: of a write, the kinds of access (bits of ACCESS_KINDS indices) to which it is visible. Of a read, the
      stages that are ordered after it.
    * `chain`: of a write, the stages that happen after it was made available. Of a read R, the stages whose own later
      reads happen after R. A barrier whose first scope has such a stage orders R as well.
    * `tokens`: the events that were set after it (`barrier.after_set`).
    * `ordered_subpass_stages`: stages of finished subpasses that were ordered after it. No later command is in such a
      subpass. A later dependency still chains if its first scope has one of these stages and reaches back to before the
      subpass ended: not one inside a later subpass.
    * `near_barriers`, `near_chain`, `near_subpass_stages`: what holds in each region of the framebuffer by itself,
      since all dependencies from the access on are framebuffer-local.
    """

    barriers: int = 0
    chain: int = 0
    tokens: frozenset[int] = NO_TOKENS
    ordered_subpass_stages: int = 0
    near_barriers: int = 0
    near_chain: int = 0
    near_subpass_stages: int = 0


NO_ORDERING = AccessOrdering()


class View(NamedTuple):
    """Orderings of the write and of each read (in the state's order) that hold for one viewer."""

    viewer: int
    write: AccessOrdering
    reads: tuple[AccessOrdering, ...]

    @property
    def empty(self) -> bool:
        """Whether nothing may be assumed: such views are not kept."""
        return self.write == NO_ORDERING and all(ordering == NO_ORDERING for ordering in self.reads)


class AccessOutcome(NamedTuple):
    """Result of an access: the hazard with the prior write (`prior` -1) or read (its position), and the new state.

    `position` is where the new state keeps the access: -1 as the write, otherwise its place among the reads. The reads
    at `gone`, all of them behind it, are left out.
    """

    hazard: Hazard | None
    prior: int
    state: State
    position: int
    gone: tuple[int, ...] = ()


T = TypeVar("T")


class State:
    """An interned state. Compare by identity."""

    __slots__ = ("__weakref__", "by_certainty", "over", "read_since_write", "reads", "results", "views", "write")

    write: Write | None
    reads: tuple[Read, ...]
    views: tuple[View, ...]
    """Sorted by viewer, without empty ones."""

    def __init__(self, write: Write | None, reads: tuple[Read, ...], views: tuple[View, ...]) -> None:
        self.write, self.reads, self.views = write, reads, views
        self.read_since_write = any(came_later(read, write) for read in reads)
        """Whether a read came after the write: what is ordered after all reads is ordered after the write too, which
        was available to the read."""
        self.by_certainty = tuple(sorted(range(len(reads)), key=lambda at: reads[at].possible))
        """The positions of the reads, those that are made for sure first."""
        self.over = tuple([at for at, read in enumerate(reads) if read.over])
        """The positions of the reads that the host knows to be complete."""
        self.results: dict[Hashable, Any] = {}
        """Memoised results of operations on it; each key names all that its value depends on."""

    def after(self, key: Hashable, rule: Callable[[State], T]) -> T:
        """Returns the result of an operation on this state; memoised by `key`, which must name all it depends on."""
        known: T | None = self.results.get(key)
        if known is None:
            if len(self.results) >= _MADE_LIMIT:
                self.results.clear()
            known = self.results[key] = rule(self)
        return known

    def view(self, viewer: int) -> View:
        """Returns the view of a viewer; one without any ordering where none is kept."""
        for view in self.views:
            if view.viewer == viewer:
                return view
        return View(viewer, NO_ORDERING, (NO_ORDERING,) * len(self.reads))

    def with_view(self, view: View) -> State:
        """This state with one view replaced; itself where that changes nothing."""
        if view in self.views:
            return self
        return intern(self.write, self.reads, (*(v for v in self.views if v.viewer != view.viewer), view))

    def without_write(self) -> State:
        """This state when the write no longer counts: something else overwrote it, or the host sees it."""
        return intern(None, self.reads, tuple(view._replace(write=NO_ORDERING) for view in self.views))

    def finished(self) -> State:
        """This state once the host knows that the write is complete (memoised)."""
        known: State | None = self.results.get("finished")
        return known or self.after("finished", lambda _: intern(_completed(self.write), self.reads, self.views))

    def without_reads(self, positions: tuple[int, ...]) -> State:
        """This state once the host knows that these reads, and with them the older write, are complete (memoised)."""
        return self.after(("without", positions), lambda _: self._without_reads(positions))

    def _without_reads(self, positions: tuple[int, ...]) -> State:
        kept = [at for at in range(len(self.reads)) if at not in positions]
        views = tuple(view._replace(reads=tuple(view.reads[at] for at in kept)) for view in self.views)
        return intern(self._write_before(positions), tuple(self.reads[at] for at in kept), views)

    def with_reads_over(self, positions: tuple[int, ...]) -> State:
        """The same where the places of these reads are still known: they are `over`."""
        reads = tuple(read._replace(over=True) if at in positions else read for at, read in enumerate(self.reads))
        return intern(self._write_before(positions), reads, self.views)

    def _write_before(self, positions: tuple[int, ...]) -> Write | None:
        """The write once the host knows that these reads are complete."""
        write = self.write
        if write is None or not any(came_later(self.reads[at], write) for at in positions):
            return write
        return write._replace(done=True, read=True)

    def _check(self) -> None:
        """Raises AssertionError when an invariant is broken."""
        reads = [(read.stage, read.viewer, read.regional) for read in self.reads if read.viewer < 0]
        assert len(reads) == len(set(reads)), "two reads of one stage and subpass"
        assert self.write is None or ACCESS_KINDS[self.write.access_kind].write, "a write that is none"
        assert all(not ACCESS_KINDS[read.access_kind].write for read in self.reads), "a read that is none"
        viewers = [view.viewer for view in self.views]
        assert viewers == sorted(set(viewers)), "views out of order"
        assert all(len(view.reads) == len(self.reads) for view in self.views), "a view that lacks a read"
        assert self.write is not None or self.reads or not self.views, "views of nothing"


class Change:
    """An operation over many states. `key` names everything that the operation depends on.

    Each state remembers the result under a number that stands for the key, so that a long key is hashed once and not
    once for each state.
    """

    __slots__ = ("_rule", "number")

    def __init__(self, key: Hashable, rule: Callable[[State], State]) -> None:
        self.number, self._rule = _number_of(key), rule

    def __call__(self, state: State) -> State:
        """The state after the operation."""
        known: State | None = state.results.get(self.number)
        return state.after(self.number, self._rule) if known is None else known


class Question:
    """Something that is true of a state or is not. `key` names everything that the answer depends on; no `Change` has
    it. Native stores remember the answers under a number that stands for the key."""

    __slots__ = ("_rule", "number")

    def __init__(self, key: Hashable, rule: Callable[[State], bool]) -> None:
        self.number, self._rule = _number_of(key), rule

    def __call__(self, state: State) -> bool:
        """The answer."""
        return self._rule(state)


def _number_of(key: Hashable) -> int:
    number = _NUMBERS.get(key)
    if number is None:
        if len(_NUMBERS) >= _LIMIT:
            _NUMBERS.clear()
        number = _NUMBERS[key] = next(_NEW_NUMBER)
    return number


_NUMBERS: dict[Hashable, int] = {}
_NEW_NUMBER = count()


def union(masks: Iterable[int]) -> int:
    """All bits of several masks."""
    return functools.reduce(operator.or_, masks, 0)


class InternedStates:
    """All states that somebody has, by their contents. Two with equal contents are never there at once: whether ranges
    are joined would depend on it, and with that how many findings are made of them.

    Results of operations keep states alive. When there are too many, all results are forgotten, and the states that
    nothing else has go.
    """

    def __init__(self) -> None:
        self.limit = 1 << 16
        """How many there are before results are forgotten."""
        self._held: WeakValueDictionary[tuple[Any, ...], State] = WeakValueDictionary()
        self._next = 0
        self._lock = RLock()

    def get(self, write: Write | None, reads: tuple[Read, ...], views: tuple[View, ...]) -> State:
        """The one state with these contents."""
        key = (write, reads, views)
        return self._held.get(key) or self._new(key)

    def _new(self, key: tuple[Any, ...]) -> State:
        with self._lock:  # two threads may look for it
            if len(self) >= max(self.limit, self._next):
                self._forget()
            state = self._held.get(key)
            if state is None:
                state = self._held[key] = State(*key)
            return state

    def _forget(self) -> None:
        for state in list(self):
            state.results.clear()
        self._next = 2 * len(self)

    def __iter__(self) -> Iterator[State]:
        return self._held.values()

    def __len__(self) -> int:
        return len(self._held)


INTERNED = InternedStates()
_LIMIT = 1 << 16
"""How many changes have a number before new ones are given."""
_MADE_LIMIT = 1 << 12
"""How many operations one state remembers before it forgets them all."""


def intern(write: Write | None, reads: tuple[Read, ...], views: Iterable[View]) -> State:
    """The one state with these contents."""
    known = (view for view in views if not view.empty) if write is not None or reads else ()
    return INTERNED.get(write, reads, tuple(sorted(known, key=_viewer)))


def came_later(read: Read, write: Write | None) -> bool:
    """Whether a read saw the last write, which was available to it: what comes after the read comes after the write.

    What a command writes itself is not available to its own reads, nor what the host writes to those of the host.
    """
    by_host = write is not None and read.queue == write.queue == HOST_QUEUE
    return not (read.same_command or read.possible or by_host)


def _completed(write: Write | None) -> Write | None:
    return None if write is None else write._replace(done=True)


def _viewer(view: View) -> int:
    return view.viewer


EMPTY = intern(None, (), ())
