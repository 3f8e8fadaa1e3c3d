"""The host as one that reads and writes memory beside the device.

Theory of operation
===================

(Specification: "Host Access to Device Memory Objects", "Host Write Ordering Guarantees", "Availability, Visibility,
and Domain Operations".)

The host is not a queue: no pipeline barrier waits for it, and it waits for the device only through fences, timeline
values and idle calls. Its rules are about two facts of each range: is the device's work there *complete* as far as
the host knows, and is it *visible to the host*?

What the host writes
--------------------
* A submit makes what the host wrote before it available and visible to everything in the batch. Nothing has to be
  kept for such writes.
* In memory that is not HOST_COHERENT that holds only for writes that were flushed. A write that was not flushed stays
  in the context, as a write of a queue of the host's own (`HOST_QUEUE`) that no dependency of the device reaches.
* A write that is made while a submit still waits for a signal is kept in the same way until the next submit.
* Before it writes, the host must know that the device's accesses of the bytes are complete. The signal of a fence
  makes all writes of the device available, but to the device: a dependency must bring them to the memory domain of the
  host, as before a read.

What the host reads
-------------------
The host sees what the device wrote when four things hold, in this order:

1. a dependency made the write visible to VK_PIPELINE_STAGE_2_HOST_BIT with VK_ACCESS_2_HOST_READ_BIT,
2. the host knows that the write is complete,
3. the host knows that this dependency is complete, too,
4. in memory that is not HOST_COHERENT, the host invalidated the bytes afterwards.

A wait alone makes nothing visible to the host. Many programs rely on it all the same; the finding says what is
missing.

What is kept
------------
A write that the host knows to be complete conflicts with no work of the device, so that it
could be forgotten. It stays known while the host cannot see it. That a dependency made it visible to the host is a
*token* in the view of the write: one token for each batch. When the host waits for that batch, the token becomes
`SEEN`.

A batch with a dependency to the host over all memory also shows to the host every write that the host already knew to
be complete when the batch was submitted. Those ranges are not visited. `_shown` holds instead, for each queue, the
last batch for which that is so.

A worked example
----------------
The device fills a buffer and makes the fill visible to the host. The host waits for the fence; then it may read:

>>> from vkharness.spec.masks import scope
>>> from vkharness.syncval.barrier import expand
>>> from vkharness.syncval.barrier import after_barrier
>>> from vkharness.syncval.state import EMPTY, intern, Write
>>> from vkharness.trace.effects import Dependency
>>> write = Write(ACCESS_KIND["SYNC_CLEAR_TRANSFER_WRITE"].index, 1, 1)
>>> to_host = expand(Dependency(*scope("CLEAR/TRANSFER_WRITE"), *scope("HOST/HOST_READ")), 0x7FFFFFFF)
>>> batch = SEEN + 1
>>> state = after_barrier(intern(write, (), ()), (to_host._replace(host=batch),), 1)
>>> batch in state.view(1).write.tokens
True
>>> state = _seen(state.finished(), frozenset({batch}))
>>> state.write.done, SEEN in state.view(1).write.tokens
(True, True)
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator

from vkharness.findings import Finding, Hazard, HostStep, Place
from vkharness.spans import Span
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.syncval.context import Context
from vkharness.syncval.entries import DetectedHazard, RangeEntry
from vkharness.syncval.evidence import Reporter
from vkharness.syncval.host_knowledge import NOTHING_MORE, HostKnowledge, after_host_reads, later
from vkharness.syncval.late_host_writes import after_flush, after_host_set, is_available
from vkharness.syncval.race import NEVER, NO_RACING_WORK, BatchIndex
from vkharness.syncval.shown_to_host import SEEN
from vkharness.syncval.state import HOST_QUEUE, Change, Read, State, Write
from vkharness.syncval.tokens import Tokens
from vkharness.trace.effects import Access
from vkharness.trace.host_effects import HostAccess, HostDeclaredRead, HostFlushed, HostInvalidated, HostWrote

HOST_READ = ACCESS_KIND["SYNC_HOST_HOST_READ"].index
HOST_WRITE = ACCESS_KIND["SYNC_HOST_HOST_WRITE"].index


class Host:
    """The host beside a device's context."""

    def __init__(
        self, context: Context, report: Reporter, is_visible: Callable[[int], bool], paused: Container[int]
    ) -> None:
        """`is_visible` tells whether the host can map a space: a memory object. Batches on `paused` queues wait for an
        event."""
        self._context, self._report, self._paused = context, report, paused
        self._tokens = Tokens(SEEN + 1)
        self._batch: tuple[int, BatchIndex] = (0, (0, 0))
        self._known: HostKnowledge = NOTHING_MORE
        self._marks: dict[tuple[int, BatchIndex], int] = {}
        """By queue and batch: the token of what it made visible to the host, until the host waits for it."""
        self._before: dict[tuple[tuple[int, BatchIndex], bool], dict[int, BatchIndex]] = {}
        """Of batches with a dependency to the host over everything, to its reads or to any access of it: what the host
        had waited for, by queue."""
        self._late: list[tuple[int, Span]] = []
        """Memory that was written, or flushed, since the last submit, while another one was waiting for a signal."""
        self._is_ahead = False
        """Whether it accessed memory since the last submit, while another one was waiting for a signal."""
        self._shown: dict[tuple[int, bool], BatchIndex] = {}
        """By queue: complete writes up to this tag are visible to the host's reads, or at least available to it."""
        context.host_token = self._mark
        context.remembers = is_visible
        context.must_remember = self._may_miss

    # -- what the device does for the host -----------------------------------------------------------------------------

    def begin(self, queue: int, tag: BatchIndex, known: HostKnowledge) -> None:
        """A batch is about to be judged; `known` is what the host had learned when it submitted the batch."""
        self._batch, self._known = (queue, tag), known

    def _mark(self, everywhere: bool, reads: bool) -> int:
        if everywhere:
            before = later(self._context.retired, self._known.complete)
            self._before.setdefault((self._batch, False), before)
            if reads:
                self._before.setdefault((self._batch, True), before)
        token = self._marks.get(self._batch)
        if token is None:
            token = self._marks[self._batch] = self._tokens.take()
        return token if reads else -token

    def waited(self) -> None:
        """The host waited for something: dependencies to the host that are complete have done their work."""
        retired = self._context.known_complete
        over = {at: token for at, token in self._marks.items() if at[1] <= retired.get(at[0], (-1, 0))}
        if over:
            tokens = frozenset(over.values())
            self._context.map_slots(Change(("seen", tokens), lambda state: _seen(state, tokens)))
            for at, token in over.items():
                del self._marks[at]
                self._tokens.give(token)
                for reads in (False, True):
                    for queue, tag in self._before.pop((at, reads), {}).items():
                        self._shown[queue, reads] = max(tag, self._shown.get((queue, reads), tag))

    def _sees(self, state: State, place: int, reads: bool = True) -> bool:
        """Whether the last write is complete and visible to the host's reads, or at least available to the host."""
        if state.write is None or not state.write.done:
            return False
        seen = {SEEN} if reads else {SEEN, -SEEN}
        return self._is_shown(place, reads) or any(seen & view.write.tokens for view in state.views)

    def _is_shown(self, place: int, reads: bool = True) -> bool:
        """Whether a complete write is visible, or available, to the host by a dependency over everything."""
        batch = self._context.places.batch(place)
        return batch.tag <= self._shown.get((batch.queue, reads), NEVER)

    def _may_miss(self, write: int, state: State | None) -> bool:
        """Whether the host may not see a complete write; `state` is None for one that sleeps."""
        return not self._is_shown(write) and (state is None or not self._sees(state, write))

    def is_unseen(self, state: State, place: int) -> bool:
        """Whether no dependency so far shows the last write, which is the device's, to the host."""
        if state.write is None or _is_dirty(state, place) or self._sees(state, place):
            return False
        return not any(token >= SEEN for view in state.views for token in view.write.tokens)

    def _missing_step(self, state: State, place: int, coherent: bool) -> HostStep | None:
        """Returns the step without which the host does not see the last write; None if it sees it, or wrote it itself.

        Rule: rules.md#a-host-read-needs-a-dependency-and-a-wait.
        """
        if state.write is None or _is_dirty(state, place):
            return None
        if not state.write.done:
            paused = self._context.places.batch(place).queue in self._paused
            return HostStep.EARLIER_SUBMIT if paused else HostStep.WAIT_TO_READ
        if not self._sees(state, place):
            return HostStep.DEPENDENCY
        return None if coherent else HostStep.INVALIDATE

    # -- what the host does -------------------------------------------------------------------------------------------

    def submitted(self) -> None:
        """Makes writes of the host before a submit visible to the submit, and to whoever waits for it.

        Rule: rules.md#a-submit-shows-host-writes-to-the-device.
        """
        context = self._context
        if self._late and not context.holds_back():
            for memory, span in self._late:
                context.drop_writes(memory, span, lambda state, place: is_available(state))
            self._late.clear()
        elif self._is_ahead and context.holds_back():  # a batch that waits does not see them
            token = context.tokens.take()
            key = ("host reads and set", token)
            context.map_slots(Change(key, lambda state: after_host_reads(after_host_set(state, token), token)))
            context.learn(context.learnt.with_more({}, {}, ((token, HOST_QUEUE),)))
        self._is_ahead = False

    def wrote(self, effect: HostWrote, late: bool) -> Iterator[Finding]:
        """The host wrote. The device must have done with the bytes, in non-coherent memory with their whole atoms.
        `late`: a submit waits for a signal, so that it was made before this."""
        place = Place(effect.call, "host write", effect.site)
        memory, span = effect.memory, effect.span
        yield from self._conflicts(place, memory, memory, [span], effect.non_coherent_atom_size)
        context = self._context
        if effect.coherent and not late:
            context.drop_writes(memory, span, _is_done)
        else:
            self._keep(Access(HOST_WRITE, memory, (span,), memory), place, effect.coherent)

    def _keep(self, access: Access, place: Place, available: bool) -> None:
        """Keeps a write that submits do not see, since it is not `available`, and any access while batches wait that
        were submitted before."""
        context = self._context
        context.defers = self._is_ahead = context.holds_back()
        context.queue = context.viewer = HOST_QUEUE
        context.racing = NO_RACING_WORK
        context.apply(access, context.places.single(place))
        if access.access_kind == HOST_READ and context.defers:
            context.settle_later(access.space, access.spans)
        for span in access.spans if available else ():
            context.change(access.space, span, after_flush)
            self._late.append((access.space, span))

    def flushed(self, effect: HostFlushed, late: bool) -> None:
        """Makes the host's writes to a flushed range available; a later submit makes them visible like any other host
        write. `late`: a submit was made before this, and waits for a signal.
        Rule: rules.md#a-flush-says-that-the-host-wrote.
        """
        if late:
            self._context.change(effect.memory, effect.span, after_flush)
            self._late.append((effect.memory, effect.span))
            self._is_ahead = True
        else:
            self._context.drop_writes(effect.memory, effect.span, _is_dirty)

    def invalidated(self, effect: HostInvalidated) -> Iterator[Finding]:
        """The host sees what was made visible to it; what it wrote there and did not flush is lost.

        Rule: rules.md#an-invalidate-says-that-the-host-reads.
        """
        context = self._context
        self.submitted()  # coherent memory has nothing to lose
        place = Place(effect.call, "vkInvalidateMappedMemoryRanges", effect.site)
        for (begin, end), entry in context.known(effect.memory, *effect.span):
            state = entry.state
            if entry.write is not None and _is_dirty(state, entry.write) and not is_available(state):
                yield _lost(effect.memory, (begin, end - begin), place, context.places.place(entry.write))
        context.drop_writes(effect.memory, effect.span, _is_dirty)
        context.drop_writes(effect.memory, effect.span, self._sees)

    def read(self, effect: HostDeclaredRead) -> Iterator[Finding]:
        """The host reads: the last write of the device to each byte must be complete, and visible to the host."""
        place = Place(effect.call, effect.name, effect.site)
        return self._reads(
            place, effect.memory, effect.memory, (effect.span,), effect.coherent, effect.non_coherent_atom_size
        )

    def accessed(self, effect: HostAccess) -> Iterator[Finding]:
        """The call itself reads or writes a resource on the host.

        Rule: rules.md#host-copies-access-images-on-the-host.
        """
        place = Place(effect.call, effect.name, effect.site)
        if not effect.write:
            yield from self._reads(place, effect.space, effect.resource, effect.spans, True, 1)
            return
        yield from self._conflicts(place, effect.space, effect.resource, effect.spans, 1)
        for span in effect.spans:
            self._context.drop_writes(effect.space, span, _is_done)
        if self._context.holds_back():
            self._keep(Access(HOST_WRITE, effect.space, effect.spans, effect.resource), place, True)

    def _reads(
        self, place: Place, space: int, resource: int, spans: Iterable[Span], coherent: bool, atom_size: int
    ) -> Iterator[Finding]:
        """Yields the hazards of a host read with the device's last writes that the host does not see; each is reported
        once."""
        hazards: list[DetectedHazard] = []
        for span in spans:
            for piece, entry in self._context.known(space, *_atoms(span, atom_size)):
                state, prior = entry.state, entry.write
                step = self._missing_step(state, prior, coherent) if prior is not None else None
                whole = step in (HostStep.WAIT_TO_READ, HostStep.EARLIER_SUBMIT)
                begin, end = piece if whole else (max(piece[0], span[0]), min(piece[1], span[1]))
                if step and begin < end and prior is not None and state.write is not None:
                    before, sure = state.write.access_kind, state.write.certainty
                    kind = Hazard.READ_AFTER_WRITE
                    earlier = self._context.places.place(prior), prior, before
                    detected = DetectedHazard(kind, (begin, end), HOST_READ, *earlier, state, resource)
                    hazards.append(detected._replace(host_step=step, certainty=sure))
        yield from self._report.findings(hazards, place)
        for span in spans:
            self._context.drop_writes(space, span, _is_done)
        if self._context.holds_back():
            self._keep(Access(HOST_READ, space, tuple(spans), resource), place, False)

    def _conflicts(
        self, place: Place, space: int, resource: int, spans: Iterable[Span], atom_size: int
    ) -> Iterator[Finding]:
        """Accesses of the device that the host does not know to be complete, where it writes, and complete writes that
        are not in its memory domain.

        Rules: rules.md#a-host-write-waits-for-the-device, rules.md#a-host-write-needs-the-host-domain.
        """
        hazards: list[DetectedHazard] = []
        for whole in spans:
            for span, entry in self._context.known(space, *_atoms(whole, atom_size)):
                found = _conflict(whole, span, entry, lambda state, write: self._sees(state, write, reads=False))
                if found is None:
                    continue
                span, kind, prior, before, step = found
                if step is HostStep.WAIT_TO_WRITE and self._context.places.batch(prior).queue in self._paused:
                    step = HostStep.EARLIER_SUBMIT
                earlier = self._context.places.place(prior), prior, before.access_kind
                detected = DetectedHazard(kind, span, HOST_WRITE, *earlier, entry.state, resource)
                hazards.append(detected._replace(host_step=step, certainty=before.certainty))
        yield from self._report.findings(hazards, place)


def _conflict(
    whole: Span, span: Span, entry: RangeEntry, sees: Callable[[State, int], bool]
) -> tuple[Span, Hazard, int, Read | Write, HostStep] | None:
    """With what a write by the host of `whole` conflicts at a range: with a read that is made for sure, else with the
    write, else with a read that may be made. `sees` tells whether the host sees a write."""
    state, first = entry.state, entry.state.by_certainty[0] if entry.reads else -1
    if first >= 0 and not state.reads[first].possible:
        return span, Hazard.WRITE_AFTER_READ, entry.reads[first], state.reads[first], HostStep.WAIT_TO_WRITE
    if entry.write is not None and state.write is not None and not _is_dirty(state, entry.write):
        where, step = span, HostStep.WAIT_TO_WRITE
        if state.write.done:
            where, step = (max(span[0], whole[0]), min(span[1], whole[1])), HostStep.DEPENDENCY_TO_WRITE
        seen = state.write.done and (state.write.read or sees(state, entry.write))
        if not seen and where[0] < where[1]:
            return where, Hazard.WRITE_AFTER_WRITE, entry.write, state.write, step
    if first >= 0:
        return span, Hazard.WRITE_AFTER_READ, entry.reads[first], state.reads[first], HostStep.WAIT_TO_WRITE
    return None


def _is_dirty(state: State, place: int) -> bool:
    """The host wrote and did not flush."""
    return state.write is not None and state.write.queue == HOST_QUEUE


def _is_done(state: State, place: int) -> bool:
    """The device wrote, and the host knows that this is complete."""
    return state.write is not None and state.write.done


def _seen(state: State, tokens: frozenset[int]) -> State:
    """A state once the host waited for the batches of these tokens."""
    for view in state.views:
        held = view.write.tokens
        over = {each for each in held if abs(each) in tokens}
        if over:
            seen = {SEEN if each > 0 else -SEEN for each in over}
            state = state.with_view(view._replace(write=view.write._replace(tokens=held - over | seen)))
    return state


def _atoms(span: Span, atom_size: int) -> Span:
    """A span as whole atoms (specification, vkMapMemory: what the host may not do beside the device)."""
    return (span[0] - span[0] % atom_size, -(-span[1] // atom_size) * atom_size)


def _lost(memory: int, where: tuple[int, int], place: Place, prior: Place) -> Finding:
    return Finding(
        hazard=Hazard.UNFLUSHED_WRITE,
        access="",
        prior_access="SYNC_HOST_HOST_WRITE",
        place=place,
        prior=prior,
        resource=memory,
        resource_type="VkDeviceMemory",
        ranges=(where,),
    )
