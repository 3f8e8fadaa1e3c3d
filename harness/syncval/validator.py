"""The judge: replays every command's effects, in submission order, over the queue's context (SYNC_RULES 4.3).

While a command buffer is recorded the same rules run over a context of its own, for early findings; a pair that was
reported there is not reported again when the command buffer is submitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from harness.findings import WRITE_AFTER_READ, WRITE_AFTER_WRITE, Finding, Place
from harness.spans import Span
from harness.spec.scopes import BY_NAME
from harness.syncval.context import Context, Hit, RangeScope
from harness.syncval.evidence import Describe, Reporter
from harness.syncval.scope import expand
from harness.trace.effects import (
    Access,
    Barrier,
    Begun,
    Command,
    Destroyed,
    FenceReset,
    HostWaited,
    HostWrote,
    Ignored,
    InheritedTargets,
    Occurrence,
    Recorded,
    Submitted,
    Unmodelled,
)

HOST_WRITE = BY_NAME["SYNC_HOST_HOST_WRITE"].index


@dataclass(slots=True)
class Recording:
    """A command buffer being recorded: its own context and what was already reported in it."""

    context: Context
    reported: set[tuple[object, ...]] = field(default_factory=set)


class Validator:
    """Consumes occurrences, answers with findings. `unmodelled` counts what it cannot judge, by name.

    `make_context` makes the context of a queue, or of a recording (queue 0); other judges put in theirs.
    """

    def __init__(self, describe: Describe, make_context: Callable[[int], Context] = Context) -> None:
        self.unmodelled: dict[str, int] = {}
        self._queues: dict[int, Context] = {}
        self._recordings: dict[int, Recording] = {}
        self._fences: dict[int, tuple[int, int]] = {}
        self._report = Reporter(describe)
        self._make_context = make_context

    def consume(self, occurrence: Occurrence) -> list[Finding]:
        """Follows one occurrence; the findings are those it causes."""
        match occurrence:
            case Recorded():
                return list(self._recorded(occurrence))
            case Submitted():
                return list(self._submitted(occurrence))
            case HostWaited():
                self._host_waited(occurrence)
            case HostWrote():
                return list(self._host_wrote(occurrence))
            case Begun():
                self._recordings.pop(occurrence.command_buffer, None)
            case FenceReset():
                for fence in occurrence.fences:
                    self._fences.pop(fence, None)
            case Destroyed():
                for context in self._contexts():
                    context.forget(occurrence.space, occurrence.span)
            case Ignored():
                self._count(occurrence.what)
            case _:
                self._count(type(occurrence).__name__)
        return []

    def written(self, memory: int, begin: int, end: int) -> list[Span]:
        """Addresses of a memory object that submitted work writes and that the host does not know to be complete."""
        return [
            span
            for context in self._queues.values()
            for span, entry in context.unfinished(memory, begin, end)
            if entry.write is not None
        ]

    def _contexts(self) -> Iterable[Context]:
        yield from self._queues.values()
        for recording in self._recordings.values():
            yield recording.context

    def _count(self, what: str) -> None:
        self.unmodelled[what] = self.unmodelled.get(what, 0) + 1

    # -- recording and submission -------------------------------------------------------------------------------------

    def _recorded(self, occurrence: Recorded) -> Iterator[Finding]:
        command = occurrence.command
        for effect in command.effects:
            if isinstance(effect, Unmodelled):
                self._count(effect.what)
            elif not isinstance(effect, Access | Barrier | InheritedTargets):
                self._count(command.name)
        recording = self._recordings.get(occurrence.command_buffer)
        if recording is None:
            recording = self._recordings[occurrence.command_buffer] = Recording(self._make_context(0))
        place = Place(command.call, command.name, command.site, occurrence.command_buffer)
        hits = self._execute(recording.context, command, place, occurrence.queue_flags)
        for finding, key in self._report.findings(hits, place):
            if key not in recording.reported:
                recording.reported.add(key)
                yield finding

    def _submitted(self, occurrence: Submitted) -> Iterator[Finding]:
        context = self._queues.get(occurrence.queue)
        if context is None:
            context = self._queues[occurrence.queue] = self._make_context(occurrence.queue)
        context.submitted = occurrence.call
        for batch in occurrence.batches:
            for position, (buffer, commands) in enumerate(batch.buffers):
                recording = self._recordings.get(buffer)
                known = recording.reported if recording is not None else set()
                for command in commands:
                    place = Place(
                        command.call,
                        command.name,
                        command.site,
                        buffer,
                        occurrence.call,
                        batch.batch,
                        position,
                        occurrence.queue,
                    )
                    hits = self._execute(context, command, place, occurrence.queue_flags)
                    if hits:
                        yield from self._report.submitted(hits, place, known)
        if occurrence.fence:
            self._fences[occurrence.fence] = (occurrence.queue, occurrence.call)

    def _execute(self, context: Context, command: Command, place: Place, queue_flags: int) -> list[Hit]:
        """Checks every effect of a command against what came before it, then applies them all."""
        hits: list[Hit] = []
        accesses: list[Access] = []
        for effect in command.effects:
            if isinstance(effect, Access):
                accesses.append(effect)
            elif isinstance(effect, Barrier):
                hits += self._barrier(context, effect, place, queue_flags)
        # Accesses of one command do not conflict with one another: where they may meet, all are checked before any
        # is applied. Most commands touch each space once, and need one pass.
        alone = len({access.space for access in accesses}) == len(accesses)
        if not alone:
            for access in accesses:
                hits += context.check(access)
        for access in accesses:
            silent = access.layer_silent
            met = context.apply(access, replace(place, layer_silent=silent) if silent else place)
            if alone:
                hits += met
        return hits

    @staticmethod
    def _barrier(context: Context, barrier: Barrier, place: Place, queue_flags: int) -> list[Hit]:
        hits: list[Hit] = []
        ranges: list[RangeScope] = []
        for each in barrier.ranges:
            scope = expand(each.dependency, queue_flags)
            if each.transition:
                hits += context.check_transition(each.space, each.spans, (scope,), each.resource)
            ranges += [RangeScope(each.space, span, scope, each.transition) for span in each.spans]
        everything = tuple(expand(each, queue_flags) for each in barrier.globals)
        context.barrier(everything, ranges, place)
        return hits

    # -- the host ------------------------------------------------------------------------------------------------------

    def _host_waited(self, occurrence: HostWaited) -> None:
        """Work that the host has waited for no longer conflicts with anything (SYNC_RULES 2.11, host waits)."""
        for fence in occurrence.fences:
            queue, submit = self._fences.get(fence, (0, 0))
            if queue in self._queues:
                self._queues[queue].retire(submit)
        if not occurrence.fences:
            for queue, context in self._queues.items():
                if occurrence.queue in (0, queue):
                    context.retire(context.submitted)

    def _host_wrote(self, occurrence: HostWrote) -> Iterator[Finding]:
        """Host writes are visible to all later submits; unfinished device work conflicts with them."""
        place = Place(occurrence.call, "host write", occurrence.site)
        begin, end = occurrence.span
        hits: list[Hit] = []
        for context in self._queues.values():
            for span, entry in context.unfinished(occurrence.memory, begin, end):
                state = entry.slot.find().state
                if entry.reads:
                    prior, sync, kind = entry.reads[0], state.reads[0].sync, WRITE_AFTER_READ
                else:
                    assert entry.write is not None and state.write is not None
                    prior, sync, kind = entry.write, state.write.sync, WRITE_AFTER_WRITE
                hits.append(Hit(kind, span, HOST_WRITE, prior, sync, state, occurrence.memory))
        for finding, _ in self._report.findings(hits, place):
            finding.layer_silent = "the Khronos layer does not track host accesses (a limitation that it documents)"
            yield finding
