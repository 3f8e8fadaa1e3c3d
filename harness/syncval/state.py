"""What is known of one range of addresses: its most recent write and the reads since, and the barriers over them.

States are immutable and interned, and each remembers what every operation made of it. Syncval is therefore a finite
automaton that is built as the program runs: an access or a barrier that was seen before costs one look-up, and two
ranges with the same history share one state. Who made an access and when (its `Place`) stays with the range, because
no rule below depends on it.

The rules are those of "most recent access" (design document, "State Tracking"; SYNC_RULES 2.3):

* Of all accesses only the last write, and the reads since it, one a stage, are kept. Older hazards were reported.
* A read conflicts with the last write unless the write was made visible to it, or an earlier read that did not
  conflict is ordered before it.
* A write conflicts with reads since the last write unless an execution dependency orders each before it. Only when
  there are none is it tested against the write, which needs a memory dependency.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Hashable, Iterable
from typing import NamedTuple

from harness.findings import READ_AFTER_WRITE, WRITE_AFTER_READ, WRITE_AFTER_WRITE
from harness.spec.scopes import BY_NAME, SYNC

LAYOUT_TRANSITION = BY_NAME["SYNC_IMAGE_LAYOUT_TRANSITION"].index
TOP_OF_PIPE = 1
ANY_QUEUE = 0
"""The queue of accesses that are only recorded so far: ordered like any other on its own queue."""


class Write(NamedTuple):
    """The most recent write. `barriers` is the set of accesses that it was made visible to (bits of SYNC indices);
    `chain` the stages that happen after it through dependencies that made it available."""

    sync: int
    barriers: int
    chain: int
    queue: int
    atomic: bool = False


class Read(NamedTuple):
    """The most recent read by one stage. `barriers` are the stages ordered after it; `synced` the stages whose own
    later reads are known to happen after this one, so that a barrier that covers them covers it."""

    sync: int
    stage: int
    barriers: int
    synced: int
    queue: int


class Scope(NamedTuple):
    """One dependency, expanded: execution scopes as stage masks, access scopes as bits of SYNC indices."""

    src_stages: int
    src_accesses: int
    dst_stages: int
    dst_accesses: int


class Outcome(NamedTuple):
    """What an access meets: the hazard with the prior write (`prior` -1) or read (its position), and the new state.

    `position` is where the new state keeps the access: -1 as the write, otherwise its place among the reads.
    """

    hazard: str | None
    prior: int
    state: State
    position: int


class State:
    """An interned state. Compare by identity."""

    __slots__ = ("_after", "ordered", "reads", "write")

    write: Write | None
    reads: tuple[Read, ...]
    ordered: int
    """Stages ordered after some read: a read there cannot conflict with the last write (`read_execution_barriers`)."""

    def __init__(self, write: Write | None, reads: tuple[Read, ...], ordered: int) -> None:
        self.write, self.reads, self.ordered = write, reads, ordered
        self._after: dict[Hashable, object] = {}

    def after_access(self, sync: int, queue: int, atomic: bool = False) -> Outcome:
        """What an access meets and makes (memoised)."""
        key = (sync, queue, atomic)
        known = self._after.get(key)
        if known is None:
            known = self._after[key] = _access(self, sync, queue, atomic)
        return known  # type: ignore[return-value]

    def after_barrier(self, scopes: tuple[Scope, ...], queue: int) -> State:
        """This state after the dependencies of one command, which are independent of one another (memoised)."""
        key = (scopes, queue)
        known = self._after.get(key)
        if known is None:
            known = self._after[key] = _barrier(self, scopes, queue)
        return known  # type: ignore[return-value]

    def after_transition(self, scopes: tuple[Scope, ...], queue: int) -> Outcome:
        """What a layout transition between these scopes meets and makes (memoised)."""
        key = (scopes, queue, "transition")
        known = self._after.get(key)
        if known is None:
            known = self._after[key] = _transition(self, scopes, queue)
        return known  # type: ignore[return-value]

    def without_write(self) -> State:
        """This state once the host knows that the write is complete."""
        return intern(None, self.reads, self.ordered)

    def without_reads(self, positions: tuple[int, ...]) -> State:
        """This state once the host knows that these reads, and with them the older write, are complete."""
        kept = tuple(read for at, read in enumerate(self.reads) if at not in positions)
        return intern(None, kept, self.ordered if kept else 0)

    def _check(self) -> None:
        """Raises AssertionError when an invariant is broken."""
        stages = [read.stage for read in self.reads]
        assert len(stages) == len(set(stages)), "two reads of one stage"
        assert self.write is None or SYNC[self.write.sync].write, "a write that is none"
        assert all(not SYNC[read.sync].write for read in self.reads), "a read that is none"
        assert self.write is not None or self.reads or not self.ordered, "ordered after nothing"


def _union(masks: Iterable[int]) -> int:
    return functools.reduce(operator.or_, masks, 0)


_INTERNED: dict[tuple[Write | None, tuple[Read, ...], int], State] = {}
_LIMIT = 1 << 16


def intern(write: Write | None, reads: tuple[Read, ...], ordered: int) -> State:
    """The one state with these contents. The table is emptied when it grows past a bound; only sharing is lost."""
    key = (write, reads, ordered)
    state = _INTERNED.get(key)
    if state is None:
        if len(_INTERNED) >= _LIMIT:
            _INTERNED.clear()
            _INTERNED[EMPTY.write, EMPTY.reads, EMPTY.ordered] = EMPTY
        state = _INTERNED[key] = State(write, reads, ordered)
    return state


EMPTY = intern(None, (), 0)


def _access(state: State, sync: int, queue: int, atomic: bool) -> Outcome:
    if atomic:
        return _atomic(state, sync, queue)
    if SYNC[sync].write:
        hazard, prior = _write_hazard(state, sync)
        return Outcome(hazard, prior, intern(Write(sync, 0, 0, queue), (), 0), -1)
    hazard = READ_AFTER_WRITE if _read_conflicts(state, sync) else None
    after, position = _with_read(state, sync, queue)
    return Outcome(hazard, -1, after, position)


def _read_conflicts(state: State, sync: int) -> bool:
    write = state.write
    return write is not None and not state.ordered & SYNC[sync].stage and not write.barriers >> sync & 1


def _atomic(state: State, sync: int, queue: int) -> Outcome:
    """A read-modify-write, given by its read access: unordered ones of one range do not conflict with one another.

    It conflicts with a plain write as a read does, with a plain read as a write does.
    """
    write = state.write
    hazard, prior = _write_hazard(state, written_by_atomic(sync)) if state.reads else (None, -1)
    if not state.reads and write is not None and not write.atomic and _read_conflicts(state, sync):
        hazard = READ_AFTER_WRITE
    return Outcome(hazard, prior, intern(Write(written_by_atomic(sync), 0, 0, queue, True), (), 0), -1)


@functools.cache
def written_by_atomic(sync: int) -> int:
    """The write access of an atomic that is given by its read access."""
    return BY_NAME[SYNC[sync].name.replace("STORAGE_READ", "STORAGE_WRITE")].index


def _write_hazard(state: State, sync: int) -> tuple[str | None, int]:
    if state.reads:
        stage = SYNC[sync].stage
        for position, read in enumerate(state.reads):
            if not stage & read.barriers:
                return WRITE_AFTER_READ, position
        return None, -1
    write = state.write
    if write is None or write.barriers >> sync & 1:
        return None, -1
    return WRITE_AFTER_WRITE, -1


def _with_read(state: State, sync: int, queue: int) -> tuple[State, int]:
    """Keeps one read a stage; reads that happen before this one remember its stage."""
    stage = SYNC[sync].stage
    fresh = Read(sync, stage, 0, 0, queue)
    reads: list[Read] = []
    position = -1
    for read in state.reads:
        if read.stage == stage:
            position = len(reads)
            reads.append(fresh)
        elif read.barriers & stage:
            reads.append(read._replace(synced=read.synced | stage))
        else:
            reads.append(read._replace(synced=read.synced & ~stage))
    if position < 0:
        position = len(reads)
        reads.append(fresh)
    return intern(state.write, tuple(reads), state.ordered), position


def _barrier(state: State, scopes: tuple[Scope, ...], queue: int) -> State:
    """Every dependency is held against the state as it was; their effects are united."""
    write = state.write
    barriers = chain = 0
    gained = [0] * len(state.reads)
    for scope in scopes:
        if write is not None and _write_in_scope(write, scope, queue):
            barriers |= scope.dst_accesses
            chain |= scope.dst_stages
        stages = 0
        for read in state.reads:
            if (read.stage & scope.src_stages and _same_queue(read.queue, queue)) or read.barriers & scope.src_stages:
                stages |= read.stage
        for position, read in enumerate(state.reads):
            if (read.stage | read.synced) & stages:
                gained[position] |= scope.dst_stages
    if write is not None and (barriers or chain):
        write = write._replace(barriers=write.barriers | barriers, chain=write.chain | chain)
    reads = tuple(
        read._replace(barriers=read.barriers | more) if more else read
        for read, more in zip(state.reads, gained, strict=True)
    )
    return intern(write, reads, state.ordered | _union(gained))


def _write_in_scope(write: Write, scope: Scope, queue: int) -> bool:
    """Directly, by its own access on the barrier's queue; or through a chain that made it available before."""
    direct = scope.src_accesses >> write.sync & 1 and _same_queue(write.queue, queue)
    return bool(direct or write.chain & scope.src_stages)


def _same_queue(one: int, other: int) -> bool:
    return one == other or ANY_QUEUE in (one, other)


def _transition(state: State, scopes: tuple[Scope, ...], queue: int) -> Outcome:
    """A layout transition reads and writes its subresources between the two scopes (SYNC_RULES 2.6)."""
    src_stages = _union(scope.src_stages for scope in scopes)
    src_accesses = _union(scope.src_accesses for scope in scopes)
    if not src_stages and not src_accesses:
        src_stages = TOP_OF_PIPE  # NONE without accesses means TOP_OF_PIPE (specification, VK_PIPELINE_STAGE_2_NONE)
    hazard, prior = _transition_hazard(state, src_stages, src_accesses, queue)
    barriers = _union(scope.dst_accesses for scope in scopes)
    chain = _union(scope.dst_stages for scope in scopes)
    return Outcome(hazard, prior, intern(Write(LAYOUT_TRANSITION, barriers, chain, queue), (), 0), -1)


def _transition_hazard(state: State, src_stages: int, src_accesses: int, queue: int) -> tuple[str | None, int]:
    for position, read in enumerate(state.reads):
        own = read.stage if _same_queue(read.queue, queue) else 0
        if not src_stages & (own | read.barriers):
            return WRITE_AFTER_READ, position
    write = state.write
    if state.reads or write is None or write.chain & src_stages:
        return None, -1
    if _same_queue(write.queue, queue) and (write.sync == LAYOUT_TRANSITION or src_accesses >> write.sync & 1):
        return None, -1  # transitions of one image are ordered among themselves; others must be in the access scope
    return WRITE_AFTER_WRITE, -1
